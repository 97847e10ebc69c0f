//! One lane for everything, but for the ordered queues: a lane for each.

use super::{Device, InOrder, Order, Placement};
use crate::sched::LANES;

pub(super) struct WorkStealing;

/// Lanes behind the first one.
#[allow(clippy::cast_possible_truncation)] // there are few
const OTHERS: u16 = LANES as u16 - 1;

impl Placement for WorkStealing {
    fn lane(&self, _: Device) -> u16 {
        0
    }

    fn lane_in_order(&self, queue: InOrder) -> u16 {
        // More queues than lanes share.
        if OTHERS == 0 { 0 } else { 1 + queue.number() % OTHERS }
    }

    fn order(&self, lane: u16) -> Order {
        if lane > 0 { Order::Pushed } else { Order::Ready }
    }

    fn workers(&self, lane: u16, workers: usize) -> usize {
        if lane > 0 { 1 } else { workers }
    }
}
