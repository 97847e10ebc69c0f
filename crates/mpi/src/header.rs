//! Headers: the next call of each rank, as it tells the others in checking mode.

use crate::job::{Job, Work};
use std::fmt::Write;

/// The tag of collectives' headers on *control*.
pub(crate) const TAG: i32 = 1;
/// The offset of a header's tag from its message's.
pub(crate) const MESSAGE_TAGS: i32 = 16;
/// Bytes of any header: small enough to be sent eagerly.
pub(crate) const BYTES: usize = 512;
/// Where the text starts: the signature, a line end, the place.
const TEXT: usize = 8;

pub(crate) type Bytes = [u8; BYTES];

/// A rank's statement of its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    number: u64,
    signature: String,
    place: String,
}

/// The part of a signature that both ends of a message must share.
fn of_message(signature: &str) -> &str {
    signature.split_once(" of ").map_or(signature, |(_, what)| what)
}

impl Header {
    /// The header of a rank's `number`th collective, or of a message.
    pub(crate) fn new(job: &Job, number: u64) -> Self {
        let message = matches!(job.work, Work::Send { .. } | Work::Receive { .. });
        let signature = if message { of_message(&job.signature) } else { &job.signature };
        Self { number, signature: signature.to_owned(), place: job.place.describe() }
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut bytes = [0; BYTES];
        bytes[..TEXT].copy_from_slice(&self.number.to_le_bytes());
        let text = format!("{}\n{}", self.signature, self.place);
        let length = text.len().min(BYTES - TEXT);
        bytes[TEXT..TEXT + length].copy_from_slice(&text.as_bytes()[..length]);
        bytes
    }

    pub(crate) fn decode(bytes: &Bytes) -> Self {
        let mut number = [0; 8];
        number.copy_from_slice(&bytes[..TEXT]);
        let end = bytes[TEXT..].iter().position(|&byte| byte == 0).map_or(BYTES, |end| TEXT + end);
        let text = String::from_utf8_lossy(&bytes[TEXT..end]);
        let (signature, place) = text.split_once('\n').unwrap_or((&text, ""));
        Self { number: u64::from_le_bytes(number), signature: signature.to_owned(), place: place.to_owned() }
    }

    /// Whether two ranks do the same.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        self.number == other.number && self.signature == other.signature
    }

    /// The call and its place, in words.
    pub(crate) fn describe(&self) -> String {
        if self.place.is_empty() { self.signature.clone() } else { format!("{} at {}", self.signature, self.place) }
    }
}

/// Ranks that differ are listed up to so many groups.
const GROUPS: usize = 8;

/// Tells the call of each rank; those with the same call from the same place together.
pub(crate) fn tell(headers: &[Header]) -> String {
    let mut groups: Vec<(&Header, Vec<usize>)> = Vec::new();
    for (rank, header) in headers.iter().enumerate() {
        match groups.iter_mut().find(|(known, _)| *known == header) {
            Some((_, ranks)) => ranks.push(rank),
            None => groups.push((header, vec![rank])),
        }
    }
    let mut text = String::new();
    for (header, ranks) in groups.iter().take(GROUPS) {
        let separator = if text.is_empty() { "" } else { "; " };
        let (named, call) = if ranks.len() == 1 { ("rank", "calls") } else { ("ranks", "call") };
        let listed: Vec<String> = ranks.iter().take(GROUPS).map(ToString::to_string).collect();
        let more = if ranks.len() > GROUPS { ", ..." } else { "" };
        let _ = write!(text, "{separator}{named} {}{more} {call} {}", listed.join(", "), header.describe());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(signature: &str, place: &str) -> Header {
        Header { number: 5, signature: signature.to_owned(), place: place.to_owned() }
    }

    #[test]
    fn a_header_survives_the_way() {
        let sent = header("all_reduce(sum) of float32 (3, 4)", "train.py:12");
        assert_eq!(Header::decode(&sent.encode()), sent);
        assert!(sent.agrees(&header("all_reduce(sum) of float32 (3, 4)", "other.py:1")));
        assert!(!sent.agrees(&header("all_reduce(sum) of float32 (4, 3)", "train.py:12")));
    }

    #[test]
    fn ranks_are_told_in_groups() {
        let told = tell(&[header("barrier", "a:1"), header("barrier", "b:2"), header("barrier", "a:1")]);
        assert_eq!(told, "ranks 0, 2 call barrier at a:1; rank 1 calls barrier at b:2");
    }
}
