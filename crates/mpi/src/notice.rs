//! The messages of ranks beside their collectives: that one has given up, or has ended.

use crate::symbols::{Library, Status};
use crate::{Handle, MpiError};

/// The tag of notices on *control*.
const TAG: i32 = 2;
/// Bytes of any notice: small enough to be sent eagerly.
const BYTES: usize = 1024;
/// Where its text starts.
const TEXT: usize = 16;

/// A rank's statement on itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// It takes part in nothing any more.
    Broken { rank: usize, text: String },
    /// It has ended, after so many collectives.
    Left { rank: usize, completed: u64, text: String },
}

impl Notice {
    fn encode(&self) -> Box<[u8; BYTES]> {
        let (kind, rank, number, text) = match self {
            Self::Broken { rank, text } => (1_u8, *rank, 0, text),
            Self::Left { rank, completed, text } => (2, *rank, *completed, text),
        };
        let mut bytes = Box::new([0; BYTES]);
        bytes[0] = kind;
        bytes[4..8].copy_from_slice(&u32::try_from(rank).unwrap_or(u32::MAX).to_le_bytes());
        bytes[8..16].copy_from_slice(&number.to_le_bytes());
        let length = text.len().min(BYTES - TEXT);
        bytes[TEXT..TEXT + length].copy_from_slice(&text.as_bytes()[..length]);
        bytes
    }

    fn decode(bytes: &[u8; BYTES]) -> Self {
        let rank = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]) as usize;
        let end = bytes[TEXT..].iter().position(|&byte| byte == 0).map_or(BYTES, |end| TEXT + end);
        let text = String::from_utf8_lossy(&bytes[TEXT..end]).into_owned();
        if bytes[0] == 1 {
            return Self::Broken { rank, text };
        }
        let mut completed = [0; 8];
        completed.copy_from_slice(&bytes[8..16]);
        Self::Left { rank, completed: u64::from_le_bytes(completed), text }
    }

    /// Tells all other ranks, and waits for none.
    pub(crate) fn send(&self, library: &Library, control: Handle, own: usize, size: usize) -> Result<(), MpiError> {
        // MPI reads it whenever it likes: a notice is sent once or twice in the life of a communicator.
        let bytes: &'static [u8; BYTES] = Box::leak(self.encode());
        for rank in (0..size).filter(|&rank| rank != own) {
            let mut request = 0;
            let (count, to) = (i32::try_from(BYTES).unwrap_or(0), i32::try_from(rank).unwrap_or(0));
            let byte = library.constants.byte;
            // SAFETY: the bytes stay; the request is freed, and the message goes on its own.
            unsafe {
                library.isend(bytes.as_ptr().cast(), count, byte, to, TAG, control, &raw mut request)?;
                library.request_free(&raw mut request)?;
            }
        }
        Ok(())
    }

    /// The next one that has come, if any has. One thread asks at a time.
    pub(crate) fn receive(library: &Library, control: Handle) -> Result<Option<Self>, MpiError> {
        let (any, mut flag, mut status) = (library.constants.any_source, 0, Status::default());
        let status = status.as_mut_ptr().cast();
        // SAFETY: there is room for a status.
        unsafe { library.iprobe(any, TAG, control, &raw mut flag, status) }?;
        if flag == 0 {
            return Ok(None);
        }
        let mut bytes = [0; BYTES];
        let count = i32::try_from(BYTES).unwrap_or(0);
        // SAFETY: it is there, so there is no wait; there is room for it.
        unsafe { library.recv(bytes.as_mut_ptr().cast(), count, library.constants.byte, any, TAG, control, status) }?;
        Ok(Some(Self::decode(&bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_survives_the_way() {
        for notice in [
            Notice::Broken { rank: 3, text: "a shape".to_owned() },
            Notice::Left { rank: 0, completed: 1 << 40, text: String::new() },
        ] {
            assert_eq!(Notice::decode(&notice.encode()), notice);
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        let notice = Notice::Broken { rank: 1, text: "x".repeat(5000) };
        assert!(matches!(Notice::decode(&notice.encode()), Notice::Broken { text, .. } if text.len() == BYTES - TEXT));
    }
}
