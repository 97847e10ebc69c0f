//! Device memory with the facts for an issuing op: its last writer, and its readers since.

use super::access::BufferAccess;
use super::freed::{Freed, allocate, allocate_at_once};
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

/// Where a buffer lies, and what was issued there.
struct Storage {
    place: Backing,
    /// Behind its allocation, where some have to wait for that alone: until an op has written to the whole.
    allocated: Option<Fence>,
    parts: Parts,
}

struct State {
    now: Storage,
    /// Whether other libraries were shown it.
    lent: bool,
    /// How many know where it lies, for a while.
    pins: usize,
    /// Where it lay before, the newest last; values there are of no use but to ops that were issued.
    spares: SmallVec<[Storage; 1]>,
    /// Accesses since it took another storage.
    calm: u32,
}

/// Accesses in a row without renaming after which a buffer gives its spares back.
const CALM: u32 = 64;

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
///
/// # Renaming
///
/// An op that overwrites the whole, and would have to wait for work on another stream, takes another storage instead: what was issued before has the
/// old one, what is issued later asks where the buffer lies, and finds the new one. Which one it takes:
///
/// | the buffer has | it takes |
/// |---|---|
/// | a spare whose users have ended | that; its stream is behind them all the same |
/// | fewer storages than it may have | a fresh block, in stream order; where the device has none left it waits as ever |
/// | as many as it may have | the oldest spare, and waits for its users: they are older than those of the values before |
///
/// So a loop goes round the same few blocks, and graphs find their addresses again. After some accesses without renaming the spares are freed.
/// A buffer stays where it lies if others know that (it was lent, is pinned, or is other libraries' memory), and if the op has another access to
/// it. What is issued as a graph never renames: its addresses would be new each time.
pub struct DeviceBuffer {
    device: Device,
    bytes: usize,
    /// The most blocks that it has at a time: with 1 it stays where it is.
    storages: usize,
    state: Mutex<State>,
    /// Taken when this is dropped.
    keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl DeviceBuffer {
    /// A buffer of so many bytes, which stays where it lies.
    #[must_use]
    pub fn new(device: &Device, bytes: usize) -> Arc<Self> {
        Self::renamed(device, bytes, 1)
    }

    /// A buffer of so many bytes, which has this many blocks at most at a time: what overwrites the whole of it need not wait for those that
    /// still use the values before.
    #[must_use]
    pub fn renamed(device: &Device, bytes: usize, storages: usize) -> Arc<Self> {
        Self::with(device, (bytes, storages), Backing::None, None, None)
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
        Self::with(device, (bytes, 1), Backing::Foreign(address), ready, Some(keeper))
    }

    fn with(
        device: &Device,
        (bytes, storages): (usize, usize),
        place: Backing,
        writer: Option<Fence>,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        let most = device.context().runtime.settings.parts;
        let now = Storage { place, allocated: None, parts: Parts::new(bytes, writer, most) };
        let state = Mutex::new(State { now, lent: false, pins: 0, spares: SmallVec::new(), calm: 0 });
        Arc::new(Self { device: device.clone(), bytes, storages, state, keeper })
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
        self.lock().now.parts.writer().cloned()
    }

    /// The fences of all ops that its free would have to be behind.
    #[must_use]
    pub fn fences(&self) -> Vec<Fence> {
        self.fences_before(&(0..self.bytes), AccessKind::Mutate)
    }

    /// The fences of the ops that such an access to these bytes would have to be behind, if it took no other block.
    #[must_use]
    pub fn fences_before(&self, range: &Range<usize>, kind: AccessKind) -> Vec<Fence> {
        let (mut fences, state) = (Vec::new(), self.lock());
        state.now.parts.before(range, kind, |fence| fences.push(fence.clone()));
        if kind != AccessKind::Read {
            fences.extend(state.spares.iter().flat_map(|spare| spare.parts.all()));
        }
        fences
    }

    /// Notes that another library was shown the memory: what it issues is not known, so the free comes behind all that
    /// is on the default stream by then.
    pub fn lend(&self) {
        self.lock().lent = true;
    }

    /// Keeps it where it lies: for an owner of its address.
    #[must_use]
    pub fn pin(self: &Arc<Self>) -> PinnedBuffer {
        self.lock().pins += 1;
        PinnedBuffer(Arc::clone(self))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the stream on which all is that has to do with the value of these bytes.
    #[inline]
    pub(crate) fn sole_stream(&self, range: &Range<usize>) -> Option<usize> {
        self.lock().now.parts.sole_stream(range)
    }

    /// Lies elsewhere from now on, if an op that overwrites all of it would else have to wait for another stream.
    #[cold]
    fn rename(&self, state: &mut State, stream: &Stream) -> Result<(), CudaError> {
        let is_done = |fence: &Fence| !matches!(fence.is_done(), Ok(false));
        let mut waits = false;
        state.now.parts.before(&(0..self.bytes), AccessKind::Mutate, |fence| {
            waits = waits || !fence.stream().is(stream) && !is_done(fence);
        });
        let is_own = matches!(state.now.place, Backing::Own(..)) && stream.device_index() == self.device.index();
        if !waits || !is_own || state.lent || state.pins > 0 {
            return Ok(());
        }
        let free = state.spares.iter().position(|spare| spare.parts.all().iter().all(is_done));
        let next = match free {
            Some(at) => state.spares.remove(at),
            None if state.spares.len() + 1 < self.storages => {
                let _entered = self.device.context().enter()?;
                let Some(block) = allocate_at_once(&self.device, self.bytes, stream)? else { return Ok(()) };
                let parts = Parts::new(self.bytes, None, self.device.context().runtime.settings.parts);
                Storage { place: Backing::Own(block, stream.clone()), allocated: None, parts }
            }
            None => state.spares.remove(0),
        };
        state.spares.push(std::mem::replace(&mut state.now, next));
        state.calm = 0;
        Ok(())
    }

    /// Gives spares back that were not needed for long.
    #[inline]
    fn calm_down(state: &mut State) {
        if !state.spares.is_empty() {
            state.calm += 1;
            if state.calm > CALM {
                state.spares.drain(..).for_each(|spare| spare.free(false));
            }
        }
    }

    /// Where it lies, for an op about to be issued on this stream, what that op has to be behind, and what it has to do with
    /// those before it there. Allocates.
    ///
    /// `is_only` says that it overwrites, and that the op has no other access to it.
    ///
    /// Its lock is held over the allocation, if there is one: whoever else could want it then reads what was never
    /// written, and has to wait for the memory too. It comes before the right to issue on a stream.
    pub(crate) fn prepare(
        &self,
        (access, is_only): (&BufferAccess, bool),
        stream: &Stream,
        label: &Label,
        fences: &mut Fences,
        mut ties: Option<&mut Ties>,
    ) -> Result<DeviceAddress, CudaError> {
        let mut state = self.lock();
        let state = &mut *state;
        Self::calm_down(state);
        if self.storages > 1 && is_only && state.now.parts.is_whole(&access.range) {
            self.rename(state, stream)?;
        }
        let state = &mut state.now;
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
        let state = &mut self.lock().now;
        if access.kind == AccessKind::Read {
            return state.parts.read(&access.range, fence);
        }
        state.parts.written(&access.range, fence);
        if state.allocated.is_some() && state.parts.is_whole(&access.range) {
            state.allocated = None;
        }
    }
}

/// The stream on which a block is freed: that of the last op, unless that is another device's; none, for where it was allocated, if all
/// are known to have ended and blocks are kept there: who allocates again finds it.
fn last_of<'a>(fences: &'a Fences, home: &Stream) -> Option<&'a Stream> {
    let has_ended = |fence: &&Fence| home.keeps_blocks() && matches!(fence.known(), Some(Ok(())));
    let mut others = fences.iter().rev().filter(|fence| !has_ended(fence)).map(Fence::stream);
    others.find(|stream| stream.device_index() == home.device_index())
}

/// A buffer that stays where it lies while this lives.
pub struct PinnedBuffer(Arc<DeviceBuffer>);

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        self.0.lock().pins -= 1;
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

impl Storage {
    /// Frees it behind its users, if it is a block of its own.
    fn free(&self, lent: bool) {
        let Backing::Own(block, home) = &self.place else { return };
        let fences: Fences = self.parts.all();
        let stream = last_of(&fences, home).unwrap_or(home).clone();
        Freed { block: *block, stream, fences, lent }.issue();
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.spares.iter().for_each(|spare| spare.free(false));
        match &state.now.place {
            Backing::Own(..) => state.now.free(state.lent),
            Backing::None | Backing::Foreign(_) => keep_behind(self.keeper.take(), state.now.parts.all()),
        }
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
