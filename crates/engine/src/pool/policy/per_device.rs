//! Two lanes for each device: work, and copies on a thread of their own.

use super::{Device, Placement};
use crate::pool::DeviceLane;
use crate::sched::LANES;

pub(super) struct PerDevice;

impl Placement for PerDevice {
    #[allow(clippy::cast_possible_truncation)] // the modulus is small
    fn lane(&self, device: Device) -> u16 {
        // More devices than lanes share: fewer threads, the same results.
        ((u32::from(device.index) * 2 + u32::from(device.lane == DeviceLane::Copy)) % LANES as u32) as u16
    }

    fn workers(&self, lane: u16, workers: usize) -> usize {
        if lane % 2 == 1 { 1 } else { workers }
    }
}
