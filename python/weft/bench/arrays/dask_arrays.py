"""dask."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.bench.arrays.numpy_arrays import Array, NumPyArrays
from weft.bench.arrays.programs import Operands, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

# Dask hands back all results: 4 GB, if those of 1,000 sums of a million floats came together.
_RESULTS = 32


class DaskArrays(NumPyArrays):
    """`dask.delayed` of NumPy's functions, one task per op, on threads."""

    tables = ("C", "D")

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        dask: Any = import_module("dask")

        self.name = f"dask.delayed, {workers} threads"
        self._delayed = dask.delayed
        self._compute = partial(dask.compute, scheduler="threads", num_workers=workers)

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """See `NumPyArrays`."""
        return self._delayed(values, traverse=False)

    def values(self, result: Array) -> npt.NDArray[Any]:
        """See `NumPyArrays`."""
        return np.asarray(self._compute(result)[0])  # a computed array is handed back

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        return [a + b for _ in range(count)]

    def wait(self, pushed: Sequence[Array]) -> None:
        """See `NumPyArrays`."""
        for first in range(0, len(pushed), _RESULTS):
            self._compute(*pushed[first : first + _RESULTS])

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        exp = self._delayed(np.exp)

        def once() -> Sequence[Array]:
            found: Sequence[Array] = self._compute(*script(exp, operands))
            return found

        return once
