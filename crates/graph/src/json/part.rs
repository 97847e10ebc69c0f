//! Values of a file, each by the kind that belongs where it lies. One of another kind is no error of the reader: the
//! caller, which knows the names, reports it.

use super::tree::{Json, Reader};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The value in a place for one kind of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Field<T> {
    /// Nothing.
    #[default]
    Missing,
    /// Something of another kind.
    Wrong,
    /// The value.
    Found(T),
}

impl<T> Field<T> {
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Field<U> {
        match self {
            Self::Missing => Field::Missing,
            Self::Wrong => Field::Wrong,
            Self::Found(value) => Field::Found(change(value)),
        }
    }

    pub(super) fn found(self) -> Option<T> {
        if let Self::Found(value) = self { Some(value) } else { None }
    }

    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong)
    }
}

/// How a value of one kind is read. A value that a part does not take is read over.
pub(super) trait Part<'de>: Sized {
    type Value;

    /// A value that is no list and no object.
    fn scalar(self, _value: Json<'de>) -> Field<Self::Value> {
        Field::Wrong
    }

    fn list<A: SeqAccess<'de>>(self, mut items: A) -> Result<Field<Self::Value>, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Field::Wrong)
    }

    fn object<A: MapAccess<'de>>(self, mut items: A) -> Result<Field<Self::Value>, A::Error> {
        while items.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Field::Wrong)
    }
}

/// Reads a part.
pub(super) struct Reading<P>(pub(super) P);

impl<'de, P: Part<'de>> DeserializeSeed<'de> for Reading<P> {
    type Value = Field<P::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: Part<'de>> Visitor<'de> for Reading<P> {
    type Value = Field<P::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Reader.visit_unit().map(|value| self.0.scalar(value))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Reader.visit_bool(value).map(|value| self.0.scalar(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        Reader.visit_u64(value).map(|value| self.0.scalar(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Self::Value, E> {
        Reader.visit_i64(value).map(|value| self.0.scalar(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Self::Value, E> {
        Reader.visit_f64(value).map(|value| self.0.scalar(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Self::Value, E> {
        Reader.visit_borrowed_str(value).map(|value| self.0.scalar(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Self::Value, E> {
        Reader.visit_str(value).map(|value| self.0.scalar(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        self.0.list(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, items: A) -> Result<Self::Value, A::Error> {
        self.0.object(items)
    }
}

/// A text of the file: its own bytes wherever nothing in them is escaped.
pub(super) struct Text;

impl<'de> Part<'de> for Text {
    type Value = Cow<'de, str>;

    fn scalar(self, value: Json<'de>) -> Field<Self::Value> {
        if let Json::Text(text) = value { Field::Found(text) } else { Field::Wrong }
    }
}
