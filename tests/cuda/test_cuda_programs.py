"""Random programs over two devices and the host: what NumPy gives, or with ops that fail, what the serial policy gives.

They mix what other tests look at one by one: slices that overlap, are strided, backwards or empty; copies between all
memories; callables with priorities; graphs that are recorded, replayed and dropped; handles that go while ops are
pending; waits that run out of time; traces that begin and end in between; a device that takes its time.
"""

from __future__ import annotations

import ctypes
import gc
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import MakeEngine

Array = np.ndarray[Any, Any]

DEVICES = (weft.cpu(), weft.gpu(0), weft.gpu(1))
SETTINGS = [("work_stealing", 1), ("work_stealing", 3), ("per_device", 2)]
#: The most handles that a program has.
HANDLES = 12


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What ops raise here."""


@pytest.fixture(autouse=True)
def driver(fake_cuda: dict[str, str]) -> Iterator[ctypes.CDLL]:
    """The driver of the host, which is as fast as ever afterwards."""
    library = ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"])
    library.fake_cuda_speed.argtypes = [ctypes.c_longlong, ctypes.c_double]
    yield library
    library.fake_cuda_speed(0, 0.0)
    library.fake_cuda_order(-1, 0)


@dataclass(eq=False)
class Handle:
    """An array, what NumPy has for it, and where it is."""

    array: weft.NDArray
    wanted: Array
    place: int


def run_of(rng: np.random.Generator, n: int, length: int | None = None) -> slice:
    """A slice of ``n`` elements: a quarter, all, none, or with a step; of so many, if it is to fit."""
    if length is None:
        match int(rng.integers(5)):
            case 0:
                start = n // 4 * int(rng.integers(4))
                return slice(start, start + n // 4)
            case 1:
                return slice(None)
            case 2:
                start = int(rng.integers(n + 1))
                return slice(start, start)
    step = int(rng.integers(1, 4))
    count = int(rng.integers(n // step + 1)) if length is None else length
    step = step if count * step <= n else 1
    start = int(rng.integers(n - count * step + 1))
    if count and not rng.integers(4):
        return slice(start + (count - 1) * step, start - 1 if start else None, -step)
    return slice(start, start + count * step, step)


class World:
    """A program, at work on weft's arrays and on NumPy's."""

    def __init__(self, engine: weft.Engine, driver: ctypes.CDLL, seed: int, *, failing: bool = False) -> None:
        self.engine, self.driver, self.failing = engine, driver, failing
        #: Whether nothing is to fail.
        self.sound = not failing
        self.rng = np.random.default_rng(seed)
        self.handles = [self.fresh(at % 3, (48,) if at < 3 else (6, 8)) for at in range(6)]
        self.graphs: list[tuple[weft.cuda.Graph, list[Callable[[], None]]]] = []
        #: What a capture has recorded of NumPy's side, and on which device.
        self.recorded: list[Callable[[], None]] | None = None
        self.device = 0
        self.trace: Any = None

    def fresh(self, place: int, shape: tuple[int, ...]) -> Handle:
        dtype = ("float64", "int64", "float32")[int(self.rng.integers(3))]
        values = self.rng.integers(0, 50, shape).astype(dtype)
        return Handle(weft.asarray(values.copy(), device=DEVICES[place], engine=self.engine), values, place)

    def choose(self, such: Callable[[Handle], bool] = lambda _: True) -> Handle:
        able = [each for each in self.handles if such(each) and (self.recorded is None or each.place == self.device)]
        return able[int(self.rng.integers(len(able)))]

    def operands(self) -> tuple[Handle, Any, Handle, Any]:
        """Two arrays, perhaps the same, with slices of one shape."""
        to = self.choose()
        at = tuple(run_of(self.rng, n) for n in to.wanted.shape)
        shape = to.wanted[at].shape
        of = self.choose(lambda each: each.wanted.ndim == to.wanted.ndim)
        if any(n < m for n, m in zip(of.wanted.shape, shape, strict=True)):
            of = to
        return to, at, of, tuple(run_of(self.rng, n, m) for n, m in zip(of.wanted.shape, shape, strict=True))

    def model(self, step: Callable[[], None]) -> None:
        if self.recorded is not None:
            self.recorded.append(step)
        else:
            with np.errstate(all="ignore"):
                step()

    def program(self, steps: int) -> World:
        """Run so many steps, and end what is under way."""
        for number in range(steps):
            kind = int(self.rng.integers(30))
            if kind < 13:
                self.write(kind)
            elif kind < 18:
                self.call(f"call{number}")
            elif kind == 18:
                self.record(f"graph{number}")
            elif kind < 22 and self.graphs:
                graph, steps_of = self.graphs[int(self.rng.integers(len(self.graphs)))]
                graph.replay()
                with np.errstate(all="ignore"):
                    for step in steps_of:
                        step()
            elif kind < 28:
                self.handle(kind)
            else:
                self.look(kind)
        self.end_trace()
        return self

    def end_trace(self) -> None:
        """End the trace, if there is one."""
        trace, self.trace = self.trace, None
        if trace is not None:
            trace.__exit__(None, None, None)

    def write(self, kind: int) -> None:
        """Write to a slice, which a capture records."""
        to, at, of, there = self.operands()
        wanted, values, number = to.wanted, of.wanted, int(self.rng.integers(9))
        same = to.place == of.place and np.result_type(wanted, values) == wanted.dtype

        def assign() -> None:
            wanted[at] = values[there].astype(wanted.dtype)

        def fill() -> None:
            wanted[at] = number

        def add() -> None:
            wanted[at] += values[there].copy()

        def subtract() -> None:
            wanted[at] = wanted[at] - values[there]

        def chain() -> None:
            wanted[...] = wanted + values * 2

        if kind < 5 and (self.recorded is None or to.place == of.place):
            to.array[at] = of.array[there]
            self.model(assign)
        elif kind < 7 and same:
            to.array[at] += of.array[there]
            self.model(add)
        elif kind < 9 and same and wanted.dtype == values.dtype:
            weft.subtract(to.array[at], of.array[there], out=to.array[at])
            self.model(subtract)
        elif kind < 10 and same and wanted.shape == values.shape:
            to.array[...] = to.array + of.array * 2
            self.model(chain)
        else:
            to.array[at] = number
            self.model(fill)

    def call(self, name: str) -> None:
        """Push a callable on slices."""
        to, at, of, there = self.operands()
        if to.place != of.place:
            return
        wanted, values, fails = to.wanted, of.wanted, self.failing and self.rng.random() < 0.5
        out, x, adds = to.array[at], of.array[there], bool(self.rng.integers(2))

        def run() -> None:
            if fails:
                raise Boom(name)
            found = out._values()
            found[...] = found + x._values().astype(found.dtype) if adds else 3

        options: dict[str, Any] = {"name": name, "priority": int(self.rng.integers(-2, 3))}
        if adds:
            self.engine.push(run, [x], [out], **options)
        else:
            self.engine.push(run, overwrite_vars=[out], **options)
        if not fails:
            wanted[at] = wanted[at] + values[there].astype(wanted.dtype) if adds else 3

    def record(self, name: str) -> None:
        """Record a graph of writes on a device."""
        self.device = int(self.rng.integers(1, 3))
        if all(each.place != self.device for each in self.handles):
            return
        recorded: list[Callable[[], None]] = []
        self.recorded = recorded
        with weft.cuda.capture(name, engine=self.engine) as graph:
            for _ in range(int(self.rng.integers(1, 8))):
                self.write(int(self.rng.integers(13)))
        self.recorded = None
        self.graphs.append((graph, recorded))

    def handle(self, kind: int) -> None:
        """Make a handle, or let one go."""
        to, at, _, _ = self.operands()
        place, number = int(self.rng.integers(3)), self.handles.index(to)
        if kind == 22:
            moved = to.array[at].copy() if place == to.place else to.array[at].to_device(DEVICES[place])
            self.handles[number] = Handle(moved, to.wanted[at].copy(), place)
            if not moved.size:
                self.handles[number] = self.fresh(place, to.wanted.shape)
        elif kind == 23:
            with np.errstate(all="ignore"):
                wanted = np.ascontiguousarray(to.wanted * 2 + 1)
            self.handles[number] = Handle(to.array * 2 + 1, wanted.astype(to.wanted.dtype), to.place)
        elif kind == 24 and to.wanted[at].size and len(self.handles) < HANDLES:
            self.handles.append(Handle(to.array[at], to.wanted[at], to.place))
        elif kind == 25 and to.wanted.ndim == 2 and len(self.handles) < HANDLES:
            self.handles.append(Handle(to.array.T, to.wanted.T, to.place))
        elif kind == 26 and self.graphs:
            del self.graphs[int(self.rng.integers(len(self.graphs)))]
        elif len(self.handles) > 6:
            del self.handles[int(self.rng.integers(len(self.handles)))]

    def look(self, kind: int) -> None:
        """Look at something, or change how fast things go; values do not depend on it."""
        to, at, _, _ = self.operands()
        if kind == 28:
            self.driver.fake_cuda_speed(int(self.rng.integers(2)) * 100_000, float(self.rng.integers(2)) * 0.05)
            return
        match int(self.rng.integers(3)):
            case 0 if self.trace is None:
                self.trace = weft.trace(engine=self.engine)
                self.trace.__enter__()
            case 0:
                self.end_trace()
            case 1:
                wait = (to.array[at].wait_to_read, to.array[at].wait_to_write)[int(self.rng.integers(2))]
                try:
                    wait(int(self.rng.integers(2)) * 1e-3)
                except errors.WaitTimeoutError:
                    pass
                except (Boom, errors.CudaError):
                    assert not self.sound
            case _:
                assert to.array[at].is_ready() in (True, False)
                assert not self.sound or to.array[at].exception() is None

    def results(self) -> list[Array | str]:
        """What the handles have, or the message of what their ops raised."""
        found: list[Array | str] = []
        for each in self.handles:
            try:
                found.append(each.array.numpy())
            except Boom as error:
                found.append(str(error))
        return found


def in_use() -> list[int]:
    """Bytes in use on the devices, when all is done."""
    gc.collect()
    for device in DEVICES[1:]:
        weft.cuda.synchronize(device)
    return [weft.cuda.memory_stats(device).in_use for device in DEVICES[1:]]


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(("policy", "workers"), [("serial", 1), *SETTINGS])
@pytest.mark.parametrize("seed", range(4))
def test_programs_give_what_numpy_gives(
    seed: int, policy: Any, workers: int, make_engine: MakeEngine, driver: ctypes.CDLL
) -> None:
    engine, before = make_engine(workers, policy), in_use()
    world = World(engine, driver, seed).program(200)
    for each in world.handles:
        np.testing.assert_array_equal(each.array.numpy(), each.wanted)
    del world, each
    engine.wait_for_all(SOON)
    assert (engine.pending, engine.stats()["pending_bytes"]) == (0, 0)
    for _ in range(100):  # frees are behind the last ops, which the poller looks for
        if in_use() <= before:
            break
    assert in_use() <= before


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("seed", range(4))
def test_failures_reach_what_they_reach_when_ops_run_at_once(
    seed: int, make_engine: MakeEngine, driver: ctypes.CDLL
) -> None:
    wanted = World(make_engine(1, "serial"), driver, 100 + seed, failing=True).program(150).results()
    assert any(isinstance(each, str) for each in wanted)
    for policy, workers in SETTINGS:
        engine = make_engine(workers, policy)
        found = World(engine, driver, 100 + seed, failing=True).program(150).results()
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        with suppress(Boom, ExceptionGroup):
            engine.wait_for_all(SOON)
        assert engine.pending == 0


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize("code", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_what_the_driver_refuses_is_put_right_by_an_overwrite(
    seed: int, code: int, make_engine: MakeEngine, driver: ctypes.CDLL
) -> None:
    engine, before = make_engine(*reversed(SETTINGS[seed])), in_use()
    world, told = World(engine, driver, 200 + seed), []
    world.sound = False
    for _ in range(10):
        driver.fake_cuda_order(int(world.rng.integers(4)), code)
        with suppress(errors.CudaError, ExceptionGroup):
            world.program(10)
    driver.fake_cuda_order(-1, 0)
    for each in world.handles:
        try:
            each.array.wait_to_read(SOON)
        except errors.CudaError as error:
            told.append(str(error))
        if each.wanted.base is not None:
            continue  # what lies between its elements may have failed, too
        each.array[...] = 5
        assert (each.array.numpy() == 5).all()
    assert all(re.match(r"op '[\w: +]+'.*, pushed at .*test_cuda_programs.py:\d+", each) for each in told), told
    del world, each
    with suppress(errors.CudaError, ExceptionGroup):
        engine.wait_for_all(SOON)
    for _ in range(100):
        if in_use() <= before:
            break
    assert in_use() <= before
