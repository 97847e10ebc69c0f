"""MLX on the CPU."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.bench.arrays.numpy_arrays import Array, NumPyArrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt


class MlxArrays(NumPyArrays):
    """MLX with functions compiled."""

    name = "MLX, compiled"
    tables = ("F", "R", "R first")
    blas_threads = None
    exact = False

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        core: Any = import_module("mlx.core")

        self._core = core
        self.tanh, self.compiled = core.tanh, core.compile
        core.set_default_device(core.cpu)

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return self._core.array(values)

    def wait(self, pushed: Sequence[Array]) -> None:
        """See `NumPyArrays`."""
        self._core.eval(*pushed)
