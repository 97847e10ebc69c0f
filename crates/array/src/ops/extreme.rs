//! Ops that search.

use super::at_once::{self, is_short};
use crate::door::{self, Call, recording};
use crate::step::{Extreme, Opaque, Step, Which};
use crate::{Access, Array, ArrayError};
use std::sync::Arc;
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// Pushes the search for extremes of `input` along `axis`, or in all of it; their places go into `output`. Returns
/// whether it pushed: some types have no loop.
pub fn push_extreme(
    which: Which,
    output: &Array,
    input: &Array,
    axis: Option<usize>,
    mut options: PushOptions<'_>,
) -> Result<bool, ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let Some(step) = Extreme::new(which, output, input, axis)? else { return Ok(false) };
    let arrays = [(input, Access::Read), (output, Access::Overwrite)];
    let call = Call::on(output.engine(), &arrays, options);
    let at_once = !recording::is_open() && is_short(step.nanoseconds());
    // SAFETY: the pointers are those of the arrays that it was made for.
    if at_once && at_once::run_step(&call, |pointers| unsafe { step.run_on(pointers) })? {
        return Ok(true);
    }
    let step: Arc<dyn Opaque> = Arc::new(step);
    if recording::is_open() {
        // SAFETY: the arrays are those that the step was made for.
        unsafe { door::record(Step::Opaque(step), &call) }?;
    } else {
        let operands = arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect();
        // SAFETY: as above.
        unsafe { door::push_opaque(&step, operands, &call) }?;
    }
    Ok(true)
}
