//! Programs: ops on arrays that were recorded once and are replayed in planned memory.
//!
//! The crate knows no Python. Devices come in by a trait.
