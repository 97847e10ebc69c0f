//! Steps of a recording that are issued together: launches, and copies within a device.

use crate::copy::Within;
use crate::launch::LaunchStep;
use std::sync::Arc;
use weft_array::{Opaque, Operands, Together};
use weft_cuda::{Bundle, CudaError, Device, Label, Member};
use weft_engine::Cause;

struct Bundled(Bundle);

/// What issues steps of a device together, under this name, pushed at this place.
pub(crate) fn together(device: &Device, name: &str, place: u64) -> Arc<dyn Together> {
    Arc::new(Bundled(Bundle::new(device, Label::from(name).at(place))))
}

/// What a step issues on these arrays.
fn member(step: &dyn Opaque, arrays: &Operands) -> Result<Option<Member>, CudaError> {
    let Some(step) = step.issued() else { return Ok(None) };
    if let Some(launch) = step.downcast_ref::<LaunchStep>() {
        return launch.on(arrays).map(|launch| Some(Member::Launch(launch)));
    }
    match step.downcast_ref::<Within>() {
        Some(within) => Ok(within.on(arrays)?.map(Member::Copy)),
        None => Ok(None),
    }
}

impl Together for Bundled {
    fn run(&self, steps: &[(&dyn Opaque, Operands)], whole: bool) -> Result<(), Cause> {
        let members = steps.iter().filter_map(|(step, arrays)| member(*step, arrays).transpose());
        let members: Vec<Member> = members.collect::<Result<_, _>>()?;
        if whole {
            return Ok(self.0.issue(&members)?);
        }
        members.iter().try_for_each(|member| member.issue().map(drop)).map_err(Cause::from)
    }
}
