//! Products of matrices: of floating-point numbers by the crate `gemm`, of all others, and products
//! with vectors, by NumPy's loop: adding up a long vector one by one would lose what pairs of sums keep. Those of halves are
//! summed up in single precision, of vectors, too: NumPy does so, one by one.
//!
//! A large product is split into blocks of its output, which may run side by side. The ends of blocks depend on the
//! shape alone, and so do the bits of the result: not on the workers, nor on their number.

use super::halves;
use super::kernel::{StridedLoop, signed};
use super::walk::Walk;
use crate::tuple::Tuple;
use crate::{Array, ArrayError, DType};
use smallvec::SmallVec;

/// A product of stacks of matrices of given layouts.
pub struct Matmul {
    kernel: StridedLoop,
    /// Over the matrices of the stacks.
    stack: Walk,
    /// Rows, the length that is summed over, columns.
    lengths: [isize; 3],
    /// Bytes from row to row and from column to column: of the left one, the right one, the output.
    steps: [isize; 6],
    /// The type of the numbers, if it has products here.
    native: Option<DType>,
    /// The number of blocks along the output's rows and along its columns.
    blocks: [usize; 2],
}

/// Rows, and columns, of a block of the output at most. It is large enough to use the packed operands often.
const BLOCK: usize = 512;

/// Products of numbers of a block at least, if a product no larger than `BLOCK` is split.
const WORTH: usize = 1 << 23;
/// Blocks of such a product at most.
const FEW: usize = 4;

/// Picoseconds for a product of numbers, about: by BLAS, of a matrix and a vector, which take longest; and by NumPy's loops, for
/// integers.
const PRODUCT: usize = 122;
const PRODUCT_OF_LOOPS: usize = 3900;

/// The number of blocks along the output's rows and along its columns.
fn blocks([rows, inner, columns]: [usize; 3]) -> [usize; 2] {
    let few = (rows.saturating_mul(inner).saturating_mul(columns) / WORTH).clamp(1, FEW);
    let of = |length: usize| length.div_ceil(BLOCK).max(1);
    match [of(rows), of(columns)] {
        [1, 1] if rows > columns => [few, 1],
        [1, 1] => [1, few],
        more => more,
    }
}

