//! How a kernel walks over operands that are not in rows.

use smallvec::SmallVec;

/// Axes and strides, merged: as the struct in a kernel's source.
pub(crate) struct KernelWalk {
    size: usize,
    shape: SmallVec<[usize; KernelWalk::AXES]>,
    /// For each operand, outputs first, the bytes from one element to the next along each axis.
    strides: SmallVec<[Strides; 4]>,
}

type Strides = SmallVec<[isize; KernelWalk::AXES]>;

impl KernelWalk {
    /// Axes at most, once those that can be are merged.
    pub(crate) const AXES: usize = 8;

    /// The walk over operands of one shape. Answers the number of axes if there are too many.
    pub(crate) fn new(shape: &[usize], strides: SmallVec<[Strides; 4]>) -> Result<Self, usize> {
        let mut walk = Self { size: shape.iter().product(), shape: shape.iter().copied().collect(), strides };
        walk.merge();
        if walk.shape.len() > Self::AXES { Err(walk.shape.len()) } else { Ok(walk) }
    }

    /// Drops axes of length 1, and merges two where every operand steps over them as over one.
    fn merge(&mut self) {
        let mut axis = self.shape.len();
        while axis > 0 {
            axis -= 1;
            let inner = axis + 1;
            if self.shape[axis] == 1 {
                self.remove(axis);
            } else if inner < self.shape.len() {
                let length = isize::try_from(self.shape[inner]).unwrap_or(isize::MAX);
                if self.strides.iter().all(|strides| strides[axis] == strides[inner].wrapping_mul(length)) {
                    self.shape[inner] *= self.shape[axis];
                    self.remove(axis);
                }
            }
        }
    }

    fn remove(&mut self, axis: usize) {
        self.shape.remove(axis);
        for strides in &mut self.strides {
            strides.remove(axis);
        }
    }

    /// As the kernel's parameter: size, number of axes, lengths, then the strides of each operand.
    pub(crate) fn bytes(&self) -> SmallVec<[u8; 512]> {
        let mut bytes = SmallVec::new();
        let mut put = |word: u64| bytes.extend_from_slice(&word.to_ne_bytes());
        put(self.size as u64);
        put(self.shape.len() as u64);
        (0..Self::AXES).for_each(|axis| put(self.shape.get(axis).map_or(1, |length| *length as u64)));
        for strides in &self.strides {
            (0..Self::AXES).for_each(|axis| put(strides.get(axis).map_or(0, |stride| stride.cast_unsigned() as u64)));
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    /// Its words, without those of axes that it does not have.
    fn words(walk: &KernelWalk) -> (u64, u64, Vec<u64>, Vec<Vec<i64>>) {
        let words: Vec<u64> =
            walk.bytes().chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("eight"))).collect();
        let axes = usize::try_from(words[1]).expect("few");
        let strides = words[2 + KernelWalk::AXES..].chunks_exact(KernelWalk::AXES);
        let strides = strides.map(|each| each[..axes].iter().map(|word| word.cast_signed()).collect()).collect();
        (words[0], words[1], words[2..2 + axes].to_vec(), strides)
    }

    #[test]
    fn axes_merge_where_all_operands_step_over_them_as_over_one() {
        let (rows, turned): (Strides, Strides) = (smallvec![96, 32, 8], smallvec![-32, 8, 64]);
        let walk = KernelWalk::new(&[2, 3, 4], smallvec![rows.clone(), rows.clone()]).expect("one axis");
        assert_eq!(words(&walk), (24, 1, vec![24], vec![vec![8], vec![8]]));
        let walk = KernelWalk::new(&[2, 3, 4], smallvec![rows, turned]).expect("three axes");
        assert_eq!(words(&walk), (24, 3, vec![2, 3, 4], vec![vec![96, 32, 8], vec![-32, 8, 64]]));
    }

    #[test]
    fn axes_of_one_element_are_none() {
        let walk = KernelWalk::new(&[1, 5, 1], smallvec![smallvec![7, 16, 3], smallvec![0, 0, 0]]).expect("one axis");
        assert_eq!(words(&walk), (5, 1, vec![5], vec![vec![16], vec![0]]));
    }

    #[test]
    fn too_many_axes_are_refused() {
        let shape = [2; 9];
        let crossed: Strides = (0..9).map(|axis| 8 << axis).collect();
        let rows: Strides = (0..9).map(|axis| 8 << (8 - axis)).collect();
        assert_eq!(KernelWalk::new(&shape, smallvec![rows.clone(), crossed]).err(), Some(9));
        assert!(KernelWalk::new(&shape, smallvec![rows]).is_ok());
    }
}
