//! Device memory with the facts for an issuing op: its last writer, and its readers since.

use super::access::BufferAccess;
use super::freed::{Freed, allocate};
use super::parts::Parts;
use crate::devices::Device;
use crate::driver::DeviceAddress;
use crate::error::CudaError;
use crate::label::Label;
use crate::memory::Block;
use crate::streams::{Fence, Stream, Ties};
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::AccessKind;

/// The fences of one op's accesses, or of one buffer.
pub(crate) type Fences = SmallVec<[Fence; 4]>;

enum Backing {
    /// Nowhere yet.
    None,
    /// In a block of its own, which must be freed.
    Own(Block, Stream),
    /// In memory that somebody else keeps.
    Foreign(DeviceAddress),
}

struct State {
    place: Backing,
    /// Behind its allocation, where some have to wait for that alone: until an op has written to the whole.
    allocated: Option<Fence>,
    /// Whether other libraries were shown it.
    lent: bool,
    parts: Parts,
}

/// Bytes in the memory of a device, allocated when the op that fills them is issued.
///
/// Variables of an engine order the ops that use it, range by range; the buffer orders what they issue, in `parts`. Only
/// ops that were granted their bytes come here, so a mutation is alone on its range, and reads, and mutations of other
/// ranges, may come at the same time. When the last handle goes, so have all its ops been issued, and its memory is freed
/// behind them.
///
/// It is allocated on the stream of the op that is issued first. What comes on another stream is behind the allocation:
/// by way of the ops that it follows; and where there is none, by a fence, which is recorded
///
/// | when | why |
/// |---|---|
/// | right behind the allocation, if that was for a part | those who write to the others need not wait for the op |
/// | when it is first asked for, otherwise | most buffers are written to as a whole first, and need none |
pub struct DeviceBuffer {
    device: Device,
    bytes: usize,
    state: Mutex<State>,
    /// Taken when this is dropped.
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl DeviceBuffer {
    /// A buffer of so many bytes.
    #[must_use]
    pub fn new(device: &Device, bytes: usize) -> Arc<Self> {
        Self::with(device, bytes, Backing::None, None, None)
    }

    /// A buffer on memory that `keeper` keeps, which may be used behind `ready`.
    ///
    /// # Safety
    ///
    /// The bytes are memory of this device for as long as the keeper lives; nobody else touches them while ops may.
    /// The keeper may be dropped on any thread; it is when all ops on the buffer have ended on the device.
    #[must_use]
    pub unsafe fn foreign(
        device: &Device,
        address: DeviceAddress,
        bytes: usize,
        ready: Option<Fence>,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        Self::with(device, bytes, Backing::Foreign(address), ready, Some(keeper))
    }

    fn with(
        device: &Device,
        bytes: usize,
        place: Backing,
        writer: Option<Fence>,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        let most = device.context().runtime.settings.parts;
        let state = Mutex::new(State { place, allocated: None, lent: false, parts: Parts::new(bytes, writer, most) });
        Arc::new(Self { device: device.clone(), bytes, state, keeper })
    }

    /// Its size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device in whose memory it lies.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The fence of the op that wrote to it last, of those issued; nothing if ops have written to parts of it since.
    #[must_use]
    pub fn writer(&self) -> Option<Fence> {
        self.lock().parts.writer().cloned()
    }

    /// The fences of all ops that its free would have to be behind.
    #[must_use]
    pub fn fences(&self) -> Vec<Fence> {
        self.lock().parts.all().into_vec()
    }

    /// The fences of the ops that such an access to these bytes would have to be behind.
    #[must_use]
    pub fn fences_before(&self, range: &Range<usize>, kind: AccessKind) -> Vec<Fence> {
        let mut fences = Vec::new();
        self.lock().parts.before(range, kind, |fence| fences.push(fence.clone()));
        fences
    }

    /// Notes that another library was shown the memory: what it issues is not known, so the free comes behind all that
    /// is on the default stream by then.
    pub fn lend(&self) {
        self.lock().lent = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the stream on which all is that has to do with the value of these bytes.
    #[inline]
    pub(crate) fn sole_stream(&self, range: &Range<usize>) -> Option<usize> {
        self.lock().parts.sole_stream(range)
    }

    /// Where it lies, for an op about to be issued on this stream, what that op has to be behind, and what it has to do with
    /// those before it there. Allocates.
    ///
    /// Its lock is held over the allocation, if there is one: whoever else could want it then reads what was never
    /// written, and has to wait for the memory too. It comes before the right to issue on a stream.
    pub(crate) fn prepare(
        &self,
        access: &BufferAccess,
        stream: &Stream,
        label: &Label,
        fences: &mut Fences,
        mut ties: Option<&mut Ties>,
    ) -> Result<DeviceAddress, CudaError> {
        let mut state = self.lock();
        let state = &mut *state;
        if matches!(state.place, Backing::None) && self.bytes > 0 {
            let own = stream.device_index() == self.device.index();
            let home = if own { stream } else { self.device.home_stream() };
            let _entered = self.device.context().enter()?;
            state.place = Backing::Own(allocate(&self.device, self.bytes, home, label)?, home.clone());
            if !state.parts.is_whole(&access.range) {
                state.allocated = Some(home.fence(label)?);
            }
        }
        // What is on the same stream needs no wait.
        let bare = state.parts.before(&access.range, access.kind, |fence| {
            if !fence.stream().is(stream) {
                fences.push(fence.clone());
            } else if let Some(ties) = &mut ties {
                ties.follow(fence);
            }
        });
        if let Some(ties) = ties {
            let own = |fence: &Fence| fence.stream().is(stream);
            state.parts.replaced(&access.range, access.kind, |fence| {
                if own(fence) {
                    ties.replace(fence);
                }
            });
        }
        match &state.place {
            Backing::Own(block, home) => {
                // The op that it was allocated for has left no fence here: it only read, or it failed, it touches
                // other bytes, or it is being issued right now.
                if bare && !home.is(stream) {
                    let allocated = match state.allocated.take() {
                        Some(fence) => fence,
                        None => home.fence(label)?,
                    };
                    fences.push(state.allocated.insert(allocated).clone());
                }
                Ok(block.address)
            }
            Backing::Foreign(address) => Ok(*address),
            Backing::None => Ok(0),
        }
    }

    /// Notes that an op was issued.
    pub(crate) fn issued(&self, access: &BufferAccess, fence: &Fence) {
        let mut state = self.lock();
        if access.kind == AccessKind::Read {
            return state.parts.read(&access.range, fence);
        }
        state.parts.written(&access.range, fence);
        if state.allocated.is_some() && state.parts.is_whole(&access.range) {
            state.allocated = None;
        }
    }
}

/// Lets go of what keeps foreign memory when nothing uses that any more: whose it is may use it again at once.
fn keep_behind(keeper: Option<Box<dyn Any + Send + Sync>>, fences: Fences) {
    let keeper = Arc::new(keeper);
    for fence in fences {
        if matches!(fence.is_done(), Ok(false)) {
            let keeper = Arc::clone(&keeper);
            fence.when_done(move |_| drop(keeper));
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let fences: Fences = state.parts.all();
        let Backing::Own(block, home) = &state.place else { return keep_behind(self.keeper.take(), fences) };
        // On the stream of the last op, unless that is another device's; where it was allocated, if all are known to have
        // ended and blocks are kept there: who allocates again finds it.
        let has_ended = |fence: &&Fence| home.keeps_blocks() && matches!(fence.known(), Some(Ok(())));
        let mut others = fences.iter().rev().filter(|fence| !has_ended(fence)).map(Fence::stream);
        let last = others.find(|stream| stream.device_index() == home.device_index());
        let stream = last.unwrap_or(home).clone();
        Freed { block: *block, stream, fences, lent: state.lent }.issue();
    }
}

impl fmt::Debug for DeviceBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceBuffer")
            .field("device", &self.device.index())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
