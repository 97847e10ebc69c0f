//! The accesses of one op, checked and merged.

use super::{Core, Engine, Variable};
use crate::EngineError;
use crate::var::{AccessKind, VarNode};
use smallvec::SmallVec;
use std::ptr::NonNull;

/// Up to this many accesses, a new one is compared with each; more are sorted once, at the end.
const FEW: usize = 16;

/// Accesses that are listed without an allocation: of an op that reads sixteen variables and changes a few.
const LISTED: usize = 20;

/// The accesses of one op: each variable once, all of one engine, none deleted.
///
/// It borrows the engine and the variables, which therefore outlive the push:
///
/// ```compile_fail,E0597
/// use weft_engine::{Accesses, Engine, Settings};
///
/// let accesses = {
///     let engine = Engine::new(Settings::default()).unwrap();
///     Accesses::new(&engine)
/// };
/// drop(accesses);
/// ```
pub struct Accesses<'v> {
    core: &'v Core,
    list: SmallVec<[(NonNull<VarNode>, AccessKind); LISTED]>,
    /// Whether a variable may be listed twice.
    unmerged: bool,
}

impl<'v> Accesses<'v> {
    /// No accesses yet, of variables of this engine.
    #[must_use]
    #[inline]
    pub fn new(engine: &'v Engine) -> Self {
        Self::of(&engine.core)
    }

    #[inline]
    pub(super) fn of(core: &'v Core) -> Self {
        Self { core, list: SmallVec::new(), unmerged: false }
    }

    /// Adds an access. The same variable named twice merges: any mutation wins over reads, and
    /// a read with an overwrite is a mutation.
    #[inline]
    pub fn add(&mut self, variable: &'v Variable, kind: AccessKind) -> Result<(), EngineError> {
        Self::take(self.core, variable)?;
        variable.adopt();
        let node = variable.node_pointer();
        if self.list.len() > FEW {
            self.unmerged = true;
        } else if let Some((_, merged)) = self.list.iter_mut().find(|(other, _)| *other == node) {
            *merged = merged.merged(kind);
            return Ok(());
        }
        self.list.push((node, kind));
        Ok(())
    }

    /// Whether a push onto this engine may take the variable.
    #[inline]
    pub(super) fn take(core: &Core, variable: &Variable) -> Result<(), EngineError> {
        if !std::ptr::eq(&raw const **variable.core(), core) || variable.node().is_deleted() {
            return Err(Self::refusal(core, variable));
        }
        Ok(())
    }

    /// Why the variable is not taken.
    #[cold]
    fn refusal(core: &Core, variable: &Variable) -> EngineError {
        if std::ptr::eq(&raw const **variable.core(), core) {
            return EngineError::VariableDeleted { variable: variable.label() };
        }
        let (owner, engine) = (variable.engine_name().to_owned(), core.label.clone());
        EngineError::WrongEngine { variable: variable.label(), owner, engine }
    }

    /// The accesses, each variable once, in the order of their naming.
    #[inline]
    pub(super) fn merged(&mut self) -> &[(NonNull<VarNode>, AccessKind)] {
        if self.unmerged {
            self.merge();
        }
        &self.list
    }

    #[cold]
    fn merge(&mut self) {
        let mut sorted: Vec<_> = self.list.drain(..).enumerate().collect();
        sorted.sort_unstable_by_key(|(at, (node, _))| (*node, *at));
        sorted.dedup_by(|(_, (later, kind)), (_, (first, merged))| {
            let same = later == first;
            if same {
                *merged = merged.merged(*kind);
            }
            same
        });
        // Not in the order of addresses: of several failures, an op inherits the first one named.
        sorted.sort_unstable_by_key(|(at, _)| *at);
        self.list.extend(sorted.into_iter().map(|(_, access)| access));
        self.unmerged = false;
    }

    /// Refuses accesses of variables of another engine than this one.
    #[inline]
    pub(super) fn check(&self, core: &Core) -> Result<(), EngineError> {
        if std::ptr::eq(self.core, core) { Ok(()) } else { self.refuse(core) }
    }

    #[cold]
    fn refuse(&self, core: &Core) -> Result<(), EngineError> {
        let Some((first, _)) = self.list.first() else { return Ok(()) };
        // SAFETY: the accesses borrow their variables.
        let variable = unsafe { first.as_ref() }.label();
        Err(EngineError::WrongEngine { variable, owner: self.core.label.clone(), engine: core.label.clone() })
    }
}
