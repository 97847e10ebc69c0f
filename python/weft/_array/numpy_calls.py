"""NumPy's functions and ufuncs, called on NDArrays.

They return NDArrays. Where weft has a function of that name, or an op of that ufunc, the call is pushed like any other;
otherwise it waits for the arrays and NumPy does the work on read-only views of them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from weft._array.copies import copy_cast
from weft._array.dispatch import call
from weft._array.operands import as_array, engine_of, read_only
from weft._array.places import check_writable
from weft._array.rules import SUPPORTED, broadcast_of_ufunc
from weft._core import NDArray, beside, push_compute, wrap
from weft.ops import Op, get_op

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from weft._core import Engine

Views: TypeAlias = "list[npt.NDArray[Any]]"

_REDUCTIONS: dict[np.ufunc, str] = {
    np.add: "sum",
    np.multiply: "prod",
    np.maximum: "max",
    np.minimum: "min",
    np.logical_and: "all",
    np.logical_or: "any",
}
#: NumPy's functions that write to their first argument.
_WRITERS = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])
#: Functions of weft whose NumPy namesake does something else.
_FALSE_FRIENDS = frozenset(["load", "save"])
_NAMESPACES = {"numpy": "weft", "numpy.linalg": "weft.linalg", "numpy.fft": "weft.fft"}
_SEQUENCES: frozenset[Any] = frozenset([list, tuple])
_NO_VALUE: Any = getattr(np, "_NoValue", inspect.Parameter.empty)


def __array_ufunc__(  # noqa: N807 - a method
    self: NDArray,  # noqa: ARG001
    ufunc: np.ufunc,
    method: str,
    *inputs: Any,  # noqa: ANN401 - array-likes
    **kwargs: Any,  # noqa: ANN401 - the ufunc's own
) -> Any:  # noqa: ANN401 - one array, several, or NotImplemented
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
    return _numpy(getattr(ufunc, method), inputs, kwargs, writes=writes)


def __array_function__(  # noqa: N807 - a method
    self: NDArray,  # noqa: ARG001
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:  # noqa: ANN401 - what `func` returns
    """Run a NumPy function on NDArrays.

    Examples
    --------
    >>> import numpy, weft
    >>> numpy.flip(weft.asarray([1, 2, 3]))
    NDArray([3, 2, 1])
    """
    if not all(issubclass(kind, NDArray | np.ndarray | np.generic) for kind in types):
        return NotImplemented
    if func is np.copyto and _is_plain_copy(*args, **kwargs):
        return None
    if func in _WRITERS:
        return _numpy(func, args, kwargs, writes=True)
    if func in _FACTS:
        return _FACTS[func](*args, **kwargs)
    own = _namesake(func)
    if own is not None:
        adapted = _adapt(func, own, args, kwargs)
        if adapted is not None:
            try:
                return own(*adapted[0], **adapted[1])
            except TypeError:
                pass  # an argument that only NumPy's function takes; a wrong one raises again below
    return _numpy(func, args, kwargs)


def _known(x: object) -> bool:
    """Return whether `x` leaves the call to us."""
    return isinstance(x, NDArray | np.ndarray | np.generic) or not hasattr(type(x), "__array_ufunc__")


# ufuncs


@functools.cache
def _op_of(ufunc: np.ufunc) -> Op | None:
    """Return the op of an element-wise ufunc: the registered one, or one that nobody else knows."""
    if ufunc.signature is not None or all("O" in types for types in ufunc.types):
        return None
    try:
        op = get_op(ufunc.__name__)
    except KeyError:
        op = None
    if op is not None and op.ufunc is ufunc:
        return op
    return Op(ufunc.__name__, broadcast_of_ufunc(ufunc), ufunc, ufunc=ufunc, nout=ufunc.nout)


def _push_call(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Push an element-wise ufunc; NotImplemented if it, or an option, is none that ops know."""
    options = {key: value for key, value in kwargs.items() if key not in {"out", "subok", "order"}}
    out = kwargs.get("out")
    op = _op_of(ufunc)
    if op is None:
        own = _namesake(ufunc)
        if own is None or options or out is not None:
            return NotImplemented
        return own(*inputs)
    if options.get("dtype", 0) is None:
        del options["dtype"]
    if not options.keys() <= {"where", "dtype"}:
        return NotImplemented
    return call(op, *inputs, out=out, **options)


