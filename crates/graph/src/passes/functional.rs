//! The attributes of `functional`: those of its original op, with the mutated inputs as further results.

use super::derived::FUNCTIONAL_OF;
use crate::error::Result;
use crate::node::{Differentiated, Node, NodeEntry, SharedGradient};
use crate::registry::{Call, Cost, Given, Op, OpCost, Registry, RuleError, SharedShapeRule, SharedTypeRule, TextRule};
use crate::value::{Attributes, DType, Shape, Value};
use std::sync::Arc;

/// The op that a call was made of, its attributes there, and the inputs that it mutates.
struct Original {
    op: Arc<Op>,
    attributes: Attributes,
    mutates: Vec<usize>,
}

impl Original {
    fn of(attributes: &Attributes) -> Result<Self, RuleError> {
        let Some(Value::Text(name)) = attributes.get(FUNCTIONAL_OF) else {
            return Err(format!("'{FUNCTIONAL_OF}' names the op that it was made of, and is missing").into());
        };
        let Some(op) = Registry::global().find(name) else {
            return Err(format!("it was made of '{name}', and no op of this name is registered").into());
        };
        let attributes = attributes.without(FUNCTIONAL_OF);
        let mutates = op.mutates(&attributes)?;
        Ok(Self { op, attributes, mutates })
    }

    fn results(&self) -> Result<usize> {
        self.op.num_outputs(&self.attributes)
    }

    fn call<'a>(&'a self, of: &Call<'a>) -> Call<'a> {
        Call { op: &self.op, attributes: &self.attributes, ..*of }
    }
}

/// Lets an op say all this.
pub(super) fn describe(op: &Arc<Op>, level: i32) -> Result<()> {
    op.set("num_inputs", by(|of| Ok(of.op.num_inputs(&of.attributes)?)), level)?;
    op.set("num_outputs", by(|of| Ok(of.results()? + of.mutates.len())), level)?;
    op.set("input_names", by(|of| Ok(input_names(of)?)), level)?;
    op.set("output_names", by(output_names), level)?;
    op.set("inplace", by(inplace), level)?;
    op.set("ignores", by(|of| Ok(of.op.ignores(&of.attributes)?)), level)?;
    op.set("places", by(|of| Ok(of.op.places(&of.attributes)?)), level)?;
    op.set("pure", by(|of| Ok(of.op.draws_nothing(&of.attributes)?)), level)?;
    op.set("infer_shape", Arc::new(infer_shape) as SharedShapeRule, level)?;
    op.set("infer_type", Arc::new(infer_type) as SharedTypeRule, level)?;
    op.set("gradient", Arc::new(gradient) as SharedGradient, level)?;
    op.set("cost", Arc::new(cost) as OpCost, level)?;
    op.set("parse", Arc::new(parse) as TextRule, level)
}

fn by<T>(rule: impl Fn(&Original) -> Result<T, RuleError> + Send + Sync + 'static) -> Given<T> {
    Given::By(Arc::new(move |attributes| rule(&Original::of(attributes)?)))
}

fn input_names(of: &Original) -> Result<Vec<Arc<str>>> {
    let least = of.mutates.iter().map(|at| at + 1).max().unwrap_or(0);
    let count = of.op.num_inputs(&of.attributes)?.unwrap_or(least);
    of.op.input_names(&of.attributes, count)
}

fn output_names(of: &Original) -> Result<Vec<Arc<str>>, RuleError> {
    let mut names = of.op.output_names(&of.attributes, of.results()?)?;
    let inputs = input_names(of)?;
    names.extend(of.mutates.iter().filter_map(|&at| inputs.get(at).cloned()));
    Ok(names)
}

/// The op's own pairs, and each mutated input in its own place.
fn inplace(of: &Original) -> Result<Vec<(usize, usize)>, RuleError> {
    let mut pairs = of.op.inplace(&of.attributes)?;
    let results = of.results()?;
    pairs.extend(of.mutates.iter().enumerate().map(|(place, &at)| (at, results + place)));
    Ok(pairs)
}

