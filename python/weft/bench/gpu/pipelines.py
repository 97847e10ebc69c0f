"""One pipeline over chunks on a GPU: copy a chunk in, run a kernel on it, copy it out. In weft, and in CuPy by hand.

Each can also do one of its stages alone: no pipeline takes less than the longest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import weft
from weft.bench.gpu.kernels import ROUNDS, THREADS, after, blocks_for, check, mutate, numbers
from weft.bench.gpu.setup import wait
from weft.bench.overlap.pipelines import Parts

if TYPE_CHECKING:
    from weft.bench.gpu.setup import Setup

#: Buffers on the device: one is filled while the kernel is at another and the third is emptied.
_BUFFERS = 3


@dataclass(slots=True)
class Chunks:
    """What pipelines work on: arrays of the host.

    Attributes
    ----------
    sources, targets : list of NDArray
        The chunks, of uint32, and where their results go.
    steps : int
        What the kernel computes per element.
    """

    sources: list[weft.NDArray]
    targets: list[weft.NDArray]
    steps: int = 1

    @property
    def size(self) -> int:
        """How many numbers a chunk has."""
        return self.sources[0].size


def make_chunks(setup: Setup, *, pinned: bool) -> Chunks:
    """Return chunks of random numbers, in pinned or in pageable memory."""
    settings, make = setup.settings, weft.cuda.empty_pinned if pinned else weft.empty
    first = numbers(settings.chunk_bytes // 4)
    sources, targets = ([make(first.size, dtype=np.uint32) for _ in range(settings.chunks)] for _ in range(2))
    for number, source in enumerate(sources):
        source.copyfrom(first + np.uint32(number))
    wait()
    return Chunks(sources, targets)


class Pipeline(Parts, Protocol):
    """One on a GPU, of three stages; copies in both directions run at the same time."""

    def copy_in(self) -> None:
        """Copy every chunk to the device."""
        ...

    def copy_out(self) -> None:
        """Copy as many chunks to the host."""
        ...


class WeftPipeline:
    """The loop as one writes it for one thread; nothing in it says what may overlap.

    Parameters
    ----------
    setup : Setup
        The device.
    chunks : Chunks
        What it works on.
    name : str
        How it is called.
    fresh : bool
        Whether each chunk gets memory of its own on the device, instead of one of three buffers.
    """

    def __init__(self, setup: Setup, chunks: Chunks, name: str, *, fresh: bool) -> None:
        self.name = name
        self._chunks, self._device, self._fresh = chunks, setup.device, fresh
        self._sources, self._targets = chunks.sources, chunks.targets
        self._buffers = [chunks.sources[0].to_device(setup.device) for _ in range(_BUFFERS)]
        self._rounds, self._blocks = weft.cuda.RawKernel(ROUNDS, "rounds"), blocks_for(chunks.size)

    def _buffer(self, number: int) -> weft.NDArray:
        return self._buffers[number % _BUFFERS]

    def _compute(self, chunk: weft.NDArray) -> None:
        self._rounds(self._blocks, THREADS, (mutate(chunk), self._chunks.size, self._chunks.steps))

    def copy_in(self) -> None:
        """See `Pipeline`."""
        for number, source in enumerate(self._sources):
            source.copyto(self._buffer(number))
        wait()

    def compute(self) -> None:
        """See `Pipeline`."""
        for number in range(len(self._sources)):
            self._compute(self._buffer(number))
        wait()

    def copy_out(self) -> None:
        """See `Pipeline`."""
        for number, target in enumerate(self._targets):
            self._buffer(number).copyto(target)
        wait()

    def copy(self) -> None:
        """See `Pipeline`."""
        for number, (source, target) in enumerate(zip(self._sources, self._targets, strict=True)):
            self._arrived(number, source).copyto(target)
        wait()

    def run(self) -> None:
        """See `Pipeline`."""
        for number, (source, target) in enumerate(zip(self._sources, self._targets, strict=True)):
            chunk = self._arrived(number, source)
            self._compute(chunk)
            chunk.copyto(target)
        wait()

    def _arrived(self, number: int, source: weft.NDArray) -> weft.NDArray:
        if self._fresh:
            return source.to_device(self._device)
        source.copyto(self._buffer(number))
        return self._buffer(number)


class CuPyPipeline:
    """The same as an expert writes it: a stream for each stage, three buffers, and an event behind each use of one.

    Parameters
    ----------
    setup : Setup
        The device, and CuPy.
    chunks : Chunks
        What it works on.
    name : str
        How it is called.
    streams : int, default: 3
        With 1, all stages share a stream: nothing overlaps.
    """

    def __init__(self, setup: Setup, chunks: Chunks, name: str, *, streams: int = _BUFFERS) -> None:
        self.name = name
        self._chunks, cupy = chunks, setup.cupy
        self._buffers = [cupy.asarray(np.asarray(chunks.sources[0])) for _ in range(_BUFFERS)]
        self._sources, self._targets = (
            [np.asarray(array).ctypes.data for array in arrays] for arrays in (chunks.sources, chunks.targets)
        )
        self._bytes = chunks.sources[0].nbytes
        made = [setup.stream() for _ in range(streams)]
        self._in, self._kernels, self._out = made if streams > 1 else made * 3
        self._filled, self._computed, self._emptied = (
            [cupy.cuda.Event(disable_timing=True) for _ in range(_BUFFERS)] for _ in range(3)
        )
        self._rounds = cupy.RawKernel(ROUNDS, "rounds")
        self._grid, self._size = (blocks_for(chunks.size),), np.uint32(chunks.size)
        cupy.cuda.Device().synchronize()

    def _compute(self, buffer: Any, steps: np.uint32) -> None:
        self._rounds(self._grid, (THREADS,), (buffer, self._size, steps))

    def _wait(self) -> None:
        for stream in (self._in, self._kernels, self._out):
            stream.synchronize()

    def copy_in(self) -> None:
        """See `Pipeline`."""
        for number, source in enumerate(self._sources):
            self._buffers[number % _BUFFERS].data.copy_from_host_async(source, self._bytes, self._in)
        self._wait()

    def compute(self) -> None:
        """See `Pipeline`."""
        steps = np.uint32(self._chunks.steps)
        with self._kernels:
            for number in range(len(self._sources)):
                self._compute(self._buffers[number % _BUFFERS], steps)
        self._wait()

    def copy_out(self) -> None:
        """See `Pipeline`."""
        for number, target in enumerate(self._targets):
            self._buffers[number % _BUFFERS].data.copy_to_host_async(target, self._bytes, self._out)
        self._wait()

    def copy(self) -> None:
        """See `Pipeline`."""
        for number, (source, target) in enumerate(zip(self._sources, self._targets, strict=True)):
            at = number % _BUFFERS
            self._fill(number, at, source)
            self._out.wait_event(self._filled[at])
            self._empty(at, target)
        self._wait()

    def run(self) -> None:
        """See `Pipeline`."""
        steps = np.uint32(self._chunks.steps)
        with self._kernels:
            for number, (source, target) in enumerate(zip(self._sources, self._targets, strict=True)):
                at = number % _BUFFERS
                self._fill(number, at, source)
                self._kernels.wait_event(self._filled[at])
                self._compute(self._buffers[at], steps)
                self._kernels.record(self._computed[at])
                self._out.wait_event(self._computed[at])
                self._empty(at, target)
        self._wait()

    def _fill(self, number: int, at: int, source: int) -> None:
        if number >= _BUFFERS:
            self._in.wait_event(self._emptied[at])
        self._buffers[at].data.copy_from_host_async(source, self._bytes, self._in)
        self._in.record(self._filled[at])

    def _empty(self, at: int, target: int) -> None:
        self._buffers[at].data.copy_to_host_async(target, self._bytes, self._out)
        self._out.record(self._emptied[at])


def verify(pipeline: Pipeline, chunks: Chunks) -> None:
    """Run a pipeline and look at what it copied out.

    Raises
    ------
    VerificationError
        When a chunk is not what the kernel makes of it.
    """
    for target in chunks.targets:
        target.fill(0)
    wait()
    pipeline.run()
    for source, target in zip(chunks.sources, chunks.targets, strict=True):
        check(np.asarray(target), after(np.asarray(source), chunks.steps), pipeline.name)
