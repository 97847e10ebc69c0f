//! How ranks agree on a call before it starts, in checking mode.

use crate::MpiError;
use crate::communicator::Communicator;
use crate::flight::{Call, Halt, Headers, Lent, Phase};
use crate::header::{self, Header};
use crate::symbols::Status;
use std::mem::replace;

impl Communicator {
    /// Tells all ranks the next call of this one, and hears theirs.
    pub(crate) fn agree(&self, call: &mut Call<'_>) -> Result<(), Halt> {
        let (size, own) = (self.settings().size, self.settings().rank);
        let number = call.flight.number.unwrap_or(0);
        let header = Header::new(call.job, number);
        let (given, posted) = if let Phase::Agreeing(given) = replace(&mut call.flight.phase, Phase::New) {
            (given, Ok(()))
        } else {
            let given = Lent::new(Headers::new(size, &header.encode()));
            let posted = self.exchange(&given);
            (given, posted)
        };
        let outcome = posted.map_err(Halt::from).and_then(|()| self.hear(call, &given));
        match outcome {
            Ok(()) => {}
            Err(Halt::Away) => {
                call.flight.phase = Phase::Agreeing(given);
                return Err(Halt::Away);
            }
            // MPI may still write to the headers, which stay.
            Err(failed) => return Err(failed.without_memory()),
        }
        // SAFETY: all requests are done.
        let given = unsafe { given.back() };
        let decode = |(rank, bytes)| if rank == own { header.clone() } else { Header::decode(bytes) };
        let headers: Vec<Header> = given.received.iter().enumerate().map(decode).collect();
        if headers.iter().all(|other| header.agrees(other)) {
            return Ok(());
        }
        let (name, told) = (&self.settings().name, header::tell(&headers));
        Err(Halt::failed(format!("the ranks of communicator '{name}' differ in collective {number}: {told}")))
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.settings().rank;
        (0..self.settings().size).filter(move |&rank| rank != own)
    }

    /// Lets the headers go.
    fn exchange(&self, headers: &Lent<Headers>) -> Result<(), MpiError> {
        let at = headers.at();
        // SAFETY: MPI has none of it yet.
        let (received, requests) = unsafe { ((*at).received.as_mut_ptr(), &mut (*at).requests) };
        for rank in self.others() {
            let (on, out) = (&raw mut requests[2 * rank], &raw mut requests[2 * rank + 1]);
            // SAFETY: there is room for each rank's; the headers stay until both requests are done, or for ever.
            unsafe {
                self.receive_header(received.add(rank), rank, header::TAG, on)?;
                self.send_header(&raw const (*at).sent, rank, header::TAG, out)?;
            }
        }
        Ok(())
    }

    /// Waits for them. Requests that are done stay so.
    fn hear(&self, call: &mut Call<'_>, headers: &Lent<Headers>) -> Result<(), Halt> {
        let mut status = Status::default();
        // SAFETY: MPI looks at the requests while it is called with them, and at no other time.
        let requests = unsafe { &mut (*headers.at()).requests };
        for rank in self.others() {
            for request in &mut requests[2 * rank..2 * rank + 2] {
                self.poll(call, request, &mut status, Some(rank))?;
            }
        }
        Ok(())
    }

    /// Tells the receiver of a message its header.
    pub(crate) fn announce(&self, call: &mut Call<'_>, to: i32, tag: i32) -> Result<(), Halt> {
        let job = call.job;
        let rank = usize::try_from(to).unwrap_or(0);
        let post = |header: *mut header::Bytes, request: &mut u64| {
            // SAFETY: the header stays until it is done, or for ever.
            unsafe { self.send_header(header, rank, header::MESSAGE_TAGS + tag, request) }
        };
        self.pass_header(call, rank, || Header::new(job, 0).encode(), post).map(drop)
    }

    /// Hears a message's header from its sender, and compares.
    pub(crate) fn expect(&self, call: &mut Call<'_>, from: i32, tag: i32) -> Result<(), Halt> {
        let job = call.job;
        let rank = usize::try_from(from).unwrap_or(0);
        let post = |header: *mut header::Bytes, request: &mut u64| {
            // SAFETY: there is room until it is done, or for ever.
            unsafe { self.receive_header(header, rank, header::MESSAGE_TAGS + tag, request) }
        };
        let received = self.pass_header(call, rank, || [0; header::BYTES], post)?;
        let (own, other) = (Header::new(job, 0), Header::decode(&received));
        if own.agrees(&other) {
            return Ok(());
        }
        Err(Halt::failed(format!(
            "the ends of a message of communicator '{}' differ: rank {rank} sends {}; rank {} is in {}",
            self.settings().name,
            other.describe(),
            self.settings().rank,
            job.describe(),
        )))
    }

    /// Posts the header of a message, unless it is on its way, and waits for it. Answers it.
    fn pass_header(
        &self,
        call: &mut Call<'_>,
        rank: usize,
        begin: impl FnOnce() -> header::Bytes,
        post: impl FnOnce(*mut header::Bytes, &mut u64) -> Result<(), MpiError>,
    ) -> Result<header::Bytes, Halt> {
        let (bytes, mut request) = if let Phase::Announced(bytes, request) = replace(&mut call.flight.phase, Phase::New)
        {
            (bytes, request)
        } else {
            let (bytes, mut request) = (Lent::new(begin()), 0);
            post(bytes.at(), &mut request)?;
            (bytes, request)
        };
        match self.poll(call, &mut request, &mut Status::default(), Some(rank)) {
            // SAFETY: the request is done.
            Ok(()) => Ok(unsafe { bytes.back() }),
            Err(Halt::Away) => {
                call.flight.phase = Phase::Announced(bytes, request);
                Err(Halt::Away)
            }
            // MPI may still write to the header, which stays.
            Err(failed) => Err(failed.without_memory()),
        }
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
