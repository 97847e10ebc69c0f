//! Queues of ops that go one by one, by name.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue whose ops go one by one, in the order of their pushes, on a worker of their own: that of a device on whose
/// streams they put work, that of a communicator whose ranks must agree on an order.
///
/// It goes by its name, which means the same queue in the whole process; each engine has its own worker for it.
/// An engine has workers for some tens of them; if there are more, some share one, and keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InOrder(u16);

/// The names, at the places of their numbers. They stay: queues are few, and payloads carry numbers.
static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());

/// The list of names. A fork holds it, so that no other thread does.
pub(crate) fn names() -> MutexGuard<'static, Vec<&'static str>> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InOrder {
    /// The queue of this name.
    ///
    /// ```
    /// use weft_engine::InOrder;
    ///
    /// let first = InOrder::named("cuda:0");
    /// assert_eq!(first, InOrder::named("cuda:0"));
    /// assert_ne!(first, InOrder::named("cuda:1"));
    /// assert_eq!(first.name(), "cuda:0");
    /// ```
    ///
    /// # Panics
    ///
    /// If there are 65,536 names.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut names = names();
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(Box::leak(name.into()));
            names.len() - 1
        });
        Self(u16::try_from(at).expect("queues are few"))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        names()[usize::from(self.0)]
    }

    /// Its number in this process, from 0.
    #[inline]
    pub(crate) fn number(self) -> u16 {
        self.0
    }
}

impl std::fmt::Debug for InOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InOrder").field(&self.name()).finish()
    }
}
