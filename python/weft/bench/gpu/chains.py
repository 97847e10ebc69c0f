"""A thousand small kernels, each of which needs the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft
from weft.bench.gpu.bounds import Bound, quotient
from weft.bench.gpu.issue import bare_step
from weft.bench.gpu.kernels import STEP, THREADS, after, check, mutate, numbers
from weft.bench.gpu.setup import CUPY, DRIVER, WEFT, Line, Setup, wait
from weft.bench.samples import Job, timed
from weft.bench.tables import Table

if TYPE_CHECKING:
    from weft.bench.gpu.settings import Settings

_TABLE = "chain"
_CASE = "per kernel"
_BLOCKS = 16


def _bounds(_settings: Settings) -> tuple[Bound, ...]:
    return (
        Bound(_TABLE, "weft / the driver back to back", quotient(_TABLE, WEFT, DRIVER, _CASE), 1.1),
        Bound(_TABLE, "CuPy / the driver back to back", quotient(_TABLE, CUPY, DRIVER, _CASE)),
    )


def _prepare(setup: Setup) -> list[Job]:
    count, start = setup.settings.dependent, numbers(_BLOCKS * THREADS)
    x, y = weft.asarray(start, device=setup.device), weft.asarray(start, device=setup.device)
    step, bare = weft.cuda.RawKernel(STEP, "step_once"), bare_step(setup, y, _BLOCKS)

    def own() -> list[float]:
        def push() -> None:
            for _ in range(count):
                step(_BLOCKS, THREADS, (mutate(x),))

        return timed(push, 1e3 * count, wait)

    def driver() -> list[float]:
        _issued, completed = bare.time(count)
        return [completed * 1e6 / count]

    own()
    driver()
    stepped = after(start, count)
    check(x.numpy(), stepped, WEFT)
    check(y.numpy(), stepped, DRIVER)
    return [Job(_TABLE, _CASE, WEFT, own), Job(_TABLE, _CASE, DRIVER, driver), *_cupy(setup)]


def _cupy(setup: Setup) -> list[Job]:
    if not setup.has_cupy(_TABLE):
        return []
    count, start = setup.settings.dependent, numbers(_BLOCKS * THREADS)
    cupy, stream = setup.cupy, setup.stream()
    step, x = cupy.RawKernel(STEP, "step_once"), cupy.asarray(start)
    cupy.cuda.Device().synchronize()

    def launch() -> None:
        with stream:
            for _ in range(count):
                step((_BLOCKS,), (THREADS,), (x,))

    def loop() -> list[float]:
        return timed(launch, 1e3 * count, stream.synchronize)

    loop()
    check(cupy.asnumpy(x), after(start, count), CUPY)
    return [Job(_TABLE, _CASE, CUPY, loop)]


LINE = Line(
    _TABLE,
    (Table(_TABLE, "Small kernels in a chain, from the first call to the last result", "us"),),
    _bounds,
    _prepare,
)
