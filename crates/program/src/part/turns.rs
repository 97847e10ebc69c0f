//! A loop: a part that runs again and again, and hands its results on to the next turn.

use super::bind::Spot;
use super::body::{Body, Frame, copy, row};
use crate::recorded::repeat;
use std::any::Any;
use std::sync::Arc;
use weft_array::{Access, Array, Opaque, Operands};
use weft_engine::{Cause, OpContext};

/// The role of an input of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// An array, and from the second turn on the result of this number.
    Carried(usize),
    /// The same array in all turns.
    Same,
    /// A row of an array.
    Row,
}

/// A part, run once for each row.
///
/// Its operands are those of the body's inputs, as arrays with all rows where they are rows; the arrays from outside;
/// then one for each result: the last one that is handed on, or all rows.
pub struct Turns {
    body: Arc<Body>,
    inputs: Vec<Input>,
    /// Bytes between the recorded rows' first element and their buffer's start.
    offsets: Vec<usize>,
    /// How often it runs.
    count: usize,
    reverse: bool,
    /// Results that are handed on, and the inputs that they become.
    carried: Vec<(usize, usize)>,
    /// The others.
    rows: Vec<usize>,
    /// Where in the scratch memory each of `carried` lies in even and in odd turns.
    places: Vec<usize>,
    extra: usize,
}

const ALIGNMENT: usize = 64;

impl Turns {
    /// Runs the body so many times; `placeholders` stood for its inputs, and it makes `results` results.
    #[must_use]
    pub fn new(
        body: Arc<Body>,
        inputs: Vec<Input>,
        placeholders: &[Array],
        results: usize,
        (count, reverse): (usize, bool),
    ) -> Self {
        let carried: Vec<(usize, usize)> = inputs
            .iter()
            .enumerate()
            .filter_map(|(at, input)| if let Input::Carried(result) = input { Some((*result, at)) } else { None })
            .collect();
        let rows = (0..results).filter(|result| !carried.iter().any(|(other, _)| other == result)).collect();
        let base = body.scratch().next_multiple_of(ALIGNMENT);
        let mut end = base;
        let mut places = Vec::with_capacity(carried.len());
        for (result, _) in &carried {
            places.push(end);
            end += 2 * body.result_bytes(*result).next_multiple_of(ALIGNMENT);
        }
        let offsets = placeholders.iter().map(|array| array.layout().offset).collect();
        let extra = end - body.scratch();
        Self { body, inputs, offsets, count, reverse, carried, rows, places, extra }
    }

    /// Memory for the result `at` of those that are handed on.
    fn next(&self, frame: &Frame, at: usize, turn: usize) -> Result<Spot, Cause> {
        let (result, input) = self.carried[at];
        let (body, bytes) = (&self.body, self.body.result_bytes(result));
        if body.shows_result(result) || body.shows_input(input) || bytes == 0 {
            return Spot::fresh(body.engine(), bytes);
        }
        let offset = self.places[at] + (turn % 2) * bytes.next_multiple_of(ALIGNMENT);
        frame.scratch.spot(body.engine(), offset, bytes, body.in_arrays())
    }

    fn run_on(&self, arrays: &[(Array, Access)], context: &mut OpContext<'_>) -> Result<(), Cause> {
        let body = &*self.body;
        let (given, rest) = arrays.split_at(self.inputs.len());
        let (outside, made) = rest.split_at(body.outside().len());
        let mut frame = body.frame(self.extra, outside)?;
        let mut first = Vec::with_capacity(given.len());
        for (number, ((array, _), offset)) in given.iter().zip(&self.offsets).enumerate() {
            let spot = Spot::of(array, *offset)?;
            body.bind_input(&mut frame, number, spot.clone());
            first.push((spot, array.layout().strides.first().copied().unwrap_or(0)));
        }
        let mut targets = Vec::with_capacity(made.len());
        for (array, _) in made {
            targets.push((Spot::of(array, 0)?, array.layout().strides.first().copied().unwrap_or(0)));
        }
        for turn in 0..self.count {
            let number = if self.reverse { self.count - 1 - turn } else { turn };
            for (at, input) in self.inputs.iter().enumerate() {
                if *input == Input::Row {
                    let (spot, stride) = &first[at];
                    body.bind_input(&mut frame, at, spot.advanced(row(*stride, number)));
                }
            }
            let is_last = turn + 1 == self.count;
            let mut handed = Vec::new();
            for (at, (result, _)) in self.carried.iter().enumerate() {
                let own = is_last && !body.shows_result(*result);
                let spot = if own { targets[*result].0.clone() } else { self.next(&frame, at, turn)? };
                body.bind_result(&mut frame, *result, spot.clone());
                handed.push(spot);
            }
            for result in &self.rows {
                let (spot, stride) = &targets[*result];
                let spot = if body.shows_result(*result) {
                    Spot::fresh(body.engine(), body.result_bytes(*result))?
                } else {
                    spot.advanced(row(*stride, number))
                };
                body.bind_result(&mut frame, *result, spot);
            }
            body.run(&mut frame, context)?;
            for result in self.rows.iter().filter(|result| body.shows_result(**result)) {
                let (spot, stride) = &targets[*result];
                let to = spot.advanced(row(*stride, number));
                copy(body.result_of(&frame, *result), &to, body.result_bytes(*result));
            }
            for ((result, input), spot) in self.carried.iter().zip(handed) {
                if is_last {
                    copy(&spot, &targets[*result].0, body.result_bytes(*result));
                }
                body.bind_input(&mut frame, *input, spot);
            }
        }
        Ok(())
    }
}

impl Opaque for Turns {
    fn is_hosted(&self) -> bool {
        self.body.is_hosted()
    }

    fn is_private(&self) -> bool {
        self.body.is_private()
    }

    fn repeats(&self, is_pure: &dyn Fn(&dyn Any) -> bool) -> bool {
        repeat(self.body.instructions(), is_pure)
    }

    fn kept(&self, each: &mut dyn FnMut(&dyn Any)) {
        if Arc::strong_count(&self.body) == 1 {
            self.body.kept(each);
        }
    }

    fn may_fail(&self) -> bool {
        self.body.may_fail()
    }

    unsafe fn run(&self, arrays: &Operands, context: &mut OpContext<'_>) -> Result<(), Cause> {
        self.run_on(arrays, context)
    }
}
