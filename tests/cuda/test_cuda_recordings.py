"""Programs over arrays of devices and of the host: recorded and replayed, they give what eager calls give."""

from __future__ import annotations

import gc
import random
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, Gate
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

pytestmark = pytest.mark.usefixtures("fake_cuda", "cupy")

PLACES = (weft.cpu(), weft.gpu(0), weft.gpu(1))
SETTINGS: list[tuple[Any, int]] = [("serial", 1), ("work_stealing", 1), ("work_stealing", 3), ("per_device", 2)]
SIZE = 12
CALLS = 4
SOURCE = r"""
extern "C" __global__ void axpy(const double* x, double* y, double factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += factor * x[i];
}
"""
AXPY = weft.cuda.RawKernel(SOURCE, "axpy")

Bits = list[tuple[str, bytes]]


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What ops raise here."""


def on(index: int, values: Any, engine: weft.Engine | None = None) -> weft.NDArray:
    return weft.asarray(np.array(values, float), device=PLACES[index], engine=engine)


def bits(arrays: list[weft.NDArray]) -> Bits:
    found: Bits = []
    for array in arrays:
        try:
            found.append((str(array.device), array.numpy().tobytes()))
        except Boom as error:
            found.append(("failed", str(error).encode()))
    return found


def step_of(  # noqa: C901 - one branch for each kind of step
    chance: random.Random, count: int, *, failing: bool
) -> tuple[Callable[[list[weft.NDArray]], None], int]:
    """A step over arrays that go by numbers, of which there are `count`, and how many it adds."""
    kinds = ["binary", "in place", "view", "assign", "move", "fill", "kernel", "hosted", "task", "reduce"]
    kind = chance.choices(kinds, [5, 3, 2, 4, 4, 1, 2, 2, 2, 1])[0]
    one, other = chance.randrange(count), chance.randrange(count)
    low = chance.randrange(SIZE // 2)
    high = chance.randrange(low + 1, SIZE + 1)
    stride, place, number = chance.choice([1, 1, 2, -1]), chance.randrange(3), chance.randrange(1, 5)
    if failing:  # whole arrays: where an array is used in parts and as a whole, eager failures reach more of it
        low, high, stride = 0, SIZE, chance.choice([1, -1])
    fails = failing and chance.random() < 0.4

    def step(arrays: list[weft.NDArray]) -> None:  # noqa: C901, PLR0912 - as above
        a, b = arrays[one], arrays[other]
        size = min(len(a), len(b), high - low)
        near, far = a[:size], b[len(b) - size :][::stride][:size]
        near = near[: len(far)]
        if a._device != b._device:
            far = far.to_device(a.device)
        match kind:
            case "binary":
                arrays.append(near + far * number)
            case "in place":
                near += far
            case "view":
                arrays.append(a[low % len(a) :])
            case "assign":
                a[: len(far)] = b[len(b) - size :][::stride][:size]  # copies between devices in it
            case "move":
                arrays.append(a.to_device(PLACES[place]))
            case "fill":
                near[...] = number
            case "kernel":
                if a._elsewhere:
                    AXPY(1, 16, (weft.Read(far.copy()), weft.Mutate(a), 0.5, len(far)))
                else:
                    a[: len(far)] += 0.5 * far
            case "hosted":
                arrays.append(weft.sort(a))
            case "task":
                scale(a, number, fails=fails)
            case _:
                arrays.append(weft.flip(a) + weft.sum(a))

    return step, {"binary": 1, "view": 1, "move": 1, "hosted": 1, "reduce": 1}.get(kind, 0)


def scale(a: weft.NDArray, number: int, *, fails: bool) -> None:
    """Multiply by a callable, which sees the values."""

    def run() -> None:
        if fails:
            raise Boom(str(number))
        values = a._values()
        values[...] = values * number

    a.engine.push(run, (), (a,))


def function_of(seed: int, length: int, *, failing: bool = False) -> Callable[..., list[weft.NDArray]]:
    """A random function of three arrays, one on the host and one on each device."""
    chance, count = random.Random(seed), 3
    steps = []
    for _ in range(length):
        step, more = step_of(chance, count, failing=failing)
        steps.append(step)
        count += more
    shown = sorted(chance.sample(range(count), min(count, 6)))

    def function(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray) -> list[weft.NDArray]:
        arrays = [x, y, z]
        for step in steps:
            step(arrays)
        return [arrays[at] for at in shown]

    return function


def run(function: Callable[..., list[weft.NDArray]], engine: weft.Engine) -> list[Bits]:
    """What four calls give, and what becomes of the arguments; nothing is looked at before all are pushed."""
    arguments = [on(index, np.arange(SIZE) + index, engine) for index in range(3)]
    results = [function(*arguments) for _ in range(CALLS)]
    return [bits(result) for result in results] + [bits(arguments)]


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_eager_calls_give(seed: int, make_engine: MakeEngine) -> None:
    function = function_of(seed, 24)
    wanted = run(function, make_engine(1, "serial"))
    policy, workers = SETTINGS[seed % len(SETTINGS)]
    engine = make_engine(workers, policy)
    assert run(function, engine) == wanted
    passes = None if seed < 4 else ("dead", "common")  # every new kernel has to be compiled
    memory = ("min", "balanced", "speed")[seed % 3]
    recorded = weft.program(function, memory=memory, sequential=seed % 5 == 4, passes=passes)
    assert run(recorded, engine) == wanted
    (program,) = recorded.programs
    assert program.peak_live_nbytes <= program.nbytes


def test_a_kernel_writes_where_what_it_reads_dies(make_engine: MakeEngine) -> None:
    engine = make_engine(2)

    def chains(*starts: weft.NDArray) -> list[weft.NDArray]:
        found = []
        for start in starts[1:]:
            x = start
            for _ in range(4):
                x = (x + start) * 0.5
            found.append(x[::-1] - start)
        return found

    recorded = weft.program(chains, passes=("dead", "common"))
    assert run(recorded, engine) == run(chains, engine)
    (program,) = recorded.programs
    assert program.nbytes == 2 * SIZE * 8  # one place on each device
    assert program.eager_nbytes == 18 * SIZE * 8


@pytest.mark.parametrize("seed", range(6))
def test_failures_reach_what_they_reach_eagerly(seed: int, make_engine: MakeEngine) -> None:
    function = function_of(1000 + seed, 16, failing=True)
    engine = make_engine(2)
    wanted = run(function, engine)
    passes = None if seed < 2 else ("dead", "common")
    assert run(weft.program(function, passes=passes), engine) == wanted
    with suppress(Boom, ExceptionGroup):
        engine.wait_for_all(SOON)
    assert engine.pending == 0


def step_on(x: weft.NDArray, w: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
    h = (x + 1.0) * x
    w += h * 0.5
    far = (h - w).to_device("cpu") * 2.0
    return far.to_device(w.device) + w, far


def test_a_program_on_a_device_has_its_arenas_there(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x, w = on(1, range(1024), engine), on(1, [0.0] * 1024, engine)
    recorded = weft.program(step_on)
    recorded(x, w)
    (program,) = recorded.programs
    # Two temporaries at one time on the device, two on the host, one of them a ticket.
    assert 2 * 8192 <= program.nbytes <= 4 * 8192 + 256 < program.eager_nbytes
    assert "temporary" in str(program.summary())
    gc.collect()
    weft.cuda.synchronize(PLACES[1])
    before = weft.cuda.memory_stats(PLACES[1]).in_use
    results = [recorded(x, w) for _ in range(20)]
    del results
    engine.wait_for_all(SOON)
    weft.cuda.synchronize(PLACES[1])
    gc.collect()
    assert weft.cuda.memory_stats(PLACES[1]).in_use <= before


def test_replays_overlap_and_their_results_are_new_arrays(make_engine: MakeEngine) -> None:
    engine, gate = make_engine(2), Gate()
    recorded = weft.program(step_on)
    x, w, mine = on(1, range(6), engine), on(1, [0.0] * 6, engine), on(1, [0.0] * 6, engine)
    wanted = [[array.numpy() for array in step_on(x, mine)] for _ in range(6)]
    recorded(x, w)
    w[...] = 0.0
    engine.push(gate, (), (x,))
    found = [recorded(x, w) for _ in range(6)]  # the first ones wait for the gate, the others for room
    gate.open()
    for ours, theirs in zip(found, wanted, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)
    assert len({id(array) for pair in found for array in pair}) == 12


def test_a_block_records_host_and_device_together(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x, y = on(1, [1.0, 2.0], engine), on(0, [0.0, 0.0], engine)
    with weft.capture("both", engine=engine) as both:
        x *= 2.0
        z = x.to_device("cpu") + y
        y[...] = z * 10.0
    assert x.tolist() == [1.0, 2.0]
    for _ in range(3):
        both.replay()
    assert (x.tolist(), y.tolist(), z.tolist()) == ([8.0, 16.0], [2480.0, 4960.0], [248.0, 496.0])


def test_where_an_argument_is_decides_which_program(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    double = weft.program(lambda x: x * 2.0)
    for index in (0, 1, 2, 1, 0, 2):
        found = double(on(index, [1.0, 3.0], engine))
        assert (found.device, found.tolist()) == (PLACES[index], [2.0, 6.0])
    assert len(double.programs) == 3


def test_values_of_a_device_are_known_or_not_as_the_hosts_are(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    state = on(1, 3.0, engine)

    @weft.program
    def scaled(x: weft.NDArray) -> weft.NDArray:
        return x * float(state)

    x = on(1, [1.0, 2.0], engine)
    assert scaled(x).tolist() == [3.0, 6.0]
    state += 1.0
    assert scaled(x).tolist() == [4.0, 8.0]

    @weft.program
    def asked(x: weft.NDArray) -> weft.NDArray:
        y = x + 1.0
        return y if float(y[0]) else x

    with pytest.raises(errors.CaptureError, match=r"op 'add' makes it|is not known while 'asked' is recorded"):
        asked(x)
    assert x.tolist() == [1.0, 2.0]


def test_what_was_made_in_a_recording_is_no_array_outside(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    kept: list[weft.NDArray] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        kept.append(x * 2.0)
        return kept[-1] + 1.0

    x = on(1, [1.0], engine)
    assert step(x).tolist() == [3.0]
    for use in (kept[0].tolist, lambda: kept[0] + 1.0, lambda: kept[0].to_device("cpu"), lambda: weft.sum(kept[0])):
        with pytest.raises(errors.CaptureError, match="step"):
            use()


def test_a_deleted_array_and_a_closed_engine_refuse_a_replay(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    recorded = weft.program(step_on)
    x, w = on(1, [1.0], engine), on(1, [0.0], engine)
    recorded(x, w)
    engine.close()
    with pytest.raises(errors.EngineClosedError):
        recorded(x, w)


def test_a_dead_copy_to_the_device_still_holds_the_hosts_memory(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    with weft.capture("dead", engine=engine) as dead:
        x = weft.ones(4, engine=engine)
        y = x.to_device(PLACES[1])
        x += 1.0
        total = y + 0.0
    del x, y
    dead.replay()
    assert total.tolist() == [1.0] * 4


def test_loops_and_branches_on_a_device(make_engine: MakeEngine) -> None:
    engine = make_engine(2)

    def looped(x: weft.NDArray) -> Any:
        last, rows = weft.scan(lambda carry, row: (carry + row, carry * 2.0), weft.zeros_like(x[0]), x)
        return weft.cond(weft.sum(last) > 5.0, lambda y: y + 1.0, lambda y: y - 1.0, last), rows

    recorded = weft.program(looped)
    for index in (0, 1):
        for value in (1.0, 0.1):
            x = on(index, np.full((3, 2), value), engine)
            for one, other in zip(recorded(x), looped(x), strict=True):
                assert (one.device, one.tolist()) == (other.device, other.tolist())


def launches(program: Callable[..., Any], arguments: tuple[weft.NDArray, ...], engine: weft.Engine) -> list[str]:
    """The names of what a call issues."""
    program(*arguments)
    engine.wait_for_all(SOON)
    with weft.trace(engine=engine) as trace:
        program(*arguments)
        engine.wait_for_all(SOON)
    return [trace.names[op["name"]] for op in trace.ops]


def test_neighbours_become_one_kernel(make_engine: MakeEngine) -> None:
    engine = make_engine(2)

    def step(x: weft.NDArray, y: weft.NDArray) -> Any:
        h = (x.astype("float16") * 1.1).astype("float32") + y  # rounded in between, as it is eagerly
        y -= 0.1 * h
        return weft.where(h > 2.0, h, weft.sqrt(weft.abs(h))), h[::2] * 3.0

    rng = np.random.default_rng(0)
    given = [rng.normal(size=100).astype("f4") for _ in range(2)]
    found: list[Bits] = []
    for passes in (None, ("dead",), ()):
        arrays = [weft.asarray(each, device=PLACES[1], engine=engine) for each in given]
        recorded = weft.program(step, passes=passes)
        found.append([each for _ in range(3) for each in bits([*recorded(*arrays), *arrays])])
    eager = [weft.asarray(each, device=PLACES[1], engine=engine) for each in given]
    wanted = [each for _ in range(3) for each in bits([*step(*eager), *eager])]
    assert found == [wanted] * 3
    arguments = tuple(weft.asarray(each, device=PLACES[1], engine=engine) for each in given)
    alone, together = (launches(weft.program(step, passes=passes), arguments, engine) for passes in ((), None))
    assert len(together) + 4 <= len(alone)
    assert any(name.count("+") >= 3 for name in together)


def test_a_fused_kernel_fails_as_its_steps_would(make_engine: MakeEngine) -> None:
    engine = make_engine(2)

    def step(x: weft.NDArray, y: weft.NDArray, z: weft.NDArray) -> Any:
        first = x * 2.0
        second = first + y  # owes more than the first
        return first, second, (second * z - second) * 0.5

    def fail() -> None:
        raise Boom("no")

    for failing in range(3):
        arrays = [on(1, [1.0, 2.0], engine) for _ in range(3)]
        recorded = weft.program(step)
        recorded(*arrays)
        engine.push(fail, (), (arrays[failing],))
        assert bits(list(recorded(*arrays))) == bits(list(step(*arrays)))
    with suppress(Boom, ExceptionGroup):
        engine.wait_for_all(SOON)


def test_what_cannot_be_compiled_stays_apart(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = make_engine(1)

    def refuse(*_: object) -> None:
        raise errors.CudaUnavailableError("no compiler")

    monkeypatch.setattr("weft._cuda.fused.build", refuse)
    x = on(1, [1.0, 2.0], engine)
    assert weft.program(lambda x: (x + 1.0) * x)(x).tolist() == [2.0, 6.0]
