"""PyTorch."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.bench.arrays.networks import Functions
from weft.bench.arrays.numpy_arrays import Array, Called, NumPyArrays
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
        self._torch, self.tanh = torch, torch.tanh
        torch.set_num_threads(workers)
        torch.set_grad_enabled(False)

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return self._torch.from_numpy(values.copy())

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        return partial(script, self._torch.exp, operands)


class CompiledTorchArrays(TorchArrays):
    """Functions of PyTorch, compiled."""

    tables = ("R first",)

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        torch = self._torch
        self.name = "torch.compile"
        # A machine without a C++ compiler has no such row.
        torch.compile(torch.tanh)(torch.ones(1))

        def value_and_slopes(function: Callable[..., Any]) -> Callable[..., tuple[Any, Sequence[Any]]]:
            slopes_and_value = torch.func.grad_and_value(function)
            return lambda *arguments: slopes_and_value(*arguments)[::-1]

        def convolution(x: Any, weight: Any, stride: int, padding: int) -> Any:
            return torch.nn.functional.conv2d(x, weight, stride=stride, padding=padding)

        def compiled(function: Called) -> Called:
            """Forget earlier compilations."""
            dynamo: Any = import_module("torch._dynamo")
            dynamo.reset()
            found: Called = torch.compile(function)
            return found

        self.functions = Functions(torch.tanh, torch.relu, convolution, value_and_slopes)
        self.compiled = compiled
