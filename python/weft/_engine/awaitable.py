"""Awaiting a variable in asyncio: behind ``Variable.__await__``."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from weft._core import _Answering
from weft.errors import OpCancelledError

if TYPE_CHECKING:
    from collections.abc import Generator

    from weft._core import Variable


def await_variable(variable: Variable) -> Generator[Any, None, None]:
    """Wait, without blocking the event loop or any thread, for the mutations of `variable` pushed so far.

    Cancelling the waiting asyncio task cancels no op.

    Parameters
    ----------
    variable : Variable
        What to wait for.

    Yields
    ------
    object
        What the event loop asks for.

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
    loop = asyncio.get_running_loop()
    if not variable.is_ready():
        answer: asyncio.Future[BaseException | None] = loop.create_future()
        told = _Answer(variable, loop, answer)
        variable.engine.push(
            _Answering(told.ran, told.dropped),
            [variable],
            always_run=True,
            name=f"await {variable.name or 'variable'}",
        )
        error = yield from answer
    else:
        error = variable.exception()
    if error is not None:
        raise error


class _Answer:
    """The payload of a reading op that tells an event loop of the variable's state.

    It answers when it runs, or when the engine drops it unrun.
    """

    __slots__ = ("_answer", "_loop", "_variable")

    def __init__(
        self, variable: Variable, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[BaseException | None]
    ) -> None:
        self._variable, self._loop, self._answer = variable, loop, answer

    def ran(self) -> None:
        # Read here, where no later mutation can have changed it.
        self._send(self._variable.exception())

    def dropped(self) -> None:
        name = self._variable.name
        self._send(OpCancelledError(f"the wait for variable {name!r} was dropped when its engine was closed"))

    def _send(self, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(_settle, self._answer, error)


def _settle(answer: asyncio.Future[BaseException | None], error: BaseException | None) -> None:
    if not answer.done():  # the waiting asyncio task may have been cancelled
        answer.set_result(error)
