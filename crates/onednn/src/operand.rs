//! One operand of a primitive: as given, as wanted, and the reorder between.

use crate::library::Library;
use crate::memory::Description;
use crate::primitive::Primitive;
use crate::sys::arg;
use crate::turn::turn;
use std::ffi::c_int;
use std::slice::{from_raw_parts, from_raw_parts_mut};

/// Whether an argument is data, or results, rather than weights.
pub(crate) fn is_data(which: c_int) -> bool {
    !matches!(which, arg::WEIGHTS | arg::DIFF_WEIGHTS)
}

/// A primitive that lays an array out anew.
enum Between {
    /// A primitive of the library's.
    Reorder(Primitive),
    /// So many images, matrices of so many rows and columns, are transposed: all of their channels lie side by side.
    Turn { count: usize, rows: usize, columns: usize },
}

/// One operand.
pub(crate) struct Operand {
    pub(crate) which: c_int,
    plain: Description,
    pub(crate) wanted: Description,
    between: Option<Between>,
    /// How many channels lie side by side where it is as wanted, if that is all there is to it.
    lanes: Option<usize>,
}

impl Operand {
    /// An operand of these lengths, which the primitive reads or, if it is an output, writes.
    pub(crate) fn new(
        library: &'static Library,
        which: c_int,
        lengths: &[usize],
        wanted: Description,
        is_output: bool,
    ) -> Result<Self, i32> {
        let plain = Description::plain(library, lengths)?;
        let lanes = if is_data(which) { wanted.lanes(lengths) } else { None };
        let inner = lengths[2..].iter().product();
        let between = if plain.is_same(&wanted) {
            None
        } else if let Some(channels) = lanes.filter(|_| wanted.is_without_blocks()) {
            let (rows, columns) = if is_output { (inner, channels) } else { (channels, inner) };
            Some(Between::Turn { count: lengths[0], rows, columns })
        } else {
            let (from, to) = if is_output { (&wanted, &plain) } else { (&plain, &wanted) };
            Some(Between::Reorder(Primitive::reorder(library, from, to)?))
        };
        Ok(Self { which, plain, wanted, between, lanes })
    }

    /// How many channels lie side by side, if it is as wanted: none for an operand that is no data, and for layouts
    /// that are not just that.
    pub(crate) fn lanes(&self) -> Option<usize> {
        self.lanes
    }

    /// Whether it is laid out anew, if it is given like this.
    pub(crate) fn is_between(&self, as_wanted: bool) -> bool {
        !as_wanted && self.between.is_some()
    }

    /// How many bytes of memory between it takes.
    pub(crate) fn between(&self, as_wanted: bool) -> usize {
        if self.is_between(as_wanted) { self.wanted.bytes() } else { 0 }
    }

    /// How many bytes of scratch memory it takes to lay it out.
    pub(crate) fn scratch(&self) -> usize {
        if let Some(Between::Reorder(reorder)) = &self.between { reorder.scratch() } else { 0 }
    }

    /// Lays an input out as it is wanted.
    ///
    /// # Safety
    ///
    /// The pointers are to an array of its lengths, to as many bytes as it takes as wanted, not shared, and to scratch
    /// memory.
    pub(crate) unsafe fn lay_out(&self, given: *mut u8, to: *mut u8, scratch: *mut u8) -> Result<(), i32> {
        // SAFETY: the caller's promise.
        unsafe { self.go([&self.plain, &self.wanted], given, to, scratch) }
    }

    /// Lays an output, which is as it was wanted, out in rows.
    ///
    /// # Safety
    ///
    /// As for [`lay_out`](Self::lay_out), the other way round.
    pub(crate) unsafe fn give_back(&self, made: *mut u8, to: *mut u8, scratch: *mut u8) -> Result<(), i32> {
        // SAFETY: the caller's promise.
        unsafe { self.go([&self.wanted, &self.plain], made, to, scratch) }
    }

    /// # Safety
    ///
    /// The pointers are to memory of these descriptions, from where it is read and to where it is written, and to scratch memory.
    unsafe fn go(
        &self,
        [before, after]: [&Description; 2],
        from: *mut u8,
        to: *mut u8,
        scratch: *mut u8,
    ) -> Result<(), i32> {
        match &self.between {
            None => Ok(()),
            // SAFETY: the caller's promise.
            Some(Between::Reorder(reorder)) => unsafe {
                reorder.run(&[(arg::SRC, before, from), (arg::DST, after, to)], scratch)
            },
            &Some(Between::Turn { count, rows, columns }) => {
                let count = count * rows * columns;
                // SAFETY: as above; both are dense arrays of so many float32.
                unsafe {
                    turn(from_raw_parts(from.cast(), count), from_raw_parts_mut(to.cast(), count), rows, columns);
                }
                Ok(())
            }
        }
    }
}
