"""The checks of kernels of networks on operands and attributes, and their messages."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

import numpy as np

from weft._registry.avals import Aval, result_dtype
from weft._registry.brief import brief
from weft.errors import ArgumentIndexError, ArgumentTypeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft._call.calls import DType, Elements
    from weft._registry.shapes import Shape


def describe(**avals: Aval | None) -> str:
    """Return operands by name and shape, as messages have them.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._nn.arguments import describe
    >>> describe(x=weft.ops.Aval((2, 3), numpy.dtype("float32")), bias=None)
    'x of shape (2, 3)'
    """
    return ", ".join(f"{name} of shape {aval.shape}" for name, aval in avals.items() if aval is not None)


def refuse(op: str, why: str, **avals: Aval | None) -> ShapeError:
    """Return the error that says why an op does not take these operands."""
    return ShapeError(f"{op}: {why}; got {describe(**avals)}")


def floating(op: str, **avals: Aval | None) -> DType:
    """Return the dtype of a computation on operands of real floating-point numbers.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._nn.arguments import floating
    >>> floating("nn.conv", x=weft.ops.Aval((2, 3), numpy.dtype("float32")))
    dtype('float32')
    """
    given = {name: aval for name, aval in avals.items() if aval is not None}
    for name, aval in given.items():
        if aval.dtype.kind != "f":
            raise ArgumentTypeError(
                f"{op}: {name} has dtype {aval.dtype}, and real floating-point numbers are taken: "
                f"weft.astype(x, 'float32') makes some"
            )
    return result_dtype(*given.values())


def fixed(op: str, name: str, aval: Aval | None, shape: tuple[int, ...], **others: Aval | None) -> None:
    """Refuse an operand of another shape."""
    if aval is not None and aval.shape != shape:
        raise refuse(op, f"{name} is to have shape {shape}", **{name: aval}, **others)


def plain(value: Any) -> Any:
    """Return numbers as Python's and sequences as tuples, so that they are attributes.

    Examples
    --------
    >>> from weft._nn.arguments import plain
    >>> plain([1, (2, 3)])
    (1, (2, 3))
    """
    if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
        return tuple(map(plain, cast("Iterable[Any]", value)))
    if isinstance(value, bool | float | str) or value is None:
        return value
    try:
        return operator.index(cast("SupportsIndex", value))
    except TypeError:
        raise ArgumentTypeError(
            f"a whole number, or a sequence of them, is taken, and {brief(value)} was given"
        ) from None


def known(**attributes: Any) -> dict[str, Any]:
    """Return the attributes that are not None."""
    return {name: value for name, value in attributes.items() if value is not None}


def chosen(indices: Elements, count: int, why: Callable[[int], str]) -> tuple[Elements, Elements | None]:
    """Return integers that choose among `count`, and on a device which of them choose nothing and count as the nearest.

    Values cannot be looked at there: such an integer chooses NaN, which `spoiled` puts in.

    Raises
    ------
    IndexError
        On the host, if one chooses nothing: `why` says so of it.
    """
    wrong = (indices < 0) | (indices >= count)
    if not isinstance(cast("object", indices), np.ndarray):
        return np.clip(indices, 0, count - 1).astype(np.int64), wrong
    if wrong.any():
        raise ArgumentIndexError(why(int(indices[wrong].ravel()[0])))
    return indices.astype(np.int64), None


def spoiled(x: Elements, wrong: Elements | None) -> Elements:
    """Return numbers, NaN where they were chosen by nothing."""
    if wrong is None or x.dtype.kind != "f":
        return x
    return np.where(wrong.reshape(*wrong.shape, *(1,) * (x.ndim - wrong.ndim)), x.dtype.type(np.nan), x)


def gradients_of_norm(op: str, g: Aval, x: Aval, gamma: Aval, shape: Shape) -> tuple[Aval, Aval, Aval]:
    """Return the gradients of data, scales and shifts, given that of the results."""
    if g.shape != x.shape:
        raise refuse(op, "both are to have one shape", g=g, x=x)
    floating(op, g=g, x=x, gamma=gamma)
    return Aval(x.shape, x.dtype), Aval(shape, x.dtype), Aval(shape, x.dtype)
