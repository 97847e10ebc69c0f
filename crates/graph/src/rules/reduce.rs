//! Reductions: attributes `axis` (None, a number or several) and `keepdims`; a mask of the elements may be a second operand.

use super::{axes, axes_given, learn, listed, refuse, refuse_type};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN, Value};
use smallvec::SmallVec;
use weft_shape::{aligned, broadcast_length};

/// Reductions of any number of elements.
pub(super) fn reduce(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let keep = match attributes.get("keepdims") {
        None | Some(Value::None) => false,
        Some(given) => match given.as_bool() {
            Some(keep) => keep,
            None => return refuse_type(format!("keepdims is True or False, not {given}")),
        },
    };
    let given = axes_given(attributes, "axis")?;
    let ([x, masks @ ..], [out, ..]) = (ins, outs) else { return Ok(()) };
    masks.iter().try_for_each(|mask| check_mask(mask, x))?;
    if given.is_none() && !keep {
        return learn(out, &Shape::new([]));
    }
    if let (true, None, Some(rank)) = (keep, x.rank(), out.rank()) {
        *x = Shape::of_rank(rank);
    }
    if let (Some(axes), false, None, Some(rank)) = (&given, keep, x.rank(), out.rank()) {
        *x = Shape::of_rank(rank + axes.len());
    }
    let Some(own) = x.lengths() else { return Ok(()) };
    let reduced = reduced(given.as_deref(), own.len())?;
    let kept = |at: &usize| !reduced.contains(at);
    let forwards =
        own.iter().enumerate().filter(|(at, _)| keep || kept(at)).map(|(at, &own)| if kept(&at) { own } else { 1 });
    let forwards = Shape::new(forwards);
    learn(out, &forwards)?;
    let Some(result) = out.lengths() else { return Ok(()) };
    let mut result = result.iter().copied();
    let backwards: Vec<i64> = (0..own.len())
        .map(|at| {
            let length = if keep || kept(&at) { result.next() } else { None };
            if kept(&at) { length.unwrap_or(UNKNOWN) } else { UNKNOWN }
        })
        .collect();
    learn(x, &Shape::new(backwards))
}

/// Reductions that need an element for each result, or an attribute `initial`.
pub(super) fn extremum(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    reduce(attributes, ins, outs)?;
    if !matches!(attributes.get("initial"), None | Some(Value::None)) {
        return Ok(());
    }
    if ins.len() > 1 {
        return refuse("a maximum or minimum with where= needs initial=: nothing may be left to compare");
    }
    let Some((x, own)) = ins.first().and_then(|x| Some((x, x.lengths()?))) else { return Ok(()) };
    let reduced = reduced(axes_given(attributes, "axis")?.as_deref(), own.len())?;
    if reduced.iter().any(|&at| own[at] == 0) {
        let along = listed(&reduced);
        return refuse(format!("no maximum or minimum of no elements: shape {x} along axes {along}"));
    }
    Ok(())
}

fn reduced(given: Option<&[i64]>, rank: usize) -> Result<SmallVec<[usize; 4]>, RuleError> {
    given.map_or_else(|| Ok((0..rank).collect()), |given| axes(given, rank))
}

fn check_mask(mask: &Shape, x: &Shape) -> Result<(), RuleError> {
    let (Some(own), Some(to)) = (mask.lengths(), x.lengths()) else { return Ok(()) };
    let fits = |at: usize| match (aligned(own, at, to.len()), to[at]) {
        (None | Some(UNKNOWN), _) | (_, UNKNOWN) => true,
        (Some(own), to) => broadcast_length(own, to) == Some(to),
    };
    if own.len() <= to.len() && (0..to.len()).all(fits) {
        return Ok(());
    }
    refuse(format!("where= of shape {mask} does not broadcast to the array's shape {x}"))
}
