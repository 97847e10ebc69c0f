//! The loops of a fused step that fail together.
//!
//! Loops that run as one step are not always one where something has failed before them: of `m *= 0.9; m += g; p -= 0.1 * m`, a
//! failed `p` must not fail `m`. Loops that fail with the same input arrays form a *share*; each share is a member of the step. It
//! is left out, and fails, by itself; the step runs the others. Where nothing has failed, all run as one.

use super::bound::{Bindings, pointers};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use weft_array::{Fused, Part};
use weft_engine::trace::Note;
use weft_engine::{Cause, Step, StepContext};

/// Loops that owe the same.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// The arrays, by number, with which they fail.
    pub(super) owes: BTreeSet<usize>,
    /// Those that one of them is the last to write.
    pub(super) leaves: Vec<usize>,
    /// The loops, by number.
    loops: Vec<usize>,
}

/// The shares; none if all that is left behind fails with all that is read.
pub(super) fn shares(fused: &Fused) -> Vec<Share> {
    shares_of(fused.parts())
}

fn shares_of(loops: impl Iterator<Item = (Vec<Part>, Vec<Part>)>) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    // The share that has written to it last.
    let mut writers: BTreeMap<Part, usize> = BTreeMap::new();
    for (number, (reads, writes)) in loops.enumerate() {
        let mut owes = BTreeSet::new();
        for part in reads {
            match (writers.get(&part), part) {
                (Some(share), _) => owes.extend(&shares[*share].owes),
                (None, Part::Array(array)) => drop(owes.insert(array)),
                (None, Part::Slot(_)) => {} // a slot is written before it is read
            }
        }
        let share = shares.iter().position(|known| known.owes == owes).unwrap_or_else(|| {
            shares.push(Share { owes, ..Share::default() });
            shares.len() - 1
        });
        shares[share].loops.push(number);
        writers.extend(writes.into_iter().map(|part| (part, share)));
    }
    for (part, share) in writers {
        if let Part::Array(array) = part {
            shares[share].leaves.push(array);
        }
    }
    let mut left = shares.iter().filter(|share| !share.leaves.is_empty());
    let all = left.next().is_none_or(|one| shares.iter().all(|share| share.owes.is_subset(&one.owes)));
    if all && left.next().is_none() { Vec::new() } else { shares }
}

/// Some blocks of fused loops: their shares are members.
pub(super) struct SharedStep {
    pub(super) fused: Arc<Fused>,
    pub(super) blocks: Range<usize>,
    pub(super) shares: Arc<[Share]>,
    /// Where the operands lie: entries, bytes from their starts.
    pub(super) operands: Box<[(u32, usize)]>,
    pub(super) instruction: usize,
    /// Its number among the steps with members.
    pub(super) part: usize,
}

impl SharedStep {
    /// Runs the loops of shares that are not left out. A share owes no less than one that it reads from, which therefore
    /// stays if it does.
    #[cold]
    fn run_rest(&self, bindings: &Bindings, left_out: u64) -> Result<(), Cause> {
        let stays = |number: usize| {
            let share = self.shares.iter().position(|share| share.loops.contains(&number));
            share.is_some_and(|share| left_out >> share & 1 == 0)
        };
        let rest = self.fused.only(stays);
        let pointers = pointers(bindings, &self.operands)?;
        // SAFETY: as in run().
        unsafe { rest.run_blocks(&pointers, self.blocks.clone()) };
        Ok(())
    }
}

impl Step<Bindings> for SharedStep {
    fn run(&self, bindings: &Bindings, _: &mut StepContext<'_, '_>) -> Result<(), Cause> {
        match bindings.left_out_of(self.part) {
            0 => {
                let pointers = pointers(bindings, &self.operands)?;
                // SAFETY: entries have the layouts that were recorded; who else touches these bytes comes before or after
                // this step, or looks at them as it does: see the module's head.
                unsafe { self.fused.run_blocks(&pointers, self.blocks.clone()) };
                Ok(())
            }
            some => self.run_rest(bindings, some),
        }
    }

    fn left_out(&self, bindings: &Bindings, member: usize) {
        bindings.leave_out(self.part, member);
    }

    fn note(&self, bindings: &Bindings) -> Note {
        bindings.notes.get(self.instruction).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Part, Share, shares_of};
    use Part::{Array, Slot};

    fn found(loops: &[(&[Part], Part)]) -> Vec<(Vec<usize>, Vec<usize>, Vec<usize>)> {
        let loops = loops.iter().map(|(reads, writes)| (reads.to_vec(), vec![*writes]));
        let told = |share: Share| (share.owes.into_iter().collect(), share.leaves, share.loops);
        shares_of(loops).into_iter().map(told).collect()
    }

    #[test]
    fn what_owes_the_same_is_a_share() {
        // m *= 0.9; m += g; p -= 0.1 * m
        let momentum = [
            (&[Array(0)][..], Array(0)),
            (&[Array(0), Array(1)], Array(0)),
            (&[Array(0)], Slot(0)),
            (&[Array(2), Slot(0)], Array(2)),
        ];
        let expected =
            vec![(vec![0], vec![], vec![0]), (vec![0, 1], vec![0], vec![1, 2]), (vec![0, 1, 2], vec![2], vec![3])];
        assert_eq!(found(&momentum), expected);
        // An overwrite owes nothing to the old value.
        let renewed = [(&[Array(0)][..], Array(1)), (&[Array(2)], Array(1))];
        assert_eq!(found(&renewed), [(vec![0], vec![], vec![0]), (vec![2], vec![1], vec![1])]);
    }

    #[test]
    fn one_result_has_no_shares() {
        let chain = [(&[Array(0)][..], Slot(0)), (&[Array(1)], Slot(1)), (&[Slot(0), Slot(1)], Array(2))];
        assert_eq!(found(&chain), []);
        let rounds =
            [(&[Array(0), Array(1)][..], Slot(0)), (&[Array(1), Array(0)], Array(1)), (&[Slot(0), Array(1)], Array(0))];
        assert_eq!(found(&rounds), []);
    }
}
