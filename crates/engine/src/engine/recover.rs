//! Recovery: the last good version of a variable becomes its value again. `var` has the protocol.

use super::{Engine, Variable};
use crate::EngineError;
use crate::failure::Failure;
use crate::var::Health;
use std::sync::Arc;

/// The state of a variable's last good version.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Recoverable {
    /// It is the value: nothing has failed. `made` says whether an op has ever made one.
    Good {
        /// As above.
        made: bool,
    },
    /// It is there, behind this failure.
    Kept {
        /// Of the op that failed first.
        failure: Arc<Failure>,
        /// Whether an op has ever made one: else the value is that from the variable's beginning.
        made: bool,
    },
    /// An op that ran has begun to change it.
    Spoilt(Arc<Failure>),
    /// An op holds the variable alone at this moment, so nothing is decided.
    Pending,
}

impl Engine {
    /// The state of a variable's last good version, as far as ops have settled.
    pub fn recoverable(&self, variable: &Variable) -> Result<Recoverable, EngineError> {
        self.check_owner(variable)?;
        variable.adopt();
        let pool = self.core.pool();
        let mut turn = pool.turn();
        turn.settle_kept();
        let health = variable.node().health(turn.parts().1);
        drop(turn);
        Ok(match health {
            Health::Busy => Recoverable::Pending,
            Health::Good { made } => Recoverable::Good { made },
            Health::Kept { failure, made } => Recoverable::Kept { failure, made },
            Health::Spoilt(failure) => Recoverable::Spoilt(failure),
        })
    }

    /// Makes the last good version of variables their value again, where it is [kept](Recoverable::Kept): an op that
    /// was skipped has not touched its targets. Nothing happens to other variables. A caller that needs the outcome of
    /// pending ops waits for them before.
    ///
    /// ```
    /// use weft_engine::{Cause, Engine, EngineError, OpContext, Recoverable, Settings};
    ///
    /// let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() })?;
    /// let (gradient, weights) = (engine.new_variable(Some("gradient")), engine.new_variable(Some("weights")));
    /// let fail = |_: &mut OpContext<'_>| Err(Cause::Native(1));
    /// let update = |_: &mut OpContext<'_>| unreachable!("its gradient has failed");
    /// engine.op(fail).overwrite(&gradient).push()?;
    /// engine.op(update).read(&gradient).mutate(&weights).push()?;
    /// assert!(engine.wait_for_var(&weights).is_err());
    ///
    /// engine.recover(&[&gradient, &weights])?;
    /// assert!(matches!(engine.recoverable(&gradient)?, Recoverable::Spoilt(_)));
    /// engine.wait_for_var(&weights)?;
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn recover(&self, variables: &[&Variable]) -> Result<(), EngineError> {
        variables.iter().try_for_each(|variable| self.check_owner(variable))?;
        let pool = self.core.pool();
        variables.iter().for_each(|variable| variable.adopt());
        let mut turn = pool.turn();
        turn.settle_kept();
        let (tracker, seat) = turn.parts();
        for variable in variables {
            tracker.recover(seat, variable.node());
        }
        drop(turn);
        Ok(())
    }
}
