"""`weft.capture`: a block as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self

from weft._core import Recording
from weft._engine.default import get_engine
from weft._engine.guards import end_recording
from weft._program.program import Program
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from weft._core import Engine


def capture(
    name: str = "block",
    *,
    engine: Engine | None = None,
    memory: Literal["min", "balanced", "speed"] = "balanced",
    sequential: bool = False,
) -> AbstractContextManager[Program]:
    """Record the pushes of this thread in a block, as a program, without running them.

    Arrays named in the block are the program's own: each replay reads and mutates them in place. Before the first
    replay their values are undefined, like those of `empty`.

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
        The program, complete at the end of the block.

    Raises
    ------
    CaptureError
        In the block, if an unknown value is requested; if this thread records already; if the program is used before
        the end of the block. An exception that leaves the block leaves no program.

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
    return _Block(get_engine() if engine is None else engine, name, memory, sequential)


class _Block(Recording):
    """The block of a capture. The core ends its recording, and calls this class before and after."""

    def __new__(cls, engine: Engine, name: str, memory: str, sequential: bool) -> Self:  # noqa: ARG004 - as `__init__`
        return super().__new__(cls, engine, name, keeps=True)

    def __init__(self, engine: Engine, name: str, memory: str, sequential: bool) -> None:  # noqa: ARG002 - as `__new__`
        self._program = Program(name, None)
        self._memory, self._sequential = memory, sequential

    def _entered(self) -> Program:
        return self._program

    def _left(self, well: bool) -> None:
        end_recording()
        self._program._abandoned = True  # until it is planned
        if well:
            self._program._planned = self.finish((), sequential=self._sequential, memory=self._memory)
