//! The interpreter: its GIL, its exceptions, its calls, the lines of its code, NumPy's dtypes. Nothing of weft's own classes is known here.

#[cfg(not(sanitized))]
pub(crate) mod allocator;
pub(crate) mod arguments;
pub(crate) mod call;
pub(crate) mod devices;
pub(crate) mod dtypes;
pub(crate) mod errors;
pub(crate) mod exceptions;
pub(crate) mod failures;
pub(crate) mod forks;
pub(crate) mod host;
pub(crate) mod level;
pub(crate) mod location;
pub(crate) mod loose;
pub(crate) mod stall;
