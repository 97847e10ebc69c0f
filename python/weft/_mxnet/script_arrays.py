"""Arrays for scripts of MXNet's: its functions by its names, with its arguments, on weft's arrays."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import as_array
from weft._core import NDArray
from weft._mxnet.constants import in_steps
from weft._mxnet.positions import arranged, count_name, input_names
from weft._mxnet.script_symbols import found_op, parts_of
from weft._numpy import namespace
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._mxnet.operator import Operator


def is_operand(each: Any) -> bool:
    """Return whether a value is an array."""
    return isinstance(each, NDArray | np.ndarray)


@cache
def function(name: str, prefix: str = "") -> Callable[..., Any]:
    """Return MXNet's function of a name, for arrays; it returns a list where the op has several results.

    Raises
    ------
    GraphError
        If there is no such op.

    Examples
    --------
    >>> import weft
    >>> from weft._mxnet.script_arrays import function
    >>> function("clip")(weft.asarray([-1.0, 8.0]), 0, 6)
    NDArray([0., 6.])
    """
    op = found_op(name, prefix)
    if op is None:
        raise GraphError(f"no op of MXNet's is named {prefix}{name!r}: weft.mxnet.list_ops() names them all")

    def call(*given: Any, out: Any = None, **named: Any) -> Any:
        arrays, attributes = _placed(op, given, named)
        op.check(arrays, attributes)
        found: Any = op(*arrays, **attributes)
        several: list[Any] = [*found] if isinstance(found, tuple) else [found]
        several = several[: op.shown(op.read(attributes)) if callable(op.shown) else op.shown]
        if out is None:
            return several[0] if len(several) == 1 else several
        targets: list[Any] = [out] if isinstance(out, NDArray) else list(out)
        for target, each in zip(targets, several, strict=True):
            target[...] = each
        return out

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (
        f"Compute MXNet's {op.mxnet_name}: {', '.join([*(input_names(op) or ('*data',)), *op.settings.names])}."
    )
    return call


def _placed(op: Operator, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arrays of a call in the order of the op's inputs, and its attributes."""
    # An operator of the user's has neither.
    named = {key: each for key, each in named.items() if key not in ("name", "ctx")}
    arrays, attributes = arranged(op, given, is_operand, named)
    by_name = {key: named.pop(key) for key in list(named) if is_operand(named[key])}
    names = input_names(op, named)
    if names is None:
        arrays += by_name.values()
        return arrays, attributes | {count_name(op) or "num_args": len(arrays)} | named
    attributes |= {key: each for key, each in named.items() if each is not None or key not in names}
    placed = dict(zip(names, arrays, strict=False)) | by_name
    arrays = [placed[key] for key in names if placed.get(key) is not None]
    wanted: Any = op.inputs(op.read(attributes)) if callable(op.inputs) else op.inputs
    if placed.keys() - set(names) or (wanted is not None and len(arrays) != len(wanted)):
        listed = ", ".join(names if wanted is None else wanted)
        raise ArgumentTypeError(f"{op.mxnet_name}() takes the arrays {listed}, and {len(placed)} were given")
    return arrays, attributes


def array(source: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Return an array of these values: of the source's dtype where that is an array of weft's, else of float32.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> nd.array([1, 2]).dtype
    dtype('float32')
    """
    kind = dtype if dtype is not None else source.dtype if isinstance(source, NDArray) else "float32"
    return (
        namespace.astype(as_array(source), kind, copy=True)
        if ctx is None
        else namespace.asarray(source, kind, device=ctx)
    )


def zeros(shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Return an array of zeros, of float32 by default."""
    return namespace.zeros(shape, dtype or "float32", device=ctx)


def ones(shape: Any, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Return an array of ones, of float32 by default."""
    return namespace.ones(shape, dtype or "float32", device=ctx)


def full(shape: Any, val: float, ctx: Any = None, dtype: Any = None) -> NDArray:
    """Return an array of one number, of float32 by default."""
    return namespace.full(shape, val, dtype or "float32", device=ctx)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    ctx: Any = None,
    dtype: Any = None,
) -> NDArray:
    """Return numbers in order, each `repeat` times, of float32 by default."""
    first, last = (0.0, start) if stop is None else (start, stop)
    count = max(0, math.ceil((last - first) / step))
    found = np.repeat(in_steps(first, step, count, dtype or "float32"), repeat)
    return namespace.asarray(found, device=ctx)


def concatenate(arrays: Any, axis: int = 0) -> NDArray:
    """Return arrays one after the other along an axis."""
    found: NDArray = namespace.concat(list(arrays), axis=axis)
    return found


def eye(N: int, M: int = 0, k: int = 0, ctx: Any = None, dtype: Any = None) -> NDArray:  # noqa: N803 - MXNet's names
    """Return ones on a diagonal, zeros elsewhere, of float32 by default; `M` of 0 is as many columns as rows."""
    return namespace.eye(N, M or N, k=k, dtype=dtype or "float32", device=ctx)


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    ctx: Any = None,
    dtype: Any = None,
) -> NDArray:
    """Return numbers in even steps, of float32 by default."""
    return namespace.linspace(start, stop, num, dtype=dtype or "float32", device=ctx, endpoint=endpoint)


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Return the array with axes in other places."""
    found: NDArray = namespace.moveaxis(tensor, source, destination)
    return found


def histogram(a: NDArray, bins: Any = 10, range: Any = None) -> list[NDArray]:  # noqa: A002 - MXNet's name
    """Return how many elements lie in each bin, and the edges of bins: a number of them, or their edges, is given.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> nd.histogram(nd.array([1, 2, 2, 4]), bins=3, range=(1, 4))[0].tolist()
    [1, 2, 1]
    """
    found: list[NDArray] = (
        function("_histogram")(a, bins) if is_operand(bins) else function("_histogram")(a, bin_cnt=bins, range=range)
    )
    return found


def split_v2(ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False) -> Any:
    """Return parts along an axis: as many alike as a number says, or those between indices.

    Examples
    --------
    >>> import weft.mxnet.ndarray as nd
    >>> [each.tolist() for each in nd.split_v2(nd.array([1, 2, 3]), (1,))]
    [[1.0], [2.0, 3.0]]
    """
    return function("_split_v2")(ary, axis=axis, squeeze_axis=squeeze_axis, **parts_of(indices_or_sections))
