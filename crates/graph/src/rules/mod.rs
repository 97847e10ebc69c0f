//! Rules that many ops share, by name: shapes and dtypes, forwards and backwards.

mod broadcast;
mod joining;
mod layouts;
mod neural;
mod products;
mod reduce;
mod reshaping;
mod types;

use crate::registry::{RuleError, SharedLayout, SharedShapeRule, SharedTypeRule};
use crate::value::{Shape, UNKNOWN, Value};
use std::sync::Arc;

/// The names of the shape rules.
pub const SHAPE_RULES: &[&str] = &[
    "broadcast",
    "same",
    "like_first",
    "reduce",
    "matmul",
    "reshape",
    "permute_dims",
    "expand_dims",
    "squeeze",
    "broadcast_to",
    "concat",
    "stack",
    "flatten",
    "dense",
    "convolution",
    "pooling",
    "batch_norm",
];

/// The names of the dtype rules.
pub const TYPE_RULES: &[&str] = &["same", "like_first", "bool"];

/// The shape rule of this name.
#[must_use]
pub fn shape_rule(name: &str) -> Option<SharedShapeRule> {
    Some(match name {
        "broadcast" => Arc::new(broadcast::broadcast),
        "same" => Arc::new(broadcast::same),
        "like_first" => Arc::new(broadcast::like_first),
        "reduce" => Arc::new(reduce::reduce),
        "matmul" => Arc::new(products::matmul),
        "reshape" => Arc::new(reshaping::reshape),
        "permute_dims" => Arc::new(reshaping::permute_dims),
        "expand_dims" => Arc::new(reshaping::expand_dims),
        "squeeze" => Arc::new(reshaping::squeeze),
        "broadcast_to" => Arc::new(reshaping::broadcast_to),
        "flatten" => Arc::new(reshaping::flatten),
        "concat" => Arc::new(joining::concat),
        "stack" => Arc::new(joining::stack),
        "dense" => Arc::new(neural::dense),
        "convolution" => Arc::new(neural::convolution),
        "pooling" => Arc::new(neural::pooling),
        "batch_norm" => Arc::new(neural::batch_norm),
        _ => return None,
    })
}

/// The dtype rule of this name.
#[must_use]
pub fn type_rule(name: &str) -> Option<SharedTypeRule> {
    Some(match name {
        "same" => Arc::new(types::same),
        "like_first" => Arc::new(types::like_first),
        "bool" => Arc::new(types::truth),
        _ => return None,
    })
}

/// The names of the layout rules.
pub const LAYOUT_RULES: &[&str] = &["elementwise", "reduce", "concat", "permute_dims"];

/// The layout rule of this name.
#[must_use]
pub fn layout_rule(name: &str) -> Option<SharedLayout> {
    Some(match name {
        "elementwise" => Arc::new(layouts::elementwise),
        "reduce" => Arc::new(layouts::reduce),
        "concat" => Arc::new(layouts::concat),
        "permute_dims" => Arc::new(layouts::permute),
        _ => return None,
    })
}

fn refuse<T>(message: impl Into<String>) -> Result<T, RuleError> {
    Err(RuleError::from(message.into()))
}

/// Writes what `new` adds to `slot`.
fn learn(slot: &mut Shape, new: &Shape) -> Result<(), RuleError> {
    match slot.joined(new) {
        Some(joined) => *slot = joined,
        None => return refuse(format!("shape {slot} is known, and {new} follows")),
    }
    Ok(())
}

/// The axis that a number from the end or the beginning means.
fn axis(number: i64, rank: usize) -> Result<usize, RuleError> {
    let signed = i64::try_from(rank).unwrap_or(i64::MAX);
    let at = if number < 0 { number.saturating_add(signed) } else { number };
    match usize::try_from(at) {
        Ok(at) if at < rank => Ok(at),
        _ => refuse(format!("there is no axis {number} in an array of {rank} axes")),
    }
}

/// A shape that an attribute spells: None and negative lengths are open.
#[must_use]
pub fn shape_of(value: &Value) -> Option<Shape> {
    match value {
        Value::None => Some(Shape::unknown()),
        Value::Int(length) => Some(Shape::new([*length])),
        Value::Tuple(values) => {
            let lengths: Option<Vec<i64>> =
                values.iter().map(|each| if *each == Value::None { Some(UNKNOWN) } else { each.as_int() }).collect();
            lengths.map(Shape::new)
        }
        _ => None,
    }
}

/// A shape that is noted on a variable: None alone is unknown.
///
/// # Errors
///
/// What is wrong with it.
pub fn noted_shape(value: &Value) -> Result<Shape, &'static str> {
    let is_negative = |value: &Value| value.as_int().is_some_and(|length| length < 0);
    let all = if let Value::Tuple(values) = value { values } else { std::slice::from_ref(value) };
    if all.iter().any(is_negative) {
        return Err("of which a length is negative: one that is not known is None");
    }
    shape_of(value).ok_or("which is no shape")
}
