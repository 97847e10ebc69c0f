"""Kernels that fill a quarter of the device each, in one chain and in two."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft.bench.gpu.bounds import Bound
from weft.bench.gpu.kernels import ROUNDS, after, check, mutate, numbers
from weft.bench.gpu.setup import CUPY, WEFT, Line, Setup, wait
from weft.bench.gpu.tuning import steps_for
from weft.bench.samples import Job, timed
from weft.bench.tables import Table

if TYPE_CHECKING:
    from weft.bench.gpu.bounds import Figures
    from weft.bench.gpu.settings import Settings

_TABLE = "streams"
_ONE, _TWO = "one chain", "two chains"
#: Half of a multiprocessor's threads: two blocks for each of a quarter of the multiprocessors are a quarter of all threads.
_BLOCK = 1024


def _bounds(_settings: Settings) -> tuple[Bound, ...]:
    def gain(name: str, figures: Figures) -> float:
        return figures(_TABLE, name, _ONE) / figures(_TABLE, name, _TWO)

    return (
        Bound(_TABLE, "two streams of kernels over one", partial(gain, WEFT), 1.8, at_least=True),
        Bound(_TABLE, "CuPy's two streams over one", partial(gain, CUPY)),
    )


def _prepare(setup: Setup) -> list[Job]:
    blocks = 2 * max(1, setup.multiprocessors // 4)
    steps = setup.settings.rounds or steps_for(setup.settings.kernel_us, partial(_kernel_us, setup, blocks))
    return [*_weft(setup, blocks, steps), *_cupy(setup, blocks, steps)]


def _kernel_us(setup: Setup, blocks: int, steps: int) -> float:
    """Return the microseconds of one kernel, of ten in a row."""
    x = weft.asarray(numbers(blocks * _BLOCK), device=setup.device)
    rounds, count = weft.cuda.RawKernel(ROUNDS, "rounds"), 10
    wait()

    def push() -> None:
        for _ in range(count):
            rounds(blocks, _BLOCK, (mutate(x), x.size, steps))

    (microseconds,) = timed(push, 1e3 * count, wait)
    return microseconds


def _weft(setup: Setup, blocks: int, steps: int) -> list[Job]:
    count, start = setup.settings.side_by_side, numbers(blocks * _BLOCK)
    x, y = weft.asarray(start, device=setup.device), weft.asarray(start, device=setup.device)
    rounds = weft.cuda.RawKernel(ROUNDS, "rounds")

    def push(first: weft.NDArray, second: weft.NDArray) -> None:
        for _ in range(count):
            for array in (first, second):
                rounds(blocks, _BLOCK, (mutate(array), array.size, steps))

    push(x, y)
    push(x, x)
    check(y.numpy(), after(start, count * steps), f"{WEFT}, {_TWO}")
    check(x.numpy(), after(start, 3 * count * steps), f"{WEFT}, {_ONE}")
    return [
        Job(_TABLE, case, WEFT, partial(timed, partial(push, x, other), 2e3 * count, wait))
        for case, other in ((_ONE, x), (_TWO, y))
    ]


def _cupy(setup: Setup, blocks: int, steps: int) -> list[Job]:
    if not setup.has_cupy(_TABLE):
        return []
    cupy, count, start = setup.cupy, setup.settings.side_by_side, numbers(blocks * _BLOCK)
    rounds, x, y = cupy.RawKernel(ROUNDS, "rounds"), cupy.asarray(start), cupy.asarray(start)
    size, rest = np.uint32(start.size), np.uint32(steps)
    streams = setup.stream(), setup.stream()
    cupy.cuda.Device().synchronize()

    def launch(pairs: tuple[tuple[Any, Any], ...]) -> None:
        for _ in range(count):
            for stream, array in pairs:
                with stream:
                    rounds((blocks,), (_BLOCK,), (array, size, rest))

    def finish() -> None:
        for stream in streams:
            stream.synchronize()

    one, two = ((streams[0], x), (streams[0], x)), ((streams[0], x), (streams[1], y))
    launch(two)
    launch(one)
    finish()
    check(cupy.asnumpy(y), after(start, count * steps), f"{CUPY}, {_TWO}")
    check(cupy.asnumpy(x), after(start, 3 * count * steps), f"{CUPY}, {_ONE}")
    return [
        Job(_TABLE, case, CUPY, partial(timed, partial(launch, pairs), 2e3 * count, finish))
        for case, pairs in ((_ONE, one), (_TWO, two))
    ]


LINE = Line(_TABLE, (Table(_TABLE, "Kernels that fill a quarter of the device", "us per kernel"),), _bounds, _prepare)
