//! The differences of `MXNet`'s files before 2.0.

use crate::error::Result;
use crate::node::{HIDDEN, Node, NodeEntry};
use crate::registry::Op;
use crate::value::{self, Attributes, Value};
use std::sync::Arc;

/// One more note that had no underscores around it once.
const INIT: &str = "init";

/// A key and its text.
pub(super) type Item = (Arc<str>, Arc<str>);

/// Notes for inputs: the name of the input, the key, the text.
pub(super) type ForInputs = Vec<(String, String, Arc<str>)>;

/// Takes notes of the old spelling out of `items`: those on the node itself come back spelled as now, those for its
/// inputs (`weight_lr_mult`) apart.
pub(super) fn notes(items: &mut Vec<Item>) -> (Vec<Item>, ForInputs) {
    let (mut own, mut inputs) = (Vec::new(), ForInputs::new());
    items.retain(|(key, text)| {
        for hidden in HIDDEN.into_iter().chain([INIT]) {
            if **key == *hidden {
                own.push((format!("__{hidden}__").into(), text.clone()));
                return false;
            }
            if hidden != INIT
                && let Some(input) = key.strip_suffix(hidden).and_then(|rest| rest.strip_suffix('_'))
                && !input.is_empty()
                && !input.starts_with('_')
            {
                inputs.push((input.into(), format!("__{hidden}__"), text.clone()));
                return false;
            }
        }
        true
    });
    (own, inputs)
}

/// The text of a shape, as it is written now, from one with 0 and () for unknown; None where nothing is known.
pub(super) fn shape(text: &str) -> Option<String> {
    // Python 2 wrote long integers as 3L.
    let lengths = lengths(&text.replace(['L', 'l'], ""), |length| length > 0)?;
    if lengths.is_empty() { None } else { Some(Value::Tuple(lengths.into()).to_string()) }
}

/// The text of a shape, as it is written now, from one with -1 for unknown; any other text as it is.
pub(super) fn numpy_shape(text: &Arc<str>) -> Arc<str> {
    lengths(text, |length| length >= 0)
        .map_or_else(|| text.clone(), |lengths| Value::Tuple(lengths.into()).to_string().into())
}

/// The lengths of a text, None in the place of those that are not known.
fn lengths(text: &str, is_known: impl Fn(i64) -> bool) -> Option<Vec<Value>> {
    let read = |each: &Value| match each {
        Value::None => Some(Value::None),
        other => other.as_int().map(|length| if is_known(length) { Value::Int(length) } else { Value::None }),
    };
    match value::parse(text) {
        Value::Tuple(values) => values.iter().map(read).collect(),
        Value::None => None,
        one => Some(vec![read(&one)?]),
    }
}

/// Adds the inputs that files did not have before 0.9, auxiliary states above all: variables by their names.
pub(super) fn complete(op: &Arc<Op>, name: &str, attributes: &Attributes, inputs: &mut Vec<NodeEntry>) -> Result<()> {
    let Some(wanted) = op.num_inputs(attributes).map_err(|error| error.of_node(name))? else { return Ok(()) };
    if inputs.len() < wanted {
        let names = op.input_names(attributes, wanted)?;
        let missing = names[inputs.len()..].iter().map(|input| Arc::new(Node::variable(&format!("{name}_{input}"))));
        inputs.extend(missing.map(|variable| NodeEntry::new(variable, 0)));
    }
    Ok(())
}
