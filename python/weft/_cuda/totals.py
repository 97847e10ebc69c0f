"""Reductions of elements in rows on CUDA devices: launches of kernels that NVRTC compiles, without CuPy.

An array in rows is seen as ``(outer, count, inner)``, and the axis in the middle is reduced. Each thread reduces
elements of one row that lie `parts` apart, so that neighbours read neighbours; the results of threads are reduced
again, until one is left. How many threads there are follows from the shape alone, and so do the bits of the result.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from weft._core import RawKernel, _overwrite as overwrite, _read as read, beside
from weft._cuda.kernels import RawModule
from weft._cuda.sources import OPTIONS, header, in_memory
from weft._registry.shapes import axis_tuple

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft._cuda.launch import Reduction
    from weft._registry.avals import DType
    from weft._registry.shapes import Shape

#: Threads of a block, and blocks at most: threads then go on to further results.
_THREADS, _BLOCKS = 256, 1 << 16
#: Elements that a thread reduces, where one row has more than `_SHORT`; with `_MANY` rows up to `_LONG`.
_EACH, _SHORT, _MANY, _LONG = 64, 256, 1 << 16, 1 << 12

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)

_SOURCE = """
typedef {total} T;
__device__ T combined(T a, T b) {{ return {body}; }}
extern "C" __global__ void {name}(const {input}* x, {output}* out, unsigned long long size, unsigned long long count,
                                  unsigned long long inner, unsigned long long parts, {divisor} divisor) {{
    u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 at = (u64)blockIdx.x * blockDim.x + threadIdx.x; at < size; at += step) {{
        u64 row = at / inner / parts, part = at / inner % parts;
        const {input}* from = x + row * count * inner + at % inner;
        T total = {read};
        for (part += parts; part < count; part += parts) total = combined(total, {read});
        out[at] = ({output}){written};
    }}
}}
"""


def push(reduction: Reduction, out: NDArray, x: NDArray, axis: Shape | None) -> bool:
    """Push the kernels of a reduction.

    Parameters
    ----------
    reduction : Reduction
        The op's statement.
    out, x : NDArray
        The result and the operand, on a CUDA device.
    axis : tuple of int, optional
        The axes, which lie beside each other; by default all.

    Returns
    -------
    bool
        Whether there are such kernels, and they were pushed.
    """
    total = _total(reduction, x.dtype, out.dtype)
    axes = sorted(axis_tuple(axis, x.ndim))
    first, end = (axes[0], axes[-1] + 1) if axes else (x.ndim, x.ndim)
    beside_each_other = axes == list(range(first, end))
    rows = x._contiguous and out._contiguous and x.size > 0
    if total is None or not beside_each_other or not rows:
        return False
    outer, inner = math.prod(x.shape[:first]), math.prod(x.shape[end:])
    count = all_ = math.prod(x.shape[first:end])
    source = x
    while True:
        parts = _parts(outer * inner, count)
        last = parts == 1
        target = out if last else beside(out, (outer * parts * inner,), total)
        divided = last and reduction.divided
        kernel = _kernel(reduction, source.dtype, total, target.dtype, divided)
        size = outer * parts * inner
        blocks = min(-(-size // _THREADS), _BLOCKS)
        divisor = (float(all_) if total.kind == "f" else all_) if divided else 1
        kernel(blocks, _THREADS, (read(source), overwrite(target), size, count, inner, parts, divisor))
        if last:
            return True
        source, count = target, parts


def _parts(rows: int, count: int) -> int:
    """Return over how many threads a row is spread."""
    if count <= _SHORT or (rows >= _MANY and count <= _LONG):
        return 1
    return -(-count // _EACH)


def _total(reduction: Reduction, given: DType, result: DType) -> DType | None:
    """Return the dtype of the reduction, if there is a kernel."""
    if given.kind not in "biuf" or result.kind not in "iuf":
        return None
    if reduction.kept:
        return None if given != result else _SINGLE if given == _HALF else given
    if result == _HALF:
        return _SINGLE if given == _HALF else None
    return result if np.can_cast(given, result) else None


@cache
def _kernel(reduction: Reduction, given: DType, total: DType, result: DType, divided: bool) -> RawKernel:
    """Return the kernel from elements of one dtype to those of another."""
    text = source(reduction, given, total, result, divided=divided)
    return RawKernel(RawModule(text, options=OPTIONS), f"{reduction.name}_rows")


def source(reduction: Reduction, given: DType, total: DType, result: DType, *, divided: bool = False) -> str:
    """Return the source of a kernel.

    Parameters
    ----------
    reduction : Reduction
        The op's statement.
    given, total, result : numpy.dtype
        Of the elements, of the reduction, and of the results in memory.
    divided : bool, default: False
        Whether results are divided by a number.
    """
    floating = total.kind == "f"
    kinds = {dtype: in_memory(dtype) for dtype in (given, total, result)}
    read = f"(T){'(float)' * (given == _HALF)}from[part * inner]"
    return header((given, total, result)) + _SOURCE.format(
        name=f"{reduction.name}_rows",
        total=kinds[total],
        body=reduction.floating if floating else reduction.integers,
        input=kinds[given],
        output=kinds[result],
        divisor="double" if total.name == "float64" else "float" if floating else "long long",
        read=read,
        written="(total / divisor)" if divided else "total",
    )
