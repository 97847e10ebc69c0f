//! Steps of a recording that are issued together: launches, and copies within a device.

use crate::issued::{Copied, Launched};
use crate::memory::not_there;
use smallvec::SmallVec;
use std::sync::Arc;
use weft_array::{Buffer, Issued, Members, Opaque, Operands, Together};
use weft_cuda::{Bundle, Device, Label, Member, Shifted};
use weft_engine::Cause;

struct Bundled(Bundle);

/// What issues steps of a device together, under this name, pushed at this place.
pub(crate) fn together(device: &Device, name: &str, place: u64) -> Arc<dyn Together> {
    Arc::new(Bundled(Bundle::new(device, Label::from(name).at(place))))
}

/// What a step issues on these arrays.
fn member(step: &dyn Opaque, arrays: &Operands) -> Result<Member, Cause> {
    let step = step.issued().ok_or_else(not_there)?;
    if let Some(launch) = step.downcast_ref::<Launched>() {
        return Ok(Member::Launch(launch.on(arrays)?));
    }
    let copy = step.downcast_ref::<Copied>().ok_or_else(not_there)?.on(arrays)?;
    Ok(Member::Copy(copy.ok_or_else(not_there)?))
}

/// The device memory of buffers, and how far what lies there has moved.
fn places(buffers: &[(&Buffer, isize)]) -> Option<SmallVec<[Shifted; 8]>> {
    buffers.iter().map(|(buffer, by)| Some((buffer.memory_elsewhere()?.memory()?, *by))).collect()
}

impl Together for Bundled {
    unsafe fn run(&self, buffers: &[(&Buffer, isize)], members: &dyn Members) -> Result<Issued, Cause> {
        let Some(places) = places(buffers) else { return Ok(Issued { count: 0, refused: None }) };
        let made = |at: usize| members.operands(at).and_then(|arrays| member(members.step(at), &arrays));
        // Who cannot be made says why where he is issued on his own.
        let made = || (0..members.count()).map(|at| made(at).ok()).collect::<Option<Vec<_>>>();
        let issued = self.0.issue(&places, &made).map_err(Cause::from)?;
        Ok(Issued { count: issued.count, refused: issued.refused.map(Cause::from) })
    }
}
