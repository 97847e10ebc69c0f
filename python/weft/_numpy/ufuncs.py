"""NumPy's ufuncs, called on NDArrays: pushed where weft has an op, or NumPy a loop; computed by NumPy otherwise."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import call
from weft._call.listening import check_changed, hear_nothing
from weft._call.operands import as_array, engine_of
from weft._call.outputs import check_writable
from weft._core import NDArray, beside, push_compute
from weft._numpy.calls import compute_by_numpy
from weft._numpy.names import namesake
from weft._registry.avals import broadcast_of_ufunc
from weft._registry.op import Op, get_op

if TYPE_CHECKING:
    import numpy.typing as npt

_REDUCTIONS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}


def __array_ufunc__(
    self: NDArray,  # noqa: ARG001
    ufunc: np.ufunc,
    method: str,
    *inputs: Any,
    **kwargs: Any,
) -> Any:
    """Run a NumPy ufunc, or one of its methods, on NDArrays.

    Examples
    --------
    >>> import numpy, weft
    >>> numpy.add(weft.asarray([1, 2]), [10, 20])
    NDArray([11, 22])
    """
    out = kwargs.get("out", ())
    if not all(map(_known, (*inputs, *out))):
        return NotImplemented
    if all(each is None or isinstance(each, NDArray) for each in out):
        pushed = NotImplemented
        if method == "__call__":
            pushed = _push_call(ufunc, inputs, kwargs)
        elif method == "outer":
            pushed = _push_outer(ufunc, inputs, kwargs)
        elif method in {"reduce", "accumulate"}:
            pushed = _push_reduction(ufunc, method, inputs, kwargs)
        if pushed is not NotImplemented:
            return pushed
    writes = method == "at"
    return compute_by_numpy(getattr(ufunc, method), inputs, kwargs, writes=writes)


def _known(x: object) -> bool:
    """Return whether `x` leaves the call to us."""
    return isinstance(x, NDArray | np.ndarray | np.generic) or not hasattr(type(x), "__array_ufunc__")


@functools.cache
def _op_of(ufunc: np.ufunc) -> Op | None:
    """Return the op of an element-wise ufunc: the registered one, or a private one."""
    if ufunc.signature is not None or all("O" in types for types in ufunc.types):
        return None
    try:
        op = get_op(ufunc.__name__)
    except KeyError:
        op = None
    if op is not None and op.ufunc is ufunc:
        return op
    return Op(ufunc.__name__, broadcast_of_ufunc(ufunc), ufunc, ufunc=ufunc, nout=ufunc.nout)


def _push_call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Push an element-wise ufunc; NotImplemented if it, or an option, is none that ops know."""
    options = {key: value for key, value in kwargs.items() if key not in {"out", "subok", "order"}}
    out = kwargs.get("out")
    op = _op_of(ufunc)
    if op is None:
        own = namesake(ufunc)
        if own is None or options or out is not None:
            return NotImplemented
        return own(*inputs)
    if options.get("dtype", 0) is None:
        del options["dtype"]
    if not options.keys() <= {"where", "dtype"}:
        return NotImplemented
    return call(op, *inputs, out=out, **options)


def _push_outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Push a ufunc over all pairs of elements."""
    engine = engine_of(*inputs, *kwargs.get("out", ()))
    a, b = (as_array(x, engine=engine) for x in inputs)
    rows = a._strided((*a.shape, *(1,) * b.ndim), (*a.strides, *(0,) * b.ndim))
    return _push_call(ufunc, (rows, b), kwargs)


def _push_reduction(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Push ``ufunc.reduce`` or ``ufunc.accumulate``, with the shape and dtype that an array of a few elements tells."""
    (x, *rest) = inputs
    (out,) = kwargs.get("out", (None,))
    names = ("axis", "dtype", "keepdims", "initial", "where")
    options = dict(zip(("axis", "dtype"), rest, strict=False)) | {k: v for k, v in kwargs.items() if k != "out"}
    if not isinstance(x, NDArray) or len(rest) > 2 or not options.keys() <= set(names):
        return NotImplemented
    if any(isinstance(value, NDArray | np.ndarray) for value in options.values()):
        return NotImplemented
    own = getattr(_weft(), _REDUCTIONS.get(ufunc, ""), None) if method == "reduce" and out is None else None
    if own is not None and options.keys() <= {"axis", "keepdims"}:
        return own(x, **{"axis": 0, **options})
    function = getattr(ufunc, method)
    sample = function(np.ones([min(length, 1) for length in x.shape], x.dtype), **options)
    shape = x.shape
    if method == "reduce":
        axes = options.get("axis", 0)
        every: list[int] = list(range(x.ndim)) if axes is None else np.atleast_1d(axes).tolist()
        gone: set[int] = {axis % x.ndim for axis in every} if x.ndim else set()
        kept = bool(options.get("keepdims"))
        shape = tuple(1 if i in gone else n for i, n in enumerate(shape) if kept or i not in gone)
    written = out is not None
    if out is None:
        out = beside(x, shape, np.dtype(sample.dtype))
    elif out.shape != shape or out.dtype != sample.dtype:
        return NotImplemented
    check_writable(out)
    check_changed(f"{ufunc.__name__}.{method}", (out,))

    def compute(target: npt.NDArray[Any], view: npt.NDArray[Any]) -> None:
        function(view, out=target, **options)

    push_compute(compute, (out,), (x,), name=f"{ufunc.__name__}.{method}")
    hear_nothing(f"{ufunc.__name__}.{method}", (x,), (out,), written=written)
    return out


def _weft() -> Any:
    return sys.modules["weft"]
