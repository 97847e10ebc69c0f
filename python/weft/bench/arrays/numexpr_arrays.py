"""numexpr."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import ROUNDS, SCALE, Operands

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class NumexprArrays(NumPyArrays):
    """numexpr: a chain is one expression, computed block by block; the products are NumPy's, as it has none."""

    tables = ("C", "D")
    exact = False
    blas_threads = None

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        numexpr: Any = import_module("numexpr")

        self.name = f"numexpr, {workers} threads"
        self._evaluate = numexpr.evaluate
        numexpr.set_num_threads(workers)

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        evaluate, names = self._evaluate, {"a": a, "b": b}
        nothing: dict[str, Array] = {}
        c = None
        for _ in range(count):
            c = evaluate("a + b", names, nothing)
        return (c,)

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        text = "x"
        for _ in range(ROUNDS):
            text = f"(exp({text}) * scale + offset)"
        text = f"exp({text}) * scale"

        def once() -> Sequence[Array]:
            results = [
                self._evaluate(text, {"x": x, "offset": offset, "scale": np.float32(SCALE)}, {})
                for x, offset in zip(operands.starts, operands.offsets, strict=True)
            ]
            results.append(operands.left @ operands.right)
            results.append(operands.right @ operands.left)
            return results

        return once
