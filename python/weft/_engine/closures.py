"""Arrays that a function reads from its module or its enclosing functions, and that a task has not declared."""

from __future__ import annotations

import dis
import functools
import inspect
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._engine.owners import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


def undeclared_arrays(function: Callable[..., object], declared: Iterable[object]) -> list[tuple[str, Any]]:
    """Return names and values of the arrays that `function` takes from outside its arguments, without the declared ones.

    Constants (NumPy arrays that nothing can write to) are left out. Arrays behind attributes, items and calls are not seen.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._engine.closures import undeclared_arrays
    >>> totals = np.zeros(3)
    >>> [name for name, _ in undeclared_arrays(lambda: totals.sum(), [])]
    ['totals']
    >>> undeclared_arrays(lambda: totals.sum(), [totals])
    []
    """
    plain = _plain(function)
    if plain is None:
        return []
    known = list(declared)
    found = {name: value for name, value in _outside(plain) if _is_variable(value)}
    return [(name, value) for name, value in found.items() if not any(_same_memory(value, each) for each in known)]


def _plain(function: Any) -> FunctionType | None:
    """Return the Python function behind decorators, bound methods and partials; None for anything else."""
    found = inspect.unwrap(function)
    while isinstance(found, functools.partial):
        found = inspect.unwrap(found.func)
    found = getattr(found, "__func__", found)
    return found if isinstance(found, FunctionType) else None


def _outside(function: FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # assigned later
            continue
    names: set[str] = set()
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        pending += [each for each in code.co_consts if isinstance(each, CodeType)]
        names.update(each.argval for each in dis.get_instructions(code) if each.opname == "LOAD_GLOBAL")
    for name in sorted(names & function.__globals__.keys()):
        yield name, function.__globals__[name]


def _is_variable(value: Any) -> bool:
    """Return whether `value` is an array that an op could change."""
    return isinstance(value, NDArray) or any(map(_is_writable, (value, owner_of(value))))


def _is_writable(value: Any) -> bool:
    return isinstance(value, np.ndarray) and bool(value.flags.writeable)


def _same_memory(one: Any, other: object) -> bool:
    if isinstance(one, NDArray):
        return isinstance(other, NDArray) and one._shares_buffer(other)
    return owner_of(one) is owner_of(other)
