//! Issuing: from granted accesses to work on a stream and the fence behind it.
//!
//! 1. *Choose* a stream.
//! 2. *Prepare* the buffers: allocate missing memory, collect the fences that the accesses ask for.
//! 3. Take the stream's *turn*; make it *wait* for those fences that it is not behind already.
//! 4. *Issue*: calls of the driver that put work on the stream.
//! 5. *Record* an event behind it, unless that can wait for a first query; give the turn back, and leave the fence with the
//!    buffers.
//!
//! Foreign code, which issues on the stream while it holds locks of its own, gets in between [`Device::begin`] (1 to
//! 3) and [`Begun::finish`] (5) without the turn: others may get in too, and its fence then stands for their work as
//! well.

use super::request::Request;
use crate::buffers::{BufferAccess, Fences};
use crate::devices::Device;
use crate::driver::{DeviceAddress, Driver};
use crate::error::{CudaError, DriverError};
use crate::label::Label;
use crate::streams::{Entered, Fence, Mark, Marking, Span, Stream, Ties, Turn};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::AccessKind;

pub(crate) type Addresses = SmallVec<[DeviceAddress; 8]>;

/// An op at the moment at which it is issued: its stream is behind all that it must be behind.
pub(crate) struct Issuing<'a> {
    pub(crate) driver: &'a dyn Driver,
    pub(crate) stream: &'a Stream,
    /// Where the buffers lie, in the order of the accesses.
    pub(crate) addresses: &'a [DeviceAddress],
    pub(crate) label: &'a Label,
}

impl Issuing<'_> {
    /// What to answer when the driver refuses a call.
    pub(crate) fn refused(&self, error: DriverError) -> CudaError {
        self.stream.context().refused(self.label, error)
    }
}

/// Takes the stream's turn, and puts what comes next behind these fences. Their events are recorded before: on their own
/// streams, whose turns go with no other one.
#[inline]
fn follow<'s>(stream: &'s Stream, fences: &Fences) -> Result<Turn<'s>, CudaError> {
    for fence in fences.iter().filter(|fence| !fence.stream().is(stream) && fence.known().is_none()) {
        fence.recorded()?;
    }
    let mut turn = stream.turn();
    fences.iter().try_for_each(|fence| turn.wait_for(fence))?;
    Ok(turn)
}

#[inline]
fn prepare(
    request: &Request<'_>,
    stream: &Stream,
    mut ties: Option<&mut Ties>,
) -> Result<(Addresses, Fences), CudaError> {
    let (mut addresses, mut fences) = (Addresses::new(), Fences::new());
    for (at, access) in request.accesses.iter().enumerate() {
        // A fence is replaced once.
        let is_same = |other: &BufferAccess| Arc::ptr_eq(&other.buffer, &access.buffer);
        let ties = ties.as_deref_mut().filter(|_| !request.accesses[..at].iter().any(is_same));
        let is_only =
            access.kind == AccessKind::Overwrite && request.accesses.iter().filter(|other| is_same(other)).count() == 1;
        addresses.push(access.buffer.prepare((access, is_only), stream, request.label, &mut fences, ties)?);
    }
    Ok((addresses, fences))
}

fn issued(accesses: &[BufferAccess], fence: &Fence) {
    for access in accesses {
        access.buffer.issued(access, fence);
    }
}

impl Device {
    fn choose(&self, request: &Request<'_>) -> Result<Stream, CudaError> {
        let followed = request.accesses.iter().filter_map(|access| access.buffer.sole_stream(&access.range));
        let Some(named) = request.stream else { return self.stream_for(request.lane, request.priority, followed) };
        named.check_open(request.label)?;
        Ok(named.clone())
    }

