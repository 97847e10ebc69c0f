"""What the training loop holds in its hands: tensors, and a push that keeps time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import get_ident
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import weft


class Tensor(NamedTuple):
    """An array, and the variable by which the engine knows it."""

    array: NDArray[Any]
    var: weft.Variable


class Span(NamedTuple):
    """One op as it ran: which, where, and from when to when in seconds."""

    name: str
    batch: int
    device: weft.Device
    thread: int
    start: float
    end: float


@dataclass
class Workbench:
    """An engine, with a record of what it ran.

    Attributes
    ----------
    engine : weft.Engine
        Runs the ops.
    batch : int
        Number of the batch that ops are now pushed for.
    spans : list of Span
        The ops that have run, in the order in which they finished.
    """

    engine: weft.Engine
    batch: int = 0
    spans: list[Span] = field(default_factory=list)

    def tensor(self, name: str, array: NDArray[Any]) -> Tensor:
        """Return `array` with a new variable called `name`."""
        return Tensor(array, self.engine.new_variable(name))

    def buffer(self, name: str, *shape: int) -> Tensor:
        """Return a float32 tensor of `shape` whose values do not matter yet."""
        return self.tensor(name, np.zeros(shape, np.float32))

    def push(
        self,
        name: str,
        function: Callable[..., None],
        read: Sequence[Tensor],
        mutate: Sequence[Tensor],
        device: weft.Device,
    ) -> None:
        """Push ``function(*read, *mutate)``, on the arrays, as an op of `device`."""
        arrays = [tensor.array for tensor in (*read, *mutate)]
        batch = self.batch

        def timed() -> None:
            start = perf_counter()
            function(*arrays)
            self.spans.append(Span(name, batch, device, get_ident(), start, perf_counter()))

        self.engine.push(
            timed,
            read_vars=[tensor.var for tensor in read],
            mutate_vars=[tensor.var for tensor in mutate],
            name=name,
            device=device,
        )
