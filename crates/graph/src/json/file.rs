//! The contents of a file as tables: a row for each node, and shared lists for repeated fields. Nothing here is true yet.

use super::links::{Counts, Entries, Links, Numbers, Span};
use super::part::{Field, Part, Reading, Text};
use super::save::IS_NP_SHAPE;
use super::tree::{Json, Key};
use crate::value::Value;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Where a node may have texts: `param` before 0.9, `attr` before 1.0, `attrs`.
const TEXTS: [&str; 3] = ["param", "attr", "attrs"];

/// A key and its text.
pub(super) type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// A file.
#[derive(Default)]
pub(super) struct File<'a> {
    pub(super) nodes: Field<Nodes<'a>>,
    pub(super) heads: Field<Links<'a>>,
    pub(super) arguments: Field<Links<'a>>,
    /// How many there are, if they are counts.
    pub(super) row_ptr: Field<Option<usize>>,
    pub(super) origin: Field<Origin>,
}

/// The attributes of a file on its writer.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) is_weft: bool,
    pub(super) mxnet: Option<u64>,
    /// Whether shapes are NumPy's: 0 is a length, and -1 is not known.
    pub(super) is_np_shape: bool,
    /// The other attributes of the graph that are texts.
    pub(super) texts: Vec<(String, Arc<str>)>,
}

/// The nodes of a file.
#[derive(Default)]
pub(super) struct Nodes<'a> {
    pub(super) rows: Vec<Row>,
    /// The names of ops, each once.
    pub(super) ops: Vec<Cow<'a, str>>,
    numbers: HashMap<Cow<'a, str>, u32>,
    pub(super) texts: Vec<Pair<'a>>,
    pub(super) inputs: Links<'a>,
    pub(super) control: Links<'a>,
    /// The fault of the first node that is none.
    pub(super) fault: Option<String>,
    /// Whether a node has a form of files before 0.9.
    pub(super) is_first: bool,
}

/// A node.
pub(super) struct Row {
    pub(super) op: u32,
    pub(super) name: Arc<str>,
    /// In the order of `TEXTS`.
    pub(super) texts: [Span; 3],
    pub(super) inputs: Span,
    pub(super) control: Span,
    pub(super) subgraphs: Option<Arc<str>>,
}

/// Reads a file; of something that comes twice the last counts.
pub(super) fn read(text: &str) -> serde_json::Result<Field<File<'_>>> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let file = Reading(FilePart).deserialize(&mut reader)?;
    reader.end()?;
    Ok(file)
}

struct FilePart;

impl<'de> Part<'de> for FilePart {
    type Value = File<'de>;

    fn object<A: MapAccess<'de>>(self, mut items: A) -> Result<Field<File<'de>>, A::Error> {
        let mut file = File::default();
        while let Some(Key(key)) = items.next_key()? {
            match &*key {
                "nodes" => file.nodes = items.next_value_seed(Reading(NodesPart))?,
                "heads" => {
                    let mut links = Links::default();
                    file.heads = items.next_value_seed(Reading(Entries(&mut links)))?.map(|_| links);
                }
                "arg_nodes" => {
                    let mut links = Links::default();
                    file.arguments = items.next_value_seed(Reading(Numbers(&mut links)))?.map(|_| links);
                }
                "node_row_ptr" => file.row_ptr = items.next_value_seed(Reading(Counts))?,
                "attrs" => file.origin = items.next_value_seed(Reading(OriginPart))?,
                _ => drop(items.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Field::Found(file))
    }
}

struct OriginPart;

impl<'de> Part<'de> for OriginPart {
    type Value = Origin;

    fn scalar(self, value: Json<'de>) -> Field<Origin> {
        if value == Json::Null { Field::Missing } else { Field::Wrong }
    }

    fn object<A: MapAccess<'de>>(self, mut items: A) -> Result<Field<Origin>, A::Error> {
        let mut origin = Origin::default();
        while let Some(Key(key)) = items.next_key()? {
            if key == "mxnet_version" {
                let value: Json<'_> = items.next_value()?;
                origin.mxnet = value.as_list().and_then(|kind_and_value| kind_and_value.get(1)?.as_u64());
            } else if key == IS_NP_SHAPE {
                let value: Json<'_> = items.next_value()?;
                let said = value.as_list().and_then(|kind_and_value| kind_and_value.get(1)?.as_u64());
                origin.is_np_shape = said.is_some_and(|said| said > 0);
            } else if key == "weft_version" {
                origin.is_weft = true;
                items.next_value::<IgnoredAny>()?;
            } else {
                let value: Json<'_> = items.next_value()?;
                let text = match value.as_list() {
                    Some([Json::Text(kind), Json::Text(text)]) if *kind == "str" => Some(Arc::from(&**text)),
                    _ => None,
                };
                origin.texts.extend(text.map(|text| (key.into_owned(), text)));
            }
        }
        Ok(Field::Found(origin))
    }
}

struct NodesPart;

impl<'de> Part<'de> for NodesPart {
    type Value = Nodes<'de>;

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Nodes<'de>>, A::Error> {
        let mut nodes = Nodes::default();
        while let Some(node) = items.next_element_seed(Reading(NodePart(&mut nodes)))? {
            nodes.push(node);
        }
        Ok(Field::Found(nodes))
    }
}

