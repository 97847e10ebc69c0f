"""What is recorded and replayed gives what running it gives, bit for bit, however often it is called.

A program is a function of arrays that a seed makes: arithmetic, views, in-place writes, overlapping slices, reductions,
products, casts, constants, draws, tasks. It runs in two worlds alike: in one eagerly, in the other as replays of one
recording. Then arguments, states, generators and all results are compared.
"""

from __future__ import annotations

import operator
import os
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import _core
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy.typing as npt

    Values = npt.NDArray[Any]

#: Programs for each engine; more of them by the environment.
PROGRAMS = int(os.environ.get("WEFT_RECORDED_PROGRAMS", "60"))
CALLS = 4
LENGTH = 12
ENGINES = [("serial", 1), ("work_stealing", 1), ("work_stealing", 2), ("work_stealing", 8)]
UNARY = (weft.tanh, weft.abs, weft.square, weft.negative, weft.floor)
BINARY = (operator.add, operator.sub, operator.mul, weft.maximum, weft.hypot)
INPLACE = (operator.iadd, operator.isub, operator.imul)


def record(
    function: Callable[..., tuple[weft.NDArray, ...]], *arguments: weft.NDArray, **options: Any
) -> _core.Compiled:
    """Record a function of arrays."""
    recording = _core.Recording(arguments[0].engine, "recorded")
    placeholders = [recording.argument(each) for each in arguments]
    recording.begin()
    try:
        results = function(*placeholders)
    finally:
        recording.end()
    return recording.finish(results, **options)


@weft.task
def stir(out: weft.Mutate[Values], x: weft.Read[Values]) -> None:
    """Change an array in a way that shows what was there and when."""
    out += x
    out *= 0.5
    out[::2] -= 1


class World:
    """Arrays from outside that programs refer to, and what they draw from."""

    def __init__(self, seed: int, length: int) -> None:
        values = np.random.default_rng(seed)
        self.length = length
        self.states = [weft.asarray(values.random(length)), weft.asarray(values.random((4, 3)))]
        self.generator = weft.random.default_rng(seed)
        self.calls = [self.arguments(values) for _ in range(2)]

    def arguments(self, values: np.random.Generator) -> tuple[weft.NDArray, ...]:
        """Two arrays of their own, and two that overlap."""
        both = weft.asarray(values.random(self.length + 4))
        one, two = (weft.asarray(values.random(self.length)) for _ in range(2))
        return one, two, both[: self.length], both[4:]

    def arrays(self) -> list[weft.NDArray]:
        return [*self.states, *(array for call in self.calls for array in call)]


def program(seed: int, world: World, *, calls: bool = True) -> Callable[..., tuple[weft.NDArray, ...]]:
    """A function that does what the seed says, each time the same."""

    def run(*arguments: weft.NDArray) -> tuple[weft.NDArray, ...]:
        choose = Random(seed)
        arrays = [*arguments, world.states[0]]
        made: list[weft.NDArray] = []
        for _ in range(choose.randrange(3, 30)):
            step(choose, arrays, made, world, calls=calls)
        return tuple(choose.choice(made + arrays) for _ in range(choose.randrange(1, 5)))

    return run


