//! Copies: pushed, or recorded as steps.
//!
//! One from or to the host is two ops (see `weft_cuda::Landing`): one issues it, one ends when the device has done with the
//! host's memory. In a recording they share a *receipt*, an array of one number that the first one writes and the second one
//! reads: so each replay lands its own copies, and no replay waits for a copy that was not issued.

use crate::issued::{COPY, Copied, label, region};
use crate::memory::home_of;
use crate::together::together;
use std::any::Any;
use std::collections::HashMap;
use std::mem::offset_of;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_array::{
    Access, Array, ArrayError, Call, DType, Opaque, Operands, Step, Together, push, push_pair, record, recording,
};
use weft_cuda::{CudaError, Device, HostMemory, Land, Landing, Region, copy_in, copy_out};
use weft_engine::trace::Note;
use weft_engine::{Cause, Engine, InOrder, OpContext, Payload, PlaceOffset, PushOptions};

/// What is called that waits for the host's memory.
const LAND: &str = "land copy";

/// Why a copy was not pushed.
pub enum CopyError {
    /// An array was refused.
    Array(ArrayError),
    /// Memory of a device was.
    Cuda(CudaError),
}

impl From<ArrayError> for CopyError {
    fn from(error: ArrayError) -> Self {
        Self::Array(error)
    }
}

impl From<CudaError> for CopyError {
    fn from(error: CudaError) -> Self {
        Self::Cuda(error)
    }
}

/// Where a copy was asked for, and what a trace is to know of its two ops.
#[derive(Clone, Copy, Default)]
pub struct Noted {
    /// The key of the place.
    pub place: u64,
    /// Of the op that moves elements.
    pub copy: Note,
    /// Of the one that waits for the host's memory, and moves nothing.
    pub land: Note,
}

/// Issues a copy from or to the host.
fn issue_with_host(
    context: &mut OpContext<'_>,
    place: u64,
    (device, host, to_device): (&Region, &Array, bool),
    landing: Landing,
) -> Result<(), Cause> {
    let start = host.buffer().start()?.wrapping_add(host.layout().offset);
    // SAFETY: the array is contiguous, the two ops of this copy have its variable until it has landed, and the
    // landing keeps it. An array's memory is pinned as a whole or not at all, whoever has made it.
    let memory = unsafe { HostMemory::new(start, host.bytes()) };
    if to_device {
        copy_in(context, &label(place), device, memory, landing)?;
    } else {
        copy_out(context, &label(place), memory, device, landing)?;
    }
    Ok(())
}

/// Issues a copy from or to the host, once.
struct Transfer {
    device: Region,
    host: Array,
    to_device: bool,
    landing: Landing,
    place: u64,
}

impl Payload for Transfer {
    // SAFETY: eight bytes: a number.
    const PLACE: Option<PlaceOffset<Self>> = Some(unsafe { PlaceOffset::new(offset_of!(Transfer, place)) });

    fn queue(&self) -> Option<InOrder> {
        Some(self.device.device().queue())
    }

    fn run(self, context: &mut OpContext<'_>) -> Result<(), Cause> {
        issue_with_host(context, self.place, (&self.device, &self.host, self.to_device), self.landing)
    }
}

/// The second halves of copies that were issued, by their receipts.
#[derive(Default)]
struct Receipts {
    last: u64,
    waiting: HashMap<u64, Land>,
}

/// What the two steps of a copy in a recording share.
struct Pair {
    device: Device,
    to_device: bool,
    place: u64,
    receipts: Mutex<Receipts>,
}

impl Pair {
    fn receipts(&self) -> MutexGuard<'_, Receipts> {
        self.receipts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a receipt's number is.
fn receipt(array: &Array) -> Result<*mut u64, Cause> {
    Ok(array.buffer().start()?.wrapping_add(array.layout().offset).cast())
}

/// The first step: on the array of the host, that of the device, and the receipt.
struct Issue(Arc<Pair>);

impl Opaque for Issue {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.0.device.queue())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn completes_later(&self) -> bool {
        true
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let [(host, _), (device, _), (number, _)] = &arrays[..] else { return Ok(()) };
        let Some(region) = region(device).map_err(Cause::from)? else { return Ok(()) };
        let (landing, land) = Landing::keeping(&self.0.device, Box::new(host.clone()));
        let number = receipt(number)?;
        let own = {
            let mut receipts = self.0.receipts();
            receipts.last += 1;
            let own = receipts.last;
            receipts.waiting.insert(own, land);
            own
        };
        // SAFETY: the op was granted the receipt to overwrite, an array of one such number.
        unsafe { number.write(own) };
        let issued = issue_with_host(context, self.0.place, (&region, host, self.0.to_device), landing);
        if issued.is_err() {
            // The second step is skipped.
            drop(self.0.receipts().waiting.remove(&own));
        }
        issued
    }

    fn place(&self) -> u64 {
        self.0.place
    }
}

/// The second step: on the array of the host, and the receipt.
struct Landed(Arc<Pair>);

