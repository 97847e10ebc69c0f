//! Faults to order: the nth call or kernel from now on fails.

/// Calls that can be made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// A launch is refused by the driver.
    Launch,
    /// A kernel fails while it runs; the device is lost.
    Kernel,
    /// An allocation of device memory is refused.
    Allocation,
    /// A copy is refused by the driver.
    Copy,
    /// The driver does not say whether an event has happened.
    Query,
    /// A free is refused by the driver.
    Free,
}

#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(FaultKind, u64, u32)>);

impl Faults {
    /// Orders a fault with this code; 0 is the next one.
    pub(super) fn order(&mut self, kind: FaultKind, nth: u64, code: u32) {
        self.0.push((kind, nth, code));
    }

    /// Counts down. Answers the code if it is this one's turn.
    pub(super) fn strike(&mut self, kind: FaultKind) -> Option<u32> {
        let mut struck = None;
        self.0.retain_mut(|(ordered, left, code)| {
            if *ordered != kind {
                return true;
            }
            if *left == 0 {
                struck = struck.or(Some(*code));
                return false;
            }
            *left -= 1;
            true
        });
        struck
    }

    pub(super) fn fault(&mut self) -> Option<u32> {
        self.strike(FaultKind::Kernel)
    }
}
