//! Recordings: the calls of a recording thread, in order.

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

/// A recorded call.
pub struct Recorded {
    /// The computation.
    pub step: Step,
    /// The operands; a native step's inputs first, then its outputs.
    pub arrays: Operands,
    /// Further variables with their accesses.
    pub variables: Vec<(Variable, AccessKind)>,
    /// The call's name.
    pub name: String,
    /// The call's place in the source, in the form of the engine's payloads.
    pub place: u64,
    /// As in a push.
    pub priority: i32,
    /// As in a push.
    pub device: Device,
    /// As in a push.
    pub always_run: bool,
    /// Whether it runs on the device of its arrays.
    pub at_arrays: bool,
}

impl Recorded {
    /// Whether it makes or changes an array's memory.
    fn changes(&self, array: &Array) -> bool {
        self.arrays.iter().any(|(other, access)| *access != Access::Read && other.buffer().is_same(array.buffer()))
    }
}

/// A recording so far.
pub struct Transcript {
    tag: Arc<Tag>,
    engine: Engine,
    calls: Vec<Recorded>,
    /// Buffers filled from known values; each replay makes them anew.
    constants: Vec<Arc<Buffer>>,
    /// States with values read during the recording.
    looked_at: Vec<Array>,
    /// Buffers made in the recording that last if another holder keeps them.
    made: Vec<Weak<Buffer>>,
    /// The reason why the recording is unusable.
    failed: Option<String>,
    /// A variable that all calls of now access besides, so that they run one by one.
    order: Option<Variable>,
    /// The transcript around this part of a recording.
    outer: Option<Box<Self>>,
}

impl Transcript {
    fn new(tag: Arc<Tag>, engine: &Engine) -> Self {
        let (calls, constants, looked_at, made) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { tag, engine: engine.clone(), calls, constants, looked_at, made, failed: None, order: None, outer: None }
    }

    /// The transcript and those around it, the innermost first.
    fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |transcript| transcript.outer.as_deref())
    }

    /// The engine of all calls.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The tag of the recording; its arrays carry it.
    #[must_use]
    pub fn tag(&self) -> &Arc<Tag> {
        &self.tag
    }

    /// The calls, in order.
    #[must_use]
    pub fn calls(&self) -> &[Recorded] {
        &self.calls
    }

    /// The buffers filled from known values, which each replay makes anew.
    #[must_use]
    pub fn constants(&self) -> &[Arc<Buffer>] {
        &self.constants
    }

    /// Arrays from outside with values read during the recording.
    #[must_use]
    pub fn looked_at(&self) -> &[Array] {
        &self.looked_at
    }

    /// Whether the buffer was made in the recording and has no holder outside it. Then each replay makes it anew.
    #[must_use]
    pub fn is_passing(&self, buffer: &Arc<Buffer>) -> bool {
        let made = self.made.iter().any(|made| std::ptr::eq(made.as_ptr(), Arc::as_ptr(buffer)));
        let same = |array: &Array| Arc::ptr_eq(array.buffer(), buffer);
        let here = || {
            let calls = self.calls.iter().flat_map(|call| &call.arrays).filter(|(array, _)| same(array)).count();
            let looked_at = self.looked_at.iter().filter(|array| same(array)).count();
            calls + looked_at + self.constants.iter().filter(|constant| Arc::ptr_eq(constant, buffer)).count()
        };
        made && Arc::strong_count(buffer) <= here()
    }

    /// The first call that changes an array from before this part of a recording.
    #[must_use]
    pub fn changing(&self) -> Option<&Recorded> {
        let before = |array: &Array| array.buffer().recording().is_none_or(|tag| !Arc::ptr_eq(tag, &self.tag));
        let mut calls = self.calls.iter();
        calls.find(|call| call.arrays.iter().any(|(array, access)| *access != Access::Read && before(array)))
    }

    /// Abandons the recording. Its held arrays have no values, except those with known values.
    pub fn abandon(&self) {
        for made in self.made.iter().filter_map(Weak::upgrade) {
            if !self.constants.iter().any(|constant| Arc::ptr_eq(constant, &made)) {
                made.abandon(&self.tag);
            }
        }
    }

    /// The reason why the recording was abandoned, if it was.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }

    /// Splits it in two: its first `at` calls, and the others.
    #[must_use]
    pub fn split(mut self, at: usize) -> (Self, Self) {
        let mut rest = Self::new(Arc::clone(&self.tag), &self.engine);
        rest.calls = self.calls.split_off(at);
        rest.constants.clone_from(&self.constants);
        rest.looked_at.clone_from(&self.looked_at);
        rest.failed.clone_from(&self.failed);
        (self, rest)
    }

    /// Takes the calls.
    #[must_use]
    pub fn into_calls(self) -> Vec<Recorded> {
        self.calls
    }
}

