//! Several arrays as one.

use super::{axis, axis_given, learn, refuse, refuse_type, shown};
use crate::registry::RuleError;
use crate::value::{Attributes, Shape, UNKNOWN, Value};

/// Attribute `axis` (None: all are flattened), by default 0.
pub(super) fn concat(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [out] = outs else { return refuse_type("a concatenation gives one result") };
    let number = match attributes.get("axis").or_else(|| attributes.get("dim")) {
        Some(Value::None) => {
            let total = ins.iter().try_fold(0_i64, |sum, shape| sum.checked_add(shape.elements()?));
            return learn(out, &Shape::new([total.unwrap_or(UNKNOWN)]));
        }
        _ => axis_given(attributes, if attributes.get("axis").is_some() { "axis" } else { "dim" }, 0)?,
    };
    if ins.is_empty() {
        return refuse("need at least one array to concatenate");
    }
    if ins.iter().any(|shape| shape.rank() == Some(0)) {
        return refuse("arrays without axes cannot be concatenated; give them one, or axis=None");
    }
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
            return refuse(format!("all shapes must agree except along axis {number}, got {}", shown(ins)));
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
pub(super) fn stack(attributes: &Attributes, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let [out] = outs else { return refuse_type("a stack is one result") };
    let number = axis_given(attributes, "axis", 0)?;
    if ins.is_empty() {
        return refuse("need at least one array to stack");
    }
    let mut each = Shape::unknown();
    for shape in ins.iter() {
        match each.joined(shape) {
            Some(joined) => each = joined,
            None => return refuse(format!("all arrays of a stack have one shape, got {}", shown(ins))),
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
