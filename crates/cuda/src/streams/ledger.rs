//! What is known of a stream's fences: which are done, which ops may not be, which events are spare.

use super::fence::FenceCell;
use crate::driver::Driver;
use crate::error::DriverError;
use crate::label::Label;
use std::collections::VecDeque;
use std::sync::Arc;

/// Spare events of a stream before one is looked at instead of making another.
const SPARE: usize = 64;
/// Labels of ops that may be unfinished, for messages. More than a device's queue holds.
const LABELS: usize = 2048;

/// A stream's books. The lock around them is held for a few moves of memory, and for the query of an event.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The newest fence known to be done, and so all before it.
    done: u64,
    /// Fences announced; they are numbered from 1.
    announced: u64,
    /// The ops of the last fences; the last one is that of the fence `announced`.
    labels: VecDeque<Label>,
    /// Cells that nobody holds, in the order in which they were given back.
    spare: VecDeque<Arc<FenceCell>>,
}

impl Ledger {
    /// An event that nothing waits for: a spare one that has happened, or a new one. Inside of the context.
    #[inline]
    pub(crate) fn take(&mut self, driver: &dyn Driver) -> Result<Arc<FenceCell>, DriverError> {
        if self.spare.len() >= SPARE && self.spare[0].number > self.done {
            // One look in the middle tells for those before it, so that most fences cost none; unless the first is a
            // newer one, given back out of order.
            let (first, middle) = (&self.spare[0], &self.spare[SPARE / 2]);
            let looked_at = if middle.number > first.number { middle } else { first };
            // SAFETY: the cell has its event.
            if unsafe { driver.has_happened(looked_at.event) }? {
                self.done = self.done.max(looked_at.number);
            }
        }
        if self.spare.front().is_some_and(|cell| cell.number <= self.done)
            && let Some(cell) = self.spare.pop_front()
        {
            return Ok(cell);
        }
        // SAFETY: the context is current.
        let event = unsafe { driver.create_event(false) }?;
        Ok(Arc::new(FenceCell::new(event)))
    }

    /// Finds out what is done, roughly. Inside of the context.
    pub(crate) fn look(&mut self, driver: &dyn Driver) {
        let (newest, middle) = (self.spare.len().wrapping_sub(1), self.spare.len() / 2);
        for at in [newest, middle] {
            let Some(cell) = self.spare.get(at).filter(|cell| cell.number > self.done) else { return };
            // SAFETY: the cell has its event.
            if matches!(unsafe { driver.has_happened(cell.event) }, Ok(true)) {
                self.done = cell.number;
                return;
            }
        }
    }

    /// Numbers the fence of an op that is about to be issued.
    #[inline]
    pub(crate) fn announce(&mut self, label: &Label) -> u64 {
        if self.labels.len() == LABELS {
            self.labels.pop_front();
        }
        self.labels.push_back(label.clone());
        self.announced += 1;
        self.announced
    }

    /// Takes the last number back: its event was not recorded.
    pub(crate) fn retract(&mut self) {
        self.labels.pop_back();
        self.announced -= 1;
    }

    pub(crate) fn give_back(&mut self, cell: Arc<FenceCell>) {
        self.spare.push_back(cell);
    }

    pub(crate) fn take_spare(&mut self) -> VecDeque<Arc<FenceCell>> {
        std::mem::take(&mut self.spare)
    }

    pub(crate) fn note_done(&mut self, number: u64) {
        self.done = self.done.max(number);
    }

    pub(crate) fn is_done(&self, number: u64) -> bool {
        number <= self.done
    }

    /// Fences not known to be done.
    pub(crate) fn unfinished(&self) -> u64 {
        self.announced - self.done
    }

    /// The op of a fence, if that is not too long ago.
    pub(crate) fn label(&self, number: u64) -> Option<&Label> {
        let back = usize::try_from(self.announced.checked_sub(number)?).ok()?;
        self.labels.iter().rev().nth(back)
    }

    /// The ops that may be unfinished, the first one first, as far as labels reach.
    pub(crate) fn first_unfinished(&self) -> impl Iterator<Item = &Label> {
        let kept = self.announced - self.labels.len() as u64;
        (self.done.max(kept) + 1..=self.announced).filter_map(|number| self.label(number))
    }
}
