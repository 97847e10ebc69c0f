"""PyTorch."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import Operands, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


class TorchArrays(NumPyArrays):
    """PyTorch on the CPU, without gradients."""

    blas_threads = None
    exact = False

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        torch: Any = import_module("torch")

        self.name = f"torch, {workers} threads"
        self._torch = torch
        torch.set_num_threads(workers)
        torch.set_grad_enabled(False)

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return self._torch.from_numpy(values.copy())

    def tanh(self) -> Callable[[Array], Array]:
        """See `NumPyArrays`."""
        found: Callable[[Array], Array] = self._torch.tanh
        return found

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        return partial(script, self._torch.exp, operands)
