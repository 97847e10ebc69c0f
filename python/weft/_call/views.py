"""Ops with a view as their result: a new shape, strides and offset over the same memory. Nothing is pushed for them.

The core's rule gives the shape; a function of plain numbers gives the places of the elements. The view, and a copy where
one is needed (a graph, another device), follow from both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft._core import NDArray, tape_hear_view
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft._registry.shape_rules import dtype_of_first, rule_named, shaped_by
from weft._registry.symbol_hook import compose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._registry.avals import DType
    from weft._registry.shapes import Shape


#: Layouts that an op remembers at most.
_LAYOUTS = 256


class Places(NamedTuple):
    """The places of a view's elements: `strides` and `offset` in bytes, from the first element of the viewed array."""

    strides: Shape
    offset: int = 0


def view(
    x: NDArray, shape: Sequence[int], strides: Sequence[int], offset: int = 0, dtype: DType | None = None
) -> NDArray:
    """Return a view of `x`: same memory, no op.

    Parameters
    ----------
    x : NDArray
        The array.
    shape, strides : sequence of int
        Those of the view, the strides in bytes.
    offset : int, default: 0
        Its start, in bytes from the first element of `x`.
    dtype : numpy.dtype, optional
        The dtype for its bytes; by default that of `x`.

    Examples
    --------
    >>> import weft
    >>> from weft._call.views import view
    >>> view(weft.asarray([1, 2, 3]), (2,), (16,))
    NDArray([1, 3])
    """
    return x._strided(tuple(shape), tuple(strides), offset, dtype)


def register_view(
    name: str,
    copy: Callable[..., Any],
    *,
    aliases: tuple[str, ...] = (),
    batch: str | Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Places]], Callable[..., NDArray]]:
    """Register a view op from `places(shape, strides, **attributes)`; the result makes the view of an NDArray.

    Parameters
    ----------
    name : str
        The op's name, and that of the core's rule for its shape, which checks the attributes before `places`.
    copy : callable
        NumPy's function of the same meaning, for places that cannot share memory: `copy(x, **attributes)`.
    aliases : tuple of str, optional
        Further names of the op.
    batch : str or callable, optional
        How it goes for many examples at once: see `weft.vmap`.
    """

    def decorate(places: Callable[..., Places]) -> Callable[..., NDArray]:
        shape_of = rule_named(name)

        def compute(out: np.ndarray[Any, Any], x: np.ndarray[Any, Any], **attributes: object) -> None:
            np.copyto(out, copy(x, **attributes))

        def layout(own: Shape, strides: Shape, /, **attributes: object) -> tuple[Shape, Shape, int]:
            shape = shape_of((own,), attributes)  # before the places, which rely on its checks
            strides, offset = places(own, strides, **attributes)
            return shape, strides, offset

        remembered = lru_cache(_LAYOUTS)(layout)

        def show(x: NDArray, **attributes: object) -> NDArray:
            if not isinstance(x, NDArray):
                return compose(op, (x,), attributes)  # a symbol, from a symbol
            try:
                shape, strides, offset = remembered(x.shape, x.strides, **attributes)
            except TypeError:  # attributes without a hash, or refused ones
                shape, strides, offset = layout(x.shape, x.strides, **attributes)
            result = x._strided(shape, strides, 0 if 0 in shape else offset)  # an empty view has no place
            if x._heard:
                tape_hear_view(op, x, result, attributes)
            return result

        op = register_op(name, infer=shaped_by(name, dtype_of_first), aliases=aliases)(compute)
        code = places.__code__
        op.set_attribute("attribute_names", code.co_varnames[2 : code.co_argcount + code.co_kwonlyargcount])
        op.set_attribute("view", show)
        op.set_attribute("shares_memory", value=True)
        if batch is not None:
            state(op, batch=batch)
        return show

    return decorate
