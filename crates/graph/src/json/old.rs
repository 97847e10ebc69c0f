//! What files of `MXNet` before 2.0 say otherwise.

use crate::error::Result;
use crate::node::{Node, NodeEntry};
use crate::registry::Op;
use crate::rules::shape_of;
use crate::value::{self, Attributes, Shape, Value};
use std::sync::Arc;

/// Notes that had no underscores around them once.
const HIDDEN: [&str; 6] = ["ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "init"];

/// A key and its text.
pub(super) type Item = (Arc<str>, Arc<str>);

/// Notes for inputs: the name of the input, the key, the text.
pub(super) type ForInputs = Vec<(String, String, Arc<str>)>;

/// Takes notes of the old spelling out of `items`: those on the node itself come back spelled as now, those for its
/// inputs (`weight_lr_mult`) apart.
pub(super) fn notes(items: &mut Vec<Item>) -> (Vec<Item>, ForInputs) {
    let (mut own, mut inputs) = (Vec::new(), ForInputs::new());
    items.retain(|(key, text)| {
        for hidden in HIDDEN {
            if **key == *hidden {
                own.push((format!("__{hidden}__").into(), text.clone()));
                return false;
            }
            if hidden != "init"
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

/// The text of a shape in which 0 and () meant unknown, as it is written now; None where nothing is known.
pub(super) fn shape(text: &str) -> Option<String> {
    // Python 2 wrote long integers as 3L.
    let shape = shape_of(&value::parse(&text.replace(['L', 'l'], ""))).unwrap_or(Shape::unknown());
    let lengths = shape.lengths().filter(|lengths| !lengths.is_empty())?;
    let values = lengths.iter().map(|&length| if length <= 0 { Value::None } else { Value::Int(length) });
    Some(Value::Tuple(values.collect()).to_string())
}

/// The key of a note with underscores around it.
pub(super) fn spelled(key: &str) -> Arc<str> {
    if key.len() > 4 && key.starts_with("__") && key.ends_with("__") { key.into() } else { format!("__{key}__").into() }
}

/// Adds the inputs that files did not have before 0.9, auxiliary states above all: variables by their names.
pub(super) fn complete(op: &Arc<Op>, name: &str, attributes: &Attributes, inputs: &mut Vec<NodeEntry>) -> Result<()> {
    let Some(wanted) = op.num_inputs(attributes)? else { return Ok(()) };
    if inputs.len() < wanted {
        let names = op.input_names(attributes, wanted)?;
        let missing = names[inputs.len()..].iter().map(|input| Arc::new(Node::variable(&format!("{name}_{input}"))));
        inputs.extend(missing.map(|variable| NodeEntry::new(variable, 0)));
    }
    Ok(())
}
