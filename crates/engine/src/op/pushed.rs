//! The order of pushes, as a pending op knows it.

use super::Op;
use std::cmp::Ordering;

/// When an op was pushed: the lesser one was pushed first.
///
/// Numbers begin anew after 2^32 pushes. Pending ops lie closer together than half of that, so of two of them it is
/// known which came first; of others it is not. Steps of one replay have its number, and go in their recorded order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pushed {
    number: u32,
    step: u32,
}

impl Pushed {
    /// # Safety
    ///
    /// The op is pending, and stays so for the length of the call.
    #[inline]
    pub(crate) unsafe fn of(op: *mut Op) -> Self {
        // SAFETY: the caller's promise. Ops of their own have numbers of their own, in any epoch.
        unsafe { Self { number: (*op).number, step: (*op).epoch } }
    }
}

impl Ord for Pushed {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        #[allow(clippy::cast_possible_wrap)] // that is the point
        let behind = self.number.wrapping_sub(other.number) as i32;
        behind.cmp(&0).then(self.step.cmp(&other.step))
    }
}

impl PartialOrd for Pushed {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
