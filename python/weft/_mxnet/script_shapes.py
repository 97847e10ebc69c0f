"""Shapes as scripts of MXNet's say them: 0 for a length that is not known, or in the scope `np_shape` -1."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from weft._core import Scope
from weft._tape.modes import flag

_is_np_shape: ContextVar[bool] = ContextVar("weft.mxnet.np_shape", default=False)


def np_shape(active: bool = True) -> Scope:
    """Let shapes of symbols be NumPy's in the block: 0 is a length, ``()`` a scalar, -1 an unknown length, None a shape.

    Holds for this thread, or task of asyncio; a function may be decorated with it, too. Networks that are saved in the
    block say `is_np_shape`. Files are read as they say, in the block and outside. Arrays have such shapes everywhere.

    Parameters
    ----------
    active : bool, default: True
        Whether it holds; False is MXNet's old meaning, the default outside of all blocks.

    Examples
    --------
    >>> import weft.mxnet as mx
    >>> x = mx.sym.Variable("x")
    >>> mx.sym.exp(x).infer_shape_partial(x=(0, 3))[1], mx.sym.exp(x).infer_shape(x=(0, 3))[1]
    ([(0, 3)], None)
    >>> with mx.np_shape():
    ...     mx.sym.exp(x).infer_shape(x=(0, 3))[1], mx.sym.exp(x).infer_shape_partial(x=(-1, 3))[1]
    ([(0, 3)], [(-1, 3)])
    """
    return Scope((_is_np_shape, flag(active, "active")))


def is_np_shape() -> bool:
    """Return whether shapes of symbols are NumPy's here, by `np_shape`.

    Examples
    --------
    >>> import weft.mxnet as mx
    >>> mx.is_np_shape()
    False
    """
    return _is_np_shape.get()


def opened(shape: Any) -> Any:
    """Return a script's shape with None for lengths that are not known; all but tuples and lists as it is.

    Examples
    --------
    >>> from weft._mxnet.script_shapes import opened
    >>> opened((0, 3))
    (None, 3)
    """
    lengths: Any = shape
    if not isinstance(shape, tuple | list):
        return shape
    unknown = (-1,) if _is_np_shape.get() else (0, -1)
    return tuple(None if isinstance(each, int) and each in unknown else each for each in lengths)


def closed(shape: tuple[int | None, ...] | None) -> tuple[int, ...] | None:
    """Return a shape as a script knows it.

    Examples
    --------
    >>> from weft._mxnet.script_shapes import closed
    >>> closed((None, 3)), closed(None)
    ((0, 3), ())
    """
    is_np = _is_np_shape.get()
    if shape is None:
        return None if is_np else ()
    return tuple((-1 if is_np else 0) if each is None else each for each in shape)
