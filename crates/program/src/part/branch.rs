//! A choice between two parts.

use super::bind::Spot;
use super::body::{Body, copy};
use crate::recorded::repeat;
use std::any::Any;
use std::sync::Arc;
use weft_array::{Access, Array, Opaque, Operands};
use weft_engine::{Cause, OpContext};

/// One of two parts, as a boolean says when it runs.
///
/// Its operands are the boolean, the arrays from outside of the one and of the other, and the results.
pub struct Branch {
    taken: Arc<Body>,
    other: Arc<Body>,
}

impl Branch {
    /// The first one where the boolean is true; both make as many results.
    #[must_use]
    pub fn new(taken: Arc<Body>, other: Arc<Body>) -> Self {
        Self { taken, other }
    }

    fn run_on(&self, arrays: &[(Array, Access)], context: &mut OpContext<'_>) -> Result<(), Cause> {
        let Some(((choice, _), rest)) = arrays.split_first() else { return Ok(()) };
        let at = choice.buffer().start()?.wrapping_add(choice.layout().offset);
        // SAFETY: it is a granted array of one boolean.
        let is_taken = unsafe { *at } != 0;
        let (ours, rest) = rest.split_at(self.taken.outside().len());
        let (theirs, made) = rest.split_at(self.other.outside().len());
        let (body, outside) = if is_taken { (&self.taken, ours) } else { (&self.other, theirs) };
        let mut frame = body.frame(0, outside)?;
        for (number, (array, _)) in made.iter().enumerate() {
            let target = Spot::of(array, 0)?;
            let is_shown = body.shows_result(number);
            let spot = if is_shown { Spot::fresh(body.engine(), body.result_bytes(number))? } else { target };
            body.bind_result(&mut frame, number, spot);
        }
        body.run(&mut frame, context)?;
        for (number, (array, _)) in made.iter().enumerate().filter(|(number, _)| body.shows_result(*number)) {
            copy(body.result_of(&frame, number), &Spot::of(array, 0)?, body.result_bytes(number));
        }
        Ok(())
    }
}

impl Opaque for Branch {
    fn is_hosted(&self) -> bool {
        self.taken.is_hosted() || self.other.is_hosted()
    }

    fn is_private(&self) -> bool {
        self.taken.is_private() && self.other.is_private()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        repeat(self.taken.instructions(), is_pure) && repeat(self.other.instructions(), is_pure)
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        for body in [&self.taken, &self.other] {
            if Arc::strong_count(body) == 1 {
                body.kept(each);
            }
        }
    }

    fn may_fail(&self) -> bool {
        self.taken.may_fail() || self.other.may_fail()
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.run_on(arrays, context)
    }
}
