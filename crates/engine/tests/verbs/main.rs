//! What each verb promises, one file for each.

// `hold` and `held` are the two ends of one channel; a payload's type is fixed by its trait.
#![allow(clippy::similar_names, clippy::unnecessary_wraps, clippy::type_complexity)]
#![allow(clippy::disallowed_types)] // counts of the tests, not of the engine

mod async_ops;
mod chains;
mod close;
mod delete;
mod errors;
#[path = "../gate/mod.rs"]
mod gate;
mod issuing;
mod kept;
mod lent;
mod limits;
mod policies;
mod priority;
mod push;
mod recover;
mod shuffled;
mod stall;
mod task;
mod threads;
mod trace;
mod two_engines;
mod unruly;
mod wait;
#[path = "../watchdog/mod.rs"]
mod watchdog;

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use watchdog::Watchdog;
use weft_engine::{Cause, CloseOptions, Engine, EngineError, OpContext, Policy, Settings, Variable, Wait};

/// Long enough for a wait that is to run out, short enough to sit through.
const SHORT: Duration = Duration::from_millis(20);

type Answer = Result<(), Cause>;

fn engine(policy: Policy, workers: usize) -> Engine {
    Engine::new(Settings { policy, workers: Some(workers), ..Settings::default() }).expect("valid settings")
}

/// A work-stealing engine.
fn stealing(workers: usize) -> Engine {
    engine(Policy::WorkStealing, workers)
}

fn nothing(_: &mut OpContext<'_>) -> Answer {
    Ok(())
}

fn failing(_: &mut OpContext<'_>) -> Answer {
    Err(Cause::Error("on purpose".into()))
}

/// A list that ops write into.
#[derive(Clone)]
struct Log<T>(Arc<Mutex<Vec<T>>>);

impl<T> Default for Log<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T: Clone + Send + 'static> Log<T> {
    fn note(&self, item: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }

    /// A payload that notes this.
    fn noting(&self, item: T) -> impl FnOnce(&mut OpContext<'_>) -> Answer + Send + 'static {
        let log = self.clone();
        move |_: &mut OpContext<'_>| {
            log.note(item);
            Ok(())
        }
    }

    fn all(&self) -> Vec<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Occupies one worker until the answered handle is dropped. It has begun when this returns.
fn occupy(engine: &Engine, variable: &Variable) -> std::sync::mpsc::Sender<()> {
    let ((begun, has_begun), (release, released)) = (channel(), channel::<()>());
    let block = move |_: &mut OpContext<'_>| {
        begun.send(()).expect("the test waits for it");
        let _ = released.recv(); // until the sender is dropped
        Ok(())
    };
    engine.op(block).name("occupant").mutate(variable).push().expect("an open engine");
    has_begun.recv().expect("the op begins");
    release
}

/// Closes an engine whose worker is occupied, so that nothing starts from here on; then frees the worker, and waits for the end.
fn cancel(engine: &Engine, release: std::sync::mpsc::Sender<()>) {
    let options = |timeout| CloseOptions { cancel: true, timeout, ..CloseOptions::default() };
    let answer = engine.close_with(options(Some(Duration::ZERO)));
    assert!(matches!(answer, Err(EngineError::Timeout { .. })), "{answer:?}");
    drop(release);
    engine.close_with(options(None)).expect("cancelled ops are no failures");
}

/// The label of the op whose failure this is.
fn failed_op(answer: Result<(), EngineError>) -> String {
    match answer {
        Err(EngineError::Failed(failure)) => failure.op().to_owned(),
        other => panic!("expected one failure, got {other:?}"),
    }
}

fn for_short<'a>() -> Wait<'a> {
    Wait { timeout: Some(SHORT), ..Wait::default() }
}

/// Waits on another thread. The first receiver hears when the wait has begun, the second its end.
fn waiting<R: Send + 'static>(
    wait: impl FnOnce(&mut Wait<'_>) -> R + Send + 'static,
) -> (Receiver<()>, std::thread::JoinHandle<R>) {
    let (begun, has_begun) = channel();
    let thread = std::thread::spawn(move || {
        let mut tick = || {
            let _ = begun.send(()); // heard once, called again and again
            true
        };
        wait(&mut Wait { tick: Some(&mut tick), ..Wait::default() })
    });
    (has_begun, thread)
}
