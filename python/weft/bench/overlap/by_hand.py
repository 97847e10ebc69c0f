"""The pipeline as one writes it with threads: one copies in, one multiplies, one copies out; queues hand buffers on."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.overlap.pipelines import Array, Chunks

#: Buffers on either side of the products: one is filled while the other is read.
_BUFFERS = 2
_Buffers: TypeAlias = "SimpleQueue[Array]"


class ThreadsPipeline:
    """Three threads, and two buffers before and behind the products.

    Parameters
    ----------
    chunks : Chunks
        The data.
    """

    name = "NumPy, threads by hand"

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._targets = [np.empty(chunks.shape, np.float32) for _ in chunks.sources]
        self._product = np.empty(chunks.shape, np.float32)
        self._pool = ThreadPoolExecutor(3)
        self._free_chunks, self._free_products = self._buffers(), self._buffers()
        self._chunks_in: _Buffers = SimpleQueue()
        self._products_in: _Buffers = SimpleQueue()

    def _buffers(self) -> _Buffers:
        buffers: _Buffers = SimpleQueue()
        for _ in range(_BUFFERS):
            buffers.put(np.empty(self._chunks.shape, np.float32))
        return buffers

    def copy(self) -> None:
        """See `Pipeline`."""

        def copy_out() -> None:
            for target in self._targets:
                chunk = self._chunks_in.get()
                np.copyto(target, chunk)
                self._free_chunks.put(chunk)

        self._together(self._copy_in, copy_out)

    def compute(self) -> None:
        """See `Pipeline`."""
        for source in self._chunks.sources:
            np.matmul(source, self._chunks.matrix, out=self._product)

    def run(self) -> None:
        """See `Pipeline`."""
        self._together(self._copy_in, self._multiply, self._copy_out)

    def _together(self, *parts: Callable[[], None]) -> None:
        for future in [self._pool.submit(part) for part in parts]:
            future.result()

    def _copy_in(self) -> None:
        for source in self._chunks.sources:
            chunk = self._free_chunks.get()
            np.copyto(chunk, source)
            self._chunks_in.put(chunk)

    def _multiply(self) -> None:
        for _ in self._chunks.sources:
            chunk, product = self._chunks_in.get(), self._free_products.get()
            np.matmul(chunk, self._chunks.matrix, out=product)
            self._free_chunks.put(chunk)
            self._products_in.put(product)

    def _copy_out(self) -> None:
        for target in self._targets:
            product = self._products_in.get()
            np.copyto(target, product)
            self._free_products.put(product)

    def results(self) -> list[Array]:
        """See `Pipeline`."""
        return self._targets

    def close(self) -> None:
        """See `Pipeline`."""
        self._pool.shutdown()
