//! Numbers that a file has for nodes and results, of all nodes one after the other. Whether there are such nodes is known
//! when the file has been read.

use super::part::{Field, Part, Reading};
use super::tree::{Json, Reader};
use crate::error::{GraphError, Result};
use serde::de::{MapAccess, SeqAccess, Visitor};
use smallvec::SmallVec;
use std::fmt;

/// The subject of a message.
#[derive(Clone, Copy)]
pub(super) enum Owner<'a> {
    Node(usize, &'a str),
    Part(&'static str),
}

impl fmt::Display for Owner<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(at, name) => write!(f, "node {at} ('{name}')"),
            Self::Part(name) => f.write_str(name),
        }
    }
}

/// From where to where something lies in a list.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    from: u32,
    to: u32,
}

impl Span {
    /// Lists end before 2^32: their reader checks that.
    pub(super) fn new(from: usize, to: usize) -> Self {
        let narrow = |at| u32::try_from(at).unwrap_or(u32::MAX);
        Self { from: narrow(from), to: narrow(to) }
    }

    pub(super) fn of<T>(self, list: &[T]) -> &[T] {
        &list[self.from as usize..self.to as usize]
    }
}

/// A result of a node, in one of its versions; a node alone is its first result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    pub(super) node: u32,
    pub(super) index: u32,
    pub(super) version: u32,
}

impl Link {
    /// Stands in the place of a missing link: no graph has so many nodes.
    const NONE: Self = Self { node: u32::MAX, index: 0, version: 0 };

    fn of(values: &[Json<'_>]) -> Option<Self> {
        let small = |value: &Json<'_>| u32::try_from(value.as_u64()?).ok();
        match values {
            [node, index] => Some(Self { node: small(node)?, index: small(index)?, version: 0 }),
            [node, index, version] => Some(Self { node: small(node)?, index: small(index)?, version: small(version)? }),
            _ => None,
        }
    }
}

/// Links, and by their places those that are none, as the file has them.
#[derive(Debug, Default)]
pub(super) struct Links<'a> {
    pub(super) all: Vec<Link>,
    odd: Vec<(usize, Json<'a>)>,
}

impl<'a> Links<'a> {
    fn push(&mut self, found: Result<Link, Json<'a>>) {
        let link = found.unwrap_or_else(|odd| {
            self.odd.push((self.all.len(), odd));
            Link::NONE
        });
        self.all.push(link);
    }

    /// All of them.
    pub(super) fn span(&self) -> Span {
        Span::new(0, self.all.len())
    }

    /// Checks that those of a span are links to nodes of a graph of `count` nodes.
    pub(super) fn check(&self, span: Span, count: usize, owner: Owner<'_>) -> Result<()> {
        match span.of(&self.all).iter().position(|link| link.node as usize >= count) {
            None => Ok(()),
            Some(at) => Err(self.refusal(span.from as usize + at, count, owner)),
        }
    }

    #[cold]
    fn refusal(&self, at: usize, count: usize, owner: Owner<'_>) -> GraphError {
        let no_node = |value: &dyn fmt::Display| {
            let last = count.saturating_sub(1);
            GraphError::new(format!("{owner} names node {value}: the graph has nodes 0 to {last}"))
        };
        let Some((_, odd)) = self.odd.iter().find(|(place, _)| *place == at) else {
            return no_node(&self.all[at].node);
        };
        let is_node = |value: &Json<'_>| value.as_u64().is_some_and(|number| number < count as u64);
        let is_small = |value: &Json<'_>| value.as_u64().is_some_and(|number| u32::try_from(number).is_ok());
        match odd.as_list() {
            Some([node, _] | [node, _, _]) if !is_node(node) => no_node(node),
            Some([_, numbers @ ..]) if matches!(numbers.len(), 1 | 2) => {
                let wrong = numbers.iter().find(|value| !is_small(value)).unwrap_or(odd);
                GraphError::new(format!("{owner} has {wrong} where the number of a result, or a version, belongs"))
            }
            _ => GraphError::new(format!("{owner} has {odd} where [node, result, version] belongs")),
        }
    }
}

/// A list of entries, of two or three numbers each.
pub(super) struct Entries<'l, 'a>(pub(super) &'l mut Links<'a>);

impl<'de> Part<'de> for Entries<'_, 'de> {
    type Value = Span;

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Span>, A::Error> {
        let start = self.0.all.len();
        while let Some(entry) = items.next_element_seed(Reading(Entry))? {
            self.0.push(entry.found().unwrap_or(Err(Json::Null)));
        }
        Ok(Field::Found(Span::new(start, self.0.all.len())))
    }
}

/// A list of nodes.
pub(super) struct Numbers<'l, 'a>(pub(super) &'l mut Links<'a>);

impl<'de> Part<'de> for Numbers<'_, 'de> {
    type Value = Span;

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Span>, A::Error> {
        let start = self.0.all.len();
        while let Some(value) = items.next_element::<Json<'de>>()? {
            let node = value.as_u64().and_then(|number| u32::try_from(number).ok());
            // A link to no node is kept as the first result of none, so that messages speak of nodes.
            let odd = || Json::List(vec![value, Json::Unsigned(0)]);
            self.0.push(node.map(|node| Link { node, index: 0, version: 0 }).ok_or_else(odd));
        }
        Ok(Field::Found(Span::new(start, self.0.all.len())))
    }
}

/// How many counts there are, if they are counts.
pub(super) struct Counts;

impl<'de> Part<'de> for Counts {
    type Value = Option<usize>;

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Self::Value>, A::Error> {
        let (mut count, mut are_counts) = (0, true);
        while let Some(value) = items.next_element::<Json<'de>>()? {
            count += 1;
            are_counts &= value.as_u64().is_some();
        }
        Ok(Field::Found(are_counts.then_some(count)))
    }
}

/// A link, or the value in its place.
struct Entry;

impl<'de> Part<'de> for Entry {
    type Value = Result<Link, Json<'de>>;

    fn scalar(self, value: Json<'de>) -> Field<Self::Value> {
        Field::Found(Err(value))
    }

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Self::Value>, A::Error> {
        let mut values: SmallVec<[Json<'de>; 3]> = SmallVec::new();
        while let Some(value) = items.next_element()? {
            values.push(value);
        }
        Ok(Field::Found(Link::of(&values).ok_or_else(|| Json::List(values.into_vec()))))
    }

    fn object<A: MapAccess<'de>>(self, items: A) -> Result<Field<Self::Value>, A::Error> {
        Reader.visit_map(items).map(|value| Field::Found(Err(value)))
    }
}
