"""Element-wise functions on CUDA devices: native launches where there is a kernel, calls of CuPy's functions elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import share
from weft._core import CudaLoop, NDArray, cache_cuda_loop, find_op
from weft._cuda import hosted
from weft._cuda.expressions import chosen, expression
from weft._cuda.nvrtc import build
from weft._cuda.sources import OPTIONS, Elementwise
from weft._registry.avals import as_dtype

if TYPE_CHECKING:
    from weft._registry.avals import DType
    from weft._registry.op import Op

_BOOL = np.dtype(np.bool_)


@cache
def kernels(
    name: str,
    body: str,
    inputs: tuple[DType, ...],
    output: DType,
    computed: tuple[DType, ...],
    result: DType,
    *,
    masked: bool = False,
    indexed: bool = False,
) -> CudaLoop:
    """Return the kernels of a function; see `weft._cuda.sources.Elementwise`."""
    codes = "_".join(dtype.name for dtype in (*inputs, output))
    kernel = Elementwise(f"weft_{name}_{codes}", body, inputs, output, computed, result, masked, indexed)
    return CudaLoop(name, inputs, (output,), _Kernels(kernel))


@dataclass(frozen=True, slots=True)
class _Kernels:
    """A compiler of a function's kernels, one for each class of layout; fusions of the core ask for the function."""

    kernel: Elementwise

    def __call__(self, capability: tuple[int, int], strided: bool, scalars: int) -> tuple[str, bytes]:
        source = self.kernel.source(strided=strided, scalars=scalars)
        return self.kernel.name, build(self.kernel.name, source, capability, OPTIONS)


@cache
def _loop(
    name: str, inputs: tuple[DType, ...], output: DType, computed: tuple[DType, ...], result: DType, masked: bool
) -> CudaLoop | None:
    """Return the kernels of a ufunc, or None if there are none."""
    body = expression(name, computed)
    return None if body is None else kernels(name, body, inputs, output, computed, result, masked=masked)


def of_ufunc(ufunc: np.ufunc, dtypes: tuple[DType, ...]) -> CudaLoop | None:
    """Return the kernels that do the work of NumPy's loop of `ufunc` for these dtypes; None if there are none."""
    if ufunc.nout != 1:
        return None
    inputs, output = dtypes[: ufunc.nin], dtypes[-1]
    return _loop(ufunc.__name__, inputs, output, inputs, output, masked=False)


def casting(from_: DType, to: DType) -> CudaLoop:
    """Return the kernels that copy elements and cast them."""
    return _passing("copy", from_, to)


def copying(dtype: DType) -> CudaLoop:
    """Return the kernels that copy elements."""
    dtype = as_dtype(dtype)
    return casting(dtype, dtype)


def filling(dtype: DType) -> CudaLoop:
    """Return the kernels that write one number to all elements."""
    return _passing("fill", dtype, dtype)


def _passing(name: str, from_: DType, to: DType) -> CudaLoop:
    """Return the kernels that write their input."""
    return kernels(name, "a", (from_,), to, (from_,), from_)


def push(
    op: Op,
    computed: tuple[DType, ...],
    outputs: tuple[DType, ...],
    results: tuple[NDArray, ...],
    operands: tuple[Any, ...],
    mask: NDArray | None,
    *,
    signed: bool = True,
) -> None:
    """Push an element-wise op, with operands cast where they must be, on chosen elements if there is a mask.

    Parameters
    ----------
    op : Op
        The op, which has a ufunc.
    computed, outputs : tuple of numpy.dtype
        The dtypes of its computation, and of the results of that.
    results : tuple of NDArray
        Where to.
    operands : tuple of NDArray or Python scalar
        The operands.
    mask : NDArray or None
        Which elements to compute.
    signed : bool, default: True
        Whether the scalars are of the dtypes `computed`.
    """
    ufunc = op.ufunc
    assert ufunc is not None
    inputs = tuple(x.dtype if isinstance(x, NDArray) else dtype for x, dtype in zip(operands, computed, strict=True))
    given = operands if mask is None else (*operands, mask)
    kept = op.compute["cpu"] is ufunc or "cpu" in op.replaced  # a user's computation on the CPU is for the CPU alone
    own = kept and "cuda" not in op.compute and len(results) == 1 and signed
    if own:
        home: Op | None = find_op(ufunc.__name__)
        check = None if home is None else home.attribute("cuda_check", None)
        if check is not None:
            check(computed, operands)
        masked = mask is not None
        loop = _loop(
            ufunc.__name__, (*inputs, _BOOL) if masked else inputs, results[0].dtype, computed, outputs[0], masked
        )
        if loop is not None:
            arrays = all(isinstance(x, NDArray) for x in operands)
            if op.operator and not masked and results[0].dtype == outputs[0] and arrays:
                _cache(op, operands, computed, loop)
            loop.push(results, given)
            return
    if mask is None and "cuda" not in op.compute and push_parts(ufunc, results, operands):
        return
    hosted.push(ufunc, results, operands, mask, op)


def _cache(op: Op, operands: tuple[NDArray, ...], computed: tuple[DType, ...], loop: CudaLoop) -> None:
    """Let an operator on arrays of two dtypes find its kernels without this module, if it computes in its usual dtypes."""
    dtypes = tuple(x.dtype for x in operands)
    if len(set(dtypes)) > 1 and op._plan(operands).inputs == computed:
        left, right = dtypes
        cache_cuda_loop(op.name, (left, right), loop)


def push_parts(ufunc: np.ufunc, results: tuple[NDArray, ...], operands: tuple[Any, ...]) -> bool:
    """Push a function of two results as two kernels, if it is one that has them."""
    op: Op | None = find_op(ufunc.__name__)
    stated: dict[str, Any] | None = None if op is None or ufunc.nout == 1 else op.attribute("cuda", None)
    arrays = [x for x in operands if isinstance(x, NDArray)]
    if stated is None or any(share(x, out) for x in arrays for out in results):
        return False
    dtype = arrays[0].dtype
    inputs = (dtype,) * len(operands)
    bodies = [chosen(each, inputs) for each in stated.values()]
    if any(x.dtype != dtype for x in arrays) or None in bodies:
        return False
    for name, body, out in zip(stated, bodies, results, strict=True):
        assert body is not None
        kernels(name, body, inputs, out.dtype, inputs, out.dtype).push((out,), operands)
    return True