/// The parts of a node.
#[derive(Default)]
struct Fields {
    op: Field<u32>,
    name: Field<Arc<str>>,
    texts: [Field<Span>; 3],
    inputs: Field<Span>,
    control: Field<Span>,
    subgraphs: Field<Arc<str>>,
}

impl Nodes<'_> {
    fn push(&mut self, node: Field<Fields>) {
        if self.fault.is_none() {
            self.fault = self.fault_of(&node);
        }
        let node = node.found().unwrap_or_default();
        self.rows.push(Row {
            op: node.op.found().unwrap_or_default(),
            name: node.name.found().unwrap_or_default(),
            texts: node.texts.map(|span| span.found().unwrap_or_default()),
            inputs: node.inputs.found().unwrap_or_default(),
            control: node.control.found().unwrap_or_default(),
            subgraphs: node.subgraphs.found(),
        });
    }

    fn fault_of(&self, node: &Field<Fields>) -> Option<String> {
        let at = self.rows.len();
        let Field::Found(node) = node else { return Some(format!("node {at} is no object")) };
        match (&node.op, &node.name) {
            (Field::Missing, _) => Some(format!("node {at} has no 'op'")),
            (Field::Wrong, _) => Some(format!("node {at}: 'op' is no text")),
            (_, Field::Missing) => Some(format!("node {at} has no 'name'")),
            (_, Field::Wrong) => Some(format!("node {at}: 'name' is no text")),
            (&Field::Found(op), Field::Found(name)) => {
                let said = if let Some((_, key)) = node.texts.iter().zip(TEXTS).find(|(text, _)| text.is_wrong()) {
                    format!(": '{key}' is no object")
                } else if node.inputs.is_wrong() {
                    ": 'inputs' is no list".into()
                } else if matches!(node.inputs, Field::Missing) && self.ops[op as usize] != "null" {
                    " has no 'inputs'".into()
                } else if node.control.is_wrong() {
                    ": 'control_deps' is no list".into()
                } else if node.subgraphs.is_wrong() {
                    ": 'subgraphs' is no list".into()
                } else {
                    return None;
                };
                Some(format!("node {at} ('{name}'){said}"))
            }
        }
    }
}

impl<'a> Nodes<'a> {
    fn number_of(&mut self, op: Cow<'a, str>) -> u32 {
        if let Some(&known) = self.numbers.get(&*op) {
            return known;
        }
        let number = u32::try_from(self.ops.len()).unwrap_or(u32::MAX);
        self.ops.push(op.clone());
        self.numbers.insert(op, number);
        number
    }
}

struct NodePart<'n, 'a>(&'n mut Nodes<'a>);

impl<'de> Part<'de> for NodePart<'_, 'de> {
    type Value = Fields;

    fn object<A: MapAccess<'de>>(self, mut items: A) -> Result<Field<Fields>, A::Error> {
        let (nodes, mut node) = (self.0, Fields::default());
        while let Some(Key(key)) = items.next_key()? {
            match &*key {
                "op" => node.op = items.next_value_seed(Reading(Text))?.map(|op| nodes.number_of(op)),
                "name" => node.name = items.next_value_seed(Reading(Text))?.map(|name| (&*name).into()),
                "inputs" => node.inputs = items.next_value_seed(Reading(Entries(&mut nodes.inputs)))?,
                "control_deps" => node.control = items.next_value_seed(Reading(Numbers(&mut nodes.control)))?,
                "subgraphs" => node.subgraphs = items.next_value_seed(Reading(Subgraphs))?,
                key => {
                    nodes.is_first |= matches!(key, "param" | "backward_source_id");
                    match TEXTS.iter().position(|known| *known == key) {
                        Some(at) => node.texts[at] = items.next_value_seed(Reading(Texts(&mut nodes.texts)))?,
                        None => drop(items.next_value::<IgnoredAny>()?),
                    }
                }
            }
        }
        Ok(Field::Found(node))
    }
}

/// Keys with their texts; another value is taken as Python would write it.
struct Texts<'l, 'a>(&'l mut Vec<Pair<'a>>);

impl<'de> Part<'de> for Texts<'_, 'de> {
    type Value = Span;

    fn scalar(self, value: Json<'de>) -> Field<Span> {
        if value == Json::Null { Field::Missing } else { Field::Wrong }
    }

    fn object<A: MapAccess<'de>>(self, mut items: A) -> Result<Field<Span>, A::Error> {
        let start = self.0.len();
        while let Some(Key(key)) = items.next_key()? {
            let text = match items.next_value()? {
                Json::Text(text) => text,
                Json::Bool(value) => Value::Bool(value).to_string().into(),
                Json::Null => "None".into(),
                other => other.to_string().into(),
            };
            self.0.push((key, text));
        }
        Ok(Field::Found(Span::new(start, self.0.len())))
    }
}

/// Graphs inside a node, written again as JSON.
struct Subgraphs;

impl<'de> Part<'de> for Subgraphs {
    type Value = Arc<str>;

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Arc<str>>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Ok(Field::Found(Json::List(values).to_string().into()))
    }
}
