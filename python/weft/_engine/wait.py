"""Waiting for objects: `wait`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import SupportsFloat

from weft._core import Engine, NDArray, Variable
from weft._engine.default import get_engine
from weft._engine.guards import settle
from weft._engine.task_handle import TaskHandle
from weft._trace.stall import name_running
from weft.errors import ArgumentTypeError, ArgumentValueError, UndeclaredAccessWarning, WaitTimeoutError

_SHOWN = 3  # ops, as many as a line has


def wait(*objs: object, timeout: float | None = None) -> None:
    """Wait until every task pushed so far that changes `objs` is done.

    Without arguments, wait for everything pushed on the default engine.

    Parameters
    ----------
    *objs : object
        Objects that were given to tasks on the default engine, or handles of tasks, variables and arrays of any engine. A view of a
        NumPy array stands for the array that owns the memory.
    timeout : float, optional
        The most seconds to wait for all of them together; None waits without limit.

    Raises
    ------
    WaitTimeoutError
        If the time runs out. The ops go on.
    DeadlockError
        If called inside an op that accesses one of `objs` itself.
    ArgumentTypeError
        If an object can have no variable, being neither a variable nor weakly referenceable.
    BaseException
        Where an op failed, the exception that it raised; where several `objs` failed by several exceptions, all of
        them as an `ExceptionGroup`, after all of `objs` have been waited for.

    Warns
    -----
    UndeclaredAccessWarning
        If no op on the default engine was ever told to change an object: there is nothing to wait for.

    See Also
    --------
    Engine.wait_for_var : Wait for one variable.
    Engine.wait_for_all : Wait for all ops of an engine.

    Examples
    --------
    >>> import numpy, weft
    >>> @weft.task
    ... def double(x: weft.Mutate[numpy.ndarray]) -> None:
    ...     x *= 2
    >>> x = numpy.ones(3)
    >>> doubling = double(x)
    >>> weft.wait(x)
    >>> x
    array([2., 2., 2.])
    """
    _check_timeout(timeout)
    # All variables first: an object without one is reported before any time is spent.
    waited = list(map(_waited, objs))
    try:
        if waited:
            _wait_for(waited, timeout)
        else:
            get_engine().wait_for_all(timeout)
    finally:
        settle()


def _wait_for(waited: list[Variable | NDArray], timeout: float | None) -> None:
    deadline = None if timeout is None else time.monotonic() + timeout
    failures: list[Exception] = []
    for one in waited:
        left = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            if isinstance(one, NDArray):
                one.wait_to_read(left)
            else:
                one.engine.wait_for_var(one, left)
        except WaitTimeoutError as error:
            raise WaitTimeoutError(f"{error}{_running(one.engine)}") from None
        except Exception as error:
            failure = one.exception()
            # An error of the wait itself. An op's is the same object, or, where no callable raised it, made anew.
            if failure is not error and (type(failure), str(failure)) != (type(error), str(error)):
                raise
            _add(failures, error)
    _raise(failures)


def _add(failures: list[Exception], error: Exception) -> None:
    if not any(error is failure for failure in failures):
        failures.append(error)


def _raise(failures: list[Exception]) -> None:
    if len(failures) == 1:
        raise failures[0]
    if failures:
        msg = "several ops failed"
        raise ExceptionGroup(msg, failures)


def _running(engine: Engine) -> str:
    """Return an engine's running ops, as the end of a message."""
    report = engine._stall_report()
    name_running(report)
    shown = [
        f"{each['label']} (pushed at {each['place']})" if each["place"] else each["label"] for each in report["running"]
    ]
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    verb = "runs" if len(shown) == 1 else "run"
    return f": {', '.join(shown[:_SHOWN])}{more} {verb}" if shown else ""


async def wait_async(*objs: object) -> None:
    """Wait in asyncio until every task pushed so far that changes `objs` is done, without blocking the event loop.

    Arrays, variables and handles can be awaited one by one, too, and `asyncio.gather` takes them. `asyncio.wait` takes tasks
    alone: `asyncio.create_task` makes one of what this function returns.

    Parameters
    ----------
    *objs : object
        As in `wait`, at least one.

    Raises
    ------
    TypeError
        If nothing is given.
    BaseException
        Where an op failed, the exception that it raised; where several `objs` failed by several exceptions, all of
        them as an `ExceptionGroup`, after all of `objs` have been waited for.

    Examples
    --------
    >>> import asyncio, weft
    >>> async def main() -> list[float]:
    ...     x, y = weft.ones(2) + 1, weft.ones(3) * 3
    ...     await weft.wait_async(x, y)
    ...     return [*x.tolist(), *y.tolist()]
    >>> asyncio.run(main())
    [2.0, 2.0, 3.0, 3.0, 3.0]
    """
    if not objs:
        raise ArgumentTypeError(
            "wait_async() takes what to wait for: arrays, variables, handles of tasks, objects of tasks"
        )
    failures: list[Exception] = []
    try:
        for one in list(map(_waited, objs)):
            try:
                await one
            except Exception as error:  # noqa: BLE001 - an op may raise anything
                _add(failures, error)
    finally:
        settle()
    _raise(failures)


def _check_timeout(timeout: object) -> None:
    """Reject a value that is no time, before any of it is spent."""
    wanted = "timeout must be None or a number of seconds of at least 0, not"
    if timeout is None:
        return
    if not isinstance(timeout, SupportsFloat):
        raise ArgumentTypeError(f"{wanted} {type(timeout).__name__}")
    try:
        seconds = float(timeout)
    except OverflowError:
        seconds = -1.0
    if not seconds >= 0:  # nor NaN
        raise ArgumentValueError(f"{wanted} {timeout!r}")


def _waited(obj: object) -> Variable | NDArray:
    """Return the variable or array that tells when an object is ready."""
    if isinstance(obj, TaskHandle):
        return obj._variable
    if isinstance(obj, (Variable, NDArray)):
        return obj
    try:
        variable = get_engine().variable_of(obj)
    except ArgumentTypeError:
        if issubclass(type(obj), Iterable) and not isinstance(obj, (str, bytes, bytearray)):
            raise ArgumentTypeError(_of_items(obj)) from None
        raise
    if not variable.version:
        if issubclass(type(obj), (Iterator, set, frozenset)):
            raise ArgumentTypeError(_of_items(obj))
        kind = type(obj).__name__
        warnings.warn(
            f"weft.wait: no op on the default engine was ever told to change this {kind}, so there is nothing to wait for: "
            "it is an argument of no task, tagged weft.Mutate or weft.Overwrite, and in no mutates= of one",
            UndeclaredAccessWarning,
            stacklevel=3,  # a comprehension between would have a frame in some versions of Python
        )
    return variable


def _of_items(obj: object) -> str:
    """Return how to wait for what is in an object that can have no variable, or that no op knows."""
    kind = type(obj)
    values = ".values()" if issubclass(kind, Mapping) else ""
    return (
        f"weft.wait: what is in a {kind.__name__} is waited for as arguments of their own: write weft.wait(*x{values})"
    )
