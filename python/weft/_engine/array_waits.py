"""Waiting for arrays: all of them, or one in asyncio."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from weft._core import _Answering, push_compute
from weft._engine.default import get_engine
from weft.errors import OpCancelledError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator

    import numpy as np

    from weft._core import NDArray


def wait_all(timeout: float | None = None) -> None:
    """Wait for everything pushed on the default engine.

    Parameters
    ----------
    timeout : float, optional
        The most seconds to wait; None waits without limit.

    Raises
    ------
    WaitTimeoutError
        If the time runs out. The ops go on.
    BaseException
        What an op raised, where nobody was told yet; of several, all as an `ExceptionGroup`.

    Examples
    --------
    >>> import weft
    >>> x = weft.ones(3) + 1
    >>> weft.wait_all()
    >>> x.is_ready()
    True
    """
    get_engine().wait_for_all(timeout)


def await_array(self: NDArray) -> Generator[Any, None, NDArray]:
    """Wait in asyncio, without blocking the event loop or any thread, and return the array.

    Cancelling the waiting asyncio task cancels no op.

    Examples
    --------
    >>> import asyncio, weft
    >>> async def main() -> float:
    ...     return (await (weft.ones(2) + 1)).tolist()
    >>> asyncio.run(main())
    [2.0, 2.0]
    """
    import asyncio  # noqa: PLC0415 - it takes as long as a third of NumPy, and whoever awaits has it

    loop = asyncio.get_running_loop()
    if not self.is_ready():
        answer: asyncio.Future[None] = loop.create_future()
        told = _Answer(self, loop, answer)
        push_compute(_Answering(told.ran, told.dropped), (), (self,), name="await array")
        yield from answer
    self.wait_to_read()
    return self


class _Answer:
    """A reading op that tells an event loop of the array's state: when it runs, or is dropped unrun."""

    __slots__ = ("_answer", "_array", "_loop")

    def __init__(self, array: NDArray, loop: asyncio.AbstractEventLoop, answer: asyncio.Future[None]) -> None:
        self._array, self._loop, self._answer = array, loop, answer

    def ran(self, _values: np.ndarray[Any, Any]) -> None:
        self._send(None)

    def dropped(self) -> None:
        """Answer for an op that was skipped, since the array has failed, or dropped, as the engine was closed."""
        error = self._array.exception()
        self._send(error or OpCancelledError("the wait for an array was dropped when its engine was closed"))

    def _send(self, error: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            self._loop.call_soon_threadsafe(_settle, self._answer, error)


def _settle(answer: asyncio.Future[None], error: BaseException | None) -> None:
    if answer.done():  # the waiting asyncio task may have been cancelled
        return
    if error is None:
        answer.set_result(None)
    else:
        answer.set_exception(error)
