//! Rules that many ops share, by name: shapes and dtypes, forwards and backwards.

mod broadcast;
mod joining;
mod layouts;
mod neural;
mod parts;
mod products;
mod reduce;
mod reshaping;
mod types;

use crate::error::Refusal;
use crate::registry::{Call, OPERANDS, RuleError, ShapeRule, SharedLayout, SharedShapeRule, SharedTypeRule};
use crate::value::{Attributes, Shape, UNKNOWN, Value};
use smallvec::SmallVec;
use std::sync::Arc;

/// Writes into shapes of operands and results the lengths that follow.
type Infer = fn(&Attributes, &mut [Shape], &mut [Shape]) -> Result<(), RuleError>;

/// A rule for shapes with a name. It looks at attributes and shapes alone, so it serves calls outside graphs, too.
#[derive(Debug, Clone, Copy)]
pub struct NamedShapes {
    /// The name.
    pub name: &'static str,
    /// The attributes that it reads.
    pub reads: &'static [&'static str],
    infer: Infer,
}

impl NamedShapes {
    /// The shape of the result of operands whose shapes are known.
    ///
    /// # Errors
    ///
    /// If the rule refuses the operands, or if they do not suffice.
    pub fn result(&self, attributes: &Attributes, operands: &mut [Shape]) -> Result<Shape, RuleError> {
        let mut out = [Shape::unknown()];
        (self.infer)(attributes, operands, &mut out)?;
        let [out] = out;
        if out.is_known() {
            return Ok(out);
        }
        refuse(format!("no shape follows by rule '{}' from shapes {}", self.name, shown(operands)))
    }
}

impl ShapeRule for NamedShapes {
    /// A node may have numbers among its operands, as arrays without axes, in an attribute.
    fn infer(&self, call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
        let Some(Value::Tuple(template)) = call.attributes.get(OPERANDS) else {
            return (self.infer)(call.attributes, ins, outs);
        };
        let mut arrays = ins.iter().cloned();
        let is_array = |each: &Value| *each == Value::Input;
        let mut all: SmallVec<[Shape; 4]> = template
            .iter()
            .map(|each| if is_array(each) { arrays.next().unwrap_or_default() } else { Shape::new([]) })
            .collect();
        (self.infer)(call.attributes, &mut all, outs)?;
        let found = all.into_iter().zip(template.iter()).filter(|(_, each)| is_array(each)).map(|(shape, _)| shape);
        ins.iter_mut().zip(found).for_each(|(own, found)| *own = found);
        Ok(())
    }
}

/// The shape rules.
pub const SHAPE_RULES: &[NamedShapes] = &[
    NamedShapes { name: "broadcast", reads: &[], infer: broadcast::broadcast },
    NamedShapes { name: "same", reads: &[], infer: broadcast::same },
    NamedShapes { name: "like_first", reads: &[], infer: broadcast::like_first },
    NamedShapes { name: "along", reads: &["axis", "axes"], infer: broadcast::along },
    NamedShapes { name: "flip", reads: &["axes"], infer: broadcast::flip },
    NamedShapes { name: "reduce", reads: &["axis", "keepdims"], infer: reduce::reduce },
    NamedShapes { name: "extremum", reads: &["axis", "keepdims", "initial"], infer: reduce::extremum },
    NamedShapes { name: "matmul", reads: &[], infer: products::matmul },
    NamedShapes { name: "reshape", reads: &["shape"], infer: reshaping::reshape },
    NamedShapes { name: "permute_dims", reads: &["axes"], infer: reshaping::permute_dims },
    NamedShapes { name: "expand_dims", reads: &["axes", "axis"], infer: reshaping::expand_dims },
    NamedShapes { name: "squeeze", reads: &["axes", "axis"], infer: reshaping::squeeze },
    NamedShapes { name: "broadcast_to", reads: &["shape"], infer: reshaping::broadcast_to },
    NamedShapes { name: "concat", reads: &["axis", "dim"], infer: joining::concat },
    NamedShapes { name: "stack", reads: &["axis"], infer: joining::stack },
    NamedShapes { name: "matrix_transpose", reads: &[], infer: reshaping::matrix_transpose },
    NamedShapes { name: "narrow", reads: &["axis", "length"], infer: parts::narrow },
    NamedShapes { name: "select", reads: &["axis"], infer: parts::select },
    NamedShapes { name: "diagonal", reads: &["offset", "axis1", "axis2"], infer: parts::diagonal },
    NamedShapes { name: "take", reads: &["axis"], infer: parts::take },
    NamedShapes { name: "flatten", reads: &[], infer: reshaping::flatten },
    NamedShapes { name: "dense", reads: &["units", "num_hidden", "flatten"], infer: neural::dense },
    NamedShapes { name: "convolution", reads: neural::OF_CONVOLUTION, infer: neural::convolution },
    NamedShapes { name: "pooling", reads: neural::OF_POOLING, infer: neural::pooling },
    NamedShapes { name: "batch_norm", reads: &["axis"], infer: neural::batch_norm },
];

