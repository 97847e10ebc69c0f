"""NumPy's functions, called on NDArrays: weft's of the same name, where its arguments say the same; else NumPy's."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array.copies import copy_cast
from weft._array.numpy_calls import compute_by_numpy
from weft._array.numpy_names import namesake, signature_of
from weft._array.operands import as_array
from weft._array.places import check_writable
from weft._core import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["__array_function__"]

#: NumPy's functions that write to their first argument.
_WRITERS = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])
_NO_VALUE: Any = getattr(np, "_NoValue", inspect.Parameter.empty)


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
        return compute_by_numpy(func, args, kwargs, writes=True)
    if func in _FACTS:
        return _FACTS[func](*args, **kwargs)
    own = namesake(func)
    if own is not None:
        adapted = _adapt(func, own, args, kwargs)
        if adapted is not None:
            return own(*adapted[0], **adapted[1])
    return compute_by_numpy(func, args, kwargs)


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


def _adapt(
    func: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return arguments for `own` that mean what these mean to NumPy's `func`; None if it has no such arguments.

    The standard has positional arrays and keywords, NumPy positions for all: an argument that `own` knows by its name
    is given by name, another by its place, and one that only NumPy knows may be left out if it has its default.
    """
    theirs, ours = signature_of(func), signature_of(own)
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
