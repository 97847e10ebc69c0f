//! Handles on variables.

use super::Core;
use crate::op::{Extra, Op, OpFlags, OpKind};
use crate::sync::Ordering;
use crate::var::{AccessKind, VarNode};
use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::Arc;

/// A handle on something that ops read and mutate: an array, a generator, a file, a device.
/// The engine orders accesses to it and knows nothing else of it. Clones are the same variable.
#[derive(Clone)]
pub struct Variable(Arc<Handle>);

struct Handle {
    node: NonNull<VarNode>,
    core: Arc<Core>,
}

// SAFETY: the node's shared fields are atomic, the others the registrar's.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Variable {
    pub(super) fn new(core: &Arc<Core>, name: Option<&str>, bytes: u64) -> Self {
        // ORDERING: a number of its own for each variable.
        let number = core.variables.fetch_add(1, Ordering::Relaxed);
        let node = Box::new(VarNode::new(number, name.map(Into::into), bytes, core.generation()));
        Self(Arc::new(Handle { node: NonNull::from(Box::leak(node)), core: Arc::clone(core) }))
    }

    #[inline]
    pub(super) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    #[inline]
    pub(super) fn node(&self) -> &VarNode {
        // SAFETY: the node lives as long as a handle does.
        unsafe { self.0.node.as_ref() }
    }

    #[inline]
    pub(super) fn node_pointer(&self) -> NonNull<VarNode> {
        self.0.node
    }

    /// Takes the variable over if the process was forked since it was last used.
    #[inline]
    pub(super) fn adopt(&self) {
        if !self.node().is_of(self.0.core.generation()) {
            self.adopt_now();
        }
    }

    #[cold]
    fn adopt_now(&self) {
        let core = &self.0.core;
        let mut turn = core.pool().turn();
        let (tracker, seat) = turn.parts();
        tracker.adopt(seat, self.node(), core.generation());
    }

    /// The given name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.node().name.as_deref()
    }

    /// Its number in its engine, from 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.node().number
    }

    /// The name to show: the given one, or the number.
    #[must_use]
    pub fn label(&self) -> String {
        self.node().label()
    }

    /// Mutations pushed.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.node().version()
    }

    /// Mutations finished, failed ones included.
    #[must_use]
    pub fn completed_version(&self) -> u64 {
        if !self.has_completed() {
            self.0.core.settle_kept();
        }
        self.node().completed_version()
    }

    /// Mutations known to have finished when their ops were settled last: a look at one number, for callers that hold locks.
    #[must_use]
    pub fn known_version(&self) -> u64 {
        self.adopt();
        self.node().completed_version()
    }

    /// Whether every mutation pushed so far has finished.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.has_completed() || {
            self.0.core.settle_kept();
            self.has_completed()
        }
    }

    /// Whether every mutation pushed so far is known to have finished.
    #[inline]
    fn has_completed(&self) -> bool {
        self.adopt();
        self.node().completed_version() >= self.node().version()
    }

    /// Whether its last finished version failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        if self.known_failed() || !self.has_completed() {
            self.0.core.settle_kept();
        }
        self.node().failed()
    }

    /// Whether its last version failed, of those known to have finished when their ops were settled last: a look at one mark, for callers
    /// that hold locks.
    #[must_use]
    pub fn known_failed(&self) -> bool {
        self.adopt();
        self.node().failed()
    }

    /// Whether it was deleted.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        self.node().is_deleted()
    }

    /// The label of the engine it belongs to.
    #[must_use]
    pub fn engine_name(&self) -> &str {
        &self.0.core.label
    }
}

impl PartialEq for Variable {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Variable {}

impl std::hash::Hash for Variable {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.node.hash(state);
    }
}

impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Variable")
            .field("name", &self.label())
            .field("version", &self.version())
            .field("completed_version", &self.node().completed_version())
            .finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the node lives until its release is settled.
        if !unsafe { self.node.as_ref() }.is_of(self.core.generation()) {
            // The parent process has its own; no op here ever queued for this one. SAFETY: the last handle is gone, and
            // no access of this process exists.
            drop(unsafe { Box::from_raw(self.node.as_ptr()) });
            return;
        }
        let pool = self.core.pool();
        let node = self.node;
        self.core.push_cell(1, |cell, _| {
            // SAFETY: the cell is ours to fill; a release has no payload.
            unsafe {
                Op::fill(
                    cell,
                    OpKind::Release,
                    MaybeUninit::uninit(),
                    &[(node, AccessKind::Exclusive)],
                    OpFlags::default(),
                    0,
                    0,
                    None::<Box<Extra>>,
                );
            }
        });
        // An idle engine may keep the node a while; a closed one has no worker to free it.
        if self.core.is_closed() {
            pool.turn().catch_up();
        }
    }
}
