//! Element by element.

use super::{learn, refuse};
use crate::registry::{Call, RuleError};
use crate::value::{Shape, UNKNOWN};

/// All inputs broadcast to each output. An input's length follows where no other can have given the output's.
pub(super) fn broadcast(_: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    if let [only] = ins {
        for out in outs.iter_mut() {
            learn(out, only)?;
            learn(only, out)?;
        }
        return Ok(());
    }
    for out in outs.iter_mut() {
        forwards(ins, out)?;
        backwards(ins, out)?;
    }
    Ok(())
}

/// The length on axis `at` of `rank`; None where the shape has no such axis.
fn length(shape: &[i64], at: usize, rank: usize) -> Option<i64> {
    (at + shape.len()).checked_sub(rank).map(|own| shape[own])
}

fn forwards(ins: &[Shape], out: &mut Shape) -> Result<(), RuleError> {
    let Some(shapes) = ins.iter().map(Shape::lengths).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut lengths = Vec::with_capacity(rank);
    for at in 0..rank {
        let mut found = 1;
        for shape in &shapes {
            match (length(shape, at, rank), found) {
                (None | Some(1), _) => {}
                (Some(UNKNOWN), 1) => found = UNKNOWN,
                (Some(UNKNOWN), _) => {}
                (Some(own), 1 | UNKNOWN) => found = own,
                (Some(own), known) if own == known => {}
                _ => {
                    let listed: Vec<_> = ins.iter().map(ToString::to_string).collect();
                    return refuse(format!(
                        "operands could not be broadcast together with shapes {}",
                        listed.join(" ")
                    ));
                }
            }
        }
        lengths.push(found);
    }
    learn(out, &Shape::new(lengths))
}

fn backwards(ins: &mut [Shape], out: &Shape) -> Result<(), RuleError> {
    let Some(wanted) = out.lengths() else { return Ok(()) };
    let rank = wanted.len();
    if let Some(long) = ins.iter().find(|shape| shape.rank().is_some_and(|own| own > rank)) {
        return refuse(format!("an operand of shape {long} does not broadcast to {out}"));
    }
    for (at, &length_of_out) in wanted.iter().enumerate() {
        if length_of_out == UNKNOWN {
            continue;
        }
        let unknown = |shape: &Shape| shape.lengths().is_none_or(|own| length(own, at, rank) == Some(UNKNOWN));
        let open = ins.iter().filter(|shape| unknown(shape)).count();
        let given =
            ins.iter().any(|shape| shape.lengths().is_some_and(|own| length(own, at, rank) == Some(length_of_out)));
        if length_of_out == 1 || (open == 1 && !given) {
            for shape in ins.iter_mut().filter(|shape| unknown(shape)) {
                let Some(own) = shape.lengths() else { continue };
                let mut new = own.to_vec();
                new[at + own.len() - rank] = length_of_out;
                *shape = Shape::new(new);
            }
        }
    }
    Ok(())
}

/// All inputs and outputs have one shape.
pub(super) fn same(_: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let mut all = Shape::unknown();
    for shape in ins.iter().chain(outs.iter()) {
        match all.joined(shape) {
            Some(joined) => all = joined,
            None => return refuse(format!("shapes {all} and {shape} differ, and the op wants them equal")),
        }
    }
    ins.iter_mut().chain(outs.iter_mut()).for_each(|shape| *shape = all.clone());
    Ok(())
}

/// Each output has the shape of the first input.
pub(super) fn like_first(_: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let Some(first) = ins.first_mut() else { return Ok(()) };
    for out in outs.iter_mut() {
        learn(out, first)?;
        learn(first, out)?;
    }
    Ok(())
}
