"""Waits in asyncio: an op tells the event loop; behind ``Variable.__await__`` and that of arrays."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from weft._core import _Answering, _StandIn
from weft.errors import OpCancelledError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from weft._core import Variable


def await_variable(variable: Variable) -> Generator[Any, None, None]:
    """Wait, without blocking the event loop or any thread, for the mutations of `variable` pushed so far.

    Cancelling the waiting asyncio task cancels no op.

    Parameters
    ----------
    variable : Variable
        The object of the wait.

    Yields
    ------
    object
        The event loop's own.

    Raises
    ------
    BaseException
        Where the version failed, the exception of the op that failed.
    OpCancelledError
        If the engine was closed with ``cancel=True`` in the meantime.
    RuntimeError
        If no event loop of asyncio runs.

    Examples
    --------
    >>> import asyncio, weft
    >>> async def main() -> int:
    ...     found = []
    ...     with weft.Engine(workers=1) as engine:
    ...         variable = engine.new_variable("found")
    ...         engine.push(lambda: found.append(42), mutate_vars=[variable])
    ...         await variable
    ...     return found[0]
    >>> asyncio.run(main())
    42
    """
    if not variable.is_ready():
        name = f"await {variable.name or 'variable'}"

        def push(answering: _Answering) -> None:
            variable.engine.push(answering, [variable], always_run=True, name=name)

        with _StandIn(variable):
            error = yield from answer_of(push, f"variable {variable.name!r}", variable.exception, lambda: None)
    else:
        error = variable.exception()
    if error is not None:
        raise error


def answer_of(
    push: Callable[[_Answering], object],
    what: str,
    ran: Callable[[], BaseException | None],
    skipped: Callable[[], BaseException | None],
) -> Generator[Any, None, BaseException | None]:
    """Push an op that answers the running event loop, and wait in asyncio for its answer.

    Parameters
    ----------
    push : callable
        Pushes the payload as an op that reads the object of the wait.
    what : str
        The name of this object.
    ran, skipped : callable
        Return the object's error as the op runs, where no later mutation can have changed it, and as the engine drops the
        op unrun.

    Returns
    -------
    BaseException or None
        The answer.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[BaseException | None] = loop.create_future()

    def send(error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: the wait is over
            loop.call_soon_threadsafe(_settle, answer, error)

    def run(*_values: object) -> None:
        send(ran())

    def drop() -> None:
        send(skipped() or OpCancelledError(f"the wait for {what} was dropped when its engine was closed"))

    push(_Answering(run, drop))
    error: BaseException | None = yield from answer
    return error


def _settle(answer: asyncio.Future[BaseException | None], error: BaseException | None) -> None:
    if not answer.done():  # the waiting asyncio task may have been cancelled
        answer.set_result(error)
