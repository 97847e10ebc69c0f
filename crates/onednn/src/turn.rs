//! Images with their channels in rows, or last: matrices, which are transposed. The library's own reorders do that
//! element by element and take as long as a small convolution; it is fast where channels lie in blocks of vectors.

/// Elements of a vector.
const WIDE: usize = 4;
/// Columns of a strip: its lines stay in the fastest cache until they are full, as many elements as a line has.
const STRIP: usize = 16;

/// Transposes matrices: `to[matrix][column][row] = from[matrix][row][column]`.
pub(crate) fn turn(from: &[f32], to: &mut [f32], rows: usize, columns: usize) {
    let size = rows * columns;
    if size == 0 {
        return;
    }
    for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
        for start in (0..columns).step_by(STRIP) {
            strip(from, to, [rows, columns], start, columns.min(start + STRIP));
        }
    }
}

/// Some columns of one matrix, which become lines.
fn strip(from: &[f32], to: &mut [f32], [rows, columns]: [usize; 2], start: usize, end: usize) {
    let (whole, across) = (rows - rows % WIDE, start + (end - start) / WIDE * WIDE);
    for row in (0..whole).step_by(WIDE) {
        for column in (start..across).step_by(WIDE) {
            tile(&from[row * columns + column..], columns, &mut to[column * rows + row..], rows);
        }
    }
    for row in 0..rows {
        let first = if row < whole { across } else { start };
        for column in first..end {
            to[column * rows + row] = from[row * columns + column];
        }
    }
}

/// Four rows of four elements, with so many elements between the first ones.
#[inline]
#[cfg(target_arch = "x86_64")]
fn tile(from: &[f32], apart: usize, to: &mut [f32], wide: usize) {
    use std::arch::x86_64::{_MM_TRANSPOSE4_PS, _mm_loadu_ps, _mm_storeu_ps};
    #[cfg(test)]
    if PLAIN.get() {
        return plain(from, apart, to, wide);
    }
    assert!(from.len() >= 3 * apart + WIDE && to.len() >= 3 * wide + WIDE);
    let (from, to) = (from.as_ptr(), to.as_mut_ptr());
    // SAFETY: every x86-64 has these instructions, and the slices reach to the ends of the last row and line.
    unsafe {
        let mut first = _mm_loadu_ps(from);
        let mut second = _mm_loadu_ps(from.add(apart));
        let mut third = _mm_loadu_ps(from.add(2 * apart));
        let mut fourth = _mm_loadu_ps(from.add(3 * apart));
        _MM_TRANSPOSE4_PS(&mut first, &mut second, &mut third, &mut fourth);
        _mm_storeu_ps(to, first);
        _mm_storeu_ps(to.add(wide), second);
        _mm_storeu_ps(to.add(2 * wide), third);
        _mm_storeu_ps(to.add(3 * wide), fourth);
    }
}

#[cfg(not(target_arch = "x86_64"))]
use plain as tile;

/// The same, element by element.
#[inline]
#[cfg(any(test, not(target_arch = "x86_64")))]
fn plain(from: &[f32], apart: usize, to: &mut [f32], wide: usize) {
    let rows: [[f32; WIDE]; WIDE] = std::array::from_fn(|row| std::array::from_fn(|at| from[row * apart + at]));
    for line in 0..WIDE {
        for (to, row) in to[line * wide..][..WIDE].iter_mut().zip(&rows) {
            *to = row[line];
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Whether this thread does without the processor's vectors.
    static PLAIN: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

#[cfg(test)]
mod tests {
    use super::{PLAIN, turn};

    #[test]
    fn every_element_is_where_it_belongs_without_vectors() {
        PLAIN.set(true);
        every_element_is_where_it_belongs();
    }

    #[test]
    fn every_element_is_where_it_belongs() {
        for rows in [0, 1, 3, 4, 5, 15, 16, 17, 20] {
            for columns in [0, 1, 2, 4, 15, 16, 17, 33, 64] {
                let size = rows * columns;
                let from: Vec<f32> = (0..3 * size).map(|at| f32::from(u16::try_from(at).unwrap_or(0))).collect();
                let (mut to, mut back) = (vec![-1.0; 3 * size], vec![-1.0; 3 * size]);
                turn(&from, &mut to, rows, columns);
                for (at, value) in from.iter().enumerate() {
                    let (matrix, row, column) = (at / size, at % size / columns, at % columns);
                    assert_eq!(to[matrix * size + column * rows + row].to_bits(), value.to_bits());
                }
                turn(&to, &mut back, columns, rows);
                assert_eq!(back, from);
            }
        }
    }
}
