//! The same elements in another shape.

use super::{axis, learn, refuse, shape_of};
use crate::registry::{Call, RuleError};
use crate::value::{Shape, UNKNOWN};

/// Attribute `shape`, of which one length may be -1.
pub(super) fn reshape(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("reshape takes one operand and gives one result") };
    let Some(wanted) = call.attributes.get("shape").and_then(shape_of) else {
        return refuse("reshape needs an attribute 'shape'");
    };
    learn(out, &wanted)?;
    balance(x, out)?;
    balance(out, x)
}

/// Finds the one unknown length of `slot` from the elements of `other`.
fn balance(slot: &mut Shape, other: &Shape) -> Result<(), RuleError> {
    let (Some(own), Some(total)) = (slot.lengths(), other.elements()) else { return Ok(()) };
    let open = own.iter().filter(|&&length| length == UNKNOWN).count();
    let rest =
        own.iter().filter(|&&length| length != UNKNOWN).try_fold(1_i64, |product, &length| product.checked_mul(length));
    let Some(rest) = rest else { return refuse(format!("a shape {slot} has too many elements")) };
    match open {
        0 if rest != total => {
            refuse(format!("cannot reshape an array of shape {other} ({total} elements) into shape {slot}"))
        }
        1 if (rest == 0 && total != 0) || (rest != 0 && total % rest != 0) => {
            refuse(format!("cannot reshape an array of shape {other} ({total} elements) into shape {slot}"))
        }
        1 if rest != 0 => {
            let length = total / rest;
            *slot = Shape::new(own.iter().map(|&each| if each == UNKNOWN { length } else { each }));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Axes as Python writes them.
fn listed(axes: &[i64]) -> String {
    let axes: Vec<String> = axes.iter().map(ToString::to_string).collect();
    format!("({}{})", axes.join(", "), if axes.len() == 1 { "," } else { "" })
}

/// Attribute `axes`.
pub(super) fn permute_dims(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("a permutation takes one operand and gives one result") };
    let axes = match call.attributes.integers("axes") {
        Some(axes) => axes,
        None => match x.rank().or(out.rank()) {
            Some(rank) => (0..i64::try_from(rank).unwrap_or(0)).rev().collect(),
            None => return Ok(()),
        },
    };
    let order: Vec<usize> = axes.iter().map(|&each| axis(each, axes.len())).collect::<Result<_, _>>()?;
    let mut seen = order.clone();
    seen.sort_unstable();
    if seen.iter().enumerate().any(|(at, &each)| at != each) {
        return refuse(format!("axes {} name an axis twice", listed(&axes)));
    }
    let wrong = |shape: &Shape| shape.rank().is_some_and(|rank| rank != order.len());
    if wrong(x) || wrong(out) {
        return refuse(format!("axes {} do not match an array of shape {x}", listed(&axes)));
    }
    let mut back = vec![UNKNOWN; order.len()];
    if let Some(own) = out.lengths() {
        order.iter().zip(own).for_each(|(&at, &length)| back[at] = length);
    }
    learn(x, &Shape::new(back))?;
    let own = x.lengths().unwrap_or_default();
    let forth = Shape::new(order.iter().map(|&at| own[at]));
    learn(out, &forth)
}

/// Attribute `axes`: places of new axes of length 1 in the result.
pub(super) fn expand_dims(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("expand_dims takes one operand and gives one result") };
    let new = call.attributes.integers("axes").or_else(|| call.attributes.integers("axis")).unwrap_or_default();
    insert(&new, x, out)
}

/// Attribute `axes`: axes of length 1 that go.
pub(super) fn squeeze(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("squeeze takes one operand and gives one result") };
    match call.attributes.integers("axes").or_else(|| call.attributes.integers("axis")) {
        Some(gone) => insert(&gone, out, x),
        None if x.is_known() => {
            let kept = Shape::new(x.lengths().unwrap_or_default().iter().copied().filter(|&length| length != 1));
            learn(out, &kept)
        }
        None => Ok(()),
    }
}

/// Relates `short` to `long`, which has axes of length 1 at `places` besides.
fn insert(places: &[i64], short: &mut Shape, long: &mut Shape) -> Result<(), RuleError> {
    let Some(rank) = long.rank().or(short.rank().map(|rank| rank + places.len())) else { return Ok(()) };
    let places: Vec<usize> = places.iter().map(|&each| axis(each, rank)).collect::<Result<_, _>>()?;
    let mut own = short.lengths().unwrap_or_default().iter().copied();
    let known = short.rank().is_some();
    let forth: Vec<i64> = (0..rank)
        .map(|at| {
            if places.contains(&at) {
                1
            } else if known {
                own.next().unwrap_or(UNKNOWN)
            } else {
                UNKNOWN
            }
        })
        .collect();
    learn(long, &Shape::new(forth))?;
    let back: Vec<i64> = long
        .lengths()
        .unwrap_or_default()
        .iter()
        .copied()
        .enumerate()
        .filter(|(at, _)| !places.contains(at))
        .map(|(_, length)| length)
        .collect();
    learn(short, &Shape::new(back))
}

/// Attribute `shape`.
pub(super) fn broadcast_to(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("broadcast_to takes one operand and gives one result") };
    let Some(wanted) = call.attributes.get("shape").and_then(shape_of) else {
        return refuse("broadcast_to needs an attribute 'shape'");
    };
    learn(out, &wanted)?;
    if let (Some(own), Some(all)) = (x.lengths(), out.lengths()) {
        let fits = own.len() <= all.len()
            && own.iter().rev().zip(all.iter().rev()).all(|(&a, &b)| a == b || a == 1 || a == UNKNOWN || b == UNKNOWN);
        if !fits {
            return refuse(format!("an array of shape {x} does not broadcast to {out}"));
        }
    }
    Ok(())
}

/// The first axis stays, the others become one.
pub(super) fn flatten(_: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse("flatten takes one operand and gives one result") };
    learn(out, &Shape::of_rank(2))?;
    if let Some(own) = x.lengths() {
        let Some((&first, rest)) = own.split_first() else { return refuse("a scalar has no axis to keep") };
        let product =
            rest.iter().try_fold(1_i64, |product, &length| if length < 0 { None } else { product.checked_mul(length) });
        learn(out, &Shape::new([first, product.unwrap_or(UNKNOWN)]))?;
        if let Some(&[first, _]) = out.lengths() {
            let mut own = own.to_vec();
            own[0] = first;
            learn(x, &Shape::new(own))?;
        }
        balance(x, out)?;
    }
    Ok(())
}
