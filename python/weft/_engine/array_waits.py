"""Waiting for arrays: all of them, or one in asyncio."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import _Answering, _StandIn, push_compute
from weft._engine.default import get_engine

if TYPE_CHECKING:
    from collections.abc import Generator

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
        The exception of an op, if it was not told yet; several as an `ExceptionGroup`.

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
    from weft._engine.awaitable import answer_of  # noqa: PLC0415 - it imports asyncio, a third of NumPy's time, which a caller that awaits has

    if not self.is_ready():

        def push(answering: _Answering) -> None:
            push_compute(answering, (), (self,), name="await array")

        with _StandIn():
            error = yield from answer_of(push, "an array", self.exception, self.exception)
        if error is not None:
            raise error
    self.wait_to_read()
    return self
