"""`TaskHandle`: one call of a task, and its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from weft._engine.guards import settle
from weft._engine.handle_hints import refuse_results
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Generator

    from typing_extensions import TypeVar

    from weft._core import Variable

    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    R = TypeVar("R")


class Outcome:
    """The place of a call's result: the op fills it, the handle reads it. It goes with the last of both."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None


class TaskHandle(Generic[R]):
    """One call of a task: to wait for, to await, to ask for its result, or to give to another task.

    Made by calling a `task`. Dropping it changes nothing: the op runs all the same, and its result goes.

    While a function is recorded its tasks are not called: questions to their handles raise `CaptureError`, and so do those to a handle
    that was kept from there, as long as no call of the program has run the task.

    A handle among the arguments of another task, also inside of lists, tuples and dicts, is a dependency: that task runs
    after this one, and gets the result in place of the handle.

    Examples
    --------
    >>> import weft
    >>> @weft.task
    ... def read(name: str) -> list[str]:
    ...     return [name, name.upper()]
    >>> @weft.task
    ... def count(rows: list[str]) -> int:
    ...     return len(rows)
    >>> count(read("a")).result()
    2
    """

    __slots__ = ("_outcome", "_variable")

    def __init__(self, variable: Variable, outcome: Outcome) -> None:
        self._variable = variable  # of this call alone, which is all that ever writes to it
        self._outcome = outcome

    def result(self, timeout: float | None = None) -> R:
        """Wait until the op is done, and return the function's return value.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait; None waits without limit.

        Returns
        -------
        object
            The very object that the function returned.

        Raises
        ------
        WaitTimeoutError
            If the time runs out. The op goes on.
        BaseException
            The exception of the op, or of an op whose result it was to read.
        """
        self.wait(timeout)
        found: R = self._outcome.value
        return found

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the op is done.

        Parameters
        ----------
        timeout : float, optional
            The most seconds to wait; None waits without limit.

        Raises
        ------
        WaitTimeoutError
            If the time runs out. The op goes on.
        BaseException
            The exception of the op, or of an op whose result it was to read.
        """
        try:
            self._variable.engine.wait_for_var(self._variable, timeout)
        finally:
            settle()
        self._check_called()

    def done(self) -> bool:
        """Return whether the op has run, failed, or been dropped, without waiting."""
        ready = self._variable.is_ready()
        settle()
        self._check_called()
        return ready

    def exception(self) -> BaseException | None:
        """Return the exception of the op; None if it has not failed, or not yet."""
        raised = self._variable.exception()
        settle()
        self._check_called()
        return raised

    def __await__(self) -> Generator[Any, None, R]:
        """Wait in asyncio, without blocking the event loop or any thread; the value is the result."""
        try:
            yield from self._variable.__await__()
        finally:
            settle()
        self._check_called()
        found: R = self._outcome.value
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Wait, and return the result as a NumPy array: so arrays of handles are arrays of results."""
        return np.array(self.result(), dtype=dtype, copy=copy)

    def __bool__(self) -> bool:
        """Wait, and return whether the result is true: ``if converged(x):`` decides as it does in a serial program."""
        return bool(self.result())

    def __int__(self) -> int:
        """Wait, and return the result as an integer."""
        return int(self.result())  # type: ignore[call-overload, no-any-return] # it names the fault

    def __float__(self) -> float:
        """Wait, and return the result as a floating-point number."""
        return float(self.result())  # type: ignore[arg-type] # as above

    def __complex__(self) -> complex:
        """Wait, and return the result as a complex number."""
        return complex(self.result())  # type: ignore[call-overload, no-any-return] # as above

    def _check_called(self) -> None:
        """Refuse questions to a handle that was kept from a recording, until a call of the program has run the task."""
        if not self._variable.version:
            raise CaptureError(
                f"the task {self._variable.name!r} was recorded, not called, when this handle was made: make the handle, wait for it and "
                "look at its result outside of the recorded function"
            )

    def __repr__(self) -> str:
        """Return the task's name, and the state of the call."""
        if not self._variable.version:
            return f"<weft.TaskHandle of {self._variable.name!r}: recorded>"
        state = "pending" if not self.done() else "done" if self.exception() is None else "failed"
        return f"<weft.TaskHandle of {self._variable.name!r}: {state}>"


refuse_results(TaskHandle)


def handles_in(arguments: tuple[Any, ...]) -> list[TaskHandle[Any]]:
    """Return the handles among arguments, and inside of their lists, tuples and dicts, each container once."""
    if _SEARCHED.isdisjoint(map(type, arguments)):
        return []
    found: list[TaskHandle[Any]] = []
    seen: set[int] = set()
    pending: list[Any] = list(arguments)
    while pending:
        each = pending.pop()
        kind = each.__class__
        if kind is TaskHandle:
            found.append(each)
        elif kind in _CONTAINERS and id(each) not in seen:
            seen.add(id(each))
            pending += each.values() if kind is dict else each
    return found


def resolved(argument: Any, copies: dict[int, Any]) -> Any:
    """Return an argument with results in place of handles; a container that holds none is returned as it is.

    The copies of containers are entered by the identities of these: so what arguments share stays shared.
    """
    kind = argument.__class__
    if kind is TaskHandle:
        return argument._outcome.value
    if kind not in _CONTAINERS:
        return argument
    key = id(argument)
    if key not in copies:
        copies[key] = argument  # a tuple that contains itself, by way of a list, finds itself there
        if handles_in((argument,)):
            _copy(argument, copies)
    return copies[key]


def _copy(container: Any, copies: dict[int, Any]) -> None:
    """Enter the copy of a container with results in place of handles."""
    copy: Any
    if container.__class__ is dict:
        copy = copies[id(container)] = {}
        copy.update((key, resolved(each, copies)) for key, each in container.items())
    elif container.__class__ is list:
        copy = copies[id(container)] = []
        copy.extend(resolved(each, copies) for each in container)
    else:
        copies[id(container)] = tuple([resolved(each, copies) for each in container])


_CONTAINERS = frozenset({list, tuple, dict})
_SEARCHED = _CONTAINERS | {TaskHandle}
