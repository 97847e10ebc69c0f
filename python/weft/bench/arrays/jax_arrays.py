"""JAX."""

from __future__ import annotations

import operator
from collections import deque
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from weft.bench.arrays.networks import Functions
from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import Operands, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

# JAX lets no more computations than this run behind the caller.
_IN_FLIGHT = 32


class JaxArrays(NumPyArrays):
    """JAX with the addition, and the whole script, compiled."""

    name = "JAX, jitted"
    tables = ("C", "D", "F", "R", "R first")
    blas_threads = None
    exact = False

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        jax: Any = import_module("jax")

        self._jax = jax
        self.tanh, self.compiled = jax.numpy.tanh, jax.jit
        self._add = jax.jit(operator.add)
        self._script = jax.jit(partial(script, jax.numpy.exp))

        def convolution(x: Any, weight: Any, stride: int, padding: int) -> Any:
            return jax.lax.conv_general_dilated(x, weight, (stride, stride), [(padding, padding)] * 2)

        self.functions = Functions(jax.numpy.tanh, jax.nn.relu, convolution, jax.value_and_grad)

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return self._jax.numpy.array(values)

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        add = self._add
        last: deque[Array] = deque(maxlen=_IN_FLIGHT)
        for _ in range(count):
            last.append(add(a, b))
        return last

    def wait(self, pushed: Sequence[Array]) -> None:
        """See `NumPyArrays`."""
        for result in pushed:
            result.block_until_ready()

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""

        def once() -> Sequence[Array]:
            results: Sequence[Array] = self._script(operands)
            self.wait(results)
            return results

        return once