/// The names of the dtype rules.
pub const TYPE_RULES: &[&str] = &["same", "like_first", "bool"];

/// The shape rule of this name.
#[must_use]
pub fn shape_rule(name: &str) -> Option<SharedShapeRule> {
    named_shapes(name).map(|rule| Arc::new(*rule) as SharedShapeRule)
}

/// The shape rule of this name, for calls outside graphs.
#[must_use]
pub fn named_shapes(name: &str) -> Option<&'static NamedShapes> {
    SHAPE_RULES.iter().find(|rule| rule.name == name)
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
pub const LAYOUT_RULES: &[&str] = &["elementwise", "reduce", "concat", "permute_dims", "matmul"];

/// The layout rule of this name.
#[must_use]
pub fn layout_rule(name: &str) -> Option<SharedLayout> {
    Some(match name {
        "elementwise" => Arc::new(layouts::elementwise),
        "reduce" => Arc::new(layouts::reduce),
        "concat" => Arc::new(layouts::concat),
        "permute_dims" => Arc::new(layouts::permute),
        "matmul" => Arc::new(layouts::matmul),
        _ => return None,
    })
}

fn refuse<T>(message: impl Into<String>) -> Result<T, RuleError> {
    Err(Refusal::Value(message.into()).into())
}

/// Refuses a call for the class of an attribute, or for the number of its operands.
fn refuse_type<T>(message: impl Into<String>) -> Result<T, RuleError> {
    Err(Refusal::Type(message.into()).into())
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
        _ => Err(Refusal::Axis { axis: number, rank }.into()),
    }
}

/// The axes that numbers mean, each once, in the order given.
fn axes(numbers: &[i64], rank: usize) -> Result<SmallVec<[usize; 4]>, RuleError> {
    let mut found: SmallVec<[usize; 4]> = SmallVec::new();
    for &number in numbers {
        let at = axis(number, rank)?;
        if found.contains(&at) {
            return refuse(format!("axes {} name an axis twice", listed(numbers)));
        }
        found.push(at);
    }
    Ok(found)
}

/// An attribute of one axis or several; None for all, or if there is none.
fn axes_given(attributes: &Attributes, name: &str) -> Result<Option<Vec<i64>>, RuleError> {
    match attributes.get(name) {
        None | Some(Value::None) => Ok(None),
        Some(value) => match value.as_integers() {
            Some(axes) => Ok(Some(axes)),
            None => refuse_type(format!("{name} is an integer or several, not {value}")),
        },
    }
}

/// An attribute of one axis.
fn axis_given(attributes: &Attributes, name: &str, default: i64) -> Result<i64, RuleError> {
    match attributes.get(name) {
        None => Ok(default),
        Some(value) => match value.as_int() {
            Some(axis) => Ok(axis),
            None => refuse_type(format!("{name} is an integer, not {value}")),
        },
    }
}

/// Numbers as Python writes a tuple of them.
fn listed<N: ToString>(numbers: &[N]) -> String {
    let each: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("({}{})", each.join(", "), if each.len() == 1 { "," } else { "" })
}

/// Shapes as a message lists them.
fn shown(shapes: &[Shape]) -> String {
    let each: Vec<_> = shapes.iter().map(ToString::to_string).collect();
    each.join(", ")
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
