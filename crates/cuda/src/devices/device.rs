//! A device: its context, its streams, and which of them an op goes to.

use crate::driver::{Properties, StreamHandle};
use crate::error::CudaError;
use crate::label::Label;
use crate::memory::MemoryStats;
use crate::streams::{Context, Fence, Runtime, Stream};
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use weft_engine::{Cause, InOrder, OpContext, Payload, Wait};

/// Streams for kernels. More of them run side by side than a device has room for.
const COMPUTE_STREAMS: usize = 4;
/// Choices of a stream between two looks at finished work, and the difference of loads that counts as none: looks are
/// rough.
const LOOK: u32 = 32;
const ALIKE: u64 = 32;
/// How long an allocation that finds no memory waits for memory in use.
const PATIENCE: Duration = Duration::from_secs(10);

/// An op's share of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Lane {
    /// Its multiprocessors.
    #[default]
    Compute,
    /// The copy engine from the host.
    CopyIn,
    /// The copy engine to the host.
    CopyOut,
    /// The link between devices.
    CopyAcross,
}

/// The work on the compute streams, as far as known: they take turns, but for those that do not get on.
#[derive(Default)]
struct Loads {
    each: [u64; COMPUTE_STREAMS],
    chosen: u32,
    next: usize,
}

/// A closure that issues on a device.
struct IssuingOn<F> {
    queue: InOrder,
    work: F,
}

