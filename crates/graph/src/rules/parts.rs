//! Some of an array's elements.

use super::{axis, axis_given, learn, refuse, refuse_type};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN};

/// Attributes `axis` and `length`: so many elements in a row along the axis.
pub(super) fn narrow(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("narrow takes one operand and gives one result") };
    let (number, length) = (axis_given(attributes, "axis", 0)?, axis_given(attributes, "length", 0)?);
    let Some(rank) = x.rank().or(out.rank()) else { return Ok(()) };
    let at = axis(number, rank)?;
    let along = |shape: &Shape, length: i64| {
        let own = shape.lengths().unwrap_or_default().iter().enumerate();
        Shape::new(own.map(|(i, &own)| if i == at { length } else { own }))
    };
    learn(x, &Shape::of_rank(rank))?;
    learn(out, &along(x, length))?;
    learn(x, &along(out, UNKNOWN))
}

/// Attribute `axis`: one element of the axis.
pub(super) fn select(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("select takes one operand and gives one result") };
    taken(axis_given(attributes, "axis", 0)?, x, &mut Shape::new([]), out)
}

/// Attribute `axis`: elements, or slices along the axis, at places that the second operand names.
pub(super) fn take(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x, places], [out]) = (ins, outs) else { return refuse_type("take takes an array and indices") };
    taken(axis_given(attributes, "axis", 0)?, x, places, out)
}

/// The axes of `places` are in `out` where `x` has its axis of this number.
fn taken(number: i64, x: &mut Shape, places: &mut Shape, out: &mut Shape) -> Result<(), RuleError> {
    if let (None, Some(along), Some(rank)) = (x.rank(), places.rank(), out.rank())
        && rank >= along
    {
        *x = Shape::of_rank(rank - along + 1);
    }
    let Some(own) = x.lengths() else { return Ok(()) };
    let at = axis(number, own.len())?;
    let Some(along) = places.lengths() else { return Ok(()) };
    learn(out, &Shape::new(own[..at].iter().chain(along).chain(&own[at + 1..]).copied()))?;
    let Some(result) = out.lengths() else { return Ok(()) };
    let (first, rest) = result.split_at(at);
    let (middle, last) = rest.split_at(along.len());
    let back = Shape::new(first.iter().chain(&[UNKNOWN]).chain(last).copied());
    learn(places, &Shape::new(middle.iter().copied()))?;
    learn(x, &back)
}

/// Attributes `offset`, `axis1` and `axis2`: a diagonal, which becomes the last axis.
pub(super) fn diagonal(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("a diagonal is of one operand, and one result") };
    let Some(own) = x.lengths() else { return Ok(()) };
    if own.len() < 2 {
        return refuse(format!("a diagonal needs an array of at least 2 axes, got shape {x}"));
    }
    let offset = axis_given(attributes, "offset", 0)?;
    let given = [axis_given(attributes, "axis1", 0)?, axis_given(attributes, "axis2", 1)?];
    let places = super::axes(&given, own.len())?;
    let (rows, columns) = (own[places[0]], own[places[1]]);
    let length = if rows == UNKNOWN || columns == UNKNOWN {
        UNKNOWN
    } else {
        rows.saturating_add(offset.min(0)).min(columns.saturating_sub(offset.max(0))).max(0)
    };
    let rest = own.iter().enumerate().filter(|(at, _)| !places.contains(at)).map(|(_, &own)| own);
    learn(out, &Shape::new(rest.chain([length])))
}
