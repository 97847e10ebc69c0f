//! Launches: pushed, or recorded as steps.

use crate::issued::Launched;
use crate::memory::home_of;
use crate::together::together;
use std::any::Any;
use std::sync::Arc;
use weft_array::{ArrayError, Call, Opaque, Operands, Step, Together, push, record, recording};
use weft_cuda::Launch;
use weft_engine::{Cause, InOrder, OpContext};

/// A launch whose arrays are given anew each time.
struct LaunchStep {
    issued: Launched,
    place: u64,
    /// Whether it does nothing but fill its arrays.
    pure: bool,
}

impl Opaque for LaunchStep {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.issued.0.kernel().device().queue())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn has_effects(&self) -> bool {
        !self.pure
    }

    fn issues_on(&self) -> Option<u16> {
        self.issued.0.may_be_bundled().then(|| home_of(self.issued.0.kernel().device()).number())
    }

    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        Some(together(self.issued.0.kernel().device(), name, place))
    }

    fn issued(&self) -> Option<&dyn Any> {
        Some(&self.issued)
    }

    unsafe fn run(&self, arrays: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.issued.on(arrays)?.issue().map(drop).map_err(Cause::from)
    }

    fn place(&self) -> u64 {
        self.place
    }
}

/// A launch as a step, whose arrays are given anew each time: one for each access, in their order. `pure` says that it does
/// nothing but fill them.
#[must_use]
pub fn launch_step(launch: Launch, pure: bool) -> Arc<dyn Opaque> {
    let place = launch.place();
    Arc::new(LaunchStep { issued: Launched(launch), place, pure })
}

/// Pushes a launch, or appends it to the recording of this thread. The call names one array for each access of the launch, in
/// their order. `pure` says that it does nothing but fill them. The caller has waited for room.
///
/// # Safety
///
/// The launch was made for these arrays: its kernel stays inside of arrays that have their layouts.
pub unsafe fn launch(launch: Launch, call: &Call<'_>, pure: bool) -> Result<(), ArrayError> {
    if !recording::is_open() {
        return push(launch, call);
    }
    debug_assert_eq!(launch.accesses().len(), call.arrays.len());
    recording::announce(launch.label().name(), launch.place());
    // SAFETY: the caller's promise.
    unsafe { record(Step::Opaque(launch_step(launch, pure)), call) }
}
