"""Arguments as NumPy's functions take them, given to weft's.

The array API's functions have positional arrays and keywords, NumPy's have positions for all, and some other names. Both
ways are taken: by NumPy's functions on NDArrays, and by weft's own functions in a script that was written for NumPy.
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from weft._core import ArrayFunction
from weft._numpy.names import original, signature_of
from weft._ops.sorting import is_stable
from weft._registry.sieve import sifted
from weft._registry.symbol_hook import UnknownFactError, deferred, deferring

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    F = TypeVar("F", bound="Callable[..., Any]")

_NO_VALUE: Any = getattr(np, "_NoValue", inspect.Parameter.empty)
#: NumPy's names for arguments of ours.
_RENAMED = {"a_min": "min", "a_max": "max", "ddof": "correction", "rcond": "rtol"}
#: Values of NumPy's `order` that are taken here: elements of new arrays lie in C order.
_ORDERS = (None, "C", "K", "A")


def completed(room: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public names of a module of weft's: its functions lenient, those of others as deferring, its classes as its own.

    Parameters
    ----------
    room : str
        The module, ``weft.<room>``, whose bodies are in ``weft._ops.<room>``.
    names : mapping of str to object
        What it shows.
    """
    found = dict(names)
    for name, each in names.items():
        is_own = getattr(each, "__module__", "") == f"weft._ops.{room}"
        if isinstance(each, FunctionType | ArrayFunction):
            found[name] = (lenient if is_own else deferring)(f"{room}.{name}", each)
        elif is_own:
            each.__module__ = f"weft.{room}"  # where pickles look for it
    return found


def lenient(name: str, function: F) -> F:
    """Return the function of this name so that it takes its arguments as NumPy's does, too, and raises errors of weft alone.

    Examples
    --------
    >>> import weft
    >>> weft.clip(weft.asarray([1, 5, 9]), a_min=2, a_max=8)
    NDArray([2, 5, 8])
    """
    return cast("F", functools.wraps(function)(ArrayFunction(name, function, _forgive)))


def _forgive(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> tuple[Any] | None:
    """Call a function once more with arguments as NumPy's takes them, or raise weft's error; return None where the error stands."""
    if isinstance(error, UnknownFactError):
        return (deferred(name, args, kwargs, error),)
    # One of the function's own says nothing of its arguments' names and places.
    if isinstance(error, TypeError) and error.__traceback__ is None:
        theirs = original(function)
        adapted = None if theirs is None else adapt(theirs, function, args, kwargs)
        if adapted is not None:
            return (lenient(name, function)(*adapted[0], **adapted[1]),)
    refusal = sifted(error)
    if refusal is error:
        return None
    raise refusal from error


def adapt(
    func: Callable[..., Any], own: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """Return arguments for `own` with the meaning of these for NumPy's `func`; None if it has no such arguments.

    An argument that `own` knows by its name is given by name, another by its place, and one that only NumPy knows may be
    left out if it has its default.
    """
    theirs, ours = signature_of(func), signature_of(own)
    if ours is None:
        return list(args), dict(kwargs)
    if theirs is not None:
        try:
            bound = theirs.bind(*args, **kwargs)
        except TypeError:
            return None
        moved = _by_name(bound, ours)
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
    theirs = bound.signature.parameters
    for given, value in bound.arguments.items():
        parameter = theirs[given]
        name = given if given in ours.parameters else _RENAMED.get(given, given)
        if parameter.kind is kinds.VAR_POSITIONAL:
            if not swallows:
                return None
            positional.extend(value)
        elif parameter.kind is kinds.VAR_KEYWORD:
            named.update(value)
        elif value is _NO_VALUE or _is_default(value, parameter.default) or (name == "order" and value in _ORDERS):
            continue
        elif name == "kind" and "stable" in keywords and isinstance(value, str):
            named["stable"] = is_stable(value)
        elif name in keywords or name in places[len(positional) :]:
            if name in places and places.index(name) == len(positional) and not named:
                positional.append(value)
            else:
                named[name] = value
        elif _is_called_otherwise(given, list(theirs), places[len(positional) :], len(positional)) and not named:
            positional.append(value)
        else:
            return None
    return positional, named


def _is_called_otherwise(given: str, theirs: list[str], places: list[str], place: int) -> bool:
    """Return whether the next of our arguments is NumPy's `given` under another name, rather than another one of NumPy's."""
    return theirs.index(given) == place and bool(places) and places[0] not in theirs


def _is_default(value: object, default: object) -> bool:
    return value is default or (
        isinstance(value, bool | int | float | str) and type(value) is type(default) and value == default
    )
