"""Arrays of weft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import weft
from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import Operands, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

__all__ = ["WeftArrays"]


class WeftArrays(NumPyArrays):
    """`weft.NDArray` on the default engine; the number of workers comes from ``WEFT_WORKERS``."""

    name = "weft"
    blas_threads = None

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return weft.asarray(values)

    def values(self, result: Array) -> npt.NDArray[Any]:
        """See `NumPyArrays`."""
        found: npt.NDArray[Any] = result.numpy()
        return found

    def wait(self, pushed: Sequence[Array]) -> None:  # noqa: ARG002
        """See `NumPyArrays`."""
        weft.wait_all()

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        exp, wait_all = weft.exp, weft.wait_all

        def once() -> Sequence[Array]:
            results = script(exp, operands)
            wait_all()
            return results

        return once
