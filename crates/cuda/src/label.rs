//! Names of ops, as messages show them.

use std::fmt;
use std::sync::Arc;

/// An op's name, and a number that says which push of that name it was. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    name: Arc<str>,
    number: u64,
}

impl Label {
    /// A label. The number is the caller's: 0 for none.
    #[must_use]
    pub const fn new(name: Arc<str>, number: u64) -> Self {
        Self { name, number }
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self::new(name.into(), 0)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "op '{}'", self.name)?;
        if self.number > 0 { write!(f, " (#{})", self.number) } else { Ok(()) }
    }
}
