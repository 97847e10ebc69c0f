//! Names of ops, as messages show them.

use std::fmt;
use std::sync::Arc;
use weft_engine::CurrentOp;

/// An op's name, which push of that name it was, and where that was. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    name: Arc<str>,
    number: u64,
    /// A key of the caller's; 0 is none.
    place: u64,
    /// The meaning of the key, once it is stated.
    told: Option<Arc<str>>,
    /// The op that the engine runs for it.
    op: Option<CurrentOp>,
    /// The name says it all: it is no op's.
    bare: bool,
}

impl Label {
    /// A label. The number is the caller's: with 0 it is the engine's, once the op runs.
    #[must_use]
    pub const fn new(name: Arc<str>, number: u64) -> Self {
        Self { name, number, place: 0, told: None, op: None, bare: false }
    }

    /// A label with a text that messages show as it is: an action that is no op, or an op by its other name.
    #[must_use]
    pub fn bare(text: &str) -> Self {
        Self { bare: true, ..Self::from(text) }
    }

    /// The same, pushed at a place that goes by this key; 0 is none.
    #[must_use]
    pub fn at(self, place: u64) -> Self {
        Self { place, ..self }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number; 0 is none.
    #[must_use]
    pub fn number(&self) -> u64 {
        if self.number == 0 { self.op.map_or(0, |op| u64::from(op.number())) } else { self.number }
    }

    /// Key of the place of its push; 0 is none.
    #[must_use]
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// The label of the op that the calling thread runs, unless it has met its op before; pushed here, if that is not
    /// known yet.
    #[must_use]
    #[inline]
    pub(crate) fn of_running(&self, place: u64) -> Self {
        let place = if self.place == 0 { place } else { self.place };
        Self { place, op: self.op.or_else(CurrentOp::get), ..self.clone() }
    }

    /// The op, if a trace has recorded its push.
    #[inline]
    pub(crate) fn traced(&self) -> Option<CurrentOp> {
        self.op.filter(|op| op.is_traced())
    }

    /// The same with its place in words, as `tell` says it of the key.
    #[must_use]
    pub fn located(&self, tell: &dyn Fn(u64) -> Option<String>) -> Self {
        let told = if self.place == 0 { None } else { tell(self.place).map(Into::into) };
        Self { told, ..self.clone() }
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self::new(name.into(), 0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bare {
            f.write_str(&self.name)?;
        } else {
            write!(f, "op '{}'", self.name)?;
            if self.number > 0 || self.op.is_some() {
                write!(f, " (#{})", self.number())?;
            }
        }
        self.told.as_ref().map_or(Ok(()), |place| write!(f, ", pushed at {place}"))
    }
}

/// What messages name.
pub(crate) trait Subject {
    fn label(&self) -> Label;
}

impl Subject for Label {
    fn label(&self) -> Label {
        self.clone()
    }
}

impl Subject for String {
    fn label(&self) -> Label {
        Label::bare(self)
    }
}

impl Subject for str {
    fn label(&self) -> Label {
        Label::bare(self)
    }
}
