//! Where blocks end: by sizes alone.

use std::ops::Range;

/// Blocks at most: more than workers usually are, so that the last ones are not long waited for.
const BLOCKS: usize = 16;
/// Operations on numbers that a block is worth.
const OPERATIONS: usize = 1 << 18;

/// Into how many blocks `units` fall, which together take so many operations.
pub(crate) fn count(units: usize, operations: usize) -> usize {
    (operations / OPERATIONS).clamp(1, BLOCKS).min(units.max(1))
}

/// The units of one of `count` blocks, which differ by one in length at most.
pub(crate) fn part(units: usize, count: usize, number: usize) -> Range<usize> {
    let (each, more) = (units / count, units % count);
    let start = number * each + number.min(more);
    start..start + each + usize::from(number < more)
}

#[cfg(test)]
mod tests {
    use super::{count, part};

    #[test]
    fn parts_follow_each_other_and_are_of_one_size() {
        for units in [0, 1, 7, 64, 1000] {
            for operations in [0, 1 << 18, 1 << 21, 1 << 40] {
                let blocks = count(units, operations);
                let parts: Vec<_> = (0..blocks).map(|number| part(units, blocks, number)).collect();
                assert_eq!(parts[0].start, 0);
                assert_eq!(parts[blocks - 1].end, units);
                assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
                let longest = parts.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
                assert!(parts.iter().all(|part| part.len() + 1 >= longest));
            }
        }
    }
}
