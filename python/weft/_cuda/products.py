"""Products of small matrices on CUDA devices: launches of kernels that NVRTC compiles, without CuPy.

Each thread computes one element, over the inner axis in its order: so the bits follow from the shapes alone. Operands lie row after
row, or column after column as transposed ones do. Products of large matrices are BLAS's, by CuPy.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from weft._call.views import view
from weft._core import NDArray, RawKernel, _overwrite as overwrite, _read as read
from weft._cuda.kernels import RawModule
from weft._cuda.sources import OPTIONS, header, in_memory

if TYPE_CHECKING:
    from weft._registry.avals import DType

#: Multiplications at most: more are BLAS's, whose threads share their reads.
_SMALL = 1 << 18
#: Threads of a block.
_THREADS = 128
#: Of a matrix.
_AXES = 2

_HALF = np.dtype(np.float16)

_SOURCE = """
typedef {total} T;
extern "C" __global__ void {name}({element}* out, const {element}* a, const {element}* b, unsigned long long rows,
                                  unsigned long long columns, unsigned long long inner, long long a_row, long long a_column,
                                  long long b_row, long long b_column) {{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < rows * columns; at += step) {{
        const {element}* x = a + (long long)(at / columns) * a_row;
        const {element}* y = b + (long long)(at % columns) * b_column;
        T total = 0;
        for (u64 k = 0; k < inner; ++k, x += a_column, y += b_row) total = (T)({sum});
        out[at] = ({element})total;
    }}
}}
"""

_NAME = "matmul_small"


def push(out: NDArray, a: NDArray, b: NDArray) -> bool:
    """Push the kernel of a product of two matrices; vectors are matrices with one row or column.

    Returns
    -------
    bool
        Whether there is one for these, and it was pushed.
    """
    dtype = out.dtype
    if not (a.dtype == b.dtype == dtype and dtype.kind in "iuf" and out._contiguous) or 0 in (a.size, b.size):
        return False
    left, right = _matrix(a), _matrix(b)
    if left is None or right is None:
        return False
    # A vector is a row on the left, and a column on the right.
    (rows, inner), (a_row, a_column) = left.shape, left.steps
    (columns, _), (b_column, b_row) = (
        (right.shape, right.steps) if b.ndim == 1 else (right.shape[::-1], right.steps[::-1])
    )
    if rows * columns * inner > _SMALL:
        return False
    blocks = -(-rows * columns // _THREADS)
    operands = (overwrite(out), read(left.elements), read(right.elements))
    _kernel(dtype)(blocks, _THREADS, (*operands, rows, columns, inner, a_row, a_column, b_row, b_column))
    return True


class _Matrix(NamedTuple):
    """Elements that lie one after the other, as a matrix: its shape, and the elements from one row and column to the next."""

    elements: NDArray
    shape: tuple[int, int]
    steps: tuple[int, int]


def _matrix(x: NDArray) -> _Matrix | None:
    """Return an operand as a matrix, a vector as a row of one, if its elements lie row after row or column after column."""
    if x._contiguous:
        if x.ndim == 1:
            return _Matrix(x, (1, x.shape[0]), (x.shape[0], 1))
        return _Matrix(x, (x.shape[0], x.shape[1]), (x.shape[1], 1)) if x.ndim == _AXES else None
    if x.ndim != _AXES:
        return None
    turned = view(x, x.shape[::-1], x.strides[::-1])
    return _Matrix(turned, (x.shape[0], x.shape[1]), (1, x.shape[0])) if turned._contiguous else None


@cache
def _kernel(dtype: DType) -> RawKernel:
    """Return the kernel of a dtype."""
    return RawKernel(RawModule(source(dtype), options=OPTIONS), _NAME)


def source(dtype: DType) -> str:
    """Return the source of the kernel of a dtype."""
    kind = in_memory(dtype)
    half = "(float)" * (dtype == _HALF)
    floating = dtype.kind == "f"
    return header((dtype,)) + _SOURCE.format(
        name=_NAME,
        element=kind,
        total="float" if half else kind,
        sum=f"total + {half}*x * {half}*y" if floating else "(u64)total + (u64)*x * (u64)*y",
    )
