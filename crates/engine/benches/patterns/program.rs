//! Serial programs: ops that read and mutate variables, and the values that tell in which order they ran.

use std::cell::UnsafeCell;

/// What one op touches: at most so many reads and one mutation.
#[derive(Clone, Copy)]
pub(crate) struct Op<const READS: usize = 3> {
    pub(crate) reads: [usize; READS],
    pub(crate) read_count: usize,
    pub(crate) mutates: Option<usize>,
}

impl<const READS: usize> Default for Op<READS> {
    fn default() -> Self {
        Self { reads: [0; READS], read_count: 0, mutates: None }
    }
}

/// A program: ops in the order in which they are pushed.
pub(crate) struct Program<const READS: usize = 3> {
    pub(crate) variables: usize,
    pub(crate) ops: Vec<Op<READS>>,
}

/// Order-sensitive values: any two ops that swap although one must precede the other change the digest.
pub(crate) struct State<const READS: usize = 3> {
    ops: Vec<Op<READS>>,
    values: Vec<UnsafeCell<u64>>,
    slots: Vec<UnsafeCell<u64>>,
}

// SAFETY: steps that touch one value are ordered by the engine; that is what is verified.
unsafe impl<const READS: usize> Send for State<READS> {}
// SAFETY: as above.
unsafe impl<const READS: usize> Sync for State<READS> {}

impl<const READS: usize> State<READS> {
    pub(crate) fn new(program: &Program<READS>) -> Self {
        Self {
            ops: program.ops.clone(),
            values: (0..program.variables).map(|_| UnsafeCell::new(0)).collect(),
            slots: program.ops.iter().map(|_| UnsafeCell::new(0)).collect(),
        }
    }

    pub(crate) fn step(&self, id: usize) {
        let op = &self.ops[id];
        let mut slot = id as u64 + 1;
        // SAFETY: the engine runs no mutation of these values while this op runs.
        unsafe {
            for &read in &op.reads[..op.read_count] {
                slot = slot.wrapping_mul(31).wrapping_add(*self.values[read].get());
            }
            if id.is_multiple_of(16) {
                (0..200).for_each(|_| std::hint::spin_loop()); // so that an op granted too early is seen
            }
            if let Some(target) = op.mutates {
                let value = self.values[target].get();
                *value = (*value).wrapping_mul(31).wrapping_add(slot);
            }
            *self.slots[id].get() = slot;
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        // SAFETY: asked when all steps are done.
        let all = self.values.iter().chain(&self.slots).map(|cell| unsafe { *cell.get() });
        all.fold(0, |all, value| all.wrapping_mul(31).wrapping_add(value))
    }
}

pub(crate) fn serial_digest<const READS: usize>(program: &Program<READS>) -> u64 {
    let state = State::new(program);
    (0..program.ops.len()).for_each(|id| state.step(id));
    state.digest()
}
