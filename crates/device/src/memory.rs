//! Arrays on a device, and the memory behind them.

use std::any::Any;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weft_array::{Array, ArrayError, Buffer, DType, Elsewhere, Home, Layout};
use weft_cuda::{CudaError, Device, DeviceBuffer};
use weft_engine::Engine;

/// Number, among an engine's devices, of the first CUDA device; CPU devices come before. With as many lanes as engines
/// have, those of the first sixteen devices of either kind are apart.
pub const FIRST_DEVICE: u16 = 0x8010;
/// Devices that are found without a search.
const DEVICES: usize = 64;

/// A CUDA device, as arrays know it.
struct CudaHome {
    device: Device,
    name: &'static str,
    number: u16,
}

impl Home for CudaHome {
    fn name(&self) -> &'static str {
        self.name
    }

    fn number(&self) -> u16 {
        self.number
    }

    fn memory(&self, bytes: usize, storages: usize) -> Arc<dyn Any + Send + Sync> {
        DeviceBuffer::renamed(&self.device, bytes, storages)
    }
}

impl CudaHome {
    fn new(device: &Device) -> Self {
        let index = device.index();
        Self {
            device: device.clone(),
            name: Box::leak(format!("cuda:{index}").into_boxed_str()), // once for each device
            number: FIRST_DEVICE.saturating_add(u16::try_from(index).unwrap_or(u16::MAX)),
        }
    }
}

/// A device as arrays know it: the same for as long as the process lives.
#[inline]
pub fn home_of(device: &Device) -> &'static dyn Home {
    static HOMES: [OnceLock<CudaHome>; DEVICES] = [const { OnceLock::new() }; DEVICES];
    let home = HOMES[device.index() % DEVICES].get_or_init(|| CudaHome::new(device));
    if home.device == *device { home } else { other_home_of(device) }
}

/// The same for one of another driver, as tests have them.
#[cold]
fn other_home_of(device: &Device) -> &'static dyn Home {
    static OTHERS: Mutex<Vec<&'static CudaHome>> = Mutex::new(Vec::new());
    let mut others = OTHERS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = others.iter().find(|known| known.device == *device) {
        return *known;
    }
    let made: &'static CudaHome = Box::leak(Box::new(CudaHome::new(device)));
    others.push(made);
    made
}

/// The device memory of an array that is on a device.
#[must_use]
pub fn buffer_of(array: &Array) -> Option<Arc<DeviceBuffer>> {
    array.buffer().memory_elsewhere()?.memory()
}

/// The same, to look at.
#[must_use]
#[inline]
pub fn memory_of(array: &Array) -> Option<&DeviceBuffer> {
    array.buffer().memory_elsewhere()?.get()
}

/// The same of an array that must be on a device.
#[inline]
pub fn expect(array: &Array) -> Result<&DeviceBuffer, ArrayError> {
    memory_of(array).ok_or_else(|| ArrayError::OnHost { shape: array.layout().shape.to_vec() })
}

/// What is said where memory of a device was looked for and is not.
#[must_use]
pub fn not_there() -> CudaError {
    CudaError::InvalidArgument("an array is not on a device".to_owned())
}

/// An array on this memory.
pub fn array_on(
    engine: &Engine,
    memory: Arc<DeviceBuffer>,
    readonly: bool,
    layout: Layout,
    dtype: DType,
) -> Result<Array, ArrayError> {
    let (bytes, home) = (memory.bytes(), home_of(memory.device()));
    Array::on(Buffer::elsewhere(engine, bytes, readonly, Elsewhere::new(home, memory)), layout, dtype)
}

/// An array of its own on a device, in C order, allocated when an op that fills it is issued; while this thread records, one
/// of the recording.
#[inline]
pub fn fresh(engine: &Engine, device: &Device, shape: &[usize], dtype: DType) -> Result<Array, ArrayError> {
    Array::made(shape, dtype, |bytes| Buffer::new_on(engine, bytes, home_of(device)))
}
