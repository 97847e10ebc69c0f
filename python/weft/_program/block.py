"""`weft.capture`: a block as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from weft import _core
from weft._default import get_engine
from weft._program.program import Program
from weft._program.record import noting
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

    from weft._core import Engine, Recording

__all__ = ["capture"]


def capture(
    name: str = "block",
    *,
    engine: Engine | None = None,
    memory: Literal["min", "balanced", "speed"] = "balanced",
    sequential: bool = False,
) -> AbstractContextManager[Program]:
    """Record what this thread pushes in a block, as a program, and run nothing of it.

    Arrays named in the block are the program's own: each replay reads and mutates them where they lie. Before the first
    replay they hold whatever their memory held, as those of `empty` do.

    Parameters
    ----------
    name : str, default: "block"
        The program's name, in messages and traces.
    engine : Engine, optional
        The engine of the ops; by default the default one.
    memory : {"balanced", "min", "speed"}, default: "balanced"
        As for `program`.
    sequential : bool, default: False
        Whether the ops of a replay run one by one, in recorded order.

    Returns
    -------
    context manager of Program
        What was recorded, once the block has ended.

    Raises
    ------
    CaptureError
        In the block, where a value is asked for that is not known yet; if this thread records already; where the program
        is used before the block has ended. An exception that leaves the block leaves no program.

    See Also
    --------
    program : Record the calls of a function, which takes arguments and returns results.

    Examples
    --------
    >>> import weft
    >>> x, v = weft.zeros(3), weft.ones(3)
    >>> with weft.capture("move") as move:
    ...     x += 0.5 * v
    >>> for _ in range(4):
    ...     _ = move.replay()
    >>> x
    NDArray([2., 2., 2.])
    """
    if not isinstance(name, str):
        raise ArgumentTypeError(f"the name of a capture is a string, not {type(name).__name__}")
    return _Block(name, get_engine() if engine is None else engine, memory, sequential=sequential)


class _Block:
    """The block of a capture."""

    def __init__(self, name: str, engine: Engine, memory: str, *, sequential: bool) -> None:
        self._recording: Recording = _core.Recording(engine, name, keeps=True)
        self._program = Program(name, None)
        self._memory, self._sequential = memory, sequential

    def __enter__(self) -> Program:
        self._recording.begin()
        noting({})
        return self._program

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        noting(None)
        if kind is not None:
            self._program._abandoned = True
            self._recording.abort()
            return
        self._recording.end()
        self._program._abandoned = True  # unless it can be planned
        self._program._planned = self._recording.finish((), sequential=self._sequential, memory=self._memory)
