"""The variables of objects: behind `Engine.variable_of`."""

from __future__ import annotations

import contextlib
import sys
import weakref
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from weft._core import NDArray
from weft._engine import owners
from weft._engine.owners import owner_of, weakly_referenceable
from weft.errors import ArgumentTypeError, WeftError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft._core import Variable


class ObjectVariables:
    """The variables of objects, one for each owner of memory, for as long as the owner lives.

    Safe to use from any thread, and from callbacks of the garbage collector.

    Parameters
    ----------
    new_variable : Callable
        Makes a variable from its name. If it is a method, its object is not kept alive by it.
    """

    __slots__ = ("__weakref__", "_entries", "_new_variable")
    #: All that live, to find the object of a variable.
    living: ClassVar[weakref.WeakSet[ObjectVariables]] = weakref.WeakSet()

    def __init__(self, new_variable: Callable[[str], Variable]) -> None:
        self._new_variable = _without_owning(new_variable)
        self._entries: dict[int, tuple[weakref.ref[Any], Variable]] = {}
        self.living.add(self)

    def __len__(self) -> int:
        """Return the number of owners with a variable."""
        return len(self._entries)

    def newest(self) -> Iterator[tuple[Any, Variable]]:
        """Yield owners that live with their variables, those first that were entered last."""
        for reference, variable in reversed([*self._entries.values()]):
            owner = reference()
            if owner is not None:
                yield owner, variable

    def variable_of(self, obj: object) -> Variable:
        """Return the variable of the memory of `obj`, making it at the first call.

        Parameters
        ----------
        obj : object
            An object; views of the same memory have the same variable.

        Returns
        -------
        Variable
            The variable, a new one if it was deleted by hand. Its deletion is pushed when the owner of the memory dies.

        Raises
        ------
        ArgumentTypeError
            If the object cannot be weakly referenced, so that its end would go unnoticed; if it is an NDArray, which
            has variables of its own.
        """
        if isinstance(obj, NDArray):
            raise ArgumentTypeError(
                "an NDArray keeps its variables to itself: name the array itself in read_vars, mutate_vars or "
                "overwrite_vars, and wait by its own wait_to_read()"
            )
        owner = owner_of(obj)
        key = id(owner)
        entry = self._entries.get(key)  # never of a dead owner: callbacks run before memory is used again
        if entry is None or entry[1]._deleted:
            entry = self._new_entry(key, owner)
        return entry[1]

    def _new_entry(self, key: int, owner: object) -> tuple[weakref.ref[Any], Variable]:
        """Make the entry of `owner`, or return the one that another thread made first."""
        entries = weakref.ref(self)  # a dying engine takes its variables along: then there is nothing to delete

        def delete(_: object, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
            if is_finalizing():  # this module's names may be cleared, and engines are gone
                return
            living = entries()
            if living is not None:
                _delete(living._entries.pop(key)[1])

        if isinstance(owner, PurePath):  # from 3.12 on it takes weak references, and two paths to one file would be two
            raise ArgumentTypeError(_without_variable(owner))
        try:
            reference = weakref.ref(owner, delete)
        except TypeError:
            raise ArgumentTypeError(_without_variable(owner)) from None
        variable = self._new_variable(_called(owner))
        with owners.registry_lock:
            entry = self._entries.get(key)
            if entry is None or entry[1]._deleted:
                self._entries[key] = entry = reference, variable
        if entry[1] is not variable:
            _delete(variable)
        return entry


def _called(owner: object) -> str:
    """Return the name of an object's variable: an array's tells its kind and shape, as an address says nothing to its reader."""
    kind = type(owner).__name__.lstrip("_")
    array: Any = owner
    if isinstance(owner, np.ndarray):
        return f"{kind} {array.shape} {array.dtype}"
    return f"{kind} at {id(owner):#x}"


def _without_variable(obj: object) -> str:
    """Return the reason why an object can have no variable, and the way out."""
    what = _article(type(obj).__name__)
    by_hand = "use Engine.new_variable() and Engine.push()"
    if isinstance(obj, (list, tuple, dict, set, frozenset)):
        return (
            f"{what} can have no variable: name the arrays in it one by one, each an argument of its own, or {by_hand}"
        )
    if obj is None or isinstance(obj, (bool, int, float, complex, str, np.generic)):
        return f"{what} can have no variable, for it never changes: pass it without a tag, or, for a result, an array of shape ()"
    if isinstance(obj, PurePath):
        return (
            f"{what} can have no variable, for it never changes, and another one may name the same file: pass it without "
            f"a tag, beside an object that stands for the file, or {by_hand}"
        )
    return (
        f"{what} can have no variable, because it cannot be weakly referenced: pass a NumPy array, a memoryview or an "
        f"instance of a class (an empty subclass of {type(obj).__name__} may do), or {by_hand}"
    )


def _article(kind: str) -> str:
    return f"an {kind}" if kind[:1] in "aeiou" else f"a {kind}"


def _delete(variable: Variable) -> None:
    """Push the deletion of `variable`, unless it was deleted by hand or its engine is closed."""
    with contextlib.suppress(WeftError):
        variable.engine.delete_variable(variable)


def _without_owning(method: Callable[[str], Variable]) -> Callable[[str], Variable]:
    """Return a callable that does as `method` does and does not keep its object alive."""
    target = getattr(method, "__self__", None)
    if target is None or not weakly_referenceable(target):
        return method
    reference = weakref.ref(target)
    name = method.__name__

    def call(variable_name: str) -> Variable:
        made: Variable = getattr(reference(), name)(variable_name)
        return made

    return call
