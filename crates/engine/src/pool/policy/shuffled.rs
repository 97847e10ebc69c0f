//! One worker, which draws at random among ready ops, and holds back until a thread waits.
//!
//! Queues by name keep their order, in lanes of their own: it is the order of work elsewhere.

use super::work_stealing::WorkStealing;
use super::{Device, InOrder, Order, Placement};

pub(super) struct Shuffled(pub(super) u64);

impl Placement for Shuffled {
    fn lane(&self, _: Device) -> u16 {
        0
    }

    fn lane_in_order(&self, queue: InOrder) -> u16 {
        WorkStealing.lane_in_order(queue)
    }

    fn order(&self, lane: u16) -> Order {
        if lane == 0 { Order::Drawn(self.0) } else { Order::Pushed }
    }

    fn workers(&self, _: u16, _: usize) -> usize {
        1
    }
}
