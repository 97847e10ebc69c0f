//! Several arrays as one.

use super::{axis, learn, refuse};
use crate::registry::{Call, RuleError};
use crate::value::{Shape, UNKNOWN, Value};

/// Attribute `axis` (None: all are flattened), by default 0.
pub(super) fn concat(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [out] = outs else { return refuse("a concatenation gives one result") };
    let number = match call.attributes.get("axis").or_else(|| call.attributes.get("dim")) {
        Some(Value::None) => {
            let total = ins.iter().try_fold(0_i64, |sum, shape| sum.checked_add(shape.elements()?));
            return learn(out, &Shape::new([total.unwrap_or(UNKNOWN)]));
        }
        Some(value) => value.as_int().unwrap_or(0),
        None => 0,
    };
    let Some(rank) = ins.iter().chain([&*out]).find_map(Shape::rank) else { return Ok(()) };
    let at = axis(number, rank)?;
    let mut rest = Shape::of_rank(rank);
    for shape in ins.iter().chain([&*out]) {
        let open = shape
            .lengths()
            .map(|own| Shape::new(own.iter().enumerate().map(|(i, &n)| if i == at { UNKNOWN } else { n })));
        if let Some(joined) = open.map_or(Some(rest.clone()), |open| rest.joined(&open)) {
            rest = joined;
        } else {
            let listed: Vec<_> = ins.iter().map(ToString::to_string).collect();
            return refuse(format!(
                "shapes {} cannot be joined along axis {number}: other axes differ",
                listed.join(", ")
            ));
        }
    }
    for shape in ins.iter_mut().chain([&mut *out]) {
        learn(shape, &rest)?;
    }
    let length = |shape: &Shape| shape.lengths().map_or(UNKNOWN, |own| own[at]);
    let open = ins.iter().filter(|shape| length(shape) == UNKNOWN).count();
    let sum: i64 = ins.iter().map(length).filter(|&each| each != UNKNOWN).fold(0, i64::saturating_add);
    let put = |shape: &mut Shape, value: i64| {
        let mut own = shape.lengths().unwrap_or_default().to_vec();
        own[at] = value;
        *shape = Shape::new(own);
    };
    match (open, length(out)) {
        (0, UNKNOWN) => put(out, sum),
        (0, known) if known != sum => {
            return refuse(format!("lengths along axis {number} sum to {sum}, and the result has {known}"));
        }
        (1, known) if known != UNKNOWN => {
            if known < sum {
                return refuse(format!(
                    "lengths along axis {number} sum to at least {sum}, and the result has {known}"
                ));
            }
            if let Some(shape) = ins.iter_mut().find(|shape| length(shape) == UNKNOWN) {
                put(shape, known - sum);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Attribute `axis`: the place of a new axis.
pub(super) fn stack(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [out] = outs else { return refuse("a stack is one result") };
    let number = call.attributes.int("axis").unwrap_or(0);
    let mut each = Shape::unknown();
    for shape in ins.iter() {
        match each.joined(shape) {
            Some(joined) => each = joined,
            None => return refuse(format!("shapes {each} and {shape} differ: what is stacked has one shape")),
        }
    }
    let count = i64::try_from(ins.len()).unwrap_or(i64::MAX);
    if let Some(own) = out.lengths() {
        let at = axis(number, own.len())?;
        if !matches!(own[at], UNKNOWN) && own[at] != count {
            return refuse(format!("{count} arrays are stacked, and the result has length {} there", own[at]));
        }
        learn(&mut each, &Shape::new(own.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, &n)| n)))?;
    }
    for shape in ins.iter_mut() {
        *shape = each.clone();
    }
    if let Some(own) = each.lengths() {
        let mut all = own.to_vec();
        all.insert(axis(number, own.len() + 1)?, count);
        learn(out, &Shape::new(all))?;
    }
    Ok(())
}
