//! The outcome of an op that did not do its work.

use crate::sync::{AtomicBool, Ordering};
use std::error::Error;
use std::fmt;
use std::panic::Location;

/// Where an op was pushed, as far as that is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    /// A word of its payload or step's own; 0 if there is none.
    pub said: u64,
    /// The line of a push by [`Engine::op`](crate::Engine::op) or [`Engine::task`](crate::Engine::task).
    pub line: Option<&'static Location<'static>>,
}

impl Place {
    pub(crate) fn said(said: u64) -> Self {
        Self { said, line: None }
    }
}

/// Why an op failed.
///
/// Every error that may go to another thread becomes one by `?`; text does by [`Cause::new`]. Like other types that take all errors in, it
/// is no [`Error`] itself: `impl From<E: Error>` would meet `impl From<T> for T`.
///
/// ```
/// use weft_engine::{Engine, Settings};
///
/// let engine = Engine::new(Settings::default())?;
/// let settings = engine.new_variable(Some("settings"));
/// let read = |text: &'static str| {
///     engine.op(move |_| {
///         let _limit: u32 = text.parse()?;
///         Ok(())
///     })
/// };
/// read("12").overwrite(&settings).push()?;
/// engine.wait_for_var(&settings)?;
/// read("twelve").overwrite(&settings).name("read").push()?;
/// let failed = engine.wait_for_var(&settings).unwrap_err().to_string();
/// assert!(failed.starts_with("op 'read' (") && failed.ends_with("): invalid digit found in string"));
/// # Ok::<(), weft_engine::EngineError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Cause {
    /// The payload answered with an error.
    Error(Box<dyn Error + Send + Sync>),
    /// The payload panicked.
    Panic(String),
    /// A native function answered with this code instead of 0.
    Native(i32),
    /// The engine was closed with `cancel` before the op started.
    Cancelled,
    /// The op's completion token was dropped before anybody used it.
    TokenDropped,
    /// So many ops failed when the engine kept as many untold failures as it does.
    Further(u64),
    /// The process was forked before the op finished; the child does not have its result.
    Forked,
}

impl Cause {
    /// An error of the payload's: any error, boxed or not, or text.
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Error(error.into())
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Cause {
    fn from(error: E) -> Self {
        Self::new(error)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panic(message) => write!(f, "the op panicked: {message}"),
            Self::Native(code) => write!(f, "the native function answered {code} instead of 0"),
            Self::Cancelled => f.write_str("the op was cancelled before it started"),
            Self::TokenDropped => f.write_str("the op's completion token was dropped unused"),
            Self::Further(count) => write!(
                f,
                "{count} more ops failed, of which the engine keeps the number alone; call wait_for_all, or wait for what ops write"
            ),
            Self::Forked => f.write_str("the op was unfinished when the process forked"),
        }
    }
}

/// A failed op, with the cause. Shared by every version that it, or ops after it, spoiled.
#[derive(Debug)]
pub struct Failure {
    op: String,
    cause: Cause,
    place: Place,
    reported: AtomicBool,
}

impl Failure {
    pub(crate) fn new(op: String, cause: Cause) -> Self {
        Self { op, cause, place: Place::default(), reported: AtomicBool::new(false) }
    }

    /// The same of an op that was pushed there.
    pub(crate) fn at(self, place: Place) -> Self {
        Self { place, ..self }
    }

    /// Where it was pushed, as its payload or step says in its own way ([`Payload::PLACE`](crate::Payload::PLACE)); 0 if that is
    /// not known.
    #[must_use]
    pub fn place(&self) -> u64 {
        self.place.said
    }

    /// The line that pushed it, if [`Engine::op`](crate::Engine::op) or [`Engine::task`](crate::Engine::task) did.
    #[must_use]
    pub fn pushed_at(&self) -> Option<&'static Location<'static>> {
        self.place.line
    }

    /// The label of the op that failed first: its name, or its number.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.op
    }

    /// Why it failed.
    ///
    /// Where [`std::error::Error`] is in scope, write `Failure::cause(&failure)` of an `Arc<Failure>`: the `Arc` has a
    /// method of that name by itself.
    #[must_use]
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// How many ops it stands for: one, unless it is [`Cause::Further`].
    #[must_use]
    pub fn ops(&self) -> u64 {
        if let Cause::Further(count) = self.cause { count } else { 1 }
    }

    /// Notes that it was told. Answers whether that was the first time.
    pub fn report(&self) -> bool {
        // ORDERING: a flag of its own; nothing is published by it.
        !self.reported.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_reported(&self) -> bool {
        // ORDERING: as in report().
        self.reported.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pushed_at() {
            Some(line) => write!(f, "{} ({}:{}): {}", self.op, line.file(), line.line(), self.cause),
            None => write!(f, "{}: {}", self.op, self.cause),
        }
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Cause::Error(error) = &self.cause { Some(&**error) } else { None }
    }
}
