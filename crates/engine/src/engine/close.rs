//! The end of an engine, and the end of a variable.

use super::wait::Ticks;
use super::{Accesses, Engine, PushOptions, Tick, Variable, Wait};
use crate::EngineError;
use crate::op::Payload;
use crate::trace::{Kind, Note};
use crate::var::AccessKind;
use std::time::{Duration, Instant};

/// How an engine is closed; by default it finishes all pushed ops, and waits for them.
#[derive(Default)]
pub struct CloseOptions<'a> {
    /// An op that has not started is not run: it fails with [`Cause::Cancelled`](crate::Cause::Cancelled).
    pub cancel: bool,
    /// How long to wait for pushed ops.
    pub timeout: Option<Duration>,
    /// A function to call meanwhile, again and again.
    pub tick: Option<Tick<'a>>,
}

impl Engine {
    /// Closes the engine: refuses pushes from now on, waits for pushed ops, and ends the worker threads. Raises the
    /// untold failures.
    ///
    /// ```
    /// use weft_engine::{Engine, Settings};
    ///
    /// let engine = Engine::new(Settings::default())?;
    /// engine.close()
    /// # ?; Ok::<(), weft_engine::EngineError>(())
    /// ```
    pub fn close(&self) -> Result<(), EngineError> {
        self.close_with(CloseOptions::default())
    }

    /// Closes the engine, as [`close`](Self::close) does, but not for longer than is allowed, or without ops that have
    /// not started; it raises no failures when it cancels.
    ///
    /// If the time runs out the engine stays closed and its workers go on; call it again to wait on.
    pub fn close_with(&self, options: CloseOptions<'_>) -> Result<(), EngineError> {
        let CloseOptions { cancel, timeout, tick } = options;
        self.refuse_inside_op("the engine is closed from inside one of its ops")?;
        self.core.set_closed();
        let pool = self.core.pool();
        // Pushers that wait for room wait in vain.
        pool.turn().parts().0.wake_for_room(0, 0);
        if cancel {
            pool.cancel_unstarted();
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut wait = Wait { timeout, tick, ..Wait::default() };
        let mut ticks = Ticks::new();
        // Ops may push ops while they are drained, so one look is not enough.
        while self.stats().pending > 0 {
            ticks.go_on(&mut wait)?;
            wait.timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match self.drain(&mut wait) {
                Err(EngineError::Timeout { .. }) => {
                    let (what, after) = (format!("closing {}", self.name()), timeout.unwrap_or_default());
                    return Err(EngineError::Timeout { what, after });
                }
                other => other?,
            }
        }
        pool.stop();
        if !pool.is_worker() {
            pool.join();
        }
        let failures = self.take_failures();
        if cancel { Ok(()) } else { super::wait::raise_all(failures) }
    }

    /// Deletes a variable: after everything pushed before, `finalizer` runs, once. Handles on the
    /// variable are of no use from now on.
    pub fn delete_variable<P: Payload>(
        &self,
        variable: &Variable,
        finalizer: P,
        name: Option<&str>,
    ) -> Result<(), EngineError> {
        let mut accesses = Accesses::new(self);
        accesses.add(variable, AccessKind::Exclusive)?;
        if self.is_closed() && !self.is_inside_op() {
            return Err(self.core.closed_error());
        }
        if !variable.node().mark_deleted() {
            return Err(EngineError::VariableDeleted { variable: variable.label() });
        }
        let options = PushOptions { name, always_run: true, note: Note::of(Kind::Finalizer), ..PushOptions::default() };
        // A deletion makes room, so no limit holds it up.
        self.push_unlimited(finalizer, &mut accesses, &options)
    }
}
