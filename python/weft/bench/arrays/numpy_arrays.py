"""NumPy on one thread, which every other library is compared with, and split by hand over several."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft.bench.arrays.programs import Operands, chain, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from weft.bench.arrays.networks import Functions

#: An array of whichever library.
Array: TypeAlias = Any
#: A function that is called again and again.
Called: TypeAlias = "Callable[..., Sequence[Array]]"


def _as_it_is(function: Called) -> Called:
    return function


class NumPyArrays:
    """NumPy as it comes, on one thread; what every other library is compared with.

    Parameters
    ----------
    workers : int
        Threads that a library may use.

    Attributes
    ----------
    name : str
        How its row is called.
    tables : tuple of str
        The tables that it appears in.
    blas_threads : int or None
        How many threads its BLAS shall have; None for as many as workers.
    exact : bool
        Whether its element-wise results have NumPy's bits.
    functions : Functions or None
        What networks are written in, where the library has it.
    tanh : callable
        The library's own function.
    compiled : callable
        ``compiled(function)`` returns what the library makes of a function that is to be called many times.
    """

    name: str = "NumPy, 1 thread"
    tables: tuple[str, ...] = ("C", "D", "F", "R")
    blas_threads: int | None = 1
    exact: bool = True
    functions: Functions | None = None

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.tanh: Callable[[Array], Array] = np.tanh
        self.compiled: Callable[[Called], Called] = _as_it_is

    def hold(self, values: npt.NDArray[Any]) -> Array:
        """Return the library's own array."""
        return values

    def values(self, result: Array) -> npt.NDArray[Any]:
        """Return the values of a result that was waited for."""
        return np.asarray(result)

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """Add ``count`` times and return what is to be waited for; the last one is last."""
        c = None
        for _ in range(count):
            c = a + b
        return (c,)

    def wait(self, pushed: Sequence[Array]) -> None:
        """Wait for all that was pushed; nothing to do where calls return when the work is done."""

    def finish(self, results: Sequence[Array]) -> None:
        """Wait for what a call returned."""
        self.wait(results)

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """Return what runs table D's script on held arrays and waits for its results."""
        return partial(script, np.exp, operands)


class SplitArrays(NumPyArrays):
    """NumPy with the script cut by hand: every thread gets its share of the chains and of the products."""

    tables = ("D",)

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        self.name = f"NumPy, split by hand over {workers} threads"
        self._pool = ThreadPoolExecutor(workers)

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        calls = [partial(chain, np.exp, x, offset) for x, offset in zip(operands.starts, operands.offsets, strict=True)]
        calls.append(partial(np.matmul, operands.left, operands.right))
        calls.append(partial(np.matmul, operands.right, operands.left))
        shares = [range(first, len(calls), self.workers) for first in range(self.workers)]

        def once() -> Sequence[Array]:
            results: list[Array] = [None] * len(calls)

            def work(share: range) -> None:
                for i in share:
                    results[i] = calls[i]()

            list(self._pool.map(work, shares))
            return results

        return once
