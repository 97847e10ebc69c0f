"""A graph of small kernels: captured once, replayed many times."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import weft
from weft.bench.gpu.bounds import Bound, quotient
from weft.bench.gpu.kernels import STEP, THREADS, after, check, mutate, numbers
from weft.bench.gpu.launches import until_return
from weft.bench.gpu.setup import CUPY, WEFT, Line, Setup, wait
from weft.bench.samples import Job, timed
from weft.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.gpu.settings import Settings

_TABLE = "graph"
_REPLAY, _HOST = "per replay, many in flight", "until a replay returns"
_BLOCKS = 16


def _bounds(settings: Settings) -> tuple[Bound, ...]:
    kernels = settings.graph_kernels
    return (
        Bound(_TABLE, f"replay of {kernels} kernels: weft / CuPy's graph", quotient(_TABLE, WEFT, CUPY, _REPLAY), 1.05),
        Bound(_TABLE, "until a replay returns: weft / CuPy's graph", quotient(_TABLE, WEFT, CUPY, _HOST)),
    )


def _prepare(setup: Setup) -> list[Job]:
    return [*_weft(setup), *_cupy(setup)]


def _weft(setup: Setup) -> list[Job]:
    start, kernels = numbers(_BLOCKS * THREADS), setup.settings.graph_kernels
    x, step = weft.asarray(start, device=setup.device), weft.cuda.RawKernel(STEP, "step_once")
    with weft.cuda.capture("steps") as graph:
        for _ in range(kernels):
            step(_BLOCKS, THREADS, (mutate(x),))
    graph.replay()
    graph.replay()
    check(x.numpy(), after(start, 2 * kernels), WEFT)
    return _jobs(WEFT, graph.replay, wait, setup.settings.replays)


def _cupy(setup: Setup) -> list[Job]:
    if not setup.has_cupy(_TABLE):
        return []
    start, kernels = numbers(_BLOCKS * THREADS), setup.settings.graph_kernels
    cupy, stream = setup.cupy, setup.stream()
    step, x = cupy.RawKernel(STEP, "step_once"), cupy.asarray(start)
    cupy.cuda.Device().synchronize()
    with stream:
        step((_BLOCKS,), (THREADS,), (x,))  # compiled before the capture
        stream.synchronize()
        stream.begin_capture()
        for _ in range(kernels):
            step((_BLOCKS,), (THREADS,), (x,))
        graph = stream.end_capture()
    replay = partial(graph.launch, stream)
    replay()
    replay()
    stream.synchronize()
    check(cupy.asnumpy(x), after(start, 2 * kernels + 1), CUPY)
    return _jobs(CUPY, replay, stream.synchronize, setup.settings.replays)


def _jobs(name: str, replay: Callable[[], object], finish: Callable[[], object], count: int) -> list[Job]:
    def many() -> None:
        for _ in range(count):
            replay()

    return [
        Job(_TABLE, _REPLAY, name, partial(timed, many, 1e3 * count, finish)),
        Job(_TABLE, _HOST, name, partial(until_return, many, finish, count)),
    ]


LINE = Line(_TABLE, (Table(_TABLE, "Replay of a captured graph", "us"),), _bounds, _prepare)
