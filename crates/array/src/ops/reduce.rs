//! Ops that reduce.

use super::at_once::{self, is_short};
use crate::door::{self, Call, recording};
use crate::step::{Reduce, Step, StridedLoop};
use crate::{Access, Array, ArrayError, DType, Scalar};
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
    push_made(&step, &call)
}

/// Pushes a reduction of the call's arrays, for whose layouts it was made.
fn push_made(step: &Arc<Reduce>, call: &Call<'_>) -> Result<(), ArrayError> {
    // SAFETY: the pointers are those of arrays with the layouts that it was made for.
    if is_short(step.nanoseconds()) && at_once::run_step(call, |pointers| unsafe { step.run(pointers) })? {
        return Ok(());
    }
    door::push_walk(super::native::on(Step::Reduce(Arc::clone(step)), call.arrays), call)
}

/// A reduction of arrays that lie row after row, made once and pushed many times.
pub struct RowReduction {
    step: Arc<Reduce>,
    dtype: DType,
    /// Elements of the input and of the output.
    sizes: [usize; 2],
}

impl RowReduction {
    /// As for [`push_reduce`]; refuses arrays that do not lie row after row.
    pub fn new(
        kernel: StridedLoop,
        identity: Option<Scalar>,
        output: &Array,
        input: &Array,
        axes: &[usize],
    ) -> Result<Self, ArrayError> {
        if !input.is_contiguous() || !output.is_contiguous() {
            return Err(ArrayError::Invalid("the arrays do not lie row after row".to_owned()));
        }
        let step = Arc::new(Reduce::new(kernel, identity, output, input, axes)?);
        Ok(Self { step, dtype: input.dtype(), sizes: [input.layout().size(), output.layout().size()] })
    }

    /// Whether it may be pushed on these arrays, whatever their shapes: they have as many elements, row after row.
    #[must_use]
    pub fn takes(&self, output: &Array, input: &Array) -> bool {
        let suits = |array: &Array, size: usize| {
            array.is_contiguous() && array.dtype() == self.dtype && array.layout().size() == size
        };
        suits(input, self.sizes[0]) && suits(output, self.sizes[1]) && !input.buffer().is_same(output.buffer())
    }

    /// Pushes it, on arrays that it [takes](Self::takes). It is not for a thread that records.
    pub fn push(&self, output: &Array, input: &Array, mut options: PushOptions<'_>) -> Result<(), ArrayError> {
        if !self.takes(output, input) || recording::is_open() {
            return Err(ArrayError::Invalid("the reduction was made for other arrays".to_owned()));
        }
        options.note = options.note.or(Kind::Compute);
        let arrays = [(input, Access::Read), (output, Access::Overwrite)];
        push_made(&self.step, &Call::on(output.engine(), &arrays, options))
    }
}
