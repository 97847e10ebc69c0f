"""Arrays of weft."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import weft
from weft.bench.arrays.networks import Functions
from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import Operands, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt


def _convolution(x: Any, weight: Any, stride: int, padding: int) -> Any:
    return weft.nn.conv(x, weight, stride=stride, padding=padding)


class WeftArrays(NumPyArrays):
    """`weft.NDArray` on the default engine; the number of workers comes from ``WEFT_WORKERS``."""

    name = "weft"
    tables: tuple[str, ...] = ("C", "D", "F", "R", "R first")
    is_eager: bool = False
    blas_threads = None
    functions = Functions(weft.tanh, weft.nn.relu, _convolution, weft.autograd.value_and_grad)

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.tanh = weft.tanh
        if not self.is_eager:
            self.compiled = weft.program

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

    def finish(self, results: Sequence[Array]) -> None:
        """See `NumPyArrays`."""
        for result in results:
            result.wait_to_read()

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        exp, wait_all = weft.exp, weft.wait_all

        def once() -> Sequence[Array]:
            results = script(exp, operands)
            wait_all()
            return results

        return once


class EagerWeftArrays(WeftArrays):
    """The same with nothing recorded."""

    name = "weft, eager"
    tables = ("R",)
    is_eager = True
