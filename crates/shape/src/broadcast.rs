//! Broadcasting, NumPy's rule: shapes are aligned at their last axes, and a length of 1 gives way to any other.

/// The length to which two on one axis broadcast, if they do.
#[must_use]
#[inline]
pub fn broadcast_length<L: Copy + Eq + From<u8>>(one: L, other: L) -> Option<L> {
    let single = L::from(1);
    match (one == single, other == single) {
        (true, _) => Some(other),
        (_, true) => Some(one),
        _ => (one == other).then_some(one),
    }
}

/// The length of a shape on axis `at` of a shape of `rank` axes; None where it has no such axis.
#[must_use]
#[inline]
pub fn aligned<L: Copy>(shape: &[L], at: usize, rank: usize) -> Option<L> {
    (at + shape.len()).checked_sub(rank).map(|own| shape[own])
}

/// Makes of a shape the one to which it and another of at most as many axes broadcast. Answers whether they do; if not, the
/// shape is of no use.
#[must_use]
#[inline]
pub fn broadcast_into<L: Copy + Eq + From<u8>>(shape: &mut [L], shorter: &[L]) -> bool {
    let Some(missing) = shape.len().checked_sub(shorter.len()) else { return false };
    shape[missing..].iter_mut().zip(shorter).all(|(length, &other)| {
        let found = broadcast_length(*length, other);
        *length = found.unwrap_or(*length);
        found.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_one_gives_way() {
        assert_eq!(broadcast_length(1_usize, 5), Some(5));
        assert_eq!(broadcast_length(5_usize, 1), Some(5));
        assert_eq!(broadcast_length(1_usize, 0), Some(0));
        assert_eq!(broadcast_length(3_i64, 3), Some(3));
        assert_eq!(broadcast_length(3_i64, 0), None);
    }

    #[test]
    fn shapes_are_aligned_at_their_last_axes() {
        assert_eq!([0, 1, 2].map(|at| aligned(&[7, 8], at, 3)), [None, Some(7), Some(8)]);
        let mut shape = [4_usize, 1, 3];
        assert!(broadcast_into(&mut shape, &[2, 1]));
        assert_eq!(shape, [4, 2, 3]);
        assert!(!broadcast_into(&mut shape, &[5, 3]));
        assert!(!broadcast_into(&mut shape, &[1, 1, 1, 1]), "that one is longer");
    }
}
