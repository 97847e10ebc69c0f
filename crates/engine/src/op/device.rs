//! Logical devices, as far as scheduling cares.

/// Which of a device's lanes an op runs on, under the `per_device` policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeviceLane {
    /// Work.
    #[default]
    Compute,
    /// Moving data, so that it overlaps with work.
    Copy,
}

/// A logical device: a label under most policies, a pool of its own under `per_device`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// Number of the device.
    pub index: u16,
    /// Lane of the device.
    pub lane: DeviceLane,
}
