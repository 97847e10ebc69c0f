//! Ops that multiply matrices.

use crate::door::{self, Call, recording};
use crate::step::{Matmul, Step, StridedLoop};
use crate::{Access, Array, ArrayError};
use std::sync::Arc;
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// Pushes `output = left @ right` for arrays of at least two axes, none of them empty; the axes before those two
/// are broadcast to the output's.
pub fn push_matmul(
    kernel: StridedLoop,
    output: &Array,
    left: &Array,
    right: &Array,
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    options.note = options.note.or(Kind::Compute);
    let step = Arc::new(Matmul::new(kernel, output, left, right)?);
    let arrays = [(left, Access::Read), (right, Access::Read), (output, Access::Overwrite)];
    let call = Call::on(output.engine(), &arrays, options);
    if recording::is_open() {
        return door::record(Step::Matmul(step), &call);
    }
    door::push(super::again::on(Step::Matmul(step), &arrays), &call)
}
