//! Reductions: attributes `axis` (None, a number or several) and `keepdims`.

use super::{axis, learn};
use crate::registry::{Call, RuleError};
use crate::value::{Shape, UNKNOWN, Value};

pub(super) fn reduce(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let keep = call.attributes.flag("keepdims");
    let given = match call.attributes.get("axis") {
        None | Some(Value::None) => None,
        Some(value) => value.as_integers(),
    };
    let Some(x) = ins.first_mut() else { return Ok(()) };
    let Some(out) = outs.first_mut() else { return Ok(()) };
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
    let rank = own.len();
    let reduced: Vec<usize> = match given {
        Some(axes) => axes.into_iter().map(|each| axis(each, rank)).collect::<Result<_, _>>()?,
        None => (0..rank).collect(),
    };
    let kept = |at: &usize| !reduced.contains(at);
    let forwards = (0..rank).filter(|at| keep || kept(at)).map(|at| if kept(&at) { own[at] } else { 1 });
    let forwards = Shape::new(forwards);
    learn(out, &forwards)?;
    let Some(result) = out.lengths() else { return Ok(()) };
    let mut result = result.iter().copied();
    let backwards: Vec<i64> = (0..rank)
        .map(|at| {
            let length = if keep || kept(&at) { result.next() } else { None };
            if kept(&at) { length.unwrap_or(UNKNOWN) } else { UNKNOWN }
        })
        .collect();
    learn(x, &Shape::new(backwards))
}
