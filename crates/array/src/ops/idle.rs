//! Several ops run as one where they are asked for, if nothing on their arrays is pending.

use crate::access::{are_idle, note_written, refuse};
use crate::memory::Pushing;
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::Engine;

/// Runs `body` on this thread, as one op that does this with the arrays, if all of them are there and nothing that was
/// pushed on what it changes is pending. Answers whether it has.
///
/// To everybody else it is as if the op had been pushed and had finished at that moment. The lock under which pushes
/// happen is held meanwhile: `body` is short, and nothing of a user's runs in it.
#[inline]
pub fn run_idle(engine: &Engine, arrays: &[(&Array, Access)], body: impl FnOnce()) -> Result<bool, ArrayError> {
    refuse(arrays.iter().map(|(array, _)| *array))?;
    let mut pushing = Pushing::lock();
    if engine.is_closed() || !are_idle(&mut pushing, arrays) {
        return Ok(false);
    }
    body();
    let written: SmallVec<[(&Array, Access); 4]> =
        arrays.iter().filter(|(_, access)| *access != Access::Read).copied().collect();
    note_written(&mut pushing, &written);
    Ok(true)
}