impl<F> Payload for IssuingOn<F>
where
    F: FnOnce(&mut OpContext<'_>) -> Result<(), Cause> + Send + 'static,
{
    fn queue(&self) -> Option<InOrder> {
        Some(self.queue)
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        (self.work)(context)
    }
}

struct Inner {
    queue: InOrder,
    context: Arc<Context>,
    compute: Vec<Stream>,
    loads: Mutex<Loads>,
    copy_in: Stream,
    copy_out: Stream,
    /// The greatest priority that streams have.
    greatest: i32,
    /// Made when they are first wanted: a device serves eight streams at a time, unless it is told otherwise, and a
    /// wait on one more holds up another's work.
    urgent: OnceLock<Stream>,
    copy_across: OnceLock<Stream>,
    /// Waits for other libraries' streams, and does nothing else.
    imports: OnceLock<Stream>,
    /// Streams for captures, without one under way.
    captures: Mutex<Vec<Stream>>,
    /// Held while a stream is adopted.
    adopting: Mutex<()>,
}

/// A handle on a device; clones share it.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

impl Device {
    pub(crate) fn new(runtime: &Arc<Runtime>, index: usize) -> Result<Self, CudaError> {
        let context = Arc::new(Context::new(runtime, index)?);
        let (least, greatest) = {
            let _entered = context.enter()?;
            context.driver().priorities().map_err(|error| context.refused("asking for priorities", error))?
        };
        let stream = |priority| Stream::new(&context, priority);
        let compute = (0..COMPUTE_STREAMS).map(|_| stream(least)).collect::<Result<_, _>>()?;
        // Copies go ahead of computation: others wait for them.
        let (copy_in, copy_out) = (stream(greatest)?, Stream::for_readers(&context, greatest)?);
        let (urgent, copy_across, imports) = Default::default();
        let (captures, adopting, loads) = Default::default();
        context.pin_ahead();
        Ok(Self(Arc::new(Inner {
            queue: InOrder::named(&format!("cuda:{index}")),
            context,
            compute,
            loads,
            copy_in,
            copy_out,
            greatest,
            urgent,
            copy_across,
            imports,
            captures,
            adopting,
        })))
    }

    #[inline]
    pub(crate) fn context(&self) -> &Arc<Context> {
        &self.0.context
    }

    /// Its number.
    #[must_use]
    pub fn index(&self) -> usize {
        self.0.context.index
    }

    /// What it is.
    #[must_use]
    pub fn properties(&self) -> &Properties {
        &self.0.context.properties
    }

    /// The fault that made it unusable.
    #[must_use]
    pub fn fault(&self) -> Option<&CudaError> {
        self.0.context.fault()
    }

    fn streams(&self) -> impl Iterator<Item = &Stream> {
        let inner = &*self.0;
        let seldom = inner.urgent.get().into_iter().chain(inner.copy_across.get());
        inner.compute.iter().chain([&inner.copy_in, &inner.copy_out]).chain(seldom)
    }

    /// A stream that many programs do without.
    fn seldom<'d>(&'d self, place: &'d OnceLock<Stream>) -> Result<&'d Stream, CudaError> {
        if let Some(stream) = place.get() {
            return Ok(stream);
        }
        let made = Stream::new(&self.0.context, self.0.greatest)?;
        Ok(place.get_or_init(|| made))
    }

    /// The purpose of the stream of this number, and its name among those of the device.
    pub(crate) fn purpose(&self, number: usize) -> (Lane, String) {
        let inner = &*self.0;
        let is = |stream: &Stream| stream.number() == number;
        let is_seldom = |place: &OnceLock<Stream>| place.get().is_some_and(is);
        let (lane, name) = match inner.compute.iter().position(is) {
            Some(at) => (Lane::Compute, format!("compute {at}")),
            None if is_seldom(&inner.urgent) => (Lane::Compute, "compute, urgent".to_owned()),
            None if is(&inner.copy_in) => (Lane::CopyIn, "copy in".to_owned()),
            None if is(&inner.copy_out) => (Lane::CopyOut, "copy out".to_owned()),
            None if is_seldom(&inner.copy_across) => (Lane::CopyAcross, "peer".to_owned()),
            None if is_seldom(&inner.imports) => (Lane::Compute, "imports".to_owned()),
            None => (Lane::Compute, format!("stream {number}")),
        };
        (lane, name)
    }

    pub(crate) fn import_stream(&self) -> Result<&Stream, CudaError> {
        self.seldom(&self.0.imports)
    }

    /// The stream for work without a stream of its own.
    pub(crate) fn home_stream(&self) -> &Stream {
        &self.0.compute[0]
    }

    /// The stream for an op: for a kernel that of the producer which it alone follows, otherwise the next one that gets
    /// on. `followed` are the numbers of streams that each have a value of the op's to themselves.
    pub(crate) fn stream_for(
        &self,
        lane: Lane,
        priority: i32,
        mut followed: impl Iterator<Item = usize>,
    ) -> Result<Stream, CudaError> {
        match lane {
            Lane::CopyIn => return Ok(self.0.copy_in.clone()),
            Lane::CopyOut => return Ok(self.0.copy_out.clone()),
            Lane::CopyAcross => return self.seldom(&self.0.copy_across).cloned(),
            Lane::Compute if priority > 0 => return self.seldom(&self.0.urgent).cloned(),
            Lane::Compute => {}
        }
        let compute = &self.0.compute;
        let followed = followed.find_map(|number| compute.iter().find(|own| own.number() == number));
        Ok(followed.unwrap_or_else(|| &compute[self.next_stream()]).clone())
    }

    /// The next compute stream that has not much more on it than others. Inside of the context.
    fn next_stream(&self) -> usize {
        let (compute, mut loads) = (&self.0.compute, self.0.loads.lock().unwrap_or_else(PoisonError::into_inner));
        if loads.chosen.is_multiple_of(LOOK) {
            for (load, stream) in loads.each.iter_mut().zip(compute) {
                *load = stream.look();
            }
        }
        let most = loads.each.iter().min().map_or(0, |least| least + ALIKE);
        let next = loads.next;
        let chosen = (next..next + COMPUTE_STREAMS).map(|at| at % COMPUTE_STREAMS).find(|at| loads.each[*at] <= most);
        let chosen = chosen.unwrap_or(0);
        loads.each[chosen] += 1;
        (loads.next, loads.chosen) = (chosen + 1, loads.chosen.wrapping_add(1));
        chosen
    }

    /// Takes part in a stream of another library, `CuPy` or torch.
    ///
    /// # Safety
    ///
    /// It is a stream of this device's primary context, and lives as long as the keeper, which may be dropped on any
    /// thread. A stream that is adopted again while it still is has one keeper, the first.
    #[must_use]
    pub unsafe fn adopt_stream(&self, handle: StreamHandle, keeper: Box<dyn Any + Send + Sync>) -> Stream {
        // One adoption at a time, so that two find the same stream.
        let _adopting = self.0.adopting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.0.context.streams().into_iter().find(|stream| stream.handle() == handle);
        // SAFETY: the caller's promise.
        known.unwrap_or_else(|| unsafe { Stream::adopt(&self.0.context, handle, keeper) })
    }

    /// A stream for a capture.
    pub(crate) fn capture_stream(&self) -> Result<Stream, CudaError> {
        let spare = self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.map_or_else(|| self.new_stream(), Ok)
    }

    /// Takes it back when the capture has ended well.
    pub(crate) fn captured_on(&self, stream: Stream) {
        self.0.captures.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// A payload that issues on this device: ops that do so are taken in the order of their pushes.
    pub fn issuing(&self, work: impl FnOnce(&mut OpContext<'_>) -> Result<(), Cause> + Send + 'static) -> impl Payload {
        IssuingOn { queue: self.queue(), work }
    }

    /// The queue of payloads that issue on it.
    #[must_use]
    #[inline]
    pub fn queue(&self) -> InOrder {
        self.0.queue
    }

    /// A stream for one user alone.
    pub fn new_stream(&self) -> Result<Stream, CudaError> {
        Stream::new(&self.0.context, 0)
    }

    /// A fence on each of its own streams, those that it chooses among, behind all that was issued so far.
    pub fn fences(&self, label: &Label) -> Result<Vec<Fence>, CudaError> {
        self.streams().map(|stream| stream.fence(label)).collect()
    }

    /// A fence behind all that is on another library's stream now. The stream may be destroyed afterwards.
    ///
    /// # Safety
    ///
    /// It is a stream of this device's primary context, or [`DEFAULT_STREAM`](crate::DEFAULT_STREAM).
    pub unsafe fn fence_behind(&self, other: StreamHandle, label: &Label) -> Result<Fence, CudaError> {
        let _entered = self.context().enter()?;
        // SAFETY: the caller's promise.
        unsafe { self.import_stream()?.turn().follow_foreign(other, label) }
    }

    /// Waits until all that was issued on its own streams so far has ended.
    pub fn synchronize(&self, wait: &mut Wait<'_>) -> Result<(), CudaError> {
        let label = Label::from("synchronize");
        self.fences(&label)?.iter().try_for_each(|fence| fence.wait(wait))
    }

    /// Whether host memory is pinned, so that the device reaches it by itself.
    ///
    /// # Safety
    ///
    /// The address is valid.
    #[must_use]
    pub unsafe fn is_pinned(&self, start: *const u8) -> bool {
        // SAFETY: the caller's promise; the context is current.
        self.0.context.enter().is_ok_and(|_entered| unsafe { self.0.context.driver().is_pinned(start) })
    }

    /// Bytes of its memory.
    pub fn memory_stats(&self) -> Result<MemoryStats, CudaError> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        // SAFETY: the context is current.
        let usage = unsafe { context.driver().usage(context.pool) };
        let usage = usage.map_err(|error| context.refused("asking for memory", error))?;
        let pinned = context.pinned.bytes() as u64;
        Ok(MemoryStats { held: usage.held, free: usage.free, total: usage.total, pinned, ..context.memory.stats() })
    }

    /// Gives back the blocks that its pool and the pool of pinned memory keep for reuse.
    pub fn trim(&self) -> Result<(), CudaError> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        context.free_pinned();
        context.streams().iter().for_each(Stream::free_kept);
        // SAFETY: the context is current.
        unsafe { context.driver().trim(context.pool) }.map_err(|error| context.refused("trimming", error))
    }

    /// Waits for the frees that are on their way, and gives back the kept blocks. No turn is held here.
    pub(crate) fn make_room(&self) -> Result<(), CudaError> {
        self.0.context.run_deferred();
        {
            let _entered = self.0.context.enter()?;
            self.0.context.streams().iter().for_each(Stream::free_kept);
        }
        match self.synchronize(&mut Wait { timeout: Some(PATIENCE), ..Wait::default() }) {
            Ok(()) | Err(CudaError::Timeout { .. }) => self.trim(),
            Err(error) => Err(error),
        }
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.properties().name;
        f.debug_struct("Device").field("index", &self.index()).field("name", name).finish()
    }
}

#[cfg(all(test, feature = "simulated"))]
mod tests {
    use super::Lane;
    use crate::devices::Cuda;
    use crate::driver::simulated::{Settings, SimulatedDriver};
    use crate::memory::Block;
    use std::sync::Arc;

    #[test]
    fn no_block_is_kept_where_nobody_allocates() {
        let cuda = Cuda::with_driver(Arc::new(SimulatedDriver::new(Settings::default())));
        let device = cuda.device(0).expect("a device");
        for (lane, keeps) in [(Lane::Compute, true), (Lane::CopyIn, true), (Lane::CopyOut, false)] {
            let stream = device.stream_for(lane, 0, std::iter::empty()).expect("a stream");
            assert_eq!(stream.keep(Block { address: 256, bytes: 8 }), keeps, "{lane:?}");
            assert_eq!(stream.take_kept(8).map(|block| block.address), keeps.then_some(256));
        }
    }
}
