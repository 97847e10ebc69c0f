//! How ranks agree on a call before it starts, in checking mode.

use crate::MpiError;
use crate::communicator::{Call, Communicator, Stopped};
use crate::header::{self, Header};
use crate::symbols::Status;

impl Communicator {
    /// Tells all ranks what this one is about to do, and hears the same from them.
    pub(crate) fn agree(&self, call: &mut Call<'_>) -> Result<(), Stopped> {
        let (size, own) = (self.settings().size, self.settings().rank);
        let header = Header::new(call.job, call.number.unwrap_or(0));
        // One box for all: if it is given up on, MPI may still write there.
        let mut given: Box<Headers> = Box::new(Headers::new(size, &header.encode()));
        let outcome = self.exchange(call, &mut given);
        if let Err(stopped) = outcome {
            Box::leak(given);
            return Err(Stopped { abandoned: false, ..stopped });
        }
        let decode = |(rank, bytes)| if rank == own { header.clone() } else { Header::decode(bytes) };
        let headers: Vec<Header> = given.received.iter().enumerate().map(decode).collect();
        if headers.iter().all(|other| header.agrees(other)) {
            return Ok(());
        }
        let (number, name) = (call.number.unwrap_or(0), &self.settings().name);
        let told = header::tell(&headers);
        let reason = format!("the ranks of communicator '{name}' differ in collective {number}: {told}");
        Err(Stopped { reason, abandoned: false })
    }

    fn exchange(&self, call: &mut Call<'_>, headers: &mut Headers) -> Result<(), Stopped> {
        let own = self.settings().rank;
        let Headers { sent, received, requests } = headers;
        let others = || (0..self.settings().size).filter(move |&rank| rank != own);
        for rank in others() {
            let (on, out) = (&raw mut requests[2 * rank], &raw mut requests[2 * rank + 1]);
            // SAFETY: the headers stay until both are done, or for ever.
            unsafe {
                self.receive_header(&raw mut received[rank], rank, header::TAG, on)?;
                self.send_header(&raw const *sent, rank, header::TAG, out)?;
            }
        }
        let mut status = Status::default();
        for rank in others() {
            self.poll(call, &mut requests[2 * rank], &mut status, Some(rank))?;
            self.poll(call, &mut requests[2 * rank + 1], &mut status, Some(rank))?;
        }
        Ok(())
    }

    /// Tells the receiver of a message what comes.
    pub(crate) fn announce(&self, call: &mut Call<'_>, to: i32, tag: i32) -> Result<(), Stopped> {
        let rank = usize::try_from(to).unwrap_or(0);
        let (sent, mut request) = (Box::new(Header::new(call.job, 0).encode()), 0);
        // SAFETY: the header stays until it is done, or for ever.
        unsafe { self.send_header(&raw const *sent, rank, header::MESSAGE_TAGS + tag, &raw mut request) }?;
        let outcome = self.poll(call, &mut request, &mut Status::default(), Some(rank));
        if let Err(stopped) = outcome {
            Box::leak(sent);
            return Err(Stopped { abandoned: false, ..stopped });
        }
        Ok(())
    }

    /// Hears from the sender of a message what comes, and compares.
    pub(crate) fn expect(&self, call: &mut Call<'_>, from: i32, tag: i32) -> Result<(), Stopped> {
        let rank = usize::try_from(from).unwrap_or(0);
        let (mut received, mut request) = (Box::new([0; header::BYTES]), 0);
        // SAFETY: there is room until it is done, or for ever.
        unsafe { self.receive_header(&raw mut *received, rank, header::MESSAGE_TAGS + tag, &raw mut request) }?;
        let outcome = self.poll(call, &mut request, &mut Status::default(), Some(rank));
        if let Err(stopped) = outcome {
            Box::leak(received);
            return Err(Stopped { abandoned: false, ..stopped });
        }
        let (own, other) = (Header::new(call.job, 0), Header::decode(&received));
        if own.agrees(&other) {
            return Ok(());
        }
        let reason = format!(
            "the ends of a message of communicator '{}' differ: rank {rank} sends {}; rank {} is in {}",
            self.settings().name,
            other.describe(),
            self.settings().rank,
            call.job.describe(),
        );
        Err(Stopped { reason, abandoned: false })
    }

    /// # Safety
    ///
    /// The header stays until the request is done.
    unsafe fn send_header(
        &self,
        header: *const header::Bytes,
        to: usize,
        tag: i32,
        request: *mut u64,
    ) -> Result<(), MpiError> {
        let (count, to) = (i32::try_from(header::BYTES).unwrap_or(0), i32::try_from(to).unwrap_or(0));
        let (byte, on) = (self.library.constants.byte, self.settings().control);
        // SAFETY: the caller's promise.
        unsafe { self.library.isend(header.cast(), count, byte, to, tag, on, request) }
    }

    /// # Safety
    ///
    /// There is room for the header until the request is done.
    unsafe fn receive_header(
        &self,
        header: *mut header::Bytes,
        from: usize,
        tag: i32,
        request: *mut u64,
    ) -> Result<(), MpiError> {
        let (count, from) = (i32::try_from(header::BYTES).unwrap_or(0), i32::try_from(from).unwrap_or(0));
        let (byte, on) = (self.library.constants.byte, self.settings().control);
        // SAFETY: the caller's promise.
        unsafe { self.library.irecv(header.cast(), count, byte, from, tag, on, request) }
    }
}

/// Headers on their way.
struct Headers {
    sent: header::Bytes,
    received: Vec<header::Bytes>,
    /// Of each rank, that of what comes and that of what goes.
    requests: Vec<u64>,
}

impl Headers {
    fn new(size: usize, sent: &header::Bytes) -> Self {
        Self { sent: *sent, received: vec![[0; header::BYTES]; size], requests: vec![0; 2 * size] }
    }
}
