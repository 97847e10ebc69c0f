//! The known order of commands.

use smallvec::SmallVec;

/// For each stream the number of its last command that comes before: a vector clock.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock(SmallVec<[u64; 8]>);

impl Clock {
    pub(super) fn get(&self, stream: usize) -> u64 {
        self.0.get(stream).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, stream: usize, number: u64) {
        if self.0.len() <= stream {
            self.0.resize(stream + 1, 0);
        }
        self.0[stream] = number;
    }

    /// The common predecessors of both.
    pub(super) fn join(&mut self, other: &Self) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            *own = (*own).max(*other);
        }
    }
}
