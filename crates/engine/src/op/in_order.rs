//! Queues of ops that go one by one, by name.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A queue of ops that go one by one, in the order of their pushes, on a worker of their own: that of a device on whose
/// streams they put work, that of a communicator whose ranks must agree on an order.
///
/// It goes by its name, which means the same queue in the whole process; each engine has its own worker for it.
/// An engine has workers for some tens of them; if there are more, some share one, and keep their order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct InOrder(u16);

/// Bit of a queue that is [lent](InOrder::lent); the others are its number.
const LENT: u16 = 1 << 15;

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
    /// If there are 32,768 names.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let mut names = names();
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(Box::leak(name.into()));
            names.len() - 1
        });
        Self(u16::try_from(at).ok().filter(|at| at & LENT == 0).expect("queues are few"))
    }

    /// The queue of this name, whose worker lends its place: a thread that waits carries the ops out itself while that
    /// worker sleeps, so that neither has to wake the other. For ops that need no thread of their own, and that ask
    /// [`is_called_away`](crate::is_called_away) now and then if they take long.
    ///
    /// # Panics
    ///
    /// As for [`named`](Self::named).
    #[must_use]
    pub fn lent(name: &str) -> Self {
        Self(Self::named(name).0 | LENT)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        names()[usize::from(self.number())]
    }

    /// Its number in this process, from 0.
    #[inline]
    pub(crate) fn number(self) -> u16 {
        self.0 & !LENT
    }

    #[inline]
    pub(crate) fn is_lent(self) -> bool {
        self.0 & LENT != 0
    }
}

impl std::fmt::Debug for InOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InOrder").field(&self.name()).finish()
    }
}
