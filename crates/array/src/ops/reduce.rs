//! Ops that reduce.

use super::at_once::{self, is_short};
use crate::door::{self, Call, recording};
use crate::step::{Reduce, Step, StridedLoop};
use crate::{Access, Array, ArrayError, Scalar};
use std::sync::Arc;
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// Pushes a reduction of `input` over `axes`, from `identity` if there is one. The shape of `output` is the input's
/// with 1 for these axes.
pub fn push_reduce(
    kernel: StridedLoop,
    identity: Option<Scalar>,
    output: &Array,
    input: &Array,
    axes: &[usize],
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let step = Arc::new(Reduce::new(kernel, identity, output, input, axes)?);
    let arrays = [(input, Access::Read), (output, Access::Overwrite)];
    let call = Call::on(output.engine(), &arrays, options);
    if recording::is_open() {
        return door::note(Step::Reduce(step), &call);
    }
    // SAFETY: the pointers are those of the arrays that it was made for.
    if is_short(step.nanoseconds()) && at_once::run_step(&call, |pointers| unsafe { step.run(pointers) })? {
        return Ok(());
    }
    door::push_walk(super::again::on(Step::Reduce(step), &arrays), &call)
}
