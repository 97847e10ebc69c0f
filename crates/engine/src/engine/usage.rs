//! Whether ops are pending on a variable, readers included.

use super::{Engine, Variable};

impl Engine {
    /// Storages that a buffer may have at a time: [`Settings::rename_limit`](crate::Settings::rename_limit).
    #[must_use]
    #[inline]
    pub fn rename_limit(&self) -> usize {
        self.core.settings.rename_limit
    }

    /// Whether an op that was pushed on a variable, to read it or to change it, has not ended. The answer may be of the past when
    /// it comes. It takes the registrar's role, unless nothing at all is pending.
    ///
    /// ```
    /// use weft_engine::{Engine, EngineError, OpContext, Settings};
    ///
    /// let engine = Engine::new(Settings { workers: Some(1), ..Settings::default() })?;
    /// let batch = engine.new_variable(Some("batch"));
    /// engine.op(|_: &mut OpContext<'_>| Ok(())).read(&batch).push()?;
    /// engine.wait_to_write(&batch)?;
    /// assert!(!engine.is_in_use(&batch)?);
    /// # Ok::<(), EngineError>(())
    /// ```
    pub fn is_in_use(&self, variable: &Variable) -> Result<bool, crate::EngineError> {
        self.check_owner(variable)?;
        if !variable.is_ready() {
            return Ok(true);
        }
        let pool = self.core.pool();
        if pool.registrar.ring.claimed() <= pool.registrar.settled() {
            return Ok(false);
        }
        let mut turn = pool.turn();
        turn.catch_up();
        let is_held = variable.node().is_held(turn.parts().1);
        drop(turn);
        Ok(is_held)
    }
}
