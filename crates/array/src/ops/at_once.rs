//! Short ops run by the pushing thread, if their inputs are ready. A hand-over takes longer than such an op: a worker
//! has to wake up, and its cache lines have to travel.
//!
//! All other threads see the op as pushed and finished at that moment. The lock of pushes is held meanwhile, so that no
//! other push can change the inputs. The loop is short.

use crate::access::{is_all_there, note_written, place, place_result, refuse};
use crate::door::{self, Call};
use crate::layout::Element;
use crate::memory::Pushing;
use crate::step::{Operand, PER_BYTE, StridedLoop, signed};
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::Engine;
use weft_engine::trace::Note;

/// Nanoseconds that such an op takes at most, about: native ones, and functions of NumPy's that the caller's thread could run.
const SHORT: usize = 16_000;
/// Operands of such an op at most.
const FEW: usize = 4;

/// Whether what takes about so many nanoseconds is run where it is pushed.
#[must_use]
#[inline]
pub const fn is_short(nanoseconds: usize) -> bool {
    nanoseconds <= SHORT
}

/// Runs a small step where it is pushed, if what it reads is there and its last array, which alone it writes, is nobody
/// else's. Answers whether it has. It is given the addresses of the arrays' first elements.
pub(crate) fn run_step(call: &Call<'_>, run: impl FnOnce(&[*mut u8])) -> Result<bool, ArrayError> {
    attempt(call, call.arrays.len().saturating_sub(1), |_, pointers| {
        run(pointers);
        true
    })
}

/// The same for a step with `read` inputs, all other arrays being outputs. `run` returns whether it succeeded; if not,
/// the op is pushed and fails as ops do.
pub(crate) fn attempt(
    call: &Call<'_>,
    inputs: usize,
    run: impl FnOnce(&mut Pushing, &[*mut u8]) -> bool,
) -> Result<bool, ArrayError> {
    let (inputs, outputs) = call.arrays.split_at(inputs);
    if call.engine.is_watched() || outputs.is_empty() || outputs.iter().any(|(output, _)| output.buffer().is_readonly())
    {
        return Ok(false);
    }
    for (input, _) in inputs {
        door::check(call.engine, input)?;
    }
    refuse(call.arrays.iter().map(|(array, _)| *array))?;
    let mut pushing = Pushing::lock();
    if !is_all_there(&mut pushing, call.engine, call.arrays) {
        return Ok(false);
    }
    let mut pointers = SmallVec::<[*mut u8; FEW]>::new();
    for (array, _) in call.arrays {
        let Ok(start) = array.buffer().start() else { return Ok(false) };
        pointers.push(start.wrapping_add(array.layout().offset));
    }
    let span = call.engine.start_span();
    // The inputs cannot change while the lock is held.
    if !run(&mut pushing, &pointers) {
        return Ok(false);
    }
    if let Some(span) = span {
        call.engine.record_run(call.options.note, span);
    }
    place(&mut pushing, call.arrays);
    note_written(&mut pushing, outputs);
    Ok(true)
}

/// Whether two arrays of one buffer, both in rows of one shape, are the same elements.
#[inline]
fn is_same(one: &Array, other: &Array) -> bool {
    one.layout().offset == other.layout().offset && one.dtype().size() == other.dtype().size()
}

/// Runs the loop if its operands are few, ready, and in rows of one shape or of one element each, the output anywhere in
/// its buffer. An input may be the output. Returns whether it ran.
#[inline]
pub(crate) fn run_rows(
    kernel: &StridedLoop,
    engine: &Engine,
    output: &Array,
    inputs: &[Operand<'_>],
    arrays: &[(&Array, Access)],
    note: Note,
) -> bool {
    let size = output.layout().size();
    let bytes = kernel.dtypes().iter().map(|dtype| dtype.size()).sum::<usize>();
    let takes = size.saturating_mul(kernel.effort() + bytes * PER_BYTE) / 1000;
    if !is_short(takes)
        || engine.is_watched()
        || inputs.len() >= FEW
        || !output.is_contiguous()
        || output.buffer().is_readonly()
    {
        return false;
    }
    let mut steps = [0; FEW];
    let mut elements = [Element([0; 16]); FEW];
    // Whether NumPy would broadcast one element: see `Strided::new`.
    let mut stays = false;
    for (at, input) in inputs.iter().enumerate() {
        match input {
            Operand::Scalar(scalar, dtype) => {
                let Some(element) = scalar.element(*dtype) else { return false };
                elements[at] = element;
            }
            Operand::Array(array) => {
                let in_rows = array.is_contiguous() && array.layout().is_shaped_like(output.layout());
                let is_one = !in_rows && array.layout().size() == 1; // paired with each element
                let is_apart = !std::sync::Arc::ptr_eq(array.buffer(), output.buffer());
                if !(is_apart && (in_rows || is_one) || in_rows && is_same(array, output)) {
                    return false;
                }
                stays |= size == 1 && is_one && !array.layout().shape.is_empty();
                steps[at] = if is_one { 0 } else { signed(array.dtype().size()) };
            }
        }
    }
    let mut pushing = Pushing::lock(); // an address holds under it alone
    if !is_all_there(&mut pushing, engine, arrays) {
        return false;
    }
    let mut pointers = [std::ptr::null_mut(); FEW];
    for (at, input) in inputs.iter().enumerate() {
        pointers[at] = match input {
            Operand::Scalar(..) => elements[at].0.as_mut_ptr(),
            Operand::Array(array) => match array.buffer().start() {
                Ok(start) => start.wrapping_add(array.layout().offset),
                Err(_) => return false,
            },
        };
    }
    let Ok(start) = output.buffer().start() else { return false };
    let count = inputs.len();
    pointers[count] = start.wrapping_add(output.layout().offset);
    steps[count] = signed(output.dtype().size());
    if stays {
        steps = [0; FEW];
    }
    let span = engine.start_span();
    // SAFETY: the inputs are ready and cannot change while the lock is held; the output has no other user meanwhile, and
    // overlaps an input only as the same elements.
    unsafe { kernel.call_on(&mut pointers[..=count], signed(size), &steps[..=count]) };
    if let Some(span) = span {
        engine.record_run(note, span);
    }
    let (inputs, written) = arrays.split_at(arrays.len() - 1);
    place_result(&mut pushing, inputs, output);
    note_written(&mut pushing, written);
    true
}
