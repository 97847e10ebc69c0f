"""Element-wise functions made from NumPy's ufuncs: one op each, one signature for all, one form of docstring."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from weft._call.calls import call
from weft._call.operands import as_array
from weft._call.plans import COMPARISONS
from weft._core import NDArray
from weft._registry.defaults import state
from weft._registry.gradients import give, no_gradient
from weft._registry.op import Op, register_op

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import numpy.typing as npt

    from weft._call.operands import ArrayLike
    from weft._ops.derivatives import Gradient
    from weft._registry.avals import DType

    #: CUDA C++ by kinds of dtype, or by the dtypes of the computation.
    Cuda: TypeAlias = Mapping[str, str] | Callable[[tuple[DType, ...]], str | None]

#: The names of the functions made here.
MADE: list[str] = []


class Unary(Protocol):
    """An element-wise function of one array."""

    def __call__(
        self,
        x: ArrayLike,
        /,
        *,
        out: NDArray | None = None,
        where: ArrayLike = True,
        dtype: npt.DTypeLike | None = None,
    ) -> NDArray: ...


class Binary(Protocol):
    """An element-wise function of two arrays."""

    def __call__(
        self,
        x1: ArrayLike,
        x2: ArrayLike,
        /,
        *,
        out: NDArray | None = None,
        where: ArrayLike = True,
        dtype: npt.DTypeLike | None = None,
    ) -> NDArray: ...

    reduce: Callable[..., NDArray]
    accumulate: Callable[..., NDArray]
    reduceat: Callable[..., NDArray]
    outer: Callable[..., NDArray]
    at: Callable[..., None]


#: Operators whose loops the type slots must not run. NumPy's power of integers raises, which a loop without the GIL
#: cannot, and ``**`` is a square if the exponent is 2.
_OWN_WAY = frozenset(["pow"])

#: Methods of NumPy's ufuncs of two operands.
_METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")

_DOC = """Return {text}.

Parameters
----------
{operands} : array-like
    {which}
out : NDArray, optional
    Where to write the result; it must have the broadcast shape, and a dtype to which the result casts by "same_kind".
where : array-like of bool, default: True
    Which elements to compute; the others of `out` stay as they are, those of a new array are undefined.
dtype : dtype-like, optional
    The dtype to compute in.

Returns
-------
NDArray
    The result, of the operands' broadcast shape and of the dtype that NumPy gives it.

Raises
------
ValueError
    If shapes do not fit together, or `out` is read-only.
TypeError
    If the function does not take the operands' dtypes, or `out` not the result's.

Examples
--------
>>> import weft
>>> weft.{name}({arguments})
NDArray({result})
"""


def _registered(
    names: str,
    ufunc: np.ufunc,
    inplace: list[tuple[int, int]],
    dunder: str,
    gradient: Gradient | None,
    cuda: Cuda | None,
) -> Op:
    """Return the op of a row."""
    name, *aliases = names.split()
    MADE.extend((name, *aliases))
    op = register_op(name, ufunc=ufunc, inplace=inplace, aliases=aliases)(ufunc)
    if dunder:
        op.set_attribute("operator", dunder)
        if dunder not in _OWN_WAY:
            op.operator = dunder
            op._operate(name, dunder in COMPARISONS)
    if cuda is not None:
        op.set_attribute("cuda", cuda)
    if gradient is None:
        no_gradient(name)
    else:
        give(op, *gradient)
    return op


def unary(
    names: str,
    ufunc: np.ufunc,
    text: str,
    x: str,
    result: str,
    *,
    dunder: str = "",
    gradient: Gradient | None,
    cuda: Cuda | None = None,
    identity: str | None = None,
) -> Unary:
    """Register a function of one operand under its names, and return it."""
    op = _registered(names, ufunc, [(0, 0)], dunder, gradient, cuda)
    if identity is not None:
        state(op, identity=identity)
    name = op.name

    def function(
        x: ArrayLike,
        /,
        *,
        out: NDArray | None = None,
        where: ArrayLike = True,
        dtype: npt.DTypeLike | None = None,
    ) -> NDArray:
        found: NDArray
        if where is True and dtype is None:
            found = call(op, x) if out is None else call(op, x, out=out)
        else:
            found = call(op, x, out=out, where=where, dtype=dtype)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        text=text, operands="x", which="The operand.", name=name, arguments=f"weft.asarray({x})", result=result
    )
    return function


def binary(
    names: str,
    ufunc: np.ufunc,
    text: str,
    x1: str,
    x2: str,
    result: str,
    *,
    dunder: str = "",
    gradient: Gradient | None,
    cuda: Cuda | None = None,
) -> Binary:
    """Register a function of two operands under its names, and return it."""
    op = _registered(names, ufunc, [(0, 0), (1, 0)], dunder, gradient, cuda)
    name = op.name
    slot: Callable[[Any, Any], Any] | None = getattr(operator, f"__{op.operator}__") if op.operator else None

    def function(
        x1: ArrayLike,
        x2: ArrayLike,
        /,
        *,
        out: NDArray | None = None,
        where: ArrayLike = True,
        dtype: npt.DTypeLike | None = None,
    ) -> NDArray:
        if (
            slot is not None
            and x1.__class__ is NDArray
            and (x2.__class__ is NDArray or x2.__class__ is float or x2.__class__ is int)
            and out is None
            and where is True
            and dtype is None
        ):
            result: NDArray = slot(x1, x2)  # knows the loops, and comes back here without one
            return result
        found: NDArray
        if where is True and dtype is None:
            found = call(op, x1, x2) if out is None else call(op, x1, x2, out=out)
        else:
            found = call(op, x1, x2, out=out, where=where, dtype=dtype)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = _DOC.format(
        text=text,
        operands="x1, x2",
        which="The operands. A Python scalar takes the other's dtype if its kind fits.",
        name=name,
        arguments=f"weft.asarray({x1}), weft.asarray({x2})",
        result=result,
    )
    for method in _METHODS:
        setattr(function, method, partial(_by_ufunc, ufunc, method))
    return cast("Binary", function)


def _by_ufunc(ufunc: np.ufunc, method: str, x: ArrayLike, /, *args: Any, **kwargs: Any) -> Any:
    """Call a method of NumPy's ufunc on an array; NumPy leaves these to weft."""
    return getattr(ufunc, method)(x if method == "at" else as_array(x), *args, **kwargs)
