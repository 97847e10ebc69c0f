//! Two lanes for each device: work, and copies on a thread of their own, as is what issues.

use super::{Device, Placement};
use crate::pool::DeviceLane;
use crate::sched::LANES;

pub(super) struct PerDevice;

/// The first lane of what issues: those of copies are for it from here on.
#[allow(clippy::cast_possible_truncation)] // there are few
const ISSUING: u16 = LANES as u16 / 2 + 1;

impl Placement for PerDevice {
    #[allow(clippy::cast_possible_truncation)] // the modulus is small
    fn lane(&self, device: Device) -> u16 {
        // More devices than lanes share: fewer threads, the same results.
        ((u32::from(device.index) * 2 + u32::from(device.lane == DeviceLane::Copy)) % LANES as u32) as u16
    }

    #[allow(clippy::cast_possible_truncation)] // the modulus is small
    fn issuing_lane(&self, device: u16) -> u16 {
        ((u32::from(ISSUING) + 2 * u32::from(device)) % LANES as u32) as u16
    }

    fn is_in_order(&self, lane: u16) -> bool {
        lane >= ISSUING && lane % 2 == 1
    }

    fn workers(&self, lane: u16, workers: usize) -> usize {
        if lane % 2 == 1 { 1 } else { workers }
    }
}
