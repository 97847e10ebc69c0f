"""Calls that NumPy itself computes: they wait for the NDArrays among their arguments, and return NDArrays."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from weft._call.copies import copy_cast
from weft._call.listening import check_changed, hear_nothing
from weft._call.operands import engine_of, read_only
from weft._call.outputs import check_writable
from weft._core import NDArray, Scope, wrap
from weft._numpy.names import signature_of
from weft._registry.avals import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy.typing as npt

    from weft._core import Engine

Views: TypeAlias = "list[npt.NDArray[Any]]"

_SEQUENCES: frozenset[Any] = frozenset([list, tuple])


def compute_by_numpy(
    func: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any], *, writes: bool = False
) -> Any:
    """Wait, call NumPy on views, and return its answer as NDArrays.

    A target (`out`, or the first argument if `writes`) is written in a copy first, so that an error leaves it alone and
    the write is an op like any other.
    """
    positional, named = list(args), dict(kwargs)
    signature = signature_of(func)
    if signature is not None and "out" in signature.parameters and "out" not in named:
        bound = signature.bind(*positional, **named)
        positional, named = list(bound.args), dict(bound.kwargs)
        order = [name for name, each in signature.parameters.items() if each.kind is not inspect.Parameter.KEYWORD_ONLY]
        if "out" in order and len(positional) > order.index("out"):
            named.update(zip(order[order.index("out") :], positional[order.index("out") :], strict=False))
            del positional[order.index("out") :]
    engine = engine_of(*leaves((positional, named)))
    views: Views = []
    drafts: list[tuple[NDArray, npt.NDArray[Any]]] = []

    def draft(x: Any) -> Any:
        if not isinstance(x, NDArray):
            return x
        check_writable(x)
        shown = x._now
        shown.wait_to_read()
        drafts.append((x, shown._storage().copy()))
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
    name, given = _name_of(func), list(leaves((args, kwargs)))
    check_changed(name, (target for target, _ in drafts))
    with Scope(paused=True):
        for target, values in drafts:
            copy_cast(target, wrap(values, engine))
    hear_nothing(name, given, (target for target, _ in drafts), written=True)
    outputs: dict[int, Any] = {id(each): each for each in outs if each is not None}
    outputs.update((id(values), target) for target, values in drafts)
    made = _own(result, views, outputs, engine)
    hear_nothing(name, given, (x for x in leaves(made) if not any(x is target for target, _ in drafts)))
    return made


def _name_of(func: Callable[..., Any]) -> str:
    name: str = getattr(func, "__name__", "a function of NumPy's")
    owner: Any = getattr(func, "__self__", None)
    return f"{owner.__name__}.{name}" if isinstance(owner, np.ufunc) else name


def leaves(value: Any) -> Iterable[object]:
    """Give the leaves of a nest of lists, tuples and dicts.

    Examples
    --------
    >>> from weft._numpy.calls import leaves
    >>> list(leaves(([1, 2], {"x": 3})))
    [1, 2, 3]
    """
    if isinstance(value, list | tuple | dict):
        nest = cast("Any", value)
        inside: Iterable[Any] = nest.values() if isinstance(value, dict) else nest
        for each in inside:
            yield from leaves(each)
    else:
        yield value


def _shown(value: Any, views: Views) -> Any:
    """Return the arguments with NumPy views for the NDArrays in them, waited for and noted in `views`."""
    if isinstance(value, NDArray):
        shown = value._now
        shown.wait_to_read()
        views.append(read_only(shown._storage()))
        return views[-1]
    kind = cast("Any", type(value))  # exactly: subclasses have meanings of their own
    if kind in _SEQUENCES:
        return kind([_shown(each, views) for each in value])
    if kind is dict:
        return {key: _shown(each, views) for key, each in value.items()}
    return value


def _own(value: Any, views: Views, outputs: Mapping[int, Any], engine: Engine) -> Any:
    """Return NumPy's result with NDArrays in place of arrays, the caller's own for targets."""
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
