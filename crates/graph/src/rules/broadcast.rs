//! Element by element.

use super::{axes, axes_given, axis, learn, refuse};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN};
use weft_shape::{aligned, broadcast_length};

/// All inputs broadcast to each output. An input's length follows where no other can have given the output's.
pub(super) fn broadcast(_: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
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

/// The length to which two broadcast, of which any may be unknown: the other one is right then, unless it is 1.
fn joined(one: i64, other: i64) -> Option<i64> {
    match (one, other) {
        (UNKNOWN, 1) | (1, UNKNOWN) => Some(UNKNOWN),
        (UNKNOWN, known) | (known, UNKNOWN) => Some(known),
        _ => broadcast_length(one, other),
    }
}

fn forwards(ins: &[Shape], out: &mut Shape) -> Result<(), RuleError> {
    let Some(shapes) = ins.iter().map(Shape::lengths).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut lengths = Vec::with_capacity(rank);
    for at in 0..rank {
        let mut found = 1;
        for shape in &shapes {
            let Some(own) = aligned(shape, at, rank) else { continue };
            let Some(length) = joined(own, found) else {
                let listed: Vec<_> = ins.iter().map(|shape| shape.to_string().replace(' ', "")).collect();
                return refuse(format!("operands could not be broadcast together with shapes {}", listed.join(" ")));
            };
            found = length;
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
        let unknown = |shape: &Shape| shape.lengths().is_none_or(|own| aligned(own, at, rank) == Some(UNKNOWN));
        let open = ins.iter().filter(|shape| unknown(shape)).count();
        let given =
            ins.iter().any(|shape| shape.lengths().is_some_and(|own| aligned(own, at, rank) == Some(length_of_out)));
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
pub(super) fn same(_: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
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
pub(super) fn like_first(_: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let Some(first) = ins.first_mut() else { return Ok(()) };
    for out in outs.iter_mut() {
        learn(out, first)?;
        learn(first, out)?;
    }
    Ok(())
}

/// As `like_first`; attributes `axis` or `axes` name axes that there are.
pub(super) fn along(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    like_first(attributes, ins, outs)?;
    let Some(rank) = ins.first().and_then(Shape::rank) else { return Ok(()) };
    for name in ["axis", "axes"] {
        if let Some(given) = axes_given(attributes, name)? {
            given.iter().try_for_each(|&number| axis(number, rank).map(drop))?;
        }
    }
    Ok(())
}

/// As `along`, and no axis is named twice.
pub(super) fn flip(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    along(attributes, ins, outs)?;
    match (ins.first().and_then(Shape::rank), axes_given(attributes, "axes")?) {
        (Some(rank), Some(given)) => axes(&given, rank).map(drop),
        _ => Ok(()),
    }
}
