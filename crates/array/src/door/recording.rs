//! Recordings: the requests of a recording thread, in order.

use super::Call;
use crate::access::place as place_of;
use crate::memory::recorded::{Tag, is_recording, set_tag, tag};
use crate::memory::take_made;
use crate::memory::{Buffer, Pushing};
use crate::step::{Operands, Step};
use crate::{Access, Array, ArrayError};
use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};
use weft_engine::{AccessKind, Device, Engine, PushOptions, Variable};

/// A call as it was recorded.
pub struct Recorded {
    /// What it runs.
    pub step: Step,
    /// On what; a native step's inputs first, then its outputs.
    pub arrays: Operands,
    /// What it accesses besides.
    pub variables: Vec<(Variable, AccessKind)>,
    /// What it is called.
    pub name: String,
    /// Where it was asked for, in the way of the engine's payloads.
    pub place: u64,
    /// As of a push.
    pub priority: i32,
    /// As of a push.
    pub device: Device,
    /// As of a push.
    pub always_run: bool,
    /// Whether it runs where its arrays belong.
    pub at_arrays: bool,
}

/// What was recorded so far.
pub struct Tape {
    tag: Arc<Tag>,
    engine: Engine,
    calls: Vec<Recorded>,
    /// What was made from values that are known, each time anew.
    constants: Vec<Arc<Buffer>>,
    /// States whose values were looked at, and their versions then.
    looked_at: Vec<(Array, u64)>,
    /// Buffers made for it that last if somebody holds them.
    made: Vec<Weak<Buffer>>,
    /// Why nothing is to become of it.
    failed: Option<String>,
    /// What the calls of now access besides, so that they run one by one.
    order: Option<Variable>,
    /// The tape of the recording of which this one is a part.
    outer: Option<Box<Self>>,
}

impl Tape {
    fn new(tag: Arc<Tag>, engine: &Engine) -> Self {
        let (calls, constants, looked_at, made) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { tag, engine: engine.clone(), calls, constants, looked_at, made, failed: None, order: None, outer: None }
    }

    /// It and those around it, the innermost first.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |tape| tape.outer.as_deref())
    }

    /// The engine of all calls.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The recording, which its arrays name.
    #[must_use]
    pub fn tag(&self) -> &Arc<Tag> {
        &self.tag
    }

    /// The calls, in order.
    #[must_use]
    pub fn calls(&self) -> &[Recorded] {
        &self.calls
    }

    /// What is made anew at each replay from values that are known.
    #[must_use]
    pub fn constants(&self) -> &[Arc<Buffer>] {
        &self.constants
    }

    /// Arrays from outside whose values were looked at, and the versions of their buffers then.
    #[must_use]
    pub fn looked_at(&self) -> &[(Array, u64)] {
        &self.looked_at
    }

    /// Whether the buffer was made for the recording, and nobody holds it but the recording: so it is made anew at each
    /// replay.
    #[must_use]
    pub fn is_passing(&self, buffer: &Arc<Buffer>) -> bool {
        let made = self.made.iter().any(|made| std::ptr::eq(made.as_ptr(), Arc::as_ptr(buffer)));
        let same = |array: &Array| Arc::ptr_eq(array.buffer(), buffer);
        let here = || {
            let calls = self.calls.iter().flat_map(|call| &call.arrays).filter(|(array, _)| same(array)).count();
            let looked_at = self.looked_at.iter().filter(|(array, _)| same(array)).count();
            calls + looked_at + self.constants.iter().filter(|constant| Arc::ptr_eq(constant, buffer)).count()
        };
        made && Arc::strong_count(buffer) <= here()
    }

    /// The first call that changes an array which was there before this part of a recording.
    #[must_use]
    pub fn changing(&self) -> Option<&Recorded> {
        let before = |array: &Array| array.buffer().recording().is_none_or(|tag| !Arc::ptr_eq(tag, &self.tag));
        let mut calls = self.calls.iter();
        calls.find(|call| call.arrays.iter().any(|(array, access)| *access != Access::Read && before(array)))
    }

    /// Nothing is to become of it: what was made for it, and is held, has no values, but for what they were known of.
    pub fn abandon(&self) {
        for made in self.made.iter().filter_map(Weak::upgrade) {
            if !self.constants.iter().any(|constant| Arc::ptr_eq(constant, &made)) {
                made.abandon(&self.tag);
            }
        }
    }

    /// Why nothing is to become of it, if that is so.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Parts it in two: its first `at` calls, and the others.
    #[must_use]
    pub fn split(mut self, at: usize) -> (Self, Self) {
        let mut rest = Self::new(Arc::clone(&self.tag), &self.engine);
        rest.calls = self.calls.split_off(at);
        rest.constants.clone_from(&self.constants);
        rest.looked_at.clone_from(&self.looked_at);
        rest.failed.clone_from(&self.failed);
        (self, rest)
    }

    /// Takes the calls out.
    #[must_use]
    pub fn into_calls(self) -> Vec<Recorded> {
        self.calls
    }
}

