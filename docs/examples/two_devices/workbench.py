"""What the training loop holds in its hands: tensors, and a push that knows them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import weft


class Tensor(NamedTuple):
    """An array, and the variable by which the engine knows it."""

    array: NDArray[Any]
    var: weft.Variable


@dataclass
class Workbench:
    """An engine, and the batch that it is told to compute.

    Attributes
    ----------
    engine : weft.Engine
        Runs the ops.
    batch : int
        Number of the batch that ops are now pushed for.
    """

    engine: weft.Engine
    batch: int = 0

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
        self.engine.push(
            partial(function, *(tensor.array for tensor in (*read, *mutate))),
            read_vars=[tensor.var for tensor in read],
            mutate_vars=[tensor.var for tensor in mutate],
            name=name,
            device=device,
        )
