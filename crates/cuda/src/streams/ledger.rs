//! The known state of a stream's fences: which are done, which ops may not be, which events are
//! spare.

use super::fence::Mark;
use crate::driver::{Driver, EventHandle};
use crate::error::DriverError;
use crate::label::Label;
use std::collections::VecDeque;
use std::sync::Arc;

/// Spare events of a stream before one is looked at instead of making another.
const SPARE: usize = 64;
/// Labels of ops that may be unfinished, for messages. More than a device's queue holds.
const LABELS: usize = 2048;

/// The last op that a spare event is behind.
fn last_op(mark: &Mark) -> u64 {
    mark.behind().unwrap_or(0)
}

/// A stream's books. The lock around them is held for a few moves of memory, and for the query of an event.
#[derive(Default)]
pub(crate) struct Ledger {
    /// The newest fence known to be done, and so all before it.
    done: u64,
    /// Fences announced; they are numbered from 1.
    announced: u64,
    /// The ops of the last fences; the last one is that of the fence `announced`.
    labels: VecDeque<Label>,
    /// The event that was recorded last, and the op that it is behind.
    newest: Option<(EventHandle, u64)>,
    /// Those without a holder, in the order of their return.
    spare: VecDeque<Arc<Mark>>,
}

impl Ledger {
    /// An event that nothing waits for: a spare one that has happened, or a new one. Inside of the context.
    #[inline]
    pub(crate) fn take(&mut self, driver: &dyn Driver) -> Result<Arc<Mark>, DriverError> {
        if self.spare.len() >= SPARE && last_op(&self.spare[0]) > self.done {
            // One look in the middle tells for those before it, so that most fences cost none; unless the first is a
            // newer one, given back out of order.
            let (first, middle) = (&self.spare[0], &self.spare[SPARE / 2]);
            let looked_at = if last_op(middle) > last_op(first) { middle } else { first };
            // A fault of an event concerns the holders of its fence, and a new one is made here. SAFETY: the mark has
            // its event.
            if matches!(unsafe { driver.has_happened(looked_at.event) }, Ok(true)) {
                self.done = self.done.max(last_op(looked_at));
            }
        }
        if self.spare.front().is_some_and(|mark| last_op(mark) <= self.done)
            && let Some(mark) = self.spare.pop_front()
        {
            return Ok(mark);
        }
        // SAFETY: the context is current.
        let event = unsafe { driver.create_event(false) }?;
        Ok(Arc::new(Mark::new(event)))
    }

    /// Finds finished work, roughly. Inside of the context.
    pub(crate) fn look(&mut self, driver: &dyn Driver) {
        let middle = self.spare.get(self.spare.len() / 2).map(|mark| (mark.event, last_op(mark)));
        for (event, number) in self.newest.into_iter().chain(middle) {
            if number <= self.done {
                return;
            }
            // SAFETY: the event is the stream's.
            if matches!(unsafe { driver.has_happened(event) }, Ok(true)) {
                self.done = number;
                return;
            }
        }
    }

    /// Notes that an event was recorded behind all that was announced. Answers the last op of that.
    #[inline]
    pub(crate) fn note_recorded(&mut self, event: EventHandle) -> u64 {
        self.newest = Some((event, self.announced));
        self.announced
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

    /// Takes one back; an event that was not recorded may be used again at once.
    #[inline]
    pub(crate) fn give_back(&mut self, mark: Arc<Mark>) {
        match mark.behind() {
            Some(_) => self.spare.push_back(mark),
            None => self.spare.push_front(mark),
        }
    }

    pub(crate) fn take_spare(&mut self) -> VecDeque<Arc<Mark>> {
        std::mem::take(&mut self.spare)
    }

    pub(crate) fn note_done(&mut self, number: u64) {
        self.done = self.done.max(number);
    }

    pub(crate) fn is_done(&self, number: u64) -> bool {
        number <= self.done
    }

    pub(crate) fn announced(&self) -> u64 {
        self.announced
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