/// The name and the place of the next call, for traces.
struct Coming {
    name: String,
    place: u64,
}

thread_local! {
    static TRANSCRIPT: RefCell<Option<Box<Transcript>>> = const { RefCell::new(None) };
    static COMING: Cell<Option<Coming>> = const { Cell::new(None) };
}

/// Whether this thread records.
#[must_use]
#[inline]
pub fn is_open() -> bool {
    is_recording()
}

/// Starts a recording on this thread. A recording that is open already stays open.
pub fn begin(tag: Arc<Tag>, engine: &Engine) -> Result<(), ArrayError> {
    if let Some(open) = self::tag() {
        return Err(ArrayError::Capture(format!(
            "recording '{}' is open on this thread, and recordings do not nest: call the function itself, or end it first",
            open.name()
        )));
    }
    drop(take_made());
    TRANSCRIPT.set(Some(Box::new(Transcript::new(Arc::clone(&tag), engine))));
    COMING.set(None);
    set_tag(Some(tag));
    Ok(())
}

/// Starts a part of this thread's recording, with a name. It will run as one step.
pub fn begin_part(name: &str) -> Result<(), ArrayError> {
    let (Some(outer), Some(transcript)) = (tag(), TRANSCRIPT.take()) else {
        return Err(ArrayError::Capture("no recording is open on this thread".to_owned()));
    };
    let tag = Tag::inside(outer, name);
    let mut part = Transcript::new(Arc::clone(&tag), &transcript.engine);
    part.outer = Some(transcript);
    TRANSCRIPT.set(Some(Box::new(part)));
    COMING.set(None);
    set_tag(Some(tag));
    Ok(())
}

/// Ends the open part and returns it. The thread goes on recording around it.
#[must_use]
pub fn end_part() -> Option<Box<Transcript>> {
    let mut part = TRANSCRIPT.take()?;
    let Some(mut outer) = part.outer.take() else {
        TRANSCRIPT.set(Some(part));
        return None;
    };
    COMING.set(None);
    // Values read in the part have decided the code around it, too.
    let is_known =
        |known: &[Array], array: &Array| known.iter().any(|other| Arc::ptr_eq(other.buffer(), array.buffer()));
    for array in &part.looked_at {
        if !is_known(&outer.looked_at, array) {
            outer.looked_at.push(array.clone());
        }
    }
    outer.constants.extend(part.constants.iter().cloned());
    if let Some(failed) = &part.failed {
        outer.failed.get_or_insert_with(|| failed.clone());
    }
    set_tag(Some(Arc::clone(&outer.tag)));
    TRANSCRIPT.set(Some(outer));
    Some(part)
}

/// Ends this thread's recording and returns it.
#[must_use]
pub fn end() -> Option<Box<Transcript>> {
    set_tag(None);
    COMING.set(None);
    let mut transcript = TRANSCRIPT.take();
    while let Some(outer) = transcript.as_mut().and_then(|transcript| transcript.outer.take()) {
        transcript = Some(outer);
    }
    if let Some(transcript) = &mut transcript {
        transcript.made = take_made();
    }
    transcript
}

/// An interrupted recording.
pub struct Suspended {
    transcript: Option<Box<Transcript>>,
    tag: Option<Arc<Tag>>,
}

/// Suspends the recording: until `resume`, the thread pushes its calls, or records something else.
#[must_use]
pub fn suspend() -> Suspended {
    let suspended = Suspended { transcript: TRANSCRIPT.take(), tag: tag() };
    COMING.set(None);
    set_tag(None);
    suspended
}

/// Resumes a suspended recording.
pub fn resume(suspended: Suspended) {
    TRANSCRIPT.set(suspended.transcript);
    COMING.set(None);
    set_tag(suspended.tag);
}

