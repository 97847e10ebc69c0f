//! Two lanes for each device: work, and copies on a thread of their own, as is each ordered queue.

use super::{Device, InOrder, Order, Placement};
use crate::op::DeviceLane;
use crate::sched::LANES;

pub(super) struct PerDevice;

/// The first lane of a queue that keeps its order, and how many there are: those of copies are for them from here on.
#[allow(clippy::cast_possible_truncation)] // there are few
const FIRST: u16 = LANES as u16 / 2 + 1;
#[allow(clippy::cast_possible_truncation)] // as above
const COUNT: u16 = LANES as u16 / 4;

impl Placement for PerDevice {
    #[allow(clippy::cast_possible_truncation)] // the modulus is small
    fn lane(&self, device: Device) -> u16 {
        // More devices than lanes share: fewer threads, the same results.
        ((u32::from(device.index) * 2 + u32::from(device.lane == DeviceLane::Copy)) % LANES as u32) as u16
    }

    fn lane_in_order(&self, queue: InOrder) -> u16 {
        // More queues than lanes share.
        if COUNT == 0 { 0 } else { FIRST + 2 * (queue.number() % COUNT) }
    }

    fn order(&self, lane: u16) -> Order {
        if lane >= FIRST && lane % 2 == 1 { Order::Pushed } else { Order::Ready }
    }

    fn workers(&self, lane: u16, workers: usize) -> usize {
        if lane % 2 == 1 { 1 } else { workers }
    }

    fn separates_devices(&self) -> bool {
        true
    }
}
