//! Launches: pushed, or recorded as steps.

use crate::memory::{buffer_of, home_of, not_there};
use crate::together::together;
use std::any::Any;
use std::sync::Arc;
use weft_array::{Access, Array, ArrayError, Call, Opaque, Operands, Step, Together, push, record, recording};
use weft_cuda::{CudaError, Launch};
use weft_engine::{AccessKind, Cause, InOrder, OpContext};

/// A launch whose arrays are given anew each time.
pub(crate) struct LaunchStep {
    /// As it was recorded.
    launch: Launch,
    place: u64,
    /// Whether it does nothing but fill its arrays.
    pure: bool,
}

/// What a launch does with an array: the bytes from its first element on, and those that it reaches.
fn access((array, access): &(Array, Access)) -> Result<(usize, weft_cuda::Access), CudaError> {
    let kind = match access {
        Access::Read => AccessKind::Read,
        // What lies between the elements stays, and so does what is beside them.
        Access::Overwrite if array.is_flat() => AccessKind::Overwrite,
        Access::Mutate | Access::Overwrite => AccessKind::Mutate,
    };
    let buffer = buffer_of(array).ok_or_else(not_there)?;
    Ok((array.layout().offset, weft_cuda::Access { buffer, range: array.range(), kind }))
}

impl LaunchStep {
    /// The launch on these arrays.
    pub(crate) fn on(&self, arrays: &Operands) -> Result<Launch, CudaError> {
        self.launch.on(arrays.iter().map(access))
    }
}

impl Opaque for LaunchStep {
    fn is_hosted(&self) -> bool {
        false
    }

    fn queue(&self) -> Option<InOrder> {
        Some(self.launch.kernel().device().queue())
    }

    fn is_private(&self) -> bool {
        true
    }

    fn has_effects(&self) -> bool {
        !self.pure
    }

    fn issues_on(&self) -> Option<u16> {
        self.launch.may_be_bundled().then(|| home_of(self.launch.kernel().device()).number())
    }

    fn together(&self, name: &str, place: u64) -> Option<Arc<dyn Together>> {
        Some(together(self.launch.kernel().device(), name, place))
    }

    fn issued(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn run(&self, arrays: &Operands, _: &mut OpContext<'_>) -> Result<(), Cause> {
        self.on(arrays)?.issue().map(drop).map_err(Cause::from)
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
    Arc::new(LaunchStep { launch, place, pure })
}

/// Pushes a launch, or appends it to the recording of this thread. The call names one array for each access of the launch, in
/// their order. `pure` says that it does nothing but fill them. The caller has waited for room.
pub fn launch(launch: Launch, call: &Call<'_>, pure: bool) -> Result<(), ArrayError> {
    if !recording::is_open() {
        return push(launch, call);
    }
    debug_assert_eq!(launch.accesses().len(), call.arrays.len());
    recording::announce(launch.label().name(), launch.place());
    record(Step::Opaque(launch_step(launch, pure)), call)
}