def step(choose: Random, arrays: list[weft.NDArray], made: list[weft.NDArray], world: World, *, calls: bool) -> None:  # noqa: C901, PLR0912 - a list of what there is
    """Do one thing."""
    x, y = choose.choice(arrays), choose.choice(arrays)
    start, length = choose.randrange(world.length - 4), choose.randrange(1, 5)
    kind = choose.randrange(14 if calls else 10)
    new: weft.NDArray | None = None
    if kind == 0:
        new = choose.choice(UNARY)(x)
    elif kind <= 2:
        new = choose.choice(BINARY)(x, y if kind == 1 else 0.75)
    elif kind == 3:
        choose.choice(INPLACE)(x, y)
    elif kind == 4:
        choose.choice(INPLACE)(x[start : start + length], 1.25)
    elif kind == 5:
        x[start : start + length] = y[start // 2 : start // 2 + length]  # often of one array, and overlapping
    elif kind == 6:
        new = x * y.sum() if choose.randrange(2) else x + x[::-1]
    elif kind == 7:
        new = weft.matmul(x[:12].reshape(3, 4), world.states[1]).reshape(9)[:1] + x
    elif kind == 8:
        constant = weft.asarray(np.arange(world.length) / 8)
        constant += x
        new = constant
    elif kind == 9:
        x[::2] *= y[1::2]
    elif kind == 10:
        new = world.generator.random(world.length)
    elif kind == 11:
        stir(x, y)
    elif kind == 12:
        new = x.astype("float32").astype("float64")
    else:
        new = weft.sort(x)
    if new is not None:
        made.append(new)
        arrays[choose.randrange(len(arrays))] = new  # so that temporaries are let go


def same(one: weft.NDArray, other: weft.NDArray) -> bool:
    a, b = one.numpy(), other.numpy()
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.fixture(params=ENGINES, ids=lambda param: f"{param[0]}-{param[1]}")
def engine(request: pytest.FixtureRequest) -> Iterator[weft.Engine]:
    policy, workers = request.param
    made = weft.Engine(workers, policy)
    before = weft.set_engine(made)
    yield made
    weft.set_engine(before)
    made.close()


@pytest.fixture(autouse=True)
def _nothing_stays_open() -> Iterator[None]:
    yield
    open_one = _core.recording()
    if open_one is not None:
        open_one.abort()


def compare(seed: int, *, calls: bool, wait: bool, length: int = LENGTH, **options: Any) -> None:
    """Run one program in two worlds."""
    eager, replayed = World(seed, length), World(seed, length)
    function = program(seed, eager, calls=calls)
    compiled = record(program(seed, replayed, calls=calls), *replayed.calls[0], **options)
    expected, found = [], []
    for call in range(CALLS):
        arguments = eager.calls[call // 2 % 2]
        expected.append(function(*arguments))
        given = replayed.calls[call // 2 % 2]
        results = compiled.run(given)
        found.append(results)
        for result, other in zip(expected[-1], results, strict=True):
            is_argument = [result is each for each in arguments]
            assert is_argument == [other is each for each in given], seed
        if wait:
            weft.get_engine().wait_for_all()
    for one, other in zip(expected, found, strict=True):
        assert all(map(same, one, other)), (seed, compiled.names)
    assert all(map(same, eager.arrays(), replayed.arrays())), (seed, compiled.names)
    assert same(eager.generator.random(3), replayed.generator.random(3)), seed


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("wait", [False, True], ids=["running", "waiting"])
def test_random_programs(wait: bool) -> None:
    for seed in range(PROGRAMS):
        compare(seed, calls=True, wait=wait)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("wait", [False, True], ids=["running", "waiting"])
def test_random_native_programs(wait: bool) -> None:
    for seed in range(1000, 1000 + PROGRAMS):
        compare(seed, calls=False, wait=wait)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("calls", [False, True], ids=["native", "calls"])
@pytest.mark.parametrize("length", [10_000, 70_000])
def test_random_programs_whose_loops_are_fused(length: int, calls: bool) -> None:
    for seed in range(3000, 3000 + PROGRAMS // 8):
        compare(seed, calls=calls, wait=False, length=length)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    "passes", [(), ("dead",), ("common",), ("follow",), ("layout",), ("early",), ("fuse",), ("graphs",)], ids=str
)
def test_each_pass_can_be_left_out(passes: tuple[str, ...]) -> None:
    for seed in range(4000, 4000 + PROGRAMS // 20):
        compare(seed, calls=True, wait=False, passes=passes)
        compare(seed, calls=False, wait=False, length=10_000, passes=passes)


@pytest.mark.usefixtures("engine")
def test_one_by_one() -> None:
    for seed in range(2000, 2000 + PROGRAMS // 4):
        compare(seed, calls=True, wait=False, sequential=True)


def test_results_are_new_in_each_call() -> None:
    x = weft.asarray(np.arange(4.0))
    compiled = record(lambda x: (x + 1,), x)
    first, second = compiled.run((x,))[0], compiled.run((x,))[0]
    second += 1
    assert first.tolist() == [1, 2, 3, 4]
    assert second.tolist() == [2, 3, 4, 5]


def test_arrays_from_outside_are_states() -> None:
    x, w = weft.asarray(np.arange(4.0)), weft.asarray(np.ones(4))

    def step(x: weft.NDArray) -> tuple[weft.NDArray, ...]:
        w.__iadd__(x)
        return w, w[1:3]

    compiled = record(step, x)
    assert [state is w or state.shape == w.shape for state in compiled.states] == [True]
    compiled.run((x,))
    whole, part = compiled.run((x,))
    assert w.tolist() == [1, 3, 5, 7]
    part += 1
    assert w.tolist() == [1, 4, 6, 7]
    assert whole.tolist() == w.tolist()


def test_values_are_not_known_inside() -> None:
    x = weft.asarray(np.arange(4.0))
    recording = _core.Recording(x.engine, "inside")
    recording.begin()
    y = x * 2
    with pytest.raises(CaptureError, match=r"op 'multiply' makes it, at .*test_recording\.py:\d+"):
        y.tolist()
    assert "recorded" in repr(y)
    recording.end()
    with pytest.raises(CaptureError, match="is not known"):  # who caught it has a recording with a hole
        recording.finish((y,))
    with pytest.raises(CaptureError, match="belongs to the recording 'inside'"):
        y.numpy()
    with pytest.raises(CaptureError, match="belongs to the recording 'inside'"):
        y + 1
    assert (x + 1).tolist() == [1, 2, 3, 4]


def test_a_state_may_be_looked_at_until_it_is_changed() -> None:
    x, rate = weft.asarray(np.arange(4.0)), weft.asarray(0.5)
    compiled = record(lambda x: (x * float(rate),), x)
    before = compiled.states_version()
    assert before == (rate.version,)
    rate += 1
    assert compiled.states_version() != before


def test_recordings_do_not_nest() -> None:
    engine = weft.get_engine()
    outer, inner = _core.Recording(engine, "outer"), _core.Recording(engine, "inner")
    assert _core.recording() is None
    outer.begin()
    assert _core.recording() is outer
    with pytest.raises(CaptureError, match="'outer' is open"):
        inner.begin()
    outer.abort()
    assert _core.recording() is None
    with pytest.raises(CaptureError, match="begun before"):
        outer.begin()
    with pytest.raises(CaptureError, match="not open"):
        inner.end()


def test_arrays_of_another_recording_are_refused() -> None:
    x = weft.asarray(np.arange(4.0))
    first, second = (_core.Recording(x.engine, name) for name in ("first", "second"))
    first.begin()
    kept = x + 1
    first.abort()
    second.begin()
    with pytest.raises(CaptureError, match="belongs to the recording 'first'"):
        kept + 1
    assert (x + 1).shape == (4,)
    second.abort()


def test_arguments_must_be_like_those_recorded() -> None:
    x = weft.asarray(np.arange(8.0))
    compiled = record(lambda a, b: (a + b,), x[:4], x[4:])
    assert compiled.run((x[:4], x[4:]))[0].tolist() == [4, 6, 8, 10]
    for bad, why in [
        ((x[:4],), "takes 2 arrays"),
        ((x[:4], x[::2]), "another shape, dtype or strides"),
        ((x[:4], weft.asarray(np.arange(4.0))), "shared its memory"),
        ((x[1:5], x[4:]), "less memory"),
    ]:
        with pytest.raises(ValueError, match=why):
            compiled.run(bad)
    apart = record(lambda a, b: (a + b,), x, weft.asarray(np.arange(8.0)))
    with pytest.raises(ValueError, match="two arguments share memory"):
        apart.run((x, x))
    state = weft.asarray(np.arange(8.0))
    uses = record(lambda a: (a + state,), x)
    with pytest.raises(ValueError, match="refers to itself"):
        uses.run((state,))


@pytest.mark.usefixtures("engine")
def test_a_failure_is_that_of_what_eager_would_fail() -> None:
    x, other = weft.asarray(np.arange(4.0)), weft.asarray(np.zeros(4))
    fails = [True]

    @weft.task
    def may_fail(out: weft.Mutate[Values]) -> None:
        if fails[0]:
            raise ZeroDivisionError("inner")
        out += 1

    def step(x: weft.NDArray) -> tuple[weft.NDArray, ...]:
        y = x + 1
        may_fail(y)
        other.__iadd__(1)
        return y * 2, x + 2

    compiled = record(step, x)
    bad, good = compiled.run((x,))
    with pytest.raises(ZeroDivisionError, match="inner") as raised:
        bad.wait_to_read()
    assert any("may_fail" in note and "test_recording.py" in note for note in raised.value.__notes__)
    assert good.tolist() == [2, 3, 4, 5]
    fails[0] = False
    bad, good = compiled.run((x,))
    assert bad.tolist() == [4, 6, 8, 10]
    assert other.tolist() == [2, 2, 2, 2]


def test_figures_agree_with_what_is_made() -> None:
    x = weft.asarray(np.zeros(1000, "float32"))

    def chain(x: weft.NDArray) -> tuple[weft.NDArray, ...]:
        for _ in range(6):
            x = weft.tanh(x)
        return (x,)

    compiled = record(chain, x, passes=())
    assert compiled.ops == 6
    assert compiled.eager_nbytes == 6 * 4000
    assert compiled.eager_peak_nbytes == 2 * 4000
    assert compiled.peak_live_nbytes == 4000  # each lies where the one before it lay
    assert compiled.nbytes == 4000
    steps = compiled.describe()
    assert [step["dependencies"] for step in steps] == [[], [0], [1], [2], [3], [4]]
    assert steps[0]["location"].endswith(f"test_recording.py:{chain.__code__.co_firstlineno + 2}")


def test_memory_says_how_much_longer_the_longest_way_may_become() -> None:
    x = weft.asarray(np.ones(4000, "float32"))

    def chains(x: weft.NDArray) -> tuple[weft.NDArray, ...]:
        ends = []
        for number in range(4):  # each by itself, so that their temporaries may lie in one place if they wait
            y = x + number
            for _ in range(6):
                y = weft.tanh(y)
            ends.append(y)
        return tuple(ends)

    programs = {memory: record(chains, x, memory=memory, passes=()) for memory in ("min", "balanced", "speed")}
    assert programs["min"].nbytes <= 3 * 16_064
    assert programs["speed"].nbytes >= 4 * 16_000
    assert programs["balanced"].nbytes <= programs["speed"].nbytes <= programs["speed"].eager_nbytes
    expected = [each.tolist() for each in chains(x)]
    for compiled in programs.values():
        assert [each.tolist() for each in compiled.run((x,))] == expected
    with pytest.raises(ValueError, match='not "none"'):
        record(chains, x, memory="none")


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("memory", ["min", "speed"])
def test_random_programs_in_little_and_in_much_memory(memory: str) -> None:
    for seed in range(5000, 5000 + PROGRAMS // 8):
        compare(seed, calls=True, wait=False, memory=memory)
        compare(seed, calls=False, wait=False, length=9000, memory=memory, passes=())


def test_a_loop_takes_its_own_types_alone() -> None:
    add = _core.Loop.of(np.add, (np.dtype("float64"),) * 3)
    assert add is not None
    small = weft.asarray(np.zeros(4, "float32"))
    with pytest.raises((TypeError, ValueError), match="float64"):
        add.push((small,), (small, small))
