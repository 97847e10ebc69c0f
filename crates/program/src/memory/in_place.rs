//! The inputs over which an instruction may write.

use crate::recorded::{EntryAccess, Instruction};
use weft_array::Step;

/// Whether the instruction writes to one entry where it looks at the other, element by element, or before.
pub(crate) fn is_in_place(instruction: &Instruction, entry: usize, into: usize) -> bool {
    let of_both = |place: &EntryAccess| place.entry == entry || place.entry == into;
    let mut places = instruction.places.iter().filter(|place| of_both(place));
    let Some(first) = places.clone().next() else { return true };
    let alike = |place: &EntryAccess| place.range == first.range && place.dtype.size() == first.dtype.size();
    if !places.all(|place| place.is_dense() && alike(place)) {
        return false;
    }
    match &instruction.step {
        Step::Strided(strided) => {
            let places = instruction.places.iter().enumerate();
            strided.walks_alike(places.filter(|(_, place)| of_both(place)).map(|(at, _)| at))
        }
        Step::Fused(fused) => {
            let number = |entry: usize| instruction.places.iter().position(|place| place.entry == entry);
            number(entry).zip(number(into)).is_none_or(|(entry, into)| fused.reads_before(entry, into))
        }
        // A device's kernel reads an element before it writes to it.
        Step::Opaque(opaque) => opaque.elements().is_some_and(|count| count * first.dtype.size() == first.range.len()),
        Step::Reduce(_) | Step::Matmul(_) | Step::Blocked(_) => false,
    }
}