    /// Issues an op whose accesses were granted: `work` puts it on the stream.
    #[inline]
    pub(crate) fn issue(
        &self,
        request: &Request<'_>,
        work: impl FnOnce(&Issuing<'_>) -> Result<(), CudaError>,
    ) -> Result<Fence, CudaError> {
        let _entered = self.context().enter()?;
        let label = &request.label.of_running(request.place);
        let request = &Request { label, ..*request };
        let stream = self.choose(request)?;
        let marking = request.marking();
        let mut ties = (marking == Marking::Lasting).then(Ties::default);
        let (addresses, fences) = prepare(request, &stream, ties.as_mut())?;
        let driver = self.context().driver();
        let issuing = Issuing { driver, stream: &stream, addresses: &addresses, label };
        let mut turn = follow(&stream, &fences)?;
        if let Some(ties) = &ties {
            turn.part(ties)?;
        }
        let announced = turn.announce(label)?;
        let span = turn.begin_span(label, request.moves as u64);
        let outcome = work(&issuing);
        turn.end_span(span);
        // Whatever the outcome: some of the work may be on its way.
        let fence = turn.leave(announced, label, marking);
        drop(turn);
        if let Ok(fence) = &fence {
            issued(request.accesses, fence);
        }
        outcome.and(fence)
    }

    /// Prepares a stream for foreign code that will issue on it.
    pub fn begin<'a>(&'a self, request: &Request<'a>) -> Result<Begun<'a>, CudaError> {
        let entered = self.context().enter()?;
        let (label, accesses) = (request.label.of_running(request.place), request.accesses);
        let request = &Request { label: &label, ..*request };
        let stream = self.choose(request)?;
        let (addresses, fences) = prepare(request, &stream, None)?;
        let mut turn = follow(&stream, &fences)?;
        turn.close()?;
        let taken = Some(stream.take_mark(&label)?);
        let span = turn.begin_span(&label, request.moves as u64);
        drop(turn);
        Ok(Begun { label, accesses, stream, addresses, taken, span, _entered: entered })
    }
}

/// An op that foreign code issues, on the thread that began it.
///
/// Dropped unfinished it is finished all the same: what was issued before an error may still use the buffers.
#[must_use = "what the op issues must be followed by a fence"]
pub struct Begun<'a> {
    label: Label,
    accesses: &'a [BufferAccess],
    stream: Stream,
    addresses: Addresses,
    /// The event for the fence to come; nothing when it has.
    taken: Option<Arc<Mark>>,
    span: Option<Span>,
    _entered: Entered<'a>,
}

impl Begun<'_> {
    /// The stream to issue on.
    #[must_use]
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Where the buffers lie, in the order of the accesses.
    #[must_use]
    pub fn addresses(&self) -> &[DeviceAddress] {
        &self.addresses
    }

    /// Puts a fence behind all that was issued.
    pub fn finish(mut self) -> Result<Fence, CudaError> {
        self.conclude()
    }

    fn conclude(&mut self) -> Result<Fence, CudaError> {
        let Some(taken) = self.taken.take() else { unreachable!("concluded once") };
        let mut turn = self.stream.turn();
        turn.end_span(self.span.take());
        let announced = turn.announce_taken(taken, &self.label);
        let fence = turn.leave(announced, &self.label, Marking::Now)?;
        drop(turn);
        issued(self.accesses, &fence);
        Ok(fence)
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        if self.taken.is_some() {
            // Refused means that the device is lost, which the next call says.
            let _ = self.conclude();
        }
    }
}

#[cfg(all(test, feature = "simulated"))]
mod tests {
    use super::Request;
    use crate::devices::Cuda;
    use crate::driver::simulated::{Settings, SimulatedDriver};
    use crate::label::Label;
    use std::sync::Arc;

    /// Who only looks never waits for who issues, and has the event recorded once the turn is to be had.
    #[test]
    fn a_look_waits_for_no_turn() {
        let cuda = Cuda::with_driver(Arc::new(SimulatedDriver::new(Settings::default())));
        let device = cuda.device(0).expect("a device");
        let label = Label::from("brief");
        let request = Request { brief: true, ..Request::new(&label, &[]) };
        let fence = device.issue(&request, |_| Ok(())).expect("it is issued");
        assert!(fence.event().is_none(), "nobody has asked");
        let turn = fence.stream().turn();
        assert!(!fence.is_done().expect("no fault"));
        assert!(fence.event().is_none(), "the turn was taken");
        drop(turn);
        assert!(fence.is_done().expect("no fault"));
        assert!(fence.event().is_some());
    }
}
