//! The issued work of steps: launches and copies within devices, on the arrays that a replay gives
//! them.

use crate::memory::{buffer_of, not_there};
use weft_array::{Access, Array, Operands};
use weft_cuda::{CopyWithin, CudaError, Device, Label, Launch, Region};
use weft_engine::AccessKind;

/// What copies are called.
pub(crate) const COPY: &str = "copy";

pub(crate) fn label(place: u64) -> Label {
    Label::from(COPY).at(place)
}

pub(crate) fn region(array: &Array) -> Result<Option<Region>, CudaError> {
    buffer_of(array).map(|buffer| Region::new(&buffer, array.layout().offset, array.bytes())).transpose()
}

/// A launch, as it was recorded.
pub(crate) struct Launched(pub(crate) Launch);

/// What a launch does with an array: the bytes from its first element on, and those that it reaches.
fn access((array, access): &(Array, Access)) -> Result<(usize, weft_cuda::BufferAccess), CudaError> {
    let kind = match access {
        Access::Read => AccessKind::Read,
        // What lies between the elements stays, and so does what is beside them.
        Access::Overwrite if array.is_flat() => AccessKind::Overwrite,
        Access::Mutate | Access::Overwrite => AccessKind::Mutate,
    };
    let buffer = buffer_of(array).ok_or_else(not_there)?;
    Ok((array.layout().offset, weft_cuda::BufferAccess { buffer, range: array.range(), kind }))
}

impl Launched {
    /// The launch on these arrays.
    pub(crate) fn on(&self, arrays: &Operands) -> Result<Launch, CudaError> {
        self.0.on(arrays.iter().map(access))
    }
}

/// A copy between arrays of devices.
pub(crate) struct Copied {
    pub(crate) device: Device,
    pub(crate) place: u64,
    /// Whether both are on one device.
    pub(crate) alone: bool,
}

impl Copied {
    /// The copy between these arrays, of one device; none if there are no such.
    pub(crate) fn on(&self, arrays: &Operands) -> Result<Option<CopyWithin>, CudaError> {
        let [(to, _), (from, _)] = &arrays[..] else { return Ok(None) };
        let regions = region(to)?.zip(region(from)?);
        regions.map(|(to, from)| CopyWithin::new(label(self.place), to, from)).transpose()
    }
}
