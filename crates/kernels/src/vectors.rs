//! Loops that are compiled several times, for the vectors of each kind of processor; which there are is found out at run time.
//!
//! No sum is taken together with its product, and none is reordered: the bits are the same with all of them. The callees of a
//! loop have to be inlined into it, or it is compiled for the smallest vectors alone.

use pulp::Arch;

/// Calls what is compiled for this processor's vectors.
#[inline]
pub(crate) fn widest<R>(body: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(body)
}