impl Matmul {
    /// `output = left @ right` for arrays of at least two axes, none of them empty. The axes before those two are
    /// broadcast to the output's.
    pub(crate) fn new(kernel: StridedLoop, output: &Array, left: &Array, right: &Array) -> Result<Self, ArrayError> {
        kernel.check([left.dtype(), right.dtype()].into_iter(), [output.dtype()].into_iter())?;
        output.buffer().check_writable()?;
        let shapes = [left, right, output].map(|array| &array.layout().shape);
        let refuse = || {
            let [left, right, output] = shapes.map(|shape| Tuple(shape));
            ArrayError::Invalid(format!("matmul: cannot multiply {left} by {right} into {output}"))
        };
        if shapes.iter().any(|shape| shape.len() < 2 || shape.contains(&0)) {
            return Err(refuse());
        }
        let core = |which: usize, back: usize| shapes[which][shapes[which].len() - back];
        let fits = core(0, 1) == core(1, 2) && core(2, 2) == core(0, 2) && core(2, 1) == core(1, 1);
        let overlap = [left, right].iter().any(|input| input.buffer().is_same(output.buffer()));
        if !fits || overlap {
            return Err(refuse());
        }
        let stacks = &shapes[2][..shapes[2].len() - 2];
        let mut strides: SmallVec<[_; 3]> = SmallVec::new();
        let mut steps: SmallVec<[isize; 6]> = SmallVec::new();
        for array in [left, right, output] {
            let mut layout = array.layout().clone();
            steps.extend_from_slice(&layout.strides[layout.strides.len() - 2..]);
            layout.shape.truncate(layout.shape.len() - 2);
            layout.strides.truncate(layout.shape.len());
            strides.push(layout.broadcast(stacks)?);
        }
        let stack = Walk::new(stacks, &[&strides[0], &strides[1], &strides[2]]);
        let lengths = [signed(core(0, 2)), signed(core(0, 1)), signed(core(1, 1))];
        let steps = [steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]];
        Ok(Self::of(kernel, stack, lengths, steps, output.dtype()))
    }

    /// The product of two matrices; a vector on the left is one row, one on the right one column. The output lacks the
    /// axes of vectors, and is contiguous. None for other shapes.
    pub(crate) fn of_few_axes(kernel: StridedLoop, output: &Array, left: &Array, right: &Array) -> Option<Self> {
        let item = signed(output.dtype().size());
        let (a, b) = (left.layout(), right.layout());
        let (rows, inner, left_steps) = match (a.shape.as_slice(), a.strides.as_slice()) {
            (&[rows, inner], &[by_row, by_column]) => (rows, inner, [by_row, by_column]),
            (&[inner], &[step]) => (1, inner, [item, step]),
            _ => return None,
        };
        let (other, columns, right_steps) = match (b.shape.as_slice(), b.strides.as_slice()) {
            (&[other, columns], &[by_row, by_column]) => (other, columns, [by_row, by_column]),
            (&[other], &[step]) => (other, 1, [step, item]),
            _ => return None,
        };
        let alone = [left, right].iter().all(|input| !input.buffer().is_same(output.buffer()));
        let typed = kernel.check([left.dtype(), right.dtype()].into_iter(), [output.dtype()].into_iter()).is_ok();
        let fits = output.is_flat() && output.layout().size() == rows * columns && other == inner;
        if !alone || !typed || !fits || [rows, inner, columns].contains(&0) {
            return None;
        }
        let steps = [left_steps[0], left_steps[1], right_steps[0], right_steps[1], signed(columns) * item, item];
        let lengths = [rows, inner, columns].map(signed);
        Some(Self::of(kernel, Walk::flat(1, &[0, 0, 0]), lengths, steps, output.dtype()))
    }

    fn of(kernel: StridedLoop, stack: Walk, lengths: [isize; 3], steps: [isize; 6], dtype: DType) -> Self {
        let unit = signed(dtype.size()) - 1; // sizes are powers of two
        let native = match dtype {
            DType::Float16 | DType::Float32 | DType::Float64 | DType::Complex64 | DType::Complex128 => Some(dtype),
            _ => None,
        };
        let worth = dtype == DType::Float16 || (lengths[0] > 1 && lengths[2] > 1);
        let native = native.filter(|_| worth && steps.iter().all(|step| step & unit == 0));
        let blocks = if native.is_some() { blocks(lengths.map(isize::unsigned_abs)) } else { [1, 1] };
        Self { kernel, stack, lengths, steps, native, blocks }
    }

    /// The number of blocks, which may run side by side.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks[0] * self.blocks[1]
    }

    /// The number of products of numbers that it adds up.
    #[must_use]
    pub fn operations(&self) -> usize {
        let core: usize = self.lengths.iter().map(|length| length.unsigned_abs()).product();
        core.saturating_mul(self.stack.size())
    }

    /// Its duration in nanoseconds, about.
    pub(crate) fn nanoseconds(&self) -> usize {
        let picoseconds = if self.kernel.dtypes()[0].is_floating() { PRODUCT } else { PRODUCT_OF_LOOPS };
        self.operations().saturating_mul(picoseconds) / 1000
    }

    /// Runs it from the first elements of the two inputs to the output's.
    ///
    /// # Safety
    ///
    /// There are three pointers, as for [`Step::run`](super::Step::run).
    pub unsafe fn run(&self, arrays: &[*mut u8]) {
        for block in 0..self.blocks() {
            // SAFETY: the caller's promise.
            unsafe { self.run_block(arrays, block) };
        }
    }

    /// Runs one block of it.
    ///
    /// # Safety
    ///
    /// As for [`run`](Self::run); no two threads run the same block.
    pub unsafe fn run_block(&self, arrays: &[*mut u8], block: usize) {
        let ([_, inner, _], own) = (self.lengths, self.steps);
        let (rows, first_row) = part(self.lengths[0], self.blocks[0], block / self.blocks[1]);
        let (columns, first_column) = part(self.lengths[2], self.blocks[1], block % self.blocks[1]);
        let &[left, right, output] = arrays else { return };
        let arrays = [
            left.wrapping_offset(first_row * own[0]),
            right.wrapping_offset(first_column * own[3]),
            output.wrapping_offset(first_row * own[4] + first_column * own[5]),
        ];
        self.stack.each_row(&arrays, |pointers, length, steps| {
            if let Some(dtype) = self.native
                && pointers.iter().all(|pointer| pointer.addr().is_multiple_of(dtype.size()))
            {
                for index in 0..signed(length) {
                    let at = |which: usize| pointers[which].wrapping_offset(index * steps[which]);
                    // SAFETY: the caller's promise; steps are whole numbers of elements.
                    unsafe { multiply(dtype, [rows, inner, columns], [at(0), at(1), at(2)], own) };
                }
                return;
            }
            let dimensions = [signed(length), rows, inner, columns];
            let steps = [steps[0], steps[1], steps[2], own[0], own[1], own[2], own[3], own[4], own[5]];
            // SAFETY: the caller's promise; the loop takes these dimensions and steps, and they stay inside.
            unsafe { self.kernel.call(pointers, &dimensions, &steps) };
        });
    }
}

