//! Integers that choose: classes, rows of a table.

use crate::buffer::slice;
use weft_array::DType;
use weft_engine::Cause;

/// A number outside of the choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange(String);

impl std::fmt::Display for OutOfRange {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for OutOfRange {}

/// The choices of integers: so many, counted from 0.
#[derive(Clone, Copy)]
pub(crate) struct Choice {
    pub(crate) count: usize,
    pub(crate) one: &'static str,
    pub(crate) many: &'static str,
}

impl Choice {
    fn has(&self, number: i64) -> Option<usize> {
        usize::try_from(number).ok().filter(|number| *number < self.count)
    }

    #[cold]
    fn refuse(&self, wrong: i64) -> Cause {
        let Self { count, one, many } = self;
        Cause::Error(Box::new(OutOfRange(format!("there is no {one} {wrong} among {count}: {many} count from 0"))))
    }
}

/// Integers of either type.
#[derive(Clone, Copy)]
pub(crate) enum Integers<'a> {
    Short(&'a [i32]),
    Long(&'a [i64]),
}

impl Integers<'_> {
    /// Those of an operand, int64 unless it is of int32.
    ///
    /// # Safety
    ///
    /// There are so many of that type, not written to for as long as they are used.
    pub(crate) unsafe fn of(start: *mut u8, dtype: DType, count: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            if dtype == DType::Int32 { Self::Short(slice(start, 0, count)) } else { Self::Long(slice(start, 0, count)) }
        }
    }

    /// One of them. It is read once and checked, although [`check`](Self::check) has accepted all: memory from outside may have
    /// changed since.
    #[inline]
    pub(crate) fn at(&self, at: usize, choice: Choice) -> Result<usize, Cause> {
        // SAFETY: references are valid for reads; a volatile read is not repeated after the check.
        let number = unsafe {
            match self {
                Self::Short(all) => i64::from((&raw const all[at]).read_volatile()),
                Self::Long(all) => (&raw const all[at]).read_volatile(),
            }
        };
        choice.has(number).ok_or_else(|| choice.refuse(number))
    }

    /// Refuses the first that names none.
    pub(crate) fn check(&self, choice: Choice) -> Result<(), Cause> {
        let is_wrong = |number: &i64| choice.has(*number).is_none();
        let wrong = match self {
            Self::Short(all) => all.iter().map(|&number| i64::from(number)).find(is_wrong),
            Self::Long(all) => all.iter().copied().find(is_wrong),
        };
        wrong.map_or(Ok(()), |wrong| Err(choice.refuse(wrong)))
    }
}

/// Whether kernels take integers of this type.
pub(crate) fn is_taken(dtype: DType) -> bool {
    matches!(dtype, DType::Int32 | DType::Int64)
}