/// What a trace would show of the call to come.
struct Coming {
    name: String,
    place: u64,
}

thread_local! {
    static TAPE: RefCell<Option<Box<Tape>>> = const { RefCell::new(None) };
    static COMING: Cell<Option<Coming>> = const { Cell::new(None) };
}

/// Whether this thread records.
#[must_use]
#[inline]
pub fn is_open() -> bool {
    is_recording()
}

/// From now on this thread records. The recording that is open already, if there is one, stays.
pub fn begin(tag: Arc<Tag>, engine: &Engine) -> Result<(), ArrayError> {
    if let Some(open) = self::tag() {
        return Err(ArrayError::Capture(format!(
            "recording '{}' is open on this thread, and recordings do not nest: call the function itself, or end it first",
            open.name()
        )));
    }
    drop(take_made());
    TAPE.set(Some(Box::new(Tape::new(Arc::clone(&tag), engine))));
    COMING.set(None);
    set_tag(Some(tag));
    Ok(())
}

/// From now on this thread records a part of its recording, of this name: what is to run as one step of it.
pub fn begin_part(name: &str) -> Result<(), ArrayError> {
    let (Some(outer), Some(tape)) = (tag(), TAPE.take()) else {
        return Err(ArrayError::Capture("no recording is open on this thread".to_owned()));
    };
    let tag = Tag::inside(outer, name);
    let mut part = Tape::new(Arc::clone(&tag), &tape.engine);
    part.outer = Some(tape);
    TAPE.set(Some(Box::new(part)));
    COMING.set(None);
    set_tag(Some(tag));
    Ok(())
}

/// Ends the part that is open: from now on this thread records what is around it. Answers what was recorded in it.
#[must_use]
pub fn end_part() -> Option<Box<Tape>> {
    let mut part = TAPE.take()?;
    let Some(mut outer) = part.outer.take() else {
        TAPE.set(Some(part));
        return None;
    };
    COMING.set(None);
    // What was looked at has decided what is around it, too.
    let is_known = |known: &[(Array, u64)], array: &Array| {
        known.iter().any(|(other, _)| Arc::ptr_eq(other.buffer(), array.buffer()))
    };
    for (array, version) in &part.looked_at {
        if !is_known(&outer.looked_at, array) {
            outer.looked_at.push((array.clone(), *version));
        }
    }
    outer.constants.extend(part.constants.iter().cloned());
    if let Some(failed) = &part.failed {
        outer.failed.get_or_insert_with(|| failed.clone());
    }
    set_tag(Some(Arc::clone(&outer.tag)));
    TAPE.set(Some(outer));
    Some(part)
}

/// This thread records no more. Answers what it has recorded.
#[must_use]
pub fn end() -> Option<Box<Tape>> {
    set_tag(None);
    COMING.set(None);
    let mut tape = TAPE.take();
    while let Some(outer) = tape.as_mut().and_then(|tape| tape.outer.take()) {
        tape = Some(outer);
    }
    if let Some(tape) = &mut tape {
        tape.made = take_made();
    }
    tape
}

/// What a thread has recorded when it was interrupted.
pub struct Suspended {
    tape: Option<Box<Tape>>,
    tag: Option<Arc<Tag>>,
}

/// Until this is resumed the thread runs what it pushes, or records something else.
#[must_use]
pub fn suspend() -> Suspended {
    let suspended = Suspended { tape: TAPE.take(), tag: tag() };
    COMING.set(None);
    set_tag(None);
    suspended
}

/// The thread goes on to record.
pub fn resume(suspended: Suspended) {
    TAPE.set(suspended.tape);
    COMING.set(None);
    set_tag(suspended.tag);
}

/// Asks what was recorded so far.
pub fn with<T>(ask: impl FnOnce(&Tape) -> T) -> Option<T> {
    TAPE.with_borrow(|tape| tape.as_deref().map(ask))
}

fn with_mut<T>(ask: impl FnOnce(&mut Tape) -> T) -> Option<T> {
    TAPE.with_borrow_mut(|tape| tape.as_deref_mut().map(ask))
}

/// What the next call of this thread is called, and where it is asked for.
pub fn announce(name: &str, place: u64) {
    COMING.set(Some(Coming { name: name.to_owned(), place }));
}

/// From now on the calls of this thread's recording run one by one, in their order; or as they may again. Answers how it
/// was before.
#[must_use]
pub fn set_in_order(on: bool) -> bool {
    with_mut(|tape| {
        let before = tape.order.take();
        if on {
            tape.order = Some(before.clone().unwrap_or_else(|| tape.engine.new_variable(None)));
        }
        before.is_some()
    })
    .unwrap_or(false)
}

