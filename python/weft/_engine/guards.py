"""Guards of NumPy arrays with pending tasks, which ``WEFT_CHECK=1`` and ``Engine(check=True)`` switch on.

While a task is pending on an array, all others find the array read-only, so that a statement between two calls that writes to
it raises instead of racing. NumPy keeps the flag with each array object and asks bases when it is set, hence:

| object | finds |
|---|---|
| the array that the task was given, and the arrays whose memory it shows, up to the owner | read-only, until no task is pending on the memory |
| a view that is made meanwhile | read-only, for good |
| a view from before | as it was: a write through it goes unseen |
| the function of the task | a view of the array from before the guard, or from one of its owner |

Reads go unseen, too: memory cannot be guarded against them.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from weft._core import recording
from weft._engine.owners import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from weft._core import Variable

_lock = threading.RLock()  # reentrant: the collector may end a `Guard` under it
_recorded = threading.local()  # its `calls` are the guards of calls that this thread records
_guarded: dict[int, _Memory] = {}  # by the identity of the owner, which pending calls keep alive


class _Memory:
    """Memory with pending calls."""

    __slots__ = ("bytes", "calls", "closed", "lent")

    def __init__(self, owner: np.ndarray[Any, Any]) -> None:
        #: Its bytes in their order, a view that was made while it could be written to.
        self.bytes = _bytes_of(owner) if _can_reopen(owner) else None
        #: The arrays that were made read-only, by their identities, the owner first.
        self.closed: dict[int, weakref.ref[np.ndarray[Any, Any]]] = {}
        self.calls: list[Guard] = []
        #: Functions that run and write to it though they were not given it.
        self.lent = 0

    def close(self, array: np.ndarray[Any, Any], *, changes: bool = False) -> None:
        """Make an array and the owners of its memory read-only; one that a task changes can be written to in the end."""
        if changes and not array.flags.writeable and _shows_closed(array, self.closed):
            self.closed[id(array)] = weakref.ref(array)  # it may be a view that was made since
        chain = [array]
        while _is_array(chain[-1].base):
            chain.append(chain[-1].base)
        for each in reversed(chain):
            if not self.lent and _can_reopen(each) and not any(call.has_in_use(each) for call in self.calls):
                each.flags.writeable = False
                self.closed[id(each)] = weakref.ref(each)

    def open(self) -> None:
        """Undo that."""
        for reference in self.closed.values():
            array = reference()
            if array is not None:
                array.flags.writeable = True
        self.closed.clear()

    def writeable(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return an array of the same elements that can be written to, if the memory can."""
        if array.flags.writeable:
            return array.view()
        if self.bytes is None or not _shows_closed(array, self.closed):
            return array
        offset = array.__array_interface__["data"][0] - self.bytes.__array_interface__["data"][0]
        found: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, self.bytes, offset, array.strides)
        return found if type(array) is np.ndarray else found.view(type(array))


