//! What one op touches, checked and merged.

use super::{Core, Engine, Variable};
use crate::EngineError;
use crate::var::{AccessKind, VarNode};
use smallvec::SmallVec;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Up to this many accesses, a new one is compared with each; more are sorted once, at the end.
const FEW: usize = 16;

/// The accesses of one op: each variable once, all of one engine, none deleted.
///
/// It borrows the variables, which therefore outlive the push.
pub struct Accesses<'v> {
    core: *const Core,
    list: SmallVec<[(NonNull<VarNode>, AccessKind); 8]>,
    /// Whether a variable may be listed twice.
    unmerged: bool,
    variables: PhantomData<&'v Variable>,
}

impl<'v> Accesses<'v> {
    /// No accesses yet, of variables of this engine.
    #[must_use]
    #[inline]
    pub fn new(engine: &Engine) -> Self {
        Self::of(&engine.core)
    }

    #[inline]
    pub(super) fn of(core: &Core) -> Self {
        Self { core, list: SmallVec::new(), unmerged: false, variables: PhantomData }
    }

    /// Adds an access. The same variable named twice merges: any mutation wins over reads, and
    /// a read with an overwrite is a mutation.
    #[inline]
    pub fn add(&mut self, variable: &'v Variable, kind: AccessKind) -> Result<(), EngineError> {
        Self::check(self.core, variable)?;
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
    pub(super) fn check(core: *const Core, variable: &Variable) -> Result<(), EngineError> {
        if !std::ptr::eq(std::sync::Arc::as_ptr(variable.core()), core) || variable.node().is_deleted() {
            return Err(Self::refusal(core, variable));
        }
        Ok(())
    }

    /// Why the variable is not taken.
    #[cold]
    fn refusal(core: *const Core, variable: &Variable) -> EngineError {
        if std::ptr::eq(std::sync::Arc::as_ptr(variable.core()), core) {
            return EngineError::VariableDeleted { variable: variable.label() };
        }
        // SAFETY: the engine of the push, which is the caller's.
        let engine = unsafe { &*core }.label.clone();
        EngineError::WrongEngine { variable: variable.label(), owner: variable.engine_name().to_owned(), engine }
    }

    /// The accesses, each variable once, in the order in which they were named.
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

    #[inline]
    pub(super) fn is_of(&self, core: &Core) -> bool {
        std::ptr::eq(self.core, core)
    }
}
