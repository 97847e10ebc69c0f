//! Ops made of one strided loop.

use super::at_once::{self, is_short};
use super::large::{LARGE, push_large};
use crate::access::{
    LookAtPush, Renaming, Worth, announce_scalars, enqueue, is_all_there, note_written, place, refuse,
};
use crate::door::{self, Call, recording};
use crate::memory::Pushing;
use crate::memory::recorded::is_plain;
use crate::step::{Bound, Operand, RunBound, Step, Strided, StridedLoop};
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::trace::Kind;
use weft_engine::{Engine, Policy, PushOptions};

/// Results below this size do not count as bytes held by pending ops.
const COUNTED: usize = 4096;

/// Picoseconds for an element from which on a loop computes for longer than it moves memory.
const LONG: usize = 1000;

/// The arrays of an op, inputs first.
type Arrays<'a> = SmallVec<[(&'a Array, Access); 3]>;

/// Checks the arrays of a pushed op, whether or not it does more than its loop. Returns them, and the bytes to count.
#[inline]
fn listed<'a>(
    engine: &Engine,
    outputs: &[&'a Array],
    inputs: &[Operand<'a>],
    is_plain: bool,
) -> Result<(Arrays<'a>, u64), ArrayError> {
    let (mut arrays, mut bytes) = (Arrays::new(), 0);
    for input in inputs {
        if let Operand::Array(array) = input {
            door::check(engine, array)?;
            arrays.push((array, Access::Read));
        }
    }
    for output in outputs {
        door::check(engine, output)?;
        arrays.push((output, Access::Overwrite));
        let own = output.bytes();
        if own >= COUNTED {
            bytes += own as u64;
        }
    }
    if !is_plain {
        refuse(arrays.iter().map(|(array, _)| *array))?;
    }
    Ok((arrays, bytes))
}

/// Pushes an op that runs `kernel` over operands broadcast to the outputs' shape, element by element.
///
/// The caller has waited for room for the outputs' bytes.
#[inline]
pub fn push_elementwise(
    kernel: StridedLoop,
    outputs: &[&Array],
    inputs: &[Operand<'_>],
    mut options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    let Some(first) = outputs.first() else {
        return Err(ArrayError::Invalid("there is no output".to_owned()));
    };
    kernel.check(inputs.iter().map(Operand::dtype), outputs.iter().map(|output| output.dtype()))?;
    let engine = first.engine();
    options.note = options.note.or(Kind::Compute);
    let is_plain = is_plain();
    let (arrays, bytes) = listed(engine, outputs, inputs, is_plain)?;
    options.bytes += bytes;
    if !is_plain && recording::is_open() {
        let step = Step::Strided(Arc::new(Strided::new(kernel, outputs, inputs)?));
        return door::note(step, &Call::on(engine, &arrays, options));
    }
    if let [output] = outputs
        && at_once::run_rows(&kernel, engine, output, inputs, &arrays, options.note)
    {
        return Ok(());
    }
    if engine.is_watched() {
        announce_scalars(inputs.iter().filter_map(Operand::scalar));
    }
    let read = arrays.len() - outputs.len();
    if let [output] = outputs
        && let Some(worth) = worth_apart(&kernel)
        && let Some(renaming) = Renaming::of(output, &arrays, worth)
    {
        return push_renamed(kernel, inputs, (&arrays[..read], renaming), options);
    }
    let strided = Strided::new(kernel, outputs, inputs)?;
    push_bound(Bound::new(strided, outputs, inputs)?, &Call::on(engine, &arrays, options), read, None)
}

/// When a loop gains more beside its neighbours than from running block by block with them: one that only copies, or that
/// computes for longer than it moves memory.
#[inline]
fn worth_apart(kernel: &StridedLoop) -> Option<Worth> {
    match kernel.effort() {
        0 => Some(Worth::BesideLong),
        LONG.. => Some(Worth::Always),
        _ => None,
    }
}

/// Notes the reads of a loop that computes for longer than it moves memory.
#[inline]
pub(super) fn note_long(pushing: &mut Pushing, kernel: &StridedLoop, read: &[(&Array, Access)]) {
    if kernel.effort() >= LONG {
        read.iter().for_each(|(array, _)| array.buffer().ranges.get(pushing).readers.long = true);
    }
}

/// Pushes a loop that writes its result elsewhere, and what makes it the output's.
fn push_renamed(
    kernel: StridedLoop,
    inputs: &[Operand<'_>],
    (read, renaming): (&[(&Array, Access)], Renaming),
    options: PushOptions<'_>,
) -> Result<(), ArrayError> {
    let values = renaming.values().clone();
    let step = Bound::new(Strided::new(kernel, &[&values], inputs)?, &[&values], inputs)?;
    let mut arrays = Arrays::from_slice(read);
    arrays.push((&values, Access::Overwrite));
    let (spare, kind) = renaming.access();
    let call = Call { variables: &[(&spare, kind)], ..Call::on(values.engine(), &arrays, options) };
    push_bound(step, &call, read.len(), Some(renaming))
}

#[inline]
fn push_bound(step: Bound, call: &Call<'_>, read: usize, renaming: Option<Renaming>) -> Result<(), ArrayError> {
    // On a watched engine an op runs on its own, from its beginning to its end.
    if step.size() < LARGE || call.engine.is_watched() {
        push_small(Box::new(step), call, read, renaming)
    } else {
        push_large(step, call, read, renaming)
    }
}

#[inline]
fn push_small(
    mut step: Box<Bound>,
    call: &Call<'_>,
    read: usize,
    renaming: Option<Renaming>,
) -> Result<(), ArrayError> {
    let (engine, arrays) = (call.engine, call.arrays);
    let mut options = call.options;
    let mut pushing = Pushing::lock();
    options.device.index = place(&mut pushing, arrays);
    if is_short(step.nanoseconds())
        && call.variables.is_empty()
        && call.after.is_empty()
        && !(engine.is_watched() && matches!(engine.policy(), Policy::Shuffled(_)))
        && is_all_there(&mut pushing, engine, arrays)
    {
        let span = engine.start_span();
        let look = engine.is_watched().then(|| LookAtPush::before(arrays));
        if step.run().is_ok() {
            if let Some(look) = look {
                look.after();
            }
            if let Some(span) = span {
                engine.record_run(options.note, span);
            }
            note_written(&mut pushing, &arrays[read..]);
            return Ok(());
        }
        if let Some(look) = look {
            look.announce_again();
        }
    }
    for (output, _) in &arrays[read..] {
        if output.buffer().ranges.get(&mut pushing).is_used() {
            step.rewrite(output.buffer());
        }
    }
    let kernel = *step.strided().kernel();
    let mut pushed = enqueue(&mut pushing, engine, (arrays, call.variables, call.after), &options, RunBound(step));
    note_long(&mut pushing, &kernel, &arrays[..read]);
    if let Some(renaming) = renaming
        && pushed.is_ok()
    {
        pushed = renaming.enqueue(&mut pushing, engine, &options);
    }
    drop(pushing);
    engine.follow_up();
    Ok(pushed?)
}
