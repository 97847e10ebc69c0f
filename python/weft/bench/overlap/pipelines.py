"""One pipeline over chunks, three times: copy a chunk in, multiply it by a matrix, copy the product out.

Each can also do its copies or its products alone: the time of the pipeline lies between the larger of the two, if one
hides the other, and their sum, if none does. The products go through BLAS, on one thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

import weft

if TYPE_CHECKING:
    import numpy.typing as npt

#: Of float32.
Array: TypeAlias = "npt.NDArray[Any]"

_SEED = 0x77656674


@dataclass(frozen=True, slots=True)
class Chunks:
    """The data of a pipeline.

    Attributes
    ----------
    sources : tuple of ndarray
        The chunks, float32 of shape (rows, columns).
    matrix : ndarray
        The factor of each, float32 of shape (columns, columns).
    """

    sources: tuple[Array, ...]
    matrix: Array

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a chunk."""
        rows, columns = self.sources[0].shape
        return rows, columns


def make_chunks(count: int, rows: int, columns: int) -> Chunks:
    """Return chunks of random numbers.

    Examples
    --------
    >>> from weft.bench.overlap.pipelines import make_chunks
    >>> make_chunks(2, 100, 8).shape
    (100, 8)
    """
    rng = np.random.default_rng(_SEED)
    sources = tuple(rng.random((rows, columns), np.float32) for _ in range(count))
    return Chunks(sources, rng.random((columns, columns), np.float32) / np.float32(columns))


class Parts(Protocol):
    """A pipeline that can also do its copies alone, and its computing. Each method returns when all its work is done."""

    @property
    def name(self) -> str:
        """How its row is called."""
        ...

    def copy(self) -> None:
        """Copy every chunk in and out again."""
        ...

    def compute(self) -> None:
        """Compute with every chunk, where it is."""
        ...

    def run(self) -> None:
        """Do both, chunk by chunk."""
        ...


class Pipeline(Parts, Protocol):
    """One on CPU devices: computing is a product with the matrix."""

    def results(self) -> list[Array]:
        """Return the results of `run`."""
        ...

    def close(self) -> None:
        """Stop the threads."""
        ...


class WeftPipeline:
    """The loop as one writes it for one thread, on arrays of two devices; nothing in it says what may overlap.

    Parameters
    ----------
    chunks : Chunks
        The data.
    engine : Engine
        Which schedules it; the pipeline closes it.
    """

    def __init__(self, chunks: Chunks, engine: weft.Engine) -> None:
        self.name = f"weft, {engine.policy}"
        self.engine = engine
        self._device = weft.cpu(1)
        previous = weft.set_engine(engine)
        try:
            self._sources = [weft.array(source) for source in chunks.sources]
            self._targets = [weft.empty(chunks.shape, dtype=weft.float32) for _ in chunks.sources]
            self._matrix = weft.asarray(chunks.matrix).to_device(self._device)
            self._there = [source.to_device(self._device) for source in self._sources]
            engine.wait_for_all()
        finally:
            weft.set_engine(previous)

    def copy(self) -> None:
        """See `Pipeline`."""
        for source, target in zip(self._sources, self._targets, strict=True):
            source.to_device(self._device).copyto(target)
        self.engine.wait_for_all()

    def compute(self) -> None:
        """See `Pipeline`."""
        for chunk in self._there:
            chunk @ self._matrix  # pyright: ignore[reportUnusedExpression] # it is its time that counts
        self.engine.wait_for_all()

    def run(self) -> None:
        """See `Pipeline`."""
        for source, target in zip(self._sources, self._targets, strict=True):
            chunk = source.to_device(self._device)
            (chunk @ self._matrix).copyto(target)
        self.engine.wait_for_all()

    def results(self) -> list[Array]:
        """See `Pipeline`."""
        return [target.numpy() for target in self._targets]

    def close(self) -> None:
        """See `Pipeline`."""
        self.engine.close()


class NumPyPipeline:
    """NumPy on one thread, its buffers made once: there is nothing to overlap."""

    name = "NumPy, 1 thread"

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._targets = [np.empty(chunks.shape, np.float32) for _ in chunks.sources]
        self._chunk, self._product = (np.empty(chunks.shape, np.float32) for _ in range(2))

    def copy(self) -> None:
        """See `Pipeline`."""
        for source, target in zip(self._chunks.sources, self._targets, strict=True):
            np.copyto(self._chunk, source)
            np.copyto(target, self._chunk)

    def compute(self) -> None:
        """See `Pipeline`."""
        for source in self._chunks.sources:
            np.matmul(source, self._chunks.matrix, out=self._product)

    def run(self) -> None:
        """See `Pipeline`."""
        for source, target in zip(self._chunks.sources, self._targets, strict=True):
            np.copyto(self._chunk, source)
            np.matmul(self._chunk, self._chunks.matrix, out=self._product)
            np.copyto(target, self._product)

    def results(self) -> list[Array]:
        """See `Pipeline`."""
        return self._targets

    def close(self) -> None:
        """See `Pipeline`."""
