//! Integers that choose: classes, rows of a table.

use crate::buffer::slice;
use weft_array::DType;
use weft_engine::Cause;

/// A number that names none of what there is to choose from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfRange(String);

impl std::fmt::Display for OutOfRange {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for OutOfRange {}

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
    /// There are so many of that type, which nobody writes to for as long as they are used.
    pub(crate) unsafe fn of(start: *mut u8, dtype: DType, count: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            if dtype == DType::Int32 { Self::Short(slice(start, 0, count)) } else { Self::Long(slice(start, 0, count)) }
        }
    }

    /// One of them, which was checked.
    pub(crate) fn at(&self, at: usize) -> usize {
        let found = match self {
            Self::Short(all) => usize::try_from(all[at]),
            Self::Long(all) => usize::try_from(all[at]),
        };
        found.unwrap_or(0)
    }

    /// Refuses the first that is none of those below `count`.
    pub(crate) fn check(&self, count: usize, what: &str, plural: &str) -> Result<(), Cause> {
        let is_wrong = |number: i64| usize::try_from(number).map_or(true, |number| number >= count);
        let wrong = match self {
            Self::Short(all) => all.iter().map(|&number| i64::from(number)).find(|&number| is_wrong(number)),
            Self::Long(all) => all.iter().copied().find(|&number| is_wrong(number)),
        };
        let Some(wrong) = wrong else { return Ok(()) };
        let why = format!("there is no {what} {wrong} among {count}: {plural} count from 0");
        Err(Cause::Error(Box::new(OutOfRange(why))))
    }
}

/// Whether kernels take integers of this type.
pub(crate) fn is_taken(dtype: DType) -> bool {
    matches!(dtype, DType::Int32 | DType::Int64)
}
