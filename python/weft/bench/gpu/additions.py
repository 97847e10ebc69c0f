"""``c = a + b`` on the device: how long until it returns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft.bench.gpu.bounds import Bound
from weft.bench.gpu.kernels import check
from weft.bench.gpu.launches import until_return
from weft.bench.gpu.setup import CUPY, WEFT, Line, Setup, wait
from weft.bench.samples import Job
from weft.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft.bench.gpu.bounds import Figures
    from weft.bench.gpu.settings import Settings

_TABLE = "add"
_SEED = 0x77656674


def _bounds(settings: Settings) -> tuple[Bound, ...]:
    def returns(name: str, size: int, figures: Figures) -> float:
        return figures(_TABLE, name, _case(size))

    own = [
        Bound(_TABLE, f"c = a + b returns, {_case(size)}", partial(returns, WEFT, size), 0.7, "us")
        for size in settings.add_sizes
    ]
    beside = [
        Bound(_TABLE, f"CuPy's c = a + b returns, {_case(size)}", partial(returns, CUPY, size), None, "us")
        for size in settings.add_sizes
    ]
    return (*own, *beside)


def _case(size: int) -> str:
    return f"{size:,} float32"


def _prepare(setup: Setup) -> list[Job]:
    return [job for size in setup.settings.add_sizes for job in (*_weft(setup, size), *_cupy(setup, size))]


def _operands(size: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    rng = np.random.default_rng(_SEED)
    return rng.random(size, np.float32), rng.random(size, np.float32)


def _weft(setup: Setup, size: int) -> list[Job]:
    left, right = _operands(size)
    a, b = weft.asarray(left, device=setup.device), weft.asarray(right, device=setup.device)
    check((a + b).numpy(), left + right, f"{WEFT}, {_case(size)}")
    count = setup.settings.calls
    return [Job(_TABLE, _case(size), WEFT, partial(until_return, _adding(a, b, count), wait, count))]


def _adding(a: Any, b: Any, count: int) -> Callable[[], None]:
    every = range(count)

    def add() -> None:
        for _ in every:
            _c = a + b  # as a program would keep it

    return add


def _cupy(setup: Setup, size: int) -> list[Job]:
    if not setup.has_cupy(_TABLE):
        return []
    left, right = _operands(size)
    cupy, stream = setup.cupy, setup.stream()
    a, b = cupy.asarray(left), cupy.asarray(right)
    cupy.cuda.Device().synchronize()
    check(cupy.asnumpy(a + b), left + right, f"{CUPY}, {_case(size)}")

    add, count = _adding(a, b, setup.settings.calls), setup.settings.calls

    def on_stream() -> list[float]:
        with stream:
            return until_return(add, stream.synchronize, count)

    on_stream()
    return [Job(_TABLE, _case(size), CUPY, on_stream)]


LINE = Line(_TABLE, (Table(_TABLE, "c = a + b on the device: until it returns", "us"),), _bounds, _prepare)
