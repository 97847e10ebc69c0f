"""Reductions by one of NumPy's binary ufuncs: `sum`, `prod`, `max`, `min`, `all`, `any`; and `ptp`.

If NumPy has an inner loop for exactly the dtypes of operand and result, a reduction runs that loop on a worker without
the GIL. All else calls NumPy's function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Native, NDArray
from weft._cuda.launch import Reduction
from weft._cuda.reductions import by_function
from weft._registry.avals import as_dtype
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op
from weft._registry.shape_rules import shaped_by
from weft._registry.shapes import Axis, Shape, reduced_axes
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike, Operand
    from weft._registry.avals import Aval
    from weft._registry.op import Op

__all__ = [
    "all", "amax", "amin", "any", "max", "min", "prod", "ptp", "sum",
]  # fmt: skip


def total_dtype(x: DType, given: DType | None) -> DType:
    """Return 64 bits for sums and products of small integers, as the standard asks."""
    if given is not None:
        return given
    return np.dtype({"b": "i8", "i": "i8", "u": "u8"}.get(x.kind, x))


def reduction(rule: Callable[[DType, DType | None], DType], *, identity: bool = True) -> Callable[..., Aval]:
    """Make the inference rule of a reduction; without an identity it needs elements or an `initial` value."""

    def dtypes(x: Aval, *masks: Aval, dtype: DType | None = None, **_: object) -> DType:
        for mask in masks:
            if mask.dtype != np.bool_:
                raise ArgumentTypeError(f"where= takes an array of bool, got dtype {mask.dtype}")
        return rule(x.dtype, dtype)

    return shaped_by("reduce" if identity else "extremum", dtypes)


def same_dtype(x: DType, given: DType | None = None) -> DType:
    """Return the dtype of the operand."""
    del given  # such reductions have no dtype=
    return x


def _spread(x: DType, given: DType | None = None) -> DType:
    """Return the dtype of the difference of the largest and the smallest element."""
    if x.kind == "b":
        raise ArgumentTypeError("ptp: booleans have no difference; cast them by astype()")
    return same_dtype(x, given)


def _truth(x: DType, given: DType | None = None) -> DType:
    del x, given  # without influence
    return np.dtype(np.bool_)


def chosen(masks: tuple[Elements, ...]) -> dict[str, Any]:
    """Return NumPy's arguments for a reduction of the elements under a mask, or of all."""
    return {"where": masks[0]} if masks else {}


def reducing(
    x: Operand, *_masks: Operand, axis: Axis = None, dtype: DTypeLike | None = None, **rest: Any
) -> dict[str, Any]:
    """Return the attributes of a reduction in the form that its rule knows."""
    known: dict[str, Any] = {"axis": reduced_axes(axis, getattr(x, "ndim", 0), by_rule=True), **rest}
    if dtype is not None:
        known["dtype"] = as_dtype(dtype)
    return known


#: Attributes of reductions; their functions pass on any keywords.
REDUCING = ("axis", "dtype", "initial", "keepdims")


def _ufunc_reduction(
    name: str,
    ufunc: np.ufunc,
    rule: Callable[[DType, DType | None], DType],
    *,
    identity: bool = True,
    aliases: tuple[str, ...] = (),
) -> Op:
    """Register a reduction by one of NumPy's binary ufuncs."""
    typed = ufunc in (np.add, np.multiply)

    def compute(
        out: Elements,
        x: Elements,
        *masks: Elements,
        axis: Shape | None = None,
        keepdims: bool = False,
        initial: complex | None = None,
        **_: object,
    ) -> None:
        options = chosen(masks)
        if initial is not None:
            options["initial"] = initial
        if typed:
            options["dtype"] = out.dtype
        ufunc.reduce(x, axis=axis, out=out, keepdims=keepdims, **options)

    op = register_op(name, infer=reduction(rule, identity=identity), aliases=aliases)(compute)

    state(op, layout="reduce", attribute_names=REDUCING)
    op._prepare_by(reducing)
    op._run_by(Native.reduce(ufunc))
    return op


def _ptp(out: Elements, x: Elements, *, axis: Shape | None = None, keepdims: bool = False, **_: object) -> None:
    np.ptp(x, axis=axis, out=out, keepdims=keepdims)


