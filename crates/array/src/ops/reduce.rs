//! Ops that reduce.

use super::at_once::AT_ONCE;
use crate::access::{is_all_there, note_written, place, refuse};
use crate::door::{self, Call, recording};
use crate::memory::Pushing;
use crate::step::{Reduce, Step, StridedLoop};
use crate::{Access, Array, ArrayError, Scalar};
use std::sync::Arc;
use weft_engine::PushOptions;
use weft_engine::trace::Kind;

/// Runs a small reduction where it is pushed, if its input is there: see [`super::at_once`]. Answers whether it has.
fn run_at_once(step: &Reduce, call: &Call<'_>) -> Result<bool, ArrayError> {
    let &[(input, _), (output, _)] = call.arrays else { return Ok(false) };
    if input.layout().size() > AT_ONCE || output.buffer().is_readonly() {
        return Ok(false);
    }
    door::check(call.engine, input)?;
    refuse([input, output].into_iter())?;
    let mut pushing = Pushing::lock();
    if !is_all_there(&mut pushing, call.engine, call.arrays) {
        return Ok(false);
    }
    let (Ok(from), Ok(to)) = (input.buffer().start(), output.buffer().start()) else { return Ok(false) };
    let pointers = [from.wrapping_add(input.layout().offset), to.wrapping_add(output.layout().offset)];
    let span = call.engine.start_span();
    // SAFETY: what is read is there and cannot change while the lock is held; nobody else uses what is written.
    unsafe { step.run(&pointers) };
    if let Some(span) = span {
        call.engine.record_run(call.options.note, span);
    }
    place(&mut pushing, call.arrays);
    note_written(&mut pushing, &call.arrays[1..]);
    Ok(true)
}

/// Pushes a reduction, from `identity` if there is one, of `input` over `axes` into `output`, whose shape is the input's with 1 for these axes.
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
        return door::record(Step::Reduce(step), &call);
    }
    if run_at_once(&step, &call)? {
        return Ok(());
    }
    door::push(super::again::on(Step::Reduce(step), &arrays), &call)
}
