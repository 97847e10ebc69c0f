//! No worker at all.

use super::{Device, InOrder, Order, Placement};

pub(super) struct Serial;

impl Placement for Serial {
    fn lane(&self, _: Device) -> u16 {
        0
    }

    fn lane_in_order(&self, _: InOrder) -> u16 {
        0
    }

    fn order(&self, _: u16) -> Order {
        Order::Ready
    }

    fn workers(&self, _: u16, _: usize) -> usize {
        0
    }

    fn is_inline(&self) -> bool {
        true
    }
}
