"""One call of a task as the callable of its op: values in place of handles and arrays, retries, the result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import NDArray, _Answering, recording
from weft._engine.task_handle import resolved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft._engine.guards import Guard
    from weft._engine.task_bytes import Held
    from weft._engine.task_handle import Outcome


_MORE = "weft: ... and {} more like this"
_COUNTED = re.compile(re.escape(_MORE).replace(r"\{\}", "([0-9]+)"))


class TaskCall:
    """A call that gets values in place of arrays and handles once its op runs, and that leaves its result.

    Parameters
    ----------
    function : Callable
        The task's function.
    args, kwargs
        The arguments of the call.
    shown : set of int
        The identities of the NumPy arrays, and of the handles of such, that the function gets as read-only views, and of the
        NDArrays that it gets as NumPy arrays: the op accesses no others.
    replaced : bool
        Whether arguments have to be replaced: there is a handle, or something in `shown`.
    retries : int
        How often the function is called again after an `Exception`.
    outcome : Outcome
        The place of the result.
    held : Held or None
        The arrays that the call holds, for the engine's count of bytes.
    """

    __slots__ = ("_args", "_function", "_held", "_kwargs", "_outcome", "_replaced", "_retries", "_shown")

    def __init__(
        self,
        function: Callable[..., object],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        shown: set[int],
        *,
        replaced: bool,
        retries: int,
        outcome: Outcome,
        held: Held | None,
    ) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        self._shown, self._replaced = shown, replaced
        self._retries, self._outcome, self._held = retries, outcome, held

    def __call__(self) -> None:
        args, kwargs = self._args, self._kwargs
        if self._replaced:
            copies: dict[int, Any] = {}
            args = tuple([self._value(each, copies) for each in args])
            kwargs = {name: self._value(each, copies) for name, each in kwargs.items()}
        for left in range(self._retries, -1, -1):
            try:
                self._outcome.value = self._function(*args, **kwargs)
            except Exception as error:
                if left:
                    continue
                if isinstance(error, ValueError):
                    _explain(error)
                _fold_notes(error)
                raise
            return

    def arguments(self) -> tuple[Any, ...]:
        """Return what the call was given."""
        return (*self._args, *self._kwargs.values())

    def _value(self, argument: Any, copies: dict[int, Any]) -> Any:
        value = resolved(argument, copies)
        if id(argument) not in self._shown:
            return value
        if isinstance(argument, NDArray):
            return argument._values()
        return _read_only(value) if isinstance(value, np.ndarray) else value


class GuardedCall:
    """A call that makes its arrays read-only for others until it is over.

    Parameters
    ----------
    call : TaskCall
        The call.
    guard : Guard
        The hold on its arrays.
    lent : list of numpy.ndarray
        Arrays that the function changes and was not given.
    """

    __slots__ = ("_call", "_guard", "_lent")

    def __init__(self, call: TaskCall, guard: Guard, lent: list[np.ndarray[Any, Any]]) -> None:
        self._call, self._guard, self._lent = call, guard, lent

    def __call__(self) -> None:
        self._guard.begin(self._call.arguments(), self._lent)
        try:
            self._call()
        finally:
            self._guard.release()


def payload_of(call: TaskCall, guard: Guard | None, mutates: Iterable[object]) -> Callable[..., object]:
    """Return what is pushed for a call.

    Parameters
    ----------
    call : TaskCall
        The call.
    guard : Guard or None
        The hold on its arrays, if they are guarded.
    mutates : iterable of object
        What the function changes and was not given.

    Examples
    --------
    >>> import weft
    >>> from weft._engine.task_call import TaskCall, payload_of
    >>> from weft._engine.task_handle import Outcome
    >>> call = TaskCall(len, ("four",), {}, set(), replaced=False, retries=0, outcome=Outcome(), held=None)
    >>> payload_of(call, None, ()) is call
    True
    """
    if guard is None:
        return call
    guarded = GuardedCall(call, guard, [each for each in mutates if isinstance(each, np.ndarray)])
    # An op that is skipped lets go of its payload some time after it has ended.
    return guarded if recording() is not None else _Answering(guarded, guard.release)


def _explain(error: ValueError) -> None:
    if "read-only" in str(error) and not getattr(error, "__notes__", ()):
        error.add_note(
            "weft: in a task arrays are read-only, except for arguments tagged weft.Mutate or weft.Overwrite: tag the one "
            "that it writes to"
        )


def _fold_notes(error: BaseException) -> None:
    """Count the places of pushes that a failure has noted again and again, on its way through tasks that wait for each other."""
    notes: Any = getattr(error, "__notes__", None)
    if not isinstance(notes, list):
        return  # none, or something of a user's
    listed = cast("list[object]", notes)
    first, second, last = map(str, listed[-3:]) if len(listed) > 2 else ("", "", "")
    if not last.startswith("weft: op "):
        return
    if first == second == last:
        listed[-1:] = [_MORE.format(1)]
    elif first == last and (found := _COUNTED.fullmatch(second)):
        listed[-2:] = [_MORE.format(int(found[1]) + 1)]


def _read_only(array: Any) -> Any:
    """Return a view that cannot be written through: a task cannot change by mistake the arguments that it only reads."""
    view = array.view()
    view.flags.writeable = False
    return view
