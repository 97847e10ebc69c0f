"""Array libraries behind one face: push additions, run the script of table D, wait. Each gets a process of its own."""

from __future__ import annotations

import operator
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from harness.array_programs import ROUNDS, SCALE, Operands, chain, script

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: An array of whichever library.
Array: TypeAlias = Any
# JAX lets no more computations than this run behind the caller.
JAX_IN_FLIGHT = 32
# Dask hands back what it computed: 4 GB, if all of 1,000 sums of a million floats came at once.
DASK_RESULTS = 32


class NumPyArrays:
    """NumPy as it comes, on one thread; what every other library is compared with.

    Parameters
    ----------
    workers
        Threads that a library may use.
    """

    name = "NumPy, 1 thread"
    tables: tuple[str, ...] = ("C", "D")
    blas_threads = 1
    exact = True
    package = "numpy"

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def hold(self, values: np.ndarray) -> Array:
        """Return the library's own array."""
        return values

    def values(self, result: Array) -> np.ndarray:
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

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """Return what runs table D's script on held arrays and waits for its results."""
        return partial(script, np.exp, operands)


class WeftArrays(NumPyArrays):
    """`weft.NDArray` on the default engine; the number of workers comes from ``WEFT_WORKERS``."""

    name = "weft"
    blas_threads = None
    package = "weft"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        import weft  # noqa: PLC0415 - a process imports the library that it is for

        self._weft = weft

    def hold(self, values: np.ndarray) -> Array:
        """See `NumPyArrays`."""
        return self._weft.asarray(values)

    def values(self, result: Array) -> np.ndarray:
        """See `NumPyArrays`."""
        return result.numpy()

    def wait(self, pushed: Sequence[Array]) -> None:  # noqa: ARG002
        """See `NumPyArrays`."""
        self._weft.wait_all()

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        exp, wait_all = self._weft.exp, self._weft.wait_all

        def once() -> Sequence[Array]:
            results = script(exp, operands)
            wait_all()
            return results

        return once


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


class TorchArrays(NumPyArrays):
    """PyTorch on the CPU, without gradients."""

    blas_threads = None
    exact = False
    package = "torch"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        import torch  # noqa: PLC0415

        self.name = f"torch, {workers} threads"
        self._torch = torch
        torch.set_num_threads(workers)
        torch.set_grad_enabled(False)

    def hold(self, values: np.ndarray) -> Array:
        """See `NumPyArrays`."""
        return self._torch.from_numpy(values.copy())

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        return partial(script, self._torch.exp, operands)


class JaxArrays(NumPyArrays):
    """JAX with the addition, and the whole script, compiled."""

    name = "JAX, jitted"
    blas_threads = None
    exact = False
    package = "jax"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        import jax  # noqa: PLC0415

        self._jax = jax
        self._add = jax.jit(operator.add)
        self._script = jax.jit(partial(script, jax.numpy.exp))

    def hold(self, values: np.ndarray) -> Array:
        """See `NumPyArrays`."""
        return self._jax.numpy.array(values)

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        add = self._add
        last: deque[Array] = deque(maxlen=JAX_IN_FLIGHT)
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
            results = self._script(operands)
            self.wait(results)
            return results

        return once


class NumexprArrays(NumPyArrays):
    """numexpr: a chain is one expression, computed block by block; the products are NumPy's, as it has none."""

    exact = False
    blas_threads = None
    package = "numexpr"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        import numexpr  # noqa: PLC0415

        self.name = f"numexpr, {workers} threads"
        self._evaluate = numexpr.evaluate
        numexpr.set_num_threads(workers)

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        evaluate, names, nothing = self._evaluate, {"a": a, "b": b}, {}
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


class DaskArrays(NumPyArrays):
    """`dask.delayed` of NumPy's functions, one task per op, on threads."""

    package = "dask"

    def __init__(self, workers: int) -> None:
        super().__init__(workers)
        import dask  # noqa: PLC0415

        self.name = f"dask.delayed, {workers} threads"
        self._delayed = dask.delayed
        self._compute = partial(dask.compute, scheduler="threads", num_workers=workers)

    def hold(self, values: np.ndarray) -> Array:
        """See `NumPyArrays`."""
        return self._delayed(values, traverse=False)

    def values(self, result: Array) -> np.ndarray:
        """See `NumPyArrays`."""
        return result if isinstance(result, np.ndarray) else self._compute(result)[0]

    def push(self, a: Array, b: Array, count: int) -> Sequence[Array]:
        """See `NumPyArrays`."""
        return [a + b for _ in range(count)]

    def wait(self, pushed: Sequence[Array]) -> None:
        """See `NumPyArrays`."""
        for first in range(0, len(pushed), DASK_RESULTS):
            self._compute(*pushed[first : first + DASK_RESULTS])

    def run(self, operands: Operands) -> Callable[[], Sequence[Array]]:
        """See `NumPyArrays`."""
        exp = self._delayed(np.exp)

        def once() -> Sequence[Array]:
            return self._compute(*script(exp, operands))

        return once


#: By the name that a process is started with.
LIBRARIES: dict[str, type[NumPyArrays]] = {
    "weft": WeftArrays,
    "numpy": NumPyArrays,
    "split": SplitArrays,
    "torch": TorchArrays,
    "jax": JaxArrays,
    "numexpr": NumexprArrays,
    "dask": DaskArrays,
}