fn infer_shape(call: &Call<'_>, ins: &mut [Shape], outs: &mut [Shape]) -> Result<(), RuleError> {
    let of = Original::of(call.attributes)?;
    let (results, states) = outs.split_at_mut(of.results()?.min(outs.len()));
    if let Some(rule) = of.op.get::<SharedShapeRule>("infer_shape") {
        rule.infer(&of.call(call), ins, results)?;
    }
    for (&at, state) in of.mutates.iter().zip(states) {
        let Some(joined) = ins[at].joined(state) else {
            return Err(format!("input {at} has shape {}, and its next version {state}", ins[at]).into());
        };
        ins[at] = joined.clone();
        *state = joined;
    }
    Ok(())
}

fn infer_type(call: &Call<'_>, ins: &mut [Option<DType>], outs: &mut [Option<DType>]) -> Result<(), RuleError> {
    let of = Original::of(call.attributes)?;
    let (results, states) = outs.split_at_mut(of.results()?.min(outs.len()));
    if let Some(rule) = of.op.get::<SharedTypeRule>("infer_type") {
        rule.infer(&of.call(call), ins, results)?;
    }
    for (&at, state) in of.mutates.iter().zip(states) {
        match (ins[at], *state) {
            (Some(a), Some(b)) if a != b => {
                return Err(format!("input {at} has dtype {a}, and its next version {b}").into());
            }
            (a, b) => (ins[at], *state) = (a.or(b), a.or(b)),
        }
    }
    Ok(())
}

/// By the rule of the op, which knows no gradients of mutated inputs.
fn gradient(of: &Differentiated<'_>, grads: &[Option<NodeEntry>]) -> Result<Vec<Option<NodeEntry>>, RuleError> {
    let original = Original::of(of.node.attributes())?;
    let results = original.results()?;
    let Some(rule) = original.op.get::<SharedGradient>("gradient") else {
        return Err(format!("op '{}' has no gradient", original.op.name()).into());
    };
    if grads[results..].iter().any(Option::is_some) {
        let what = "mutates inputs, and something is differentiated through their new values";
        return Err(format!("op '{}' {what}: no rule knows their gradients", original.op.name()).into());
    }
    let name = of.node.name().clone();
    let node = Node::call(original.op.clone(), name, original.attributes.clone(), of.inputs.to_vec())?;
    let node = Arc::new(node.at(of.node.place()));
    rule.gradient(
        &Differentiated { node: &node, inputs: of.inputs, outputs: &of.outputs[..results], needs: of.needs },
        &grads[..results],
    )
}

/// The op's cost, and that of the copies.
fn cost(call: &Call<'_>) -> Result<Cost, RuleError> {
    let of = Original::of(call.attributes)?;
    if let Some(rule) = of.op.get::<OpCost>("cost") {
        return rule(&of.call(call));
    }
    let elements = call.shapes.iter().filter_map(Shape::elements).max().unwrap_or(1);
    #[allow(clippy::cast_precision_loss)] // a guess
    Ok(Cost::Work { flops: elements as f64, bytes: 8.0 * elements as f64 })
}

fn parse(items: &[(Arc<str>, Arc<str>)]) -> Result<Attributes, RuleError> {
    let (own, rest): (Vec<_>, Vec<_>) = items.iter().cloned().partition(|(key, _)| **key == *FUNCTIONAL_OF);
    let Some((_, name)) = own.first() else {
        return Err(format!("'{FUNCTIONAL_OF}' names the op that it was made of, and is missing").into());
    };
    let rule = Registry::global().find(name).and_then(|op| op.get::<TextRule>("parse"));
    let attributes = match rule {
        Some(rule) => rule(&rest)?,
        None => crate::json::attributes_of_texts(rest),
    };
    Ok(attributes.with(FUNCTIONAL_OF, Value::text(name)))
}
