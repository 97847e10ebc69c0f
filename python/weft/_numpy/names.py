"""The pairs of weft's functions and NumPy's, and the arguments of a function."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

#: Functions of weft with a NumPy namesake that does something else.
_FALSE_FRIENDS = frozenset(["load", "save"])
_NAMESPACES = {"numpy": "weft", "numpy.linalg": "weft.linalg", "numpy.fft": "weft.fft"}


@functools.cache
def namesake(func: Any) -> Callable[..., Any] | None:
    """Return weft's function of the same name and namespace."""
    name = func.__name__
    module = "numpy" if isinstance(func, np.ufunc) else func.__module__
    namespace = sys.modules.get(_NAMESPACES.get(module, ""))
    if namespace is None or name in _FALSE_FRIENDS or name not in namespace.__all__:
        return None
    own = getattr(namespace, name)
    return own if callable(own) and not isinstance(own, type) else None


@functools.cache
def signature_of(func: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):  # some of NumPy's C functions have none
        return None


@functools.cache
def original(own: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return NumPy's function of the name and the namespace of one of weft's."""
    name = own.__name__
    namespace: Any = {"weft._ops.linalg": np.linalg, "weft._ops.fft": np.fft}.get(own.__module__, np)
    return None if name in _FALSE_FRIENDS else getattr(namespace, name, None)
