//! Keys of the notes on nodes: underscores around them tell notes from the attributes of a call.

use std::sync::Arc;

/// Keys of notes that may be written without their underscores.
pub const HIDDEN: [&str; 5] = ["ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"];

/// Whether a key is that of a note, which has underscores around it.
#[must_use]
pub fn is_note(key: &str) -> bool {
    key.len() > 4 && key.starts_with("__") && key.ends_with("__")
}

/// The key of a note, with its underscores.
#[must_use]
pub fn noted(key: &str) -> Arc<str> {
    if is_note(key) { key.into() } else { format!("__{key}__").into() }
}
