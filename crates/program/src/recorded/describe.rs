//! The description of a program.

use super::{Recorded, Source, depend};
use weft_array::{Access, Layout};

/// One operand, as it is told.
pub struct Operand {
    /// The entry's number.
    pub entry: usize,
    /// Mutations of the entry before.
    pub version: usize,
    /// Where in it the elements lie.
    pub layout: Layout,
    /// NumPy's name of their type.
    pub dtype: &'static str,
    /// The access to them.
    pub access: Access,
}

/// One instruction, as it is told.
pub struct Description {
    /// Its name.
    pub name: String,
    /// Where it was asked for.
    pub place: u64,
    /// Its number in the recording.
    pub number: usize,
    /// Its operands.
    pub operands: Vec<Operand>,
    /// The instructions that it waits for.
    pub dependencies: Vec<usize>,
    /// The bytes that it writes.
    pub bytes: usize,
}

impl Recorded {
    /// All instructions, in order.
    #[must_use]
    pub fn describe(&self) -> Vec<Description> {
        let mut versions = vec![0; self.entries.len()];
        let mut all = Vec::with_capacity(self.instructions.len());
        for (instruction, dependencies) in self.instructions.iter().zip(depend(&self.instructions)) {
            let mut bytes = 0;
            let mut operands = Vec::with_capacity(instruction.places.len());
            for place in &instruction.places {
                let version = versions[place.entry] + usize::from(place.access != Access::Read);
                bytes += if place.access == Access::Read { 0 } else { place.layout.size() * place.dtype.size() };
                let (layout, dtype) = (place.layout.clone(), place.dtype.name());
                operands.push(Operand { entry: place.entry, version, layout, dtype, access: place.access });
            }
            for operand in operands.iter().filter(|operand| operand.access != Access::Read) {
                versions[operand.entry] = operand.version;
            }
            let (name, place, number) = (instruction.name.clone(), instruction.place, instruction.number);
            all.push(Description { name, place, number, operands, dependencies, bytes });
        }
        all
    }

    /// The kind of an entry: `argument`, `state`, `constant`, `result` or `temporary`; and for the first two their
    /// number.
    #[must_use]
    pub fn kind_of(&self, entry: usize) -> (&'static str, Option<usize>) {
        let entry_of = &self.entries[entry];
        match &entry_of.source {
            Source::Argument(number) => ("argument", Some(*number)),
            Source::State(_) => {
                let before = self.entries[..entry].iter().filter(|entry| matches!(entry.source, Source::State(_)));
                ("state", Some(before.count()))
            }
            Source::Constant { .. } => ("constant", None),
            Source::Fresh if entry_of.is_result => ("result", None),
            Source::Fresh => ("temporary", None),
        }
    }
}