def _push_outer(ufunc: np.ufunc, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Push a ufunc over all pairs of elements."""
    engine = engine_of(*inputs, *kwargs.get("out", ()))
    a, b = (as_array(x, engine=engine) for x in inputs)
    rows = a._strided((*a.shape, *(1,) * b.ndim), (*a.strides, *(0,) * b.ndim))
    return _push_call(ufunc, (rows, b), kwargs)


def _push_reduction(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Push ``ufunc.reduce`` or ``ufunc.accumulate``, whose shape and dtype an array of a few elements tells."""
    (x, *rest) = inputs
    (out,) = kwargs.get("out", (None,))
    names = ("axis", "dtype", "keepdims", "initial", "where")
    options = dict(zip(("axis", "dtype"), rest, strict=False)) | {k: v for k, v in kwargs.items() if k != "out"}
    if not isinstance(x, NDArray) or len(rest) > 2 or not options.keys() <= set(names):  # noqa: PLR2004
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
    if out is None:
        out = beside(x, shape, np.dtype(sample.dtype))
    elif out.shape != shape or out.dtype != sample.dtype:
        return NotImplemented
    check_writable(out)

    def compute(target: npt.NDArray[Any], view: npt.NDArray[Any]) -> None:
        function(view, out=target, **options)

    push_compute(compute, (out,), (x,), name=f"{ufunc.__name__}.{method}")
    return out


# functions


def _is_plain_copy(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> bool:  # noqa: ANN401, FBT002
    """Push ``np.copyto`` of all elements into an NDArray; return whether it was that."""
    if not isinstance(dst, NDArray) or where is not True:
        return False
    check_writable(dst)
    source = as_array(src, dst)
    if not np.can_cast(source.dtype, dst.dtype, casting):
        raise TypeError(f"Cannot cast array data from {source.dtype!r} to {dst.dtype!r} by the rule {casting!r}")
    if np.broadcast_shapes(source.shape, dst.shape) != dst.shape:
        raise ValueError(f"could not broadcast input array from shape {source.shape} into shape {dst.shape}")
    copy_cast(dst, source)
    return True


def _shape(a: NDArray) -> tuple[int, ...]:
    return a.shape


def _ndim(a: NDArray) -> int:
    return a.ndim


def _size(a: NDArray, axis: int | tuple[int, ...] | None = None) -> int:
    return np.size(np.broadcast_to(np.empty(()), a.shape), axis)


#: What is known without waiting.
_FACTS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.shape: _shape,
    np.ndim: _ndim,
    np.size: _size,
}


def _weft() -> Any:  # noqa: ANN401 - a module
    return sys.modules["weft"]


@functools.cache
def _namesake(func: Any) -> Callable[..., Any] | None:  # noqa: ANN401 - a function or a ufunc
    """Return weft's function of the same name and namespace."""
    name = func.__name__
    module = "numpy" if isinstance(func, np.ufunc) else func.__module__
    namespace = sys.modules.get(_NAMESPACES.get(module, ""))
    if namespace is None or name in _FALSE_FRIENDS or name not in namespace.__all__:
        return None
    own = getattr(namespace, name)
    return own if callable(own) and not isinstance(own, type) else None


@functools.cache
def _signature(func: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):  # some of NumPy's C functions have none
        return None


def _adapt(
    func: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return arguments for `own` that mean what these mean to NumPy's `func`; None if it has no such arguments.

    The standard has positional arrays and keywords, NumPy positions for all: an argument that `own` knows by its name
    is given by name, another by its place, and one that only NumPy knows may be left out if it has its default.
    """
    theirs, ours = _signature(func), _signature(own)
    if ours is None:
        return list(args), dict(kwargs)
    if theirs is not None:
        moved = _by_name(theirs.bind(*args, **kwargs), ours)
        if moved is None:
            return None
        positional, named = moved
    else:
        positional, named = list(args), dict(kwargs)
    try:
        ours.bind(*positional, **named)
    except TypeError:
        return None
    return positional, named


def _by_name(bound: inspect.BoundArguments, ours: inspect.Signature) -> tuple[list[Any], dict[str, Any]] | None:
    kinds = inspect.Parameter
    keywords = {name for name, each in ours.parameters.items() if each.kind is kinds.KEYWORD_ONLY}
    places = [
        name
        for name, each in ours.parameters.items()
        if each.kind in {kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD}
    ]
    swallows = any(each.kind is kinds.VAR_POSITIONAL for each in ours.parameters.values())
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, (name, value) in enumerate(bound.arguments.items()):
        parameter = bound.signature.parameters[name]
        if parameter.kind is kinds.VAR_POSITIONAL:
            if not swallows:
                return None
            positional.extend(value)
        elif parameter.kind is kinds.VAR_KEYWORD:
            named.update(value)
        elif value is _NO_VALUE or _is_default(value, parameter.default):
            continue
        elif name in keywords or name in places[len(positional) :]:
            if name in places and places.index(name) == len(positional) and not named:
                positional.append(value)
            else:
                named[name] = value
        elif place == len(positional) < len(places) and not named:
            positional.append(value)
        else:
            return None
    return positional, named


def _is_default(value: object, default: object) -> bool:
    return value is default or (
        isinstance(value, bool | int | float | str) and type(value) is type(default) and value == default
    )


# the rest


def _numpy(func: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], *, writes: bool = False) -> Any:  # noqa: ANN401
    """Wait, call NumPy on views, and give back what it returns as NDArrays.

    What is written to (`out`, or the first argument if `writes`) is written in a copy first, so that an error leaves it
    alone and the write is an op like any other.
    """
    positional, named = list(args), dict(kwargs)
    signature = _signature(func)
    if signature is not None and "out" in signature.parameters and "out" not in named:
        bound = signature.bind(*positional, **named)
        positional, named = list(bound.args), dict(bound.kwargs)
        order = [name for name, each in signature.parameters.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
        if "out" in order and len(positional) > order.index("out"):
            named.update(zip(order[order.index("out") :], positional[order.index("out") :], strict=False))
            del positional[order.index("out") :]
    engine = engine_of(*_leaves((positional, named)))
    views: Views = []
    drafts: list[tuple[NDArray, npt.NDArray[Any]]] = []

    def draft(x: Any) -> Any:  # noqa: ANN401 - an output
        if not isinstance(x, NDArray):
            return x
        check_writable(x)
        x.wait_to_read()
        drafts.append((x, x._storage().copy()))
        return drafts[-1][1]

    out: Any = named.pop("out", None)
    outs: tuple[Any, ...] = tuple(map(draft, cast("Any", out) if isinstance(out, tuple) else (out,)))
    if writes:
        positional[0] = draft(positional[0])
    positional, named = _shown(positional, views), _shown(named, views)
    if out is not None:
        named["out"] = outs if isinstance(out, tuple) else outs[0]
    with np.errstate(all="ignore"):
        result = func(*positional, **named)
    for target, values in drafts:
        copy_cast(target, wrap(values, engine))
    outputs: dict[int, Any] = {id(each): each for each in outs if each is not None}
    outputs.update((id(values), target) for target, values in drafts)
    return _own(result, views, outputs, engine)


def _leaves(value: Any) -> Iterable[object]:  # noqa: ANN401 - any nest of arguments
    if isinstance(value, list | tuple | dict):
        nest = cast("Any", value)
        inside: Iterable[Any] = nest.values() if isinstance(value, dict) else nest
        for each in inside:
            yield from _leaves(each)
    else:
        yield value


def _shown(value: Any, views: Views) -> Any:  # noqa: ANN401 - any nest of arguments
    """Return the arguments with NumPy views for the NDArrays in them, waited for and noted in `views`."""
    if isinstance(value, NDArray):
        value.wait_to_read()
        views.append(read_only(value._storage()))
        return views[-1]
    kind = cast("Any", type(value))  # exactly: what subclasses mean is their own
    if kind in _SEQUENCES:
        return kind([_shown(each, views) for each in value])
    if kind is dict:
        return {key: _shown(each, views) for key, each in value.items()}
    return value


def _own(value: Any, views: Views, outputs: Mapping[int, Any], engine: Engine) -> Any:  # noqa: ANN401
    """Return NumPy's result with NDArrays for the arrays in it, and the caller's for what was written to them."""
    if id(value) in outputs:
        return outputs[id(value)]
    result: Any = value
    if isinstance(value, np.ndarray | np.generic):
        dtype = SUPPORTED.get(result.dtype)
        if dtype is None:
            return result  # text or objects, which are NumPy's alone
        array: npt.NDArray[Any] = np.asarray(result, dtype)
        shared = not array.flags.writeable or any(np.may_share_memory(array, view) for view in views)
        return wrap(array.copy() if shared else array, engine)
    if isinstance(value, list | tuple):
        values = [_own(each, views, outputs, engine) for each in result]
        if isinstance(value, list):
            return values
        return type(result)(*values) if hasattr(result, "_fields") else tuple(values)
    return result