_SUM = _ufunc_reduction("sum", np.add, total_dtype)
_PROD = _ufunc_reduction("prod", np.multiply, total_dtype)
_MAX = _ufunc_reduction("max", np.maximum, same_dtype, identity=False, aliases=("amax",))
_MIN = _ufunc_reduction("min", np.minimum, same_dtype, identity=False, aliases=("amin",))
_ALL = _ufunc_reduction("all", np.logical_and, _truth)
_ANY = _ufunc_reduction("any", np.logical_or, _truth)
_PTP = register_op("ptp", infer=reduction(_spread, identity=False))(_ptp)
state(_PTP, layout="reduce", attribute_names=REDUCING)
_PTP._prepare_by(reducing)
for _op, _function, _combine, _neutral in (
    (_SUM, np.sum, np.add, 0),
    (_PROD, np.prod, np.multiply, 1),
    (_MAX, np.max, np.maximum, None),
    (_MIN, np.min, np.minimum, None),
    (_ALL, np.all, np.logical_and, 1),
    (_ANY, np.any, np.logical_or, 0),
):
    state(_op, cupy=by_function(_function, _combine, _neutral, typed=_op in (_SUM, _PROD)))
_SUM.set_attribute("kernels", Reduction("sum", "a + b", "(T)((u64)a + (u64)b)"))
_PROD.set_attribute("kernels", Reduction("prod", "a * b", "(T)((u64)a * (u64)b)"))
_MAX.set_attribute("kernels", Reduction("max", "larger(a, b)", "larger(a, b)", kept=True))
_MIN.set_attribute("kernels", Reduction("min", "lesser(a, b)", "lesser(a, b)", kept=True))
no_gradient("all", "any")


def sum(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Add up the elements along `axis`.

    Parameters
    ----------
    x : array_like
        The array.
    axis : int or tuple of int, optional
        The axes along which the elements are added, by default all.
    dtype : dtype, optional
        The result's dtype: by default int64 or uint64 for integers and bool, otherwise that of `x`.
    out : NDArray, optional
        An array of the result's shape to write to.
    keepdims : bool, default: False
        Whether the axes stay, with length 1.
    initial : scalar, optional
        The first value of the sum.
    where : array_like of bool, optional
        Which elements to add; it broadcasts to the shape of `x`.

    Examples
    --------
    >>> import weft
    >>> weft.sum([[1, 2], [3, 4]], axis=0)
    NDArray([4, 6])
    """
    if where is None or where is True:
        return one(_SUM, x, out=out, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial)
    return one(_SUM, x, where, out=out, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial)


def prod(
    x: ArrayLike,
    /,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Multiply the elements along `axis`; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.prod([[1, 2], [3, 4]], axis=0)
    NDArray([3, 8])
    """
    if where is None or where is True:
        return one(_PROD, x, out=out, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial)
    return one(_PROD, x, where, out=out, axis=axis, dtype=dtype, keepdims=keepdims, initial=initial)


def max(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the largest elements along `axis`, NaN where there is one; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.max([[1, 4], [3, 2]], axis=0)
    NDArray([3, 4])
    """
    if where is None or where is True:
        return one(_MAX, x, out=out, axis=axis, keepdims=keepdims, initial=initial)
    return one(_MAX, x, where, out=out, axis=axis, keepdims=keepdims, initial=initial)


def min(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    initial: complex | None = None,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return the smallest elements along `axis`, NaN where there is one; parameters as in `sum`.

    Examples
    --------
    >>> import weft
    >>> weft.min([[1, 4], [3, 2]], axis=0)
    NDArray([1, 2])
    """
    if where is None or where is True:
        return one(_MIN, x, out=out, axis=axis, keepdims=keepdims, initial=initial)
    return one(_MIN, x, where, out=out, axis=axis, keepdims=keepdims, initial=initial)


amax = max
amin = min


def ptp(x: ArrayLike, /, axis: Axis = None, out: NDArray | None = None, *, keepdims: bool = False) -> NDArray:
    """Return the difference of the largest and the smallest element along `axis`.

    Examples
    --------
    >>> import weft
    >>> weft.ptp([1, 4, 2]).item()
    3
    """
    return one(_PTP, x, out=out, axis=axis, keepdims=keepdims)


def all(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return whether all elements along `axis` are true, that is, not zero.

    Examples
    --------
    >>> import weft
    >>> weft.all([[True, False], [True, True]], axis=1)
    NDArray([False,  True])
    """
    if where is None or where is True:
        return one(_ALL, x, out=out, axis=axis, keepdims=keepdims)
    return one(_ALL, x, where, out=out, axis=axis, keepdims=keepdims)


def any(
    x: ArrayLike,
    /,
    axis: Axis = None,
    out: NDArray | None = None,
    *,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> NDArray:
    """Return whether any element along `axis` is true, that is, not zero.

    Examples
    --------
    >>> import weft
    >>> weft.any([[True, False], [False, False]], axis=1)
    NDArray([ True, False])
    """
    if where is None or where is True:
        return one(_ANY, x, out=out, axis=axis, keepdims=keepdims)
    return one(_ANY, x, where, out=out, axis=axis, keepdims=keepdims)
