//! Device memory with what an issuing op must know: who wrote to it last, and who has read it since.

use crate::device::Device;
use crate::driver::DeviceAddress;
use crate::error::CudaError;
use crate::fence::Fence;
use crate::issue::Access;
use crate::label::Label;
use crate::memory::{Block, Freed, allocate};
use crate::stream::Stream;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_engine::AccessKind;

/// The fences of one op's accesses, or of one buffer.
pub(crate) type Fences = SmallVec<[Fence; 4]>;

enum Place {
    /// Nowhere yet.
    None,
    /// In a block of its own, which must be freed.
    Own(Block, Stream),
    /// In memory that somebody else keeps.
    Foreign(DeviceAddress),
}

struct State {
    place: Place,
    writer: Option<Fence>,
    /// The newest read of each stream since.
    readers: SmallVec<[Fence; 2]>,
}

/// Bytes in the memory of a device, allocated when the op that fills them is issued.
///
/// A variable of an engine orders the ops that use it; the buffer orders what they issue. Only ops that were granted
/// the variable come here, so a mutation is alone, and reads may come at the same time. When the last handle goes, so
/// have all its ops been issued, and its memory is freed behind them.
pub struct DeviceBuffer {
    device: Device,
    bytes: usize,
    state: Mutex<State>,
    _keeper: Option<Box<dyn Any + Send + Sync>>,
}

impl DeviceBuffer {
    /// A buffer of so many bytes.
    #[must_use]
    pub fn new(device: &Device, bytes: usize) -> Arc<Self> {
        Self::with(device, bytes, Place::None, None, None)
    }

    /// A buffer on memory that `keeper` keeps, which may be used behind `ready`.
    ///
    /// # Safety
    ///
    /// The bytes are memory of this device for as long as the keeper lives; nobody else touches them while ops may.
    /// The keeper may be dropped on any thread, while ops that were issued still run.
    #[must_use]
    pub unsafe fn foreign(
        device: &Device,
        address: DeviceAddress,
        bytes: usize,
        ready: Option<Fence>,
        keeper: Box<dyn Any + Send + Sync>,
    ) -> Arc<Self> {
        Self::with(device, bytes, Place::Foreign(address), ready, Some(keeper))
    }

    fn with(
        device: &Device,
        bytes: usize,
        place: Place,
        writer: Option<Fence>,
        keeper: Option<Box<dyn Any + Send + Sync>>,
    ) -> Arc<Self> {
        let state = Mutex::new(State { place, writer, readers: SmallVec::new() });
        Arc::new(Self { device: device.clone(), bytes, state, _keeper: keeper })
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

    /// The fence of the op that wrote to it last, of those issued.
    #[must_use]
    pub fn writer(&self) -> Option<Fence> {
        self.lock().writer.clone()
    }

    /// The fences of all ops that a mutation would have to be behind.
    #[must_use]
    pub fn fences(&self) -> Vec<Fence> {
        let state = self.lock();
        state.writer.iter().chain(&state.readers).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the stream of the op that alone has to do with the value: its writer, if nobody has read it since.
    #[inline]
    pub(crate) fn sole_stream(&self) -> Option<usize> {
        let state = self.lock();
        state.writer.as_ref().filter(|_| state.readers.is_empty()).map(|writer| writer.stream().number())
    }

    /// Where it lies, for an op about to be issued on this stream, and what that op has to be behind. Allocates.
    ///
    /// Its lock is held over the allocation, if there is one: whoever else could want it then reads what was never
    /// written, and has to wait for the memory too. It comes before the right to issue on a stream.
    pub(crate) fn prepare(
        &self,
        access: &Access,
        stream: &Stream,
        label: &Label,
        fences: &mut Fences,
    ) -> Result<DeviceAddress, CudaError> {
        let mut state = self.lock();
        if matches!(state.place, Place::None) && self.bytes > 0 {
            let own = stream.device_index() == self.device.index();
            let home = if own { stream } else { self.device.home_stream() };
            let _entered = self.device.context().enter()?;
            state.place = Place::Own(allocate(&self.device, self.bytes, home, label)?, home.clone());
        }
        let address = match &state.place {
            Place::Own(block, home) => {
                let (address, home) = (block.address, home.clone());
                // The op that it was allocated for has left no fence: it only read, or it failed, or it is being
                // issued right now.
                if state.writer.is_none() && !home.is(stream) {
                    state.writer = Some(home.fence(label)?);
                }
                address
            }
            Place::Foreign(address) => *address,
            Place::None => 0,
        };
        // Readers are behind the writer, so who is behind them is too. What is on the same stream needs no wait.
        let readers = if access.kind == AccessKind::Read { &[] } else { &*state.readers };
        let before = if readers.is_empty() { state.writer.as_slice() } else { readers };
        for fence in before {
            if !fence.stream().is(stream) {
                fences.push(fence.clone());
            }
        }
        Ok(address)
    }

    /// Notes that an op was issued.
    pub(crate) fn issued(&self, access: &Access, fence: &Fence) {
        let mut state = self.lock();
        if access.kind != AccessKind::Read {
            state.readers.clear();
            state.writer = Some(fence.clone());
        } else if state.writer.as_ref().is_some_and(|writer| writer.is(fence)) {
            // The op writes to it too.
        } else if let Some(reader) = state.readers.iter_mut().find(|reader| reader.stream().is(fence.stream())) {
            // Two readers on a stream may come here in the other order.
            if reader.cell().number < fence.cell().number {
                *reader = fence.clone();
            }
        } else {
            state.readers.push(fence.clone());
        }
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Place::Own(block, home) = &state.place else { return };
        let fences: Fences = state.writer.take().into_iter().chain(state.readers.drain(..)).collect();
        // On the stream of the last op, unless that is another device's.
        let last = fences.iter().rev().map(Fence::stream).find(|stream| stream.device_index() == home.device_index());
        let stream = last.unwrap_or(home).clone();
        Freed { block: *block, stream, fences }.issue();
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
