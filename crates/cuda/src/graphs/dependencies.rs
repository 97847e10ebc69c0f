//! Which nodes of a graph an op being recorded must come after: exactly those that its accesses ask for.
//!
//! | access | comes after |
//! |---|---|
//! | read | the ops that wrote last to any of its bytes |
//! | mutate, overwrite | those ops, and those that have read any of its bytes since |
//!
//! An op with a successor among them is left out: an implied edge costs the device time at every replay.

use crate::buffers::BufferAccess;
use crate::driver::NodeHandle;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use weft_engine::AccessKind;

/// Ops up to which it is known what comes before what. The bits grow with the square; beyond, implied edges stay.
const KNOWN: usize = 8192;

/// Ops, by their places in the order of recording.
type Ops = SmallVec<[usize; 4]>;

struct Recorded {
    /// The nodes that come last of its own; what it came after, if it has none.
    leaves: SmallVec<[NodeHandle; 1]>,
    /// A bit for each op that it comes after.
    before: Vec<u64>,
}

/// What an op does with some bytes of a buffer.
struct Use {
    range: Range<usize>,
    op: usize,
    writes: bool,
}

impl Use {
    fn overlaps(&self, range: &Range<usize>) -> bool {
        self.range.start < range.end && range.start < self.range.end
    }

    fn is_within(&self, range: &Range<usize>) -> bool {
        range.start <= self.range.start && self.range.end <= range.end
    }
}

/// The ops recorded so far.
#[derive(Default)]
pub(super) struct Dependencies {
    ops: Vec<Recorded>,
    /// By the addresses of the buffers, which the recorder holds: those that a later op may have to come after.
    uses: HashMap<usize, Vec<Use>>,
}

impl Dependencies {
    /// The ops that one with these accesses must come after.
    pub(super) fn of(&self, accesses: &[BufferAccess]) -> Ops {
        let mut found = Ops::new();
        for access in accesses {
            let Some(uses) = self.uses.get(&Arc::as_ptr(&access.buffer).addr()) else { continue };
            let writes = access.kind != AccessKind::Read;
            for known in uses.iter().filter(|known| (known.writes || writes) && known.overlaps(&access.range)) {
                if !found.contains(&known.op) {
                    found.push(known.op);
                }
            }
        }
        let implied = |op: usize| found.iter().any(|other| *other != op && self.is_behind(*other, op));
        found.iter().copied().filter(|op| !implied(*op)).collect()
    }

    /// The nodes that come last of some ops.
    pub(super) fn leaves(&self, ops: &[usize]) -> Vec<NodeHandle> {
        let mut nodes: Vec<_> = ops.iter().flat_map(|op| &self.ops[*op].leaves).copied().collect();
        nodes.sort_unstable_by_key(|node| node.0);
        nodes.dedup();
        nodes
    }

    /// Whether an op is known to come after an earlier one.
    fn is_behind(&self, op: usize, earlier: usize) -> bool {
        self.ops[op].before.get(earlier / 64).is_some_and(|word| word >> (earlier % 64) & 1 == 1)
    }

    /// Notes an op that came after these, and its last nodes.
    pub(super) fn add(&mut self, accesses: &[BufferAccess], after: &[usize], leaves: &[NodeHandle]) {
        let own = self.ops.len();
        let mut before = Vec::new();
        if own < KNOWN {
            before.resize(own.div_ceil(64), 0);
            for op in after {
                before[op / 64] |= 1 << (op % 64);
                for (word, theirs) in before.iter_mut().zip(&self.ops[*op].before) {
                    *word |= theirs;
                }
            }
        }
        self.ops.push(Recorded { leaves: leaves.into(), before });
        let mut uses = std::mem::take(&mut self.uses);
        for access in accesses {
            let (writes, range) = (access.kind != AccessKind::Read, &access.range);
            let of_buffer = uses.entry(Arc::as_ptr(&access.buffer).addr()).or_default();
            // Who comes after this op comes after all that it has come after; a read, though, is not in everybody's way.
            of_buffer.retain(|known| {
                let behind = known.op != own && (writes || !known.writes && self.is_behind(own, known.op));
                !(behind && known.is_within(range))
            });
            of_buffer.push(Use { range: range.clone(), op: own, writes });
        }
        self.uses = uses;
    }
}
