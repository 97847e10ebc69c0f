//! Arrays put together from pieces of others.

use super::at_once::{self, is_short};
use super::push_elementwise;
use crate::door::{Call, recording};
use crate::step::{Operand, Walk, copy_loop};
use crate::{Access, Array, ArrayError};
use smallvec::SmallVec;
use weft_engine::PushOptions;

/// Bytes of a small output at most.
const SMALL: usize = 1 << 17;

/// A piece of the output, and its source: of one shape and one type.
pub type Piece = (Array, Array);

/// Pushes copies into pieces of `output`, which do not overlap and together cover it. A small output is filled by the
/// pushing thread. A large one is filled by an op for each piece; these run side by side, each as soon as its source is
/// ready.
///
/// The caller has waited for room for the output's bytes.
pub fn push_pieces(output: &Array, pieces: &[Piece], options: PushOptions<'_>) -> Result<(), ArrayError> {
    let kernel = copy_loop(output.dtype());
    let fits = |(to, from): &Piece| {
        to.buffer().is_same(output.buffer())
            && to.layout().is_shaped_like(from.layout())
            && [to, from].iter().all(|array| array.dtype() == output.dtype())
    };
    if !pieces.iter().all(fits) {
        return Err(ArrayError::Invalid("a piece of an array is copied from one of its shape and dtype".to_owned()));
    }
    if output.bytes() <= SMALL && !recording::is_open() {
        let (mut arrays, mut walks) = (SmallVec::<[(&Array, Access); 8]>::new(), SmallVec::<[Walk; 4]>::new());
        for (to, from) in pieces {
            arrays.push((from, Access::Read));
            let strides = [&*from.layout().strides, &*to.layout().strides];
            walks.push(Walk::new(&to.layout().shape, &strides).lengthened());
        }
        arrays.push((output, Access::Overwrite));
        let short = is_short(walks.iter().map(|walk| walk.nanoseconds(0)).sum());
        let done = short
            && at_once::run_step(&Call::on(output.engine(), &arrays, options), |pointers| {
                let whole = pointers[pieces.len()];
                for (at, ((to, _), walk)) in pieces.iter().zip(&walks).enumerate() {
                    let target = whole.wrapping_add(to.layout().offset).wrapping_sub(output.layout().offset);
                    // SAFETY: the pointers are those of the arrays, of one shape and type, and the output has no other
                    // user yet.
                    unsafe { walk.run(&kernel, &[pointers[at], target], 0..walk.shape[0]) };
                }
            })?;
        if done {
            return Ok(());
        }
    }
    pieces.iter().try_for_each(|(to, from)| push_elementwise(kernel, &[to], &[Operand::Array(from)], options))
}
