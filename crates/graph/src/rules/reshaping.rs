//! The same elements in another shape.

use super::{axes, axes_given, learn, listed, refuse, refuse_type, shape_of};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN};

/// Attribute `shape`, of which one length may be -1.
pub(super) fn reshape(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("reshape takes one operand and gives one result") };
    let Some(wanted) = attributes.get("shape").and_then(shape_of) else {
        return refuse_type("reshape needs an attribute 'shape': an integer or several");
    };
    let given = attributes.integers("shape").unwrap_or_default();
    if given.iter().any(|&length| length < UNKNOWN) {
        return refuse(format!("negative dimensions are not allowed, got shape {}", listed(&given)));
    }
    if given.iter().filter(|&&length| length == UNKNOWN).count() > 1 {
        return refuse(format!("can only specify one unknown dimension, got shape {}", listed(&given)));
    }
    learn(out, &wanted)?;
    let fits = balance(x, out)? && balance(out, x)?;
    let is_settled = out.is_known() || !x.is_known() || given.is_empty(); // a length that is None may follow later
    if fits && is_settled {
        return Ok(());
    }
    let into = if given.is_empty() { out.to_string() } else { listed(&given) };
    let elements = x.elements().map(|count| format!(" ({count} elements)")).unwrap_or_default();
    refuse(format!("cannot reshape an array of shape {x}{elements} into shape {into}"))
}

/// Finds the one unknown length of `slot` from the elements of `other`. Answers whether the two have as many elements, as
/// far as that is known.
fn balance(slot: &mut Shape, other: &Shape) -> Result<bool, RuleError> {
    let (Some(own), Some(total)) = (slot.lengths(), other.elements()) else { return Ok(true) };
    let open = own.iter().filter(|&&length| length == UNKNOWN).count();
    let rest =
        own.iter().filter(|&&length| length != UNKNOWN).try_fold(1_i64, |product, &length| product.checked_mul(length));
    let Some(rest) = rest else { return refuse(format!("a shape {slot} has too many elements")) };
    Ok(match open {
        0 => rest == total,
        1 if rest == 0 => total == 0,
        1 if total % rest == 0 => {
            let length = total / rest;
            *slot = Shape::new(own.iter().map(|&each| if each == UNKNOWN { length } else { each }));
            true
        }
        1 => false,
        _ => true,
    })
}

/// Attribute `axes`.
pub(super) fn permute_dims(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("a permutation takes one operand and gives one result") };
    let given = match axes_given(attributes, "axes")? {
        Some(given) => given,
        None => match x.rank().or(out.rank()) {
            Some(rank) => (0..i64::try_from(rank).unwrap_or(0)).rev().collect(),
            None => return Ok(()),
        },
    };
    let order = axes(&given, x.rank().or(out.rank()).unwrap_or(given.len()))?;
    let wrong = |shape: &Shape| shape.rank().is_some_and(|rank| rank != order.len());
    if wrong(x) || wrong(out) {
        return refuse(format!("axes {} do not match an array of shape {x}", listed(&given)));
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

/// The last two axes change places.
pub(super) fn matrix_transpose(_: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("a transpose is of one operand, and one result") };
    let swapped = |shape: &Shape| match shape.lengths() {
        Some([stack @ .., rows, columns]) => Ok(Shape::new(stack.iter().chain([columns, rows]).copied())),
        Some(_) => refuse(format!("a matrix, or a stack of them, has at least 2 axes; got shape {shape}")),
        None => Ok(Shape::unknown()),
    };
    let (forth, back) = (swapped(x)?, swapped(out)?);
    learn(out, &forth)?;
    learn(x, &back)
}

/// Attribute `axes`: places of new axes of length 1 in the result.
pub(super) fn expand_dims(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("expand_dims takes one operand and gives one result") };
    insert(&placed(attributes)?.unwrap_or_default(), x, out)
}

/// Attribute `axes`: axes of length 1 that go.
pub(super) fn squeeze(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("squeeze takes one operand and gives one result") };
    match placed(attributes)? {
        Some(gone) => {
            let own = x.lengths().unwrap_or_default();
            let is_long = |&at: &usize| !matches!(own[at], 1 | UNKNOWN);
            if x.rank().is_some() && axes(&gone, own.len())?.iter().any(is_long) {
                let gone = listed(&gone);
                return refuse(format!("cannot squeeze axes {gone} of shape {x}: their length is not one"));
            }
            insert(&gone, out, x)
        }
        None if x.is_known() => {
            let kept = Shape::new(x.lengths().unwrap_or_default().iter().copied().filter(|&length| length != 1));
            learn(out, &kept)
        }
        None => Ok(()),
    }
}

/// Attribute `axes`, or `axis`.
fn placed(attributes: &Attributes) -> Result<Option<Vec<i64>>, RuleError> {
    Ok(axes_given(attributes, "axes")?.or(axes_given(attributes, "axis")?))
}

/// Relates `short` to `long`, which has axes of length 1 at `places` besides.
fn insert(places: &[i64], short: &mut Shape, long: &mut Shape) -> Result<(), RuleError> {
    let Some(rank) = long.rank().or(short.rank().map(|rank| rank + places.len())) else { return Ok(()) };
    let places = axes(places, rank)?;
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
pub(super) fn broadcast_to(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let ([x], [out]) = (ins, outs) else { return refuse_type("broadcast_to takes one operand and gives one result") };
    let Some(wanted) = attributes.get("shape").and_then(shape_of) else {
        return refuse_type("broadcast_to needs an attribute 'shape': an integer or several");
    };
    if attributes.integers("shape").is_some_and(|given| given.iter().any(|&length| length < 0)) {
        return refuse(format!("negative dimensions are not allowed, got shape {wanted}"));
    }
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
pub(super) fn flatten(_: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
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
        if !balance(x, out)? {
            return refuse(format!("an array of shape {x} is not flattened to {out}"));
        }
    }
    Ok(())
}
