//! Operands from outside in the layouts of kernels, kept from call to call while they do not change: the weights of a network in
//! inference, which oneDNN multiplies by in a layout of its own.
//!
//! | the operand is, in a call | the kernel |
//! |---|---|
//! | another array or version than in the call before | lays out what it needs, and lets it go |
//! | that of the call before | lays out all of it, and keeps that |
//! | that of what was kept | does not begin |
//!
//! So nothing is kept where weights change with each call, as they do in training. Versions are noted under the lock of the push, so
//! they are those that its reads see. Borrowed memory may change without a version, and is not kept.

use super::bound::{Base, Bindings};
use crate::recorded::{Entry, Instruction, Source};
use std::sync::{Arc, Mutex, Weak};
use weft_array::{Access, Block, Blocked, Buffer, Operands, lay_out};

/// The values of an operand: those of a buffer's version, so many bytes from where they were recorded.
struct Values {
    buffer: Weak<Buffer>,
    by: isize,
    version: u64,
}

impl Values {
    fn are(&self, buffer: &Arc<Buffer>, by: isize, version: u64) -> bool {
        self.buffer.as_ptr() == Arc::as_ptr(buffer) && (self.by, self.version) == (by, version)
    }
}

/// Keeps the layout that one step makes.
pub(super) struct Keeper {
    /// The step that may be told of the kept layout.
    pub(super) step: Arc<dyn Blocked>,
    /// The entry of the operand that it lays out.
    pub(super) entry: usize,
    last: Mutex<Option<(Values, Option<Arc<Block>>)>>,
}

impl Keeper {
    /// That of an instruction, if its step lays out an operand that no step of the program changes.
    pub(super) fn of(step: &Arc<dyn Blocked>, instruction: &Instruction, entries: &[Entry]) -> Option<Self> {
        let (operand, step) = step.keeping()?;
        let place = instruction.places.get(operand).filter(|place| place.access == Access::Read)?;
        let entry = &entries[place.entry];
        let outside = matches!(entry.source, Source::Argument(_) | Source::State(_));
        let keeps = outside && !entry.written && entry.home.is_none();
        keeps.then(|| Self { step, entry: place.entry, last: Mutex::default() })
    }

    /// The operand's kept layout, from now on at the latest; nothing if the step is to do without.
    ///
    /// # Safety
    ///
    /// The operands are granted, and have the layouts that the step was made for.
    pub(super) unsafe fn kept(&self, bindings: &Bindings, operands: &Operands) -> Option<Arc<Block>> {
        let Base::Buffer(buffer, by) = &bindings.bases[self.entry] else { return None };
        let version = bindings.version(self.entry).filter(|_| buffer.is_own())?;
        // A step that would have to wait for another call does without, and so does one without memory for it.
        let mut last = self.last.try_lock().ok()?;
        match &mut *last {
            Some((values, kept)) if values.are(buffer, *by, version) => {
                if kept.is_none() {
                    // SAFETY: the caller's promise.
                    *kept = unsafe { lay_out(&*self.step, operands) }.unwrap_or(None);
                }
                kept.clone()
            }
            other => {
                *other = Some((Values { buffer: Arc::downgrade(buffer), by: *by, version }, None));
                None
            }
        }
    }
}
