//! The exit of the process.

use crate::engine::wait;
use crate::interpreter::devices;
use crate::interpreter::errors;
use crate::interpreter::location::Location;
use pyo3::exceptions::PyBaseExceptionGroup;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use weft_engine::{CloseOptions, EngineError, RunningOp, WeakEngine, fork};

/// How long an exit waits before it names the ops that it waits for.
const PATIENCE: Duration = Duration::from_secs(3);

/// The engines of this process with their numbers.
struct Engines {
    made: u64,
    known: Vec<(u64, WeakEngine)>,
}

static ENGINES: Mutex<Engines> = Mutex::new(Engines { made: 0, known: Vec::new() });

pub(crate) fn register(engine: &weft_engine::Engine) {
    let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    engines.known.retain(|(_, engine)| engine.upgrade().is_some());
    engines.made += 1;
    let number = engines.made;
    engines.known.push((number, engine.downgrade()));
}

/// The engines that live.
pub(crate) fn living() -> Vec<weft_engine::Engine> {
    let engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
    engines.known.iter().filter_map(|(_, engine)| engine.upgrade()).collect()
}

/// What each living engine counts, by its number.
#[pyfunction]
pub(crate) fn _all_stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let living: Vec<_> = {
        let engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        engines.known.iter().filter_map(|(number, engine)| Some((*number, engine.upgrade()?))).collect()
    };
    let found = PyDict::new(py);
    for (number, engine) in living {
        let figures = PyDict::new(py);
        super::engine::add_stats(py, &engine, &figures)?;
        found.set_item(number, figures)?;
        py.detach(|| drop(engine)); // maybe the last handle of one that somebody else has let go of
    }
    Ok(found)
}

/// Closes all engines: runs pending ops, within `timeout` seconds, and cancels the rest. Answers whether a failure was told here for the
/// first time.
#[pyfunction]
pub(crate) fn _exit_drain(py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
    let deadline = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let deadline = deadline.and_then(|timeout| Instant::now().checked_add(timeout));
    let engines = std::mem::take(&mut ENGINES.lock().unwrap_or_else(PoisonError::into_inner).known);
    let (mut interrupted, mut failed) = (None, false);
    let living = engines.iter().filter_map(|(_, engine)| engine.upgrade());
    for engine in living.chain(fork::take_orphans()) {
        let outcome = drain(py, &engine, deadline, interrupted.is_some());
        match outcome {
            Ok(told) => failed |= told,
            Err(error) => {
                interrupted.get_or_insert(error);
            }
        }
    }
    devices::all().for_each(|kind| kind.shut_down(py));
    interrupted.map_or(Ok(failed), Err)
}

/// Closes one engine. Answers whether a failure was told, or the exception that interrupted this.
fn drain(py: Python<'_>, engine: &weft_engine::Engine, deadline: Option<Instant>, hurry: bool) -> PyResult<bool> {
    let mut interrupt = None;
    let mut warned = false;
    loop {
        if hurry {
            break;
        }
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let slice = if warned { left } else { Some(left.map_or(PATIENCE, |left| left.min(PATIENCE))) };
        let mut outcome = Ok(());
        let heard = wait::detached(py, engine, None, |wait| {
            outcome =
                engine.close_with(CloseOptions { timeout: slice, tick: wait.tick.take(), ..CloseOptions::default() });
            Ok(())
        });
        if let Err(signal) = heard {
            interrupt = Some(signal);
            break;
        }
        match outcome {
            Ok(()) => return Ok(false),
            Err(EngineError::Timeout { .. }) => {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    break;
                }
                if !warned {
                    warned = true;
                    let begun = begun(py, engine);
                    let pending = py.detach(|| engine.stats()).pending;
                    let names = if begun.is_empty() { "no op runs".to_owned() } else { begun.join(", ") };
                    say(
                        py,
                        &format!(
                            "weft: {} still waits at exit for {pending} ops, which Ctrl-C drops; running: {names}",
                            engine.name()
                        ),
                    );
                }
            }
            // No wait will tell of the failed versions any more: tell it here.
            Err(error) => {
                report(py, errors::raised(py, error));
                return Ok(true);
            }
        }
    }
    // What has failed is told first: the ops that are dropped fail, too.
    let failures = py.detach(|| engine.take_failures());
    let told = !failures.is_empty();
    if told {
        let error = EngineError::ManyFailed(failures);
        report(py, errors::raised(py, error));
    }
    let before = py.detach(|| engine.stats()).cancelled;
    // Ops that run cannot be stopped: the process does not wait for them any longer.
    let closed = py.detach(|| {
        engine.close_with(CloseOptions {
            cancel: true,
            timeout: Some(Duration::from_millis(100)),
            ..CloseOptions::default()
        })
    });
    let stats = py.detach(|| engine.stats());
    // An op that was not dropped by now, and does not run, never will.
    let begun = if closed.is_err() { begun(py, engine) } else { Vec::new() };
    let waiting = if closed.is_err() { stats.pending.saturating_sub(begun.len() as u64) } else { 0 };
    let dropped = stats.cancelled - before + waiting;
    let rest = if begun.is_empty() { String::new() } else { format!(" and left unfinished: {}", begun.join(", ")) };
    say(py, &format!("weft: {} dropped {dropped} ops at exit{rest}", engine.name()));
    interrupt.map_or(Ok(told), Err)
}

/// The ops that have begun and not ended, with the lines that pushed them.
fn begun(py: Python<'_>, engine: &weft_engine::Engine) -> Vec<String> {
    let told = |op: &RunningOp| {
        let place = Location::of_bits(op.place).describe(py).map(|place| format!(" pushed at {place}"));
        let token = if op.thread.is_none() { " (its completion token is not used)" } else { "" };
        format!("{}{}{token}", op.label, place.unwrap_or_default())
    };
    py.detach(|| engine.stall_report()).running.iter().map(told).collect()
}

/// Tells a failure that no wait has raised, or each of a group of them: with its op, and the line that pushed it.
fn report(py: Python<'_>, error: PyErr) {
    if error.is_instance_of::<PyBaseExceptionGroup>(py)
        && let Ok(errors) =
            error.value(py).getattr("exceptions").and_then(|errors| errors.extract::<Vec<Bound<'_, PyAny>>>())
    {
        for error in errors {
            report(py, PyErr::from_value(error));
        }
        return;
    }
    // The interpreter's own report leaves notes out before 3.15.
    if py.version_info() < (3, 15) {
        let notes = error.value(py).getattr("__notes__").and_then(|notes| notes.extract::<Vec<String>>());
        for note in notes.unwrap_or_default() {
            if let Some(op) = note.strip_prefix("weft: ") {
                say(py, &format!("weft: {op} failed, and no wait has raised it"));
            }
        }
    }
    error.write_unraisable(py, None);
}

/// Writes a line to `sys.stderr`, if there is one.
fn say(py: Python<'_>, line: &str) {
    let write = || -> PyResult<()> {
        let stderr = py.import("sys")?.getattr("stderr")?;
        stderr.call_method1("write", (format!("{line}\n"),))?;
        stderr.call_method0("flush").map(drop)
    };
    // Without a stderr there is nothing to write to.
    let _ = write();
}