impl Opaque for Landed {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.0.device.queue())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn has_effects(&self) -> bool {
        true // who uses the host's memory next waits for it
    }

    fn completes_later(&self) -> bool {
        true
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        let [_, (number, _)] = &arrays[..] else { return Ok(()) };
        // SAFETY: the op was granted the receipt, which the first step has written.
        let own = unsafe { receipt(number)?.read() };
        let land = self.0.receipts().waiting.remove(&own);
        land.map_or(Ok(()), |land| land.run(context))
    }

    fn place(&self) -> u64 {
        self.0.place
    }
}

/// A copy between arrays of devices, again and again.
struct Within(Copied);

impl Opaque for Within {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.0.device.queue())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn issues_on(&self) -> Option<u16> {
        self.0.alone.then(|| home_of(&self.0.device).number())
    }

    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        Some(together(&self.0.device, name, place))
    }

    fn issued(&self) -> Option<&dyn Any> {
        Some(&self.0)
    }

    unsafe fn run(&self, arrays: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        let [(to, _), (from, _)] = &arrays[..] else { return Ok(()) };
        if let (Some(target), Some(source)) = (region(to)?, region(from)?) {
            weft_cuda::copy(&label(self.0.place), &target, &source)?;
        }
        Ok(())
    }

    fn place(&self) -> u64 {
        self.0.place
    }
}

/// Copies contiguous elements, one side of which is on a device: pushes that, or appends it to the recording of this thread.
/// The caller has waited for room.
pub fn copy(engine: &Engine, to: &Array, from: &Array, noted: &Noted) -> Result<(), CopyError> {
    if to.bytes() != from.bytes() || !to.is_contiguous() || !from.is_contiguous() {
        let message = format!("{} contiguous bytes cannot be copied to {}", from.bytes(), to.bytes());
        return Err(CudaError::InvalidArgument(message).into());
    }
    let (target, source) = (region(to)?, region(from)?);
    let arrays = [(to, Access::Overwrite), (from, Access::Read)];
    let options =
        PushOptions { name: Some(COPY), bytes: to.bytes() as u64, note: noted.copy, ..PushOptions::default() };
    let request = Call::anywhere(engine, &arrays, options);
    let place = noted.place;
    let (host, device, to_device) = match (target, source) {
        (Some(target), Some(source)) => {
            let device = target.device().clone();
            if recording::is_open() {
                recording::announce(COPY, place);
                let within = Within(Copied { alone: device == *source.device(), device, place });
                // SAFETY: the step asks arrays where they lie.
                return Ok(unsafe { record(Step::Opaque(Arc::new(within)), &request) }?);
            }
            let issue = move |_: &mut OpContext<'_>| Ok(weft_cuda::copy(&label(place), &target, &source).map(drop)?);
            return Ok(push(device.issuing(issue), &request)?);
        }
        (Some(target), None) => (from, target, true),
        (None, Some(source)) => (to, source, false),
        (None, None) => {
            return Err(CudaError::InvalidArgument("neither array is on a device".to_owned()).into());
        }
    };
    if recording::is_open() {
        return record_with_host(engine, (to, from), device.device(), to_device, options, place);
    }
    let (landing, land) = Landing::keeping(device.device(), Box::new(host.clone()));
    let transfer = Transfer { device, host: host.clone(), to_device, landing, place };
    let kept = [(host, if to_device { Access::Read } else { Access::Mutate })];
    let landed = Call::anywhere(engine, &kept, PushOptions { bytes: 0, note: noted.land, ..options });
    Ok(push_pair((transfer, &request), (land, &landed))?)
}

fn record_with_host(
    engine: &Engine,
    (to, from): (&Array, &Array),
    device: &Device,
    to_device: bool,
    options: PushOptions<'_>,
    place: u64,
) -> Result<(), CopyError> {
    let pair = Arc::new(Pair { device: device.clone(), to_device, place, receipts: Mutex::default() });
    let number = Array::empty(engine, &[1], DType::UInt64)?;
    let (host, far) = if to_device { (from, to) } else { (to, from) };
    let of = |array: &Array| if std::ptr::eq(array, to) { Access::Overwrite } else { Access::Read };
    let arrays = [(host, of(host)), (far, of(far)), (&number, Access::Overwrite)];
    recording::announce(COPY, place);
    let issue = Step::Opaque(Arc::new(Issue(Arc::clone(&pair))));
    // SAFETY: the arrays are the host's, the device's, as many bytes, and the receipt.
    unsafe { record(issue, &Call::anywhere(engine, &arrays, options)) }?;
    let kept = if to_device { Access::Read } else { Access::Mutate };
    let arrays = [(host, kept), (&number, Access::Read)];
    let options = PushOptions { name: Some(LAND), bytes: 0, ..options };
    recording::announce(LAND, place);
    let landed = Step::Opaque(Arc::new(Landed(pair)));
    // SAFETY: the arrays are the host's and the receipt.
    Ok(unsafe { record(landed, &Call::anywhere(engine, &arrays, options)) }?)
}
