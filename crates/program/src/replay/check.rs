//! Whether arguments are like those that were recorded, and where they lie.

use crate::ProgramError;
use crate::recorded::{Recorded, Source};
use smallvec::SmallVec;
use std::sync::Arc;
use weft_array::{Array, ArrayError, Buffer, Home, Tuple};
use weft_engine::EngineError;

/// Bytes from where an entry was recorded to where it lies now.
pub(super) type Moved = SmallVec<[isize; 16]>;

fn address(array: &Array) -> usize {
    Arc::as_ptr(array.buffer()).addr()
}

/// The part of it that is the same for all calls.
pub(super) struct Signature {
    /// Addresses of the buffers of states and constants, sorted.
    states: Vec<usize>,
}

impl Signature {
    pub(super) fn new(recorded: &Recorded) -> Self {
        let outside = |source: &Source| match source {
            Source::State(array) | Source::Constant { array, .. } => Some(address(array)),
            Source::Argument(_) | Source::Fresh => None,
        };
        let mut states: Vec<usize> = recorded.entries.iter().filter_map(|entry| outside(&entry.source)).collect();
        states.sort_unstable();
        Self { states }
    }

    /// How far each entry has moved.
    #[inline]
    pub(super) fn check(&self, recorded: &Recorded, arguments: &[&Array]) -> Result<Moved, ProgramError> {
        if arguments.len() != recorded.arguments.len() {
            let (wanted, found) = (recorded.arguments.len(), arguments.len());
            return Err(ProgramError::Arguments(format!("the program takes {wanted} arrays, and {found} were given")));
        }
        let mut moved = Moved::from_elem(0, recorded.entries.len());
        let mut buffers: SmallVec<[usize; 16]> = SmallVec::new();
        for (number, (array, known)) in arguments.iter().zip(&recorded.arguments).enumerate() {
            let (now, then) = (array.layout(), known.array.layout());
            if array.dtype() != known.array.dtype() || now.shape != then.shape || now.strides != then.strides {
                return Err(refuse(number, "has another shape, dtype or strides than the one that was recorded"));
            }
            let by = now.offset.cast_signed() - then.offset.cast_signed();
            let entry = recorded.argument_entries[number];
            let of = &recorded.entries[entry];
            let Source::Argument(first) = of.source else { continue };
            if first == number {
                self.check_entry(recorded, number, entry, array, by)?;
                moved[entry] = by;
                buffers.push(address(array));
            } else if address(array) != address(arguments[first]) || moved[entry] != by {
                return Err(refuse(
                    number,
                    "shared its memory with another argument when it was recorded, and does not now",
                ));
            }
        }
        if buffers.len() > 1 {
            buffers.sort_unstable();
            if buffers.windows(2).any(|pair| pair[0] == pair[1]) {
                let message =
                    "two arguments share memory, and did not when they were recorded: record the program anew";
                return Err(ProgramError::Arguments(message.to_owned()));
            }
        }
        Ok(moved)
    }

    #[inline]
    fn check_entry(
        &self,
        recorded: &Recorded,
        number: usize,
        entry: usize,
        array: &Array,
        by: isize,
    ) -> Result<(), ProgramError> {
        let (of, buffer): (_, &Arc<Buffer>) = (&recorded.entries[entry], array.buffer());
        if self.states.binary_search(&address(array)).is_ok() {
            return Err(refuse(
                number,
                "is a view of an array that the program refers to itself, and was none when it was recorded",
            ));
        }
        if !recorded.engine.is_same(buffer.engine()) {
            let variable = format!("an array of shape {}", Tuple(&array.layout().shape));
            let (owner, engine) = (buffer.engine().name().to_owned(), recorded.engine.name().to_owned());
            return Err(ArrayError::from(EngineError::WrongEngine { variable, owner, engine }).into());
        }
        if of.written && buffer.is_readonly() {
            return Err(ArrayError::ReadOnly.into());
        }
        if buffer.home().map(Home::number) != of.device() {
            return Err(refuse(number, "is on another device than the one that was recorded"));
        }
        if of.home.is_none() {
            buffer.storage()?;
        }
        let inside =
            of.reach.start.cast_signed() + by >= 0 && of.reach.end.cast_signed() + by <= buffer.bytes().cast_signed();
        if inside { Ok(()) } else { Err(refuse(number, "is a part of less memory than the program reaches")) }
    }
}

#[cold]
fn refuse(number: usize, why: &str) -> ProgramError {
    ProgramError::Arguments(format!("argument {number} {why}: record the program anew"))
}
