//! Recovery of arrays: the last good version of their elements becomes the value again, where it is still there.
//!
//! The engine knows it of each variable (`weft_engine::Engine::recoverable`). Here several of them stand for the memory:
//!
//! | what is asked of | is kept if |
//! |---|---|
//! | the variables that tell of the elements | none is spoilt |
//! | a range that was never written well by itself | what it was split from is not spoilt either, and it was not cut out of other ranges |
//! | the buffer | something was ever written to it: by an op, here, or by whoever lent it |

use super::Array;
use super::readiness::Telling;
use crate::memory::Pushing;
use smallvec::SmallVec;
use std::sync::Arc;
use weft_engine::{EngineError, Failure, Recoverable, Variable, Wait};

/// What is known of several variables together.
#[derive(Default)]
struct Found {
    kept: Option<Arc<Failure>>,
    spoilt: Option<Arc<Failure>>,
    pending: bool,
    made: bool,
    /// A failed one that has never made a version.
    bare: bool,
}

impl Found {
    fn add(&mut self, what: Recoverable) {
        match what {
            Recoverable::Good { made } => self.made |= made,
            Recoverable::Kept { failure, made } => {
                self.made |= made;
                self.bare |= !made;
                self.kept.get_or_insert(failure);
            }
            Recoverable::Spoilt(failure) => {
                self.spoilt.get_or_insert(failure);
            }
            _ => self.pending = true,
        }
    }
}

impl Array {
    /// Waits until everything that was pushed to change the elements has finished, and answers what is left of their last good
    /// version.
    pub fn recoverable(&self, wait: &mut Wait<'_>) -> Result<Recoverable, EngineError> {
        loop {
            self.wait_for_each(wait, |engine, (variable, _), wait| match engine.wait_for_var_with(variable, wait) {
                Err(EngineError::Failed(_)) => Ok(()),
                waited => waited,
            })?;
            match self.remains()? {
                Recoverable::Pending => {} // something was pushed meanwhile
                remains => return Ok(remains),
            }
        }
    }

    /// What is left of the elements' last good version, as far as ops have settled. One that was [kept](Recoverable::Kept) and
    /// never `made` is memory that nothing was written to.
    pub fn remains(&self) -> Result<Recoverable, EngineError> {
        let (own, others, written, cut) = self.standing();
        let mut found = Found { made: written, ..Found::default() };
        for variable in &own {
            found.add(self.engine().recoverable(variable)?);
        }
        let mut beside = Found::default();
        for variable in &others {
            beside.add(self.engine().recoverable(variable)?);
        }
        if found.pending {
            return Ok(Recoverable::Pending);
        }
        let made = found.made || beside.made;
        let beside = if found.bare { beside.spoilt } else { None };
        Ok(match (found.spoilt.or(beside), found.kept) {
            (None, None) => Recoverable::Good { made },
            (Some(spoilt), _) => Recoverable::Spoilt(spoilt),
            (None, Some(failure)) if found.bare && cut => Recoverable::Spoilt(failure),
            (None, Some(failure)) => Recoverable::Kept { failure, made },
        })
    }

    /// Makes the last good version of the elements the value again. What shares their memory, and was kept like them, is
    /// recovered with them. To be asked for where [`recoverable`](Self::recoverable) has found it kept.
    pub fn recover(&self) -> Result<(), EngineError> {
        let (own, others, ..) = self.standing();
        let all: SmallVec<[&Variable; 4]> = own.iter().chain(&others).collect();
        self.engine().recover(&all)
    }

    /// The variables that tell of the elements; those from before a split; whether something was written without one; and
    /// whether ranges were cut out of others.
    fn standing(&self) -> (SmallVec<[Variable; 4]>, SmallVec<[Variable; 4]>, bool, bool) {
        let own: SmallVec<[Variable; 4]> = Telling::of(self).iter().cloned().collect();
        let buffer = self.buffer();
        let mut pushing = Pushing::lock();
        let ranges = buffer.ranges.get(&mut pushing);
        let others =
            ranges.base.iter().chain(buffer.known_variable()).filter(|one| !own.contains(one)).cloned().collect();
        (own, others, ranges.written_here || buffer.is_foreign(), ranges.cut)
    }
}
