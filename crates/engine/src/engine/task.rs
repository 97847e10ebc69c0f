//! Variables that own a value, and ops that are given it: no lock, no `Arc` around each value, no access that was not said.
//!
//! # Protocol
//!
//! A value lies in a cell that all handles on its variable share. Outside of ops there is no reference to it:
//! [`Engine::task`] alone makes one, inside an op, for as long as the function runs.
//!
//! | reference | its op's access | others with one at that time |
//! |---|---|---|
//! | `&T` | read, or more | ops that read |
//! | `&mut T` | mutate | none: the engine grants a mutation alone |
//!
//! An access of the builder can only be strengthened (a variable that is named twice merges), a task that names one
//! twice, not to read both times, is refused at the push, and a cell dies with the last of its handles; each pending op
//! has one.

use super::{Engine, OpBuilder, Variable};
use crate::op::{OpContext, Payload, Placed};
use crate::var::AccessKind;
use crate::{Cause, EngineError};
use std::cell::UnsafeCell;
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};

/// A variable that owns a value of type `T`, which ops alone reach: see [`Engine::task`].
///
/// Clones are handles on the same value. It goes with the last of them.
pub struct Var<T> {
    variable: Variable,
    value: Arc<Cell<T>>,
}

struct Cell<T>(UnsafeCell<T>);

// SAFETY: references to the value are made by the protocol above: shared ones at once on several threads (T: Sync), or a single one
// on some thread (T: Send).
unsafe impl<T: Send + Sync> Sync for Cell<T> {}

impl<T> Var<T> {
    /// The variable, for accesses of other ops, waits and recovery. It gives no way to the value.
    #[must_use]
    pub fn variable(&self) -> &Variable {
        &self.variable
    }

    /// Says that a task reads the value.
    #[must_use]
    pub fn read(&self) -> Read<'_, T> {
        Read(self)
    }

    /// Says that a task changes the value.
    #[must_use]
    pub fn mutate(&self) -> Mutate<'_, T> {
        Mutate(self)
    }
}

impl<T> Clone for Var<T> {
    fn clone(&self) -> Self {
        Self { variable: self.variable.clone(), value: Arc::clone(&self.value) }
    }
}

impl<T> fmt::Debug for Var<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Var").field(&self.variable.label()).finish()
    }
}

/// A value that a task reads; made by [`Var::read`].
#[derive(Debug)]
pub struct Read<'a, T>(&'a Var<T>);

/// A value that a task changes; made by [`Var::mutate`].
#[derive(Debug)]
pub struct Mutate<'a, T>(&'a Var<T>);

mod sealed {
    use super::{AccessKind, Variable};

    /// The arguments of a task, before its push.
    pub trait Values<'v> {
        type Kept: Kept;
        fn each(&self, access: &mut dyn FnMut(&'v Variable, AccessKind));
        fn keep(self) -> Self::Kept;
    }

    /// Handles on cells, for a task to make references of.
    pub trait Kept: Send + 'static {
        type Given<'a>;

        /// # Safety
        ///
        /// The accesses that [`Values::each`] names are granted for as long as the references live, and each variable that is mutated is named once.
        unsafe fn give(&self) -> Self::Given<'_>;
    }
}
use sealed::{Kept, Values};

/// The arguments of [`Engine::task`]: a [`Read`], a [`Mutate`], or a tuple of up to six of them.
pub trait TaskValues<'v>: Values<'v> {}
impl<'v, V: Values<'v>> TaskValues<'v> for V {}

/// References to the values that a task takes: `&T` of a [`Read`], `&mut T` of a [`Mutate`], a tuple of a tuple.
type Given<'a, 'v, V> = <<V as Values<'v>>::Kept as Kept>::Given<'a>;

/// The cell of a value that is read.
pub struct Shared<T>(Arc<Cell<T>>);

/// The cell of a value that is mutated.
pub struct Own<T>(Arc<Cell<T>>);

impl<'v, T: Send + Sync + 'static> Values<'v> for Read<'v, T> {
    type Kept = Shared<T>;

    fn each(&self, access: &mut dyn FnMut(&'v Variable, AccessKind)) {
        access(&self.0.variable, AccessKind::Read);
    }

    fn keep(self) -> Shared<T> {
        Shared(Arc::clone(&self.0.value))
    }
}

impl<'v, T: Send + Sync + 'static> Values<'v> for Mutate<'v, T> {
    type Kept = Own<T>;

    fn each(&self, access: &mut dyn FnMut(&'v Variable, AccessKind)) {
        access(&self.0.variable, AccessKind::Mutate);
    }

    fn keep(self) -> Own<T> {
        Own(Arc::clone(&self.0.value))
    }
}

impl<T: Send + Sync + 'static> Kept for Shared<T> {
    type Given<'a> = &'a T;

    unsafe fn give(&self) -> &T {
        // SAFETY: the access is granted: the value is not mutated meanwhile.
        unsafe { &*self.0.0.get() }
    }
}

impl<T: Send + Sync + 'static> Kept for Own<T> {
    type Given<'a> = &'a mut T;