class Guard:
    """The arrays of one pending call, which others find read-only until it is released.

    Parameters
    ----------
    label : str
        The task.
    variable : Variable
        That of the call, which is ready when it is over.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._engine.guards import Guard
    >>> x = numpy.ones(2)
    >>> guard = Guard("double", weft.get_engine().new_variable())
    >>> function_gets = guard.hold(x)
    >>> x.flags.writeable, function_gets.flags.writeable
    (False, True)
    >>> guard.release()
    >>> x.flags.writeable
    True
    """

    __slots__ = ("__weakref__", "_given", "_lent", "_owners", "label", "place", "variable")

    def __init__(self, label: str, variable: Variable) -> None:
        self.label, self.variable = label, variable
        self.place = _place()
        self._owners: dict[int, object] = {}
        self._lent: list[_Memory] = []
        self._given: list[np.ndarray[Any, Any]] = []

    def hold(self, array: np.ndarray[Any, Any], *, changes: bool = True) -> np.ndarray[Any, Any]:
        """Make an array read-only for others, and return its substitute in a function that changes it."""
        owner = owner_of(array)
        if not _is_array(owner) or owner.dtype.hasobject or array.dtype.hasobject:
            return array
        key = id(owner)
        with _lock:
            memory = _guarded.get(key)
            if memory is None:
                memory = _guarded[key] = _Memory(owner)
            if key not in self._owners:
                self._owners[key] = owner
                memory.calls.append(self)
            stands_for = memory.writeable(array) if changes else array
            memory.close(array, changes=changes)
        return stands_for

    def begin(self, given: Iterable[object], mutates: Iterable[np.ndarray[Any, Any]]) -> None:
        """Let a function that begins write to what it was given, and to arrays that it was not: to these everybody can, meanwhile."""
        with _lock:
            self._given = [each for each in given if _is_array(each)]
            for array in mutates:
                memory = _guarded.get(id(owner_of(array)))
                if memory is not None:
                    memory.lent += 1
                    self._lent.append(memory)
                    memory.open()

    def has_in_use(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether the call runs and was given this array."""
        return any(each is array for each in self._given)

    def is_over(self) -> bool:
        """Return whether the call was pushed and has ended."""
        return self.variable.version > 0 and self.variable.is_ready()

    def release(self) -> None:
        """Give the arrays back to everybody, but for those with other calls pending."""
        with _lock:
            self._given = []
            while self._lent:
                self._lent.pop().lent -= 1
            for key in list(self._owners):
                memory = _guarded.get(key)
                owner = self._owners.pop(key)
                if memory is None or self not in memory.calls:
                    continue
                memory.calls.remove(self)
                if not memory.calls:
                    del _guarded[key]
                    memory.open()
                elif _is_array(owner):
                    memory.close(owner)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        """Release the holds of a call that was dropped unrun."""
        if not is_finalizing():  # this module's names may be cleared
            self.release()


def guarded(
    guard: Guard,
    tagged: tuple[list[Any], set[int]],
    declared: tuple[Iterable[object], Iterable[object]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Make the arrays of a call read-only for others, and return its arguments.

    Parameters
    ----------
    guard : Guard
        That of the call.
    tagged : (list, set of int)
        The arrays among the arguments, and the identities of those that are only read.
    declared : (iterable, iterable)
        The objects that the function reads, and those that it changes, besides its arguments.
    args, kwargs
        The arguments.

    Returns
    -------
    (tuple, dict)
        The arguments, with views that can be written to in place of the arrays that the function changes.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._engine.guards import Guard, guarded
    >>> x, guard = numpy.ones(2), Guard("double", weft.get_engine().new_variable())
    >>> (given, number), named = guarded(guard, ([x], set()), ((), ()), (x, 3), {})
    >>> given.flags.writeable, x.flags.writeable, number, named
    (True, False, 3, {})
    >>> guard.release()
    """
    watch()
    if recording() is not None:
        calls: list[Guard] = _recorded.__dict__.setdefault("calls", [])
        calls.append(guard)
    arrays, shown = tagged
    stand_ins: dict[int, np.ndarray[Any, Any]] = {}
    for array in arrays:
        if _is_array(array):
            stand_ins[id(array)] = guard.hold(array, changes=id(array) not in shown)
    for each, changes in [(each, False) for each in declared[0]] + [(each, True) for each in declared[1]]:
        if _is_array(each):
            guard.hold(each, changes=changes)
    return (
        tuple([stand_ins.get(id(each), each) for each in args]),
        {name: stand_ins.get(id(each), each) for name, each in kwargs.items()},
    )


def settle() -> None:
    """Release the holds of finished calls: a wait may end before the engine has dropped those that it skipped.

    Examples
    --------
    >>> from weft._engine.guards import settle
    >>> settle()  # nothing is held
    """
    if _guarded:
        with _lock:
            over = [call for memory in _guarded.values() for call in memory.calls if call.is_over()]
        for call in over:
            call.release()


def end_recording() -> None:
    """Release the holds of the calls that this thread has recorded: none of them is pending.

    Examples
    --------
    >>> from weft._engine.guards import end_recording
    >>> end_recording()  # nothing was recorded
    """
    for guard in _recorded.__dict__.pop("calls", ()):
        guard.release()


def watch() -> None:
    """Let the interpreter say, where a program ends by writing to a guarded array, which task holds it.

    Examples
    --------
    >>> from weft._engine.guards import watch
    >>> watch()
    """
    global _hook
    if sys.excepthook is not _explain:
        _hook, sys.excepthook = sys.excepthook, _explain


_hook = sys.excepthook


def _explain(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if isinstance(error, ValueError) and "read-only" in str(error):
        for line in _holders(traceback) or [_SAID]:
            error.add_note(line)
    _hook(kind, error, traceback)


_SAID = "weft: checks are on (WEFT_CHECK, Engine(check=True)): arrays with pending tasks are read-only to all others"


def _holders(traceback: TracebackType | None) -> list[str]:
    """Return which tasks hold arrays that are named where an exception was raised."""
    if traceback is None:
        return []
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    frame = traceback.tb_frame
    used = frame.f_code.co_names + frame.f_code.co_varnames + frame.f_code.co_freevars + frame.f_code.co_cellvars
    lines: list[str] = []
    for name in dict.fromkeys(used):
        value = frame.f_locals.get(name, frame.f_globals.get(name))
        if _is_array(value) and not value.flags.writeable:
            memory = _guarded.get(id(owner_of(value)))
            lines += [
                f"weft: task {call.label!r}{call.place} was given {name!r} and may not have ended: "
                f"weft.wait({name}) before this line, or do it in a task"
                for call in ([] if memory is None else memory.calls[-1:])
            ]
    return lines


def _place() -> str:
    """Return where in the user's program the call stands."""
    frame = sys._getframe(1)
    inside = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - once for each call of a task
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return f", pushed at {frame.f_code.co_filename}:{frame.f_lineno},"


def _can_reopen(array: np.ndarray[Any, Any]) -> bool:
    """Return whether an array can be written to, and again after it was made read-only."""
    if not array.flags.writeable:
        return False
    base: Any = array.base
    while _is_array(base) and not base.flags.owndata and base.base is not None:
        base = base.base
    if base is None or _is_array(base):
        return array.flags.owndata if base is None else base.flags.owndata
    exporter: Any = base
    try:
        return not memoryview(exporter).readonly
    except TypeError:
        return False


def _bytes_of(owner: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    plain = owner.view(np.ndarray)
    whole = plain if plain.flags.c_contiguous else plain.T
    if not whole.flags.c_contiguous or not plain.dtype.itemsize:
        return None
    return whole.reshape(-1).view(np.uint8)


def _is_array(obj: object) -> TypeGuard[np.ndarray[Any, Any]]:
    return isinstance(obj, np.ndarray)


def _shows_closed(array: np.ndarray[Any, Any], closed: dict[int, weakref.ref[np.ndarray[Any, Any]]]) -> bool:
    """Return whether an array is read-only because the owner of its memory was made so."""
    at: Any = array
    while _is_array(at):
        known = closed.get(id(at))
        if known is not None and known() is at:
            return True
        at = at.base
    return False


def _after_fork_child() -> None:
    """Give all arrays back: nothing is pending in the child."""
    global _lock  # noqa: PLW0603 - a module's lock is a global
    _lock = threading.RLock()
    for memory in _guarded.values():
        memory.open()
        memory.calls.clear()
    _guarded.clear()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_after_fork_child)