/// Calls `ask` with the recording so far.
pub fn with<T>(ask: impl FnOnce(&Transcript) -> T) -> Option<T> {
    TRANSCRIPT.with_borrow(|transcript| transcript.as_deref().map(ask))
}

fn with_mut<T>(ask: impl FnOnce(&mut Transcript) -> T) -> Option<T> {
    TRANSCRIPT.with_borrow_mut(|transcript| transcript.as_deref_mut().map(ask))
}

/// Sets the name and the place of this thread's next call.
pub fn announce(name: &str, place: u64) {
    COMING.set(Some(Coming { name: name.to_owned(), place }));
}

/// Makes the calls of this thread's recording run one by one from now on, or lifts that. Returns the previous state.
#[must_use]
pub fn set_in_order(on: bool) -> bool {
    with_mut(|transcript| {
        let before = transcript.order.take();
        if on {
            transcript.order = Some(before.clone().unwrap_or_else(|| transcript.engine.new_variable(None)));
        }
        before.is_some()
    })
    .unwrap_or(false)
}

/// Marks the open recording as unusable.
pub fn fail(message: &str) {
    with_mut(|transcript| {
        transcript.failed.get_or_insert_with(|| message.to_owned());
    });
}

/// Notes that the buffer holds known values: each replay that changes it or returns it makes it anew.
pub fn note_constant(buffer: &Arc<Buffer>) {
    with_mut(|transcript| transcript.constants.push(Arc::clone(buffer)));
}

/// Whether an array's values can be read while this thread records. They cannot if the recording makes or changes them;
/// the error then is the name and the place of the call that does.
pub fn look(array: &Array) -> Result<(), (String, u64)> {
    let looked = with_mut(|transcript| {
        if let Some(call) =
            transcript.all().find_map(|transcript| transcript.calls.iter().rev().find(|call| call.changes(array)))
        {
            return Err((call.name.clone(), call.place));
        }
        if array.buffer().recording().is_some() {
            return Err((String::new(), 0));
        }
        let known = transcript.all().any(|transcript| {
            transcript.constants.iter().any(|buffer| Arc::ptr_eq(buffer, array.buffer()))
                || transcript.looked_at.iter().any(|other| Arc::ptr_eq(other.buffer(), array.buffer()))
        });
        if !known {
            transcript.looked_at.push(array.clone());
        }
        Ok(())
    });
    looked.unwrap_or(Ok(()))
}

/// Whether the recording of this thread makes or changes an array's memory.
#[must_use]
pub fn is_written(array: &Array) -> bool {
    with(|transcript| transcript.all().any(|transcript| transcript.calls.iter().any(|call| call.changes(array))))
        .unwrap_or(false)
}

/// How many calls of this thread's recording change an array's memory so far, behind a number of that recording; None if nothing is
/// recorded.
#[must_use]
pub fn writes(array: &Array) -> Option<(usize, usize)> {
    with(|transcript| {
        let outermost = transcript.all().last().map_or(0, |whole| Arc::as_ptr(&whole.tag).addr());
        (outermost, transcript.all().flat_map(|part| &part.calls).filter(|call| call.changes(array)).count())
    })
}

/// Appends a call with checked arrays.
pub(crate) fn append(step: Step, call: &Call<'_>) -> Result<(), ArrayError> {
    append_parts(step, call.engine, call.arrays, call.variables, &call.options, call.at_arrays)
}

/// Appends a call on variables alone.
///
/// # Safety
///
/// The step is opaque and may [run](crate::Opaque::run) without arrays.
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
    // Its outputs belong to the device on which a push would put them.
    place_of(&mut Pushing::lock(), arrays);
    let appended = with_mut(|transcript| {
        if !transcript.engine.is_same(engine) {
            return Err(ArrayError::Capture(format!(
                "op '{name}' belongs to engine '{}' and recording '{}' to engine '{}': record each on its own",
                engine.name(),
                transcript.tag.name(),
                transcript.engine.name()
            )));
        }
        let order = transcript.order.iter().map(|order| (order.clone(), AccessKind::Exclusive));
        let variables = variables.iter().map(|(variable, kind)| ((*variable).clone(), *kind)).chain(order).collect();
        transcript.calls.push(Recorded {
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

/// Refuses, while this thread records, an op that cannot be recorded.
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