    #[allow(clippy::mut_from_ref)] // the engine grants it to one op alone
    unsafe fn give(&self) -> &mut T {
        // SAFETY: the access is granted: there is no other reference to the value meanwhile.
        unsafe { &mut *self.0.0.get() }
    }
}

macro_rules! tuples {
    ($($($name:ident)+;)+) => {$(
        #[allow(non_snake_case)] // a value is named as its type
        impl<'v, $($name: Values<'v>),+> Values<'v> for ($($name,)+) {
            type Kept = ($($name::Kept,)+);

            fn each(&self, access: &mut dyn FnMut(&'v Variable, AccessKind)) {
                let ($($name,)+) = self;
                $($name.each(access);)+
            }

            fn keep(self) -> Self::Kept {
                let ($($name,)+) = self;
                ($($name.keep(),)+)
            }
        }

        #[allow(non_snake_case)]
        impl<$($name: Kept),+> Kept for ($($name,)+) {
            type Given<'a> = ($($name::Given<'a>,)+);

            unsafe fn give(&self) -> Self::Given<'_> {
                let ($($name,)+) = self;
                // SAFETY: the caller's promise.
                unsafe { ($($name.give(),)+) }
            }
        }
    )+};
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; }

/// A function and its arguments.
struct Task<K, F>(K, F);

impl<K: Kept, F> Payload for Task<K, F>
where
    F: for<'a> FnOnce(K::Given<'a>) -> Result<(), Cause> + Send + 'static,
{
    fn run(self, _: &mut OpContext<'_>) -> Result<(), Cause> {
        // SAFETY: the op has the accesses for as long as it runs, and Engine::task refuses a variable that is named twice to be mutated.
        self.1(unsafe { self.0.give() })
    }
}

impl Engine {
    /// A variable that owns `value`.
    pub fn new_var<T: Send + Sync + 'static>(&self, name: Option<&str>, value: T) -> Var<T> {
        Var { variable: self.new_variable(name), value: Arc::new(Cell(UnsafeCell::new(value))) }
    }

    /// An op that runs a function on values that variables own: it is given `&T` of each that it reads and `&mut T` of each that it
    /// mutates, in the order in which they are named. A variable is named once; twice to read it.
    ///
    /// ```
    /// use weft_engine::{Engine, Settings};
    ///
    /// let engine = Engine::new(Settings::default())?;
    /// let (words, count) = (engine.new_var(None, Vec::new()), engine.new_var(None, 0));
    /// engine.task(words.mutate(), |words| { words.extend(["warp", "weft"]); Ok(()) }).push()?;
    /// engine.task((words.read(), count.mutate()), |(words, count)| { *count = words.len(); Ok(()) }).push()?;
    /// assert_eq!(engine.value_of(&count)?, 2);
    /// # Ok::<(), weft_engine::EngineError>(())
    /// ```
    #[track_caller]
    pub fn task<'v, V, F>(&'v self, values: V, function: F) -> OpBuilder<'v, impl Payload + use<'v, V, F>>
    where
        V: TaskValues<'v>,
        F: for<'a> FnOnce(Given<'a, 'v, V>) -> Result<(), Cause> + Send + 'static,
    {
        let mut accesses: Vec<(&'v Variable, AccessKind)> = Vec::new();
        values.each(&mut |variable, kind| accesses.push((variable, kind)));
        let mut op = self.op_of(Placed::new(Task(values.keep(), function), Location::caller()));
        for (at, (variable, kind)) in accesses.iter().enumerate() {
            let twice = accesses[..at].iter().find(|(other, _)| other.node_pointer() == variable.node_pointer());
            if twice.is_some_and(|(_, other)| *kind != AccessKind::Read || *other != AccessKind::Read) {
                op = op.refused(EngineError::InvalidArgument(format!(
                    "{} is named twice by one task that mutates it; name it once, by mutate()",
                    variable.label()
                )));
            }
            op = op.access(variable, *kind);
        }
        op
    }

    /// A copy of a variable's value as it is after everything that was pushed before.
    pub fn value_of<T: Clone + Send + Sync + 'static>(&self, var: &Var<T>) -> Result<T, EngineError> {
        self.with_value(var, T::clone)
    }

    /// A function's answer on a variable's value, as it is after everything that was pushed before. It runs as an op.
    pub fn with_value<T, R>(
        &self,
        var: &Var<T>,
        function: impl FnOnce(&T) -> R + Send + 'static,
    ) -> Result<R, EngineError>
    where
        T: Send + Sync + 'static,
        R: Send + 'static,
    {
        let found = Arc::new(Mutex::new(None));
        let (answer, done) = (Arc::clone(&found), self.new_variable(None));
        let look = move |value: &T| {
            let seen = function(value);
            *answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen);
            Ok(())
        };
        self.task(var.read(), look).overwrite(&done).push()?;
        self.wait_for_var(&done)?;
        let seen = found.lock().unwrap_or_else(PoisonError::into_inner).take();
        seen.ok_or_else(|| EngineError::InvalidArgument(format!("{} was not read", var.variable.label())))
    }
}
