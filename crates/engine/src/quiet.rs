//! Stretches without user code on a thread, and the list of work put off for their end.
//!
//! A caller that holds a lock of its own, and pushes under it, must not meet that lock again in a payload's `Drop`.
//! While it is quiet, code of the engine's that would run such a `Drop` on its thread waits in a list of the
//! thread.

use crate::failure::Cause;
use crate::sync::thread_cell;
use std::any::Any;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

type Job = Box<dyn FnOnce()>;

thread_cell! {
    /// Stretches of this thread that have begun and not ended, from the second bit on; the first bit says whether
    /// anything waits for their end. One word: it is looked up twice for each small op.
    static STATE: u32 = 0;
    /// The waiting work, the first one first.
    static LATER: Vec<Job> = Vec::new();
}

const HAS_LATER: u32 = 1;
const STRETCH: u32 = 2;

/// For as long as it lives, the engine runs nothing that a user wrote on the calling thread: no payload, and no `Drop`
/// of one. Work that was put off is done when the last one of the thread ends: let go of the locks before.
///
/// ```
/// use weft_engine::Quiet;
/// use std::sync::{Mutex, MutexGuard};
///
/// /// A lock under which ops are pushed. Fields are dropped in this order.
/// struct Locked<'a> {
///     guard: MutexGuard<'a, ()>,
///     quiet: Quiet,
/// }
/// # let lock = Mutex::new(());
/// # drop(Locked { guard: lock.lock().unwrap(), quiet: Quiet::begin() });
/// ```
#[must_use = "it is quiet for as long as this lives"]
#[derive(Debug)]
pub struct Quiet(PhantomData<*const ()>);

impl Quiet {
    /// From now on.
    #[inline]
    pub fn begin() -> Self {
        STATE.with(|state| state.set(state.get() + STRETCH));
        Self(PhantomData)
    }
}

impl Drop for Quiet {
    #[inline]
    fn drop(&mut self) {
        let state = STATE.with(|state| {
            state.set(state.get() - STRETCH);
            state.get()
        });
        // A list that was never made is not made here.
        if state == HAS_LATER {
            catch_up();
        }
    }
}

#[cold]
fn catch_up() {
    STATE.with(|state| state.set(0));
    for job in LATER.with(Cell::take) {
        quietly(job);
    }
}

/// Whether nothing of a user's may run on this thread now.
#[inline]
pub(crate) fn is_quiet() -> bool {
    STATE.with(Cell::get) >= STRETCH
}

/// Does this, or puts it off while it is quiet.
pub(crate) fn later(job: impl FnOnce() + 'static) {
    if is_quiet() {
        STATE.with(|state| state.set(state.get() | HAS_LATER));
        LATER.with(|later| {
            let mut jobs = later.take();
            jobs.push(Box::new(job));
            later.set(jobs);
        });
    } else {
        job();
    }
}

/// Drops a value, or puts that off while it is [quiet](Quiet).
pub fn drop_later<T: 'static>(value: T) {
    later(move || drop(value));
}

/// Stops a thread for good that is ended in the middle of a user's code, by `pthread_exit`: its stack is then unwound
/// by something else than a panic, and to catch that would abort the process, which is about to end.
struct StandStill;

impl Drop for StandStill {
    fn drop(&mut self) {
        while !std::thread::panicking() {
            std::thread::park();
        }
    }
}

/// The work's answer, or its panic.
#[inline]
pub(crate) fn attempt<R>(work: impl FnOnce() -> R) -> std::thread::Result<R> {
    catch_unwind(AssertUnwindSafe(|| {
        let stand_still = StandStill;
        let answer = work();
        mem::forget(stand_still);
        answer
    }))
}

/// Does work that may panic, and ends the panic: it ends no other work.
pub(crate) fn quietly(work: impl FnOnce()) {
    if let Err(thrown) = attempt(work) {
        dispose(thrown);
    }
}

/// Drops a caught panic. A panic of its own `Drop` is dropped if it is a text, else never: that could go on for ever.
pub(crate) fn dispose(thrown: Box<dyn Any + Send>) {
    if let Err(again) = attempt(|| drop(thrown))
        && !again.is::<&str>()
        && !again.is::<String>()
    {
        mem::forget(again);
    }
}

/// Runs a part of an op on the thread that has it, and makes a panic the op's failure.
pub fn caught<T>(work: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    attempt(work).unwrap_or_else(|panic| Err(Cause::Panic(message_of(panic))))
}

/// The words of a panic, which ends here.
pub(crate) fn message_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("with something that is no text").to_owned();
    dispose(panic);
    text
}
