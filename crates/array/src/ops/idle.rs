//! Several ops run as one on the calling thread, if nothing is pending on their arrays.

use crate::access::{are_idle, note_written, refuse};
use crate::memory::Pushing;
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::Engine;

/// Runs `body` on this thread as one op with these accesses, if all arrays are ready and no op is pending on those that
/// it changes. Returns whether it ran. The body is given the addresses of their buffers.
///
/// All other threads see the op as pushed and finished at that moment. The lock of pushes is held meanwhile: `body` is
/// short and runs no code of a user's.
#[inline]
pub fn run_idle(
    engine: &Engine,
    arrays: &[(&Array, Access)],
    body: impl FnOnce(&[*mut u8]),
) -> Result<bool, ArrayError> {
    refuse(arrays.iter().map(|(array, _)| *array))?;
    let mut pushing = Pushing::lock();
    if engine.is_closed() || !are_idle(&mut pushing, arrays) {
        return Ok(false);
    }
    let mut starts = SmallVec::<[*mut u8; 8]>::new(); // that hold under the lock alone
    for (array, _) in arrays {
        let Ok(start) = array.buffer().start() else { return Ok(false) };
        starts.push(start);
    }
    body(&starts);
    let written: SmallVec<[(&Array, Access); 4]> =
        arrays.iter().filter(|(_, access)| *access != Access::Read).copied().collect();
    note_written(&mut pushing, &written);
    Ok(true)
}