/// The length of one of `parts` equal parts, and its start.
fn part(length: isize, parts: usize, which: usize) -> (isize, isize) {
    let size = length.unsigned_abs().div_ceil(parts).next_multiple_of(ROUND);
    let start = (which * size).min(length.unsigned_abs());
    (signed(size.min(length.unsigned_abs() - start)), signed(start))
}

/// Parts are whole numbers of the rows that a kernel takes together.
const ROUND: usize = 16;

/// Writes a product of `[rows, inner, columns]` to the last pointer.
///
/// # Safety
///
/// The pointers are aligned, and the steps stay inside the matrices; the output has no other user.
unsafe fn multiply(
    dtype: DType,
    [rows, inner, columns]: [isize; 3],
    [left, right, output]: [*mut u8; 3],
    steps: [isize; 6],
) {
    macro_rules! by_gemm {
        ($type:ty, $zero:expr, $one:expr) => {{
            let step = |at: usize| steps[at] / size_of::<$type>().cast_signed();
            // SAFETY: the caller's promise.
            unsafe {
                gemm::gemm::<$type>(
                    rows.unsigned_abs(),
                    columns.unsigned_abs(),
                    inner.unsigned_abs(),
                    output.cast(),
                    step(5),
                    step(4),
                    false,
                    left.cast_const().cast(),
                    step(1),
                    step(0),
                    right.cast_const().cast(),
                    step(3),
                    step(2),
                    $zero,
                    $one,
                    false,
                    false,
                    false,
                    gemm::Parallelism::None,
                );
            }
        }};
    }
    match dtype {
        // SAFETY: the caller's promise.
        DType::Float16 => unsafe { halves::multiply([rows, inner, columns], [left, right, output], steps) },
        DType::Float32 => by_gemm!(f32, 0.0, 1.0),
        DType::Float64 => by_gemm!(f64, 0.0, 1.0),
        DType::Complex64 => by_gemm!(gemm::c32, gemm::c32::new(0.0, 0.0), gemm::c32::new(1.0, 0.0)),
        DType::Complex128 => by_gemm!(gemm::c64, gemm::c64::new(0.0, 0.0), gemm::c64::new(1.0, 0.0)),
        _ => {}
    }
}
