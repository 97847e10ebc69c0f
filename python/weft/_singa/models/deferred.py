"""A device's graph: ops that a thread pushes between two calls are kept, and run when that is asked for."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from weft._program.capture import capture
from weft._singa.models.timing import Times

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from weft._program.program import Program


class Deferred:
    """The settings of a device: its graph, and how much of its times is wanted.

    Attributes
    ----------
    verbosity : int
        0 for no times, 1 for those of forward and backward, 2 for those of each op.
    skipped : int
        How many first runs are not counted.
    times : dict of str to Times
        The measured times, by the graph or the model's method.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.verbosity = 0
        self.skipped = 5
        self.times: dict[str, Times] = {}
        self._open = threading.local()
        self._programs: list[Program] = []

    @property
    def is_open(self) -> bool:
        """Whether this thread's pushes are kept for later."""
        return getattr(self._open, "block", None) is not None

    def enable(self, on: bool) -> None:
        """Begin to keep this thread's pushes, or end it."""
        if on == self.is_open:
            return
        if on:
            block: AbstractContextManager[Program] = capture(f"graph of {self.name}")
            self._open.block = block  # before it begins: after an interrupt it is there to be ended
            self._open.program = block.__enter__()
            return
        block, program = self._open.block, self._open.program
        self._open.block = self._open.program = None
        block.__exit__(None, None, None)
        self._programs.append(program)

    def run(self, sequential: bool) -> None:
        """Replay the kept graph."""
        for number, program in enumerate(self._programs):
            if not self.verbosity:
                program.replay(sequential)
                continue
            times = self.times.setdefault(f"{program.name}, part {number}", Times(self.skipped))
            times.measure(partial(program.replay, sequential), program._compiled.engine)

    def reset(self) -> None:
        """Forget the kept graph, and its times."""
        if self.is_open:
            self.enable(False)
        self._programs.clear()
        self.times.clear()


_devices: dict[tuple[str, int], Deferred] = {}


def deferred_of(kind: str, index: int) -> Deferred:
    """Return the settings of a device."""
    return _devices.setdefault((kind, index), Deferred(f"{kind}:{index}"))
