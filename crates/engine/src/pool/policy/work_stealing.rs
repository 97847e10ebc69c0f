//! One lane for everything, but for what issues: a lane for each device.

use super::{Device, Placement};
use crate::sched::LANES;

pub(super) struct WorkStealing;

impl Placement for WorkStealing {
    fn lane(&self, _: Device) -> u16 {
        0
    }

    #[allow(clippy::cast_possible_truncation)] // the modulus is small
    fn issuing_lane(&self, device: u16) -> u16 {
        // More devices than lanes share.
        ((u32::from(device) + 1) % LANES as u32) as u16
    }

    fn is_in_order(&self, lane: u16) -> bool {
        lane > 0
    }

    fn workers(&self, lane: u16, workers: usize) -> usize {
        if self.is_in_order(lane) { 1 } else { workers }
    }
}