/// Nothing is to become of the recording that is open.
pub fn fail(message: &str) {
    with_mut(|tape| {
        tape.failed.get_or_insert_with(|| message.to_owned());
    });
}

/// The buffer holds values that are known: it is made anew at each replay that changes it or hands it out.
pub fn note_constant(buffer: &Arc<Buffer>) {
    with_mut(|tape| tape.constants.push(Arc::clone(buffer)));
}

/// Whether an array's values can be looked at while this thread records: not if the recording makes or changes them.
/// Answers the call that does, by name and place.
pub fn look(array: &Array) -> Result<(), (String, u64)> {
    let writes = |call: &&Recorded| {
        call.arrays.iter().any(|(other, access)| *access != Access::Read && other.buffer().is_same(array.buffer()))
    };
    let looked = with_mut(|tape| {
        if let Some(call) = tape.all().find_map(|tape| tape.calls.iter().rev().find(writes)) {
            return Err((call.name.clone(), call.place));
        }
        if array.buffer().recording().is_some() {
            return Err((String::new(), 0));
        }
        let known = tape.all().any(|tape| {
            tape.constants.iter().any(|buffer| Arc::ptr_eq(buffer, array.buffer()))
                || tape.looked_at.iter().any(|(other, _)| Arc::ptr_eq(other.buffer(), array.buffer()))
        });
        if !known {
            tape.looked_at.push((array.clone(), array.version()));
        }
        Ok(())
    });
    looked.unwrap_or(Ok(()))
}

/// Whether the recording of this thread makes or changes an array's memory.
#[must_use]
pub fn is_written(array: &Array) -> bool {
    let writes = |call: &Recorded| {
        call.arrays.iter().any(|(other, access)| *access != Access::Read && other.buffer().is_same(array.buffer()))
    };
    with(|tape| tape.all().any(|tape| tape.calls.iter().any(writes))).unwrap_or(false)
}

/// Appends a call, whose arrays were checked.
pub(crate) fn append(step: Step, call: &Call<'_>) -> Result<(), ArrayError> {
    append_parts(step, call.engine, call.arrays, call.variables, &call.options, call.at_arrays)
}

/// Appends a call on variables alone.
///
/// # Safety
///
/// The step is an opaque one that may [run](crate::Opaque::run) without arrays.
pub unsafe fn append_on_variables(
    step: Step,
    engine: &Engine,
    variables: &[(&Variable, AccessKind)],
    options: &PushOptions<'_>,
) -> Result<(), ArrayError> {
    append_parts(step, engine, &[], variables, options, false)
}

fn append_parts(
    step: Step,
    engine: &Engine,
    arrays: &[(&Array, Access)],
    variables: &[(&Variable, AccessKind)],
    options: &PushOptions<'_>,
    at_arrays: bool,
) -> Result<(), ArrayError> {
    let coming = COMING.take();
    let (name, place) = coming.map_or((String::new(), 0), |coming| (coming.name, coming.place));
    let name = options.name.map_or(name, ToOwned::to_owned);
    // What it writes belongs where it would when it is pushed.
    place_of(&mut Pushing::lock(), arrays);
    let appended = with_mut(|tape| {
        if !tape.engine.is_same(engine) {
            return Err(ArrayError::Capture(format!(
                "op '{name}' belongs to engine '{}' and recording '{}' to engine '{}': record each on its own",
                engine.name(),
                tape.tag.name(),
                tape.engine.name()
            )));
        }
        let order = tape.order.iter().map(|order| (order.clone(), AccessKind::Exclusive));
        let variables = variables.iter().map(|(variable, kind)| ((*variable).clone(), *kind)).chain(order).collect();
        tape.calls.push(Recorded {
            step,
            arrays: arrays.iter().map(|(array, access)| ((*array).clone(), *access)).collect(),
            variables,
            name,
            place,
            priority: options.priority,
            device: options.device,
            always_run: options.always_run,
            at_arrays,
        });
        Ok(())
    });
    appended.unwrap_or_else(|| Err(ArrayError::Capture("no recording is open on this thread".to_owned())))
}

/// Refuses an op that cannot be recorded, while this thread records.
#[inline]
pub(crate) fn refuse_push(name: Option<&str>) -> Result<(), ArrayError> {
    if is_recording() { refuse_now(name) } else { Ok(()) }
}

#[cold]
fn refuse_now(name: Option<&str>) -> Result<(), ArrayError> {
    let open = tag().map_or_else(String::new, |tag| format!(" '{}'", tag.name()));
    let op = name.map_or_else(|| "this op".to_owned(), |name| format!("op '{name}'"));
    Err(ArrayError::Capture(format!("{op} cannot be recorded, and recording{open} is open: do it before or after")))
}
