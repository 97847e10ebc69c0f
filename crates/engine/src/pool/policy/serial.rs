//! No worker at all.

use super::{Device, InOrder, Placement};

pub(super) struct Serial;

impl Placement for Serial {
    fn lane(&self, _: Device) -> u16 {
        0
    }

    fn lane_in_order(&self, _: InOrder) -> u16 {
        0
    }

    fn is_in_order(&self, _: u16) -> bool {
        false
    }

    fn workers(&self, _: u16, _: usize) -> usize {
        0
    }

    fn is_inline(&self) -> bool {
        true
    }
}
