"""Programs in a check run: most calls are replayed and looked at, and the script sees no difference."""

from __future__ import annotations

import inspect
import os
import threading
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from seeded import check, logged

import weft
from weft._core import _are_finite, _keep, _put_back
from weft._doctor import budget, programs
from weft._doctor.check import Checker
from weft._doctor.orders import differences
from weft._doctor.session import CHECKED
from weft._engine import observers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from weft._doctor.findings import Report

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

#: Calls of a test, and one of them that is no power of two.
TURNS, LATE = 100, 75
REPLAYED = "calls of programs looked at by their results"
UNTOLD = "calls of programs whose values that are not finite were traced to no op"


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time for more than is checked at any price."""
    monkeypatch.setattr(budget.Budget, "allows", lambda *_: False)
    monkeypatch.setattr(budget.Budget, "allows_program", lambda *_: False)


def line_of(function: Callable[..., Any], text: str) -> int:
    """Return the line of a function that holds a text."""
    source, first = inspect.getsourcelines(inspect.unwrap(function))
    return next(first + at for at, line in enumerate(source) if text in line)


def places(report: Report) -> list[tuple[str, int]]:
    return [(one.kind, one.line) for one in report.findings]


def test_most_calls_are_replayed() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return weft.tanh(x * 0.5) + 1

    x = weft.ones(16)
    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            x = step(x)
    assert report.findings == []
    # Its recording, the first ones, and those of doubling numbers.
    assert len(ran) == 1 + 8 + 3
    assert report.checked[REPLAYED] == TURNS - 8 - 3
    y = weft.ones(16)
    for _ in range(TURNS):
        y = step(y)
    np.testing.assert_array_equal(x, y)
    assert len(step.programs) == 1


def test_without_a_look_at_values_programs_are_programs() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return weft.log(x)

    with weft.doctor(only="undeclared-write") as report:
        for _ in range(TURNS):
            step(weft.zeros(3))
    assert report.findings == []
    assert len(ran) == 1


@pytest.mark.parametrize("turn", [0, 3, 8, 9, 64, LATE, TURNS - 1])
def test_the_op_and_its_line_are_named_at_any_call(turn: int) -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        y = x * 2
        z = weft.log(y)  # here
        return z + 1

    with weft.doctor(only="first-nan") as report:
        found = [step(weft.full(4, 0.0 if at == turn else 1.0)) for at in range(TURNS)]
    assert places(report) == [("first-nan", line_of(step, "# here"))]
    assert "`log` makes" in report.findings[0].message
    assert [bool(np.isfinite(one).all()) for one in found] == [at != turn for at in range(TURNS)]


@pytest.mark.parametrize("turn", [0, 7, 8 + 7])
def test_infinities_that_vanish_are_found_in_the_first_calls(turn: int) -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        inverse = 1 / x  # here
        return 1 / inverse

    with weft.doctor(only="first-nan") as report:
        for at in range(turn + 8):
            result = step(weft.full(4, 0.0 if at == turn else 1.0))
            assert np.isfinite(result).all()
    # Of the calls in between, one that is replayed gives finite values alone, and its inside is not looked at.
    assert places(report) == [("first-nan", line_of(step, "# here"))]


def states_script() -> tuple[Any, ...]:
    total, rows = weft.zeros(4), weft.zeros((3, 4))

    @weft.program
    def step(x: weft.NDArray, given: weft.NDArray) -> weft.NDArray:
        nonlocal total
        total += x
        rows[1] = total * 2
        given *= 2
        return weft.log(given) + total

    given = weft.ones((4, 2))[:, 0]
    results = []
    for at in range(TURNS):
        if at == LATE:
            given[1] = -1.0
        if at == LATE + 5:
            given[1] = 1.0
        results.append(step(weft.full(4, at / 8), given))
    weft.wait()
    return (*map(np.array, results), np.array(total), np.array(rows), np.array(given))


def random_script() -> tuple[Any, ...]:
    rng = weft.random.default_rng(7)

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return weft.log(x + rng.uniform(size=(4,)) / 8)

    results = [np.array(step(weft.full(4, -1.0 if at > LATE else 1.0))) for at in range(TURNS)]
    return (*results, np.array(rng.uniform(size=(4,))))


def masked_script() -> tuple[Any, ...]:
    mask = weft.asarray([0.0, -np.inf, 0.0])

    @weft.program
    def step(x: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        scores = x + mask
        return scores, weft.exp(scores)

    return tuple(np.array(one) for at in range(TURNS) for one in step(weft.full(3, at / 8)))


def method_script() -> tuple[Any, ...]:
    class Layer:
        def __init__(self, rate: float) -> None:
            self.w, self.rate = weft.ones(4), rate

        @weft.program
        def step(self, x: Any, *, power: int = 1) -> dict[str, weft.NDArray]:
            self.w -= self.rate * x**power
            return {"root": weft.sqrt(self.w), "w": self.w}

    layers = Layer(0.125), Layer(0.25)
    found = []
    for at in range(TURNS):
        layer = layers[at % 2]
        found.append(np.array(layer.step(np.full(4, 0.5), power=1 + at % 3)["root"]))
    return (*found, *(np.array(layer.w) for layer in layers))


def donated_script() -> tuple[Any, ...]:
    @weft.program(donate="x")
    def step(x: weft.NDArray) -> weft.NDArray:
        return weft.sqrt(x - 0.25)

    return tuple(np.array(step(weft.full(4, 1.0 if at < LATE else 0.0))) for at in range(TURNS))


def nested_script() -> tuple[Any, ...]:
    @weft.program
    def inner(x: weft.NDArray) -> weft.NDArray:
        return weft.log(x)

    @weft.program
    def outer(x: weft.NDArray) -> weft.NDArray:
        return inner(x * 2) + inner(x)

    return tuple(np.array(outer(weft.full(4, 1.0 if at < LATE else 0.0))) for at in range(TURNS))


def gradient_script() -> tuple[Any, ...]:
    w = weft.ones(4)

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        slope = weft.grad(lambda w: (weft.sqrt(w * x)).sum())(w)
        w.copyfrom(w - 0.5 * slope)
        return slope

    return (*(np.array(step(weft.full(4, 1 + at / 64))) for at in range(TURNS)), np.array(w))


def scan_script() -> tuple[Any, ...]:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        last, _ = weft.scan(lambda carry, row: (weft.sqrt(carry - row), row), weft.full((), 4.0), x)
        return last

    return tuple(np.array(step(weft.full(3, 0.5 if at < LATE else 3.0))) for at in range(TURNS))


SCRIPTS = [
    (states_script, 1),
    (random_script, 1),
    (masked_script, 0),
    (method_script, 1),
    (donated_script, 1),
    (nested_script, 1),
    (gradient_script, 1),
    (scan_script, 1),
]


@pytest.mark.parametrize(("script", "defects"), SCRIPTS)
def test_a_script_sees_no_difference(script: Callable[[], tuple[Any, ...]], defects: int) -> None:
    expected = script()
    with weft.doctor(only=["undeclared-write", "undeclared-read", "first-nan"]) as report:
        found = script()
    assert len(report.findings) == defects, report.summary()
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()


class Fault(BaseException):
    """Of no one else."""


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Fault])
@pytest.mark.parametrize("at", ["before its writes", "behind them"])
def test_a_second_run_that_ends_early_leaves_the_memory_as_the_replay_did(error: type[BaseException], at: str) -> None:
    total = weft.zeros(4)
    fails = threading.Event()  # of which no program knows the state

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        nonlocal total
        if fails.is_set() and at == "before its writes":
            raise error
        total += x
        if fails.is_set() and at == "behind them":
            raise error
        return weft.log(x)

    with weft.doctor(only="first-nan") as report:
        for _ in range(LATE):
            step(weft.ones(4))
        fails.set()
        if error is ValueError:
            assert np.isinf(step(weft.zeros(4))).all()
        else:
            with pytest.raises(error):
                step(weft.zeros(4))
        np.testing.assert_array_equal(total, np.full(4, float(LATE)))
        fails.clear()
        step(weft.ones(4))
    np.testing.assert_array_equal(total, np.full(4, float(LATE) + 1))
    assert report.findings == []
    assert report.checked.get(UNTOLD, 0) == (error is ValueError)


def test_values_that_are_never_finite_are_traced_as_time_allows() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return weft.log(x)  # here

    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            step(weft.zeros(4))
    assert places(report) == [("first-nan", line_of(step, "# here"))]
    assert len(ran) < TURNS // 2
    assert report.checked[UNTOLD] > TURNS // 2


def carry(total: weft.NDArray, row: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
    return total + row, weft.cumulative_sum(row)


RNG = weft.random.default_rng(3)
#: Functions whose programs weft knows to do nothing but compute.
KNOWN: dict[str, Callable[[weft.NDArray], Any]] = {
    "draws": lambda x: x + RNG.uniform(size=(2,)) + RNG.permutation(x),
    "a scan": lambda x: weft.scan(carry, weft.zeros(2), x),
    "a scan that draws": lambda x: weft.scan(lambda c, r: (c + RNG.random(), r), weft.zeros(2), x),
    "a cond": lambda x: weft.cond(x.sum() > 0, lambda x: x.sum(), weft.median, x),
    "functions of NumPy": lambda x: (weft.sort(x), weft.linalg.inv(x @ x.T + weft.eye(3)), weft.fft.fft(x)),
}


@pytest.mark.parametrize("name", KNOWN)
def test_programs_of_known_ops_are_replayed(name: str) -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> Any:
        ran.append(1)
        return KNOWN[name](x)

    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            step(weft.ones((3, 2)))
    assert report.findings == []
    assert len(ran) == 1 + 8 + 3
    assert report.checked[REPLAYED] == TURNS - 8 - 3


def test_the_op_in_a_scan_is_named_at_a_late_call() -> None:
    def row(c: weft.NDArray, x: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
        return weft.sqrt(c - x), x  # here

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return weft.scan(row, RNG.uniform(4.0, 5.0), x)[0]

    with weft.doctor(only="first-nan") as report:
        for at in range(TURNS):
            step(weft.full(3, 9.0 if at == LATE else 0.5))
    assert places(report) == [("first-nan", line_of(row, "# here"))]


def test_most_calls_with_callables_are_replayed() -> None:
    totals, more = np.zeros(2), np.zeros(2)
    ran: list[int] = []

    @weft.task
    def add(x: weft.Read[np.ndarray]) -> None:
        totals[0] += x[0]

    @weft.task
    def late(x: weft.Mutate[np.ndarray]) -> None:
        x[0] += 1

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        y = x + 1
        add(y)
        return y

    with weft.doctor(only="undeclared-write") as report:
        for _ in range(TURNS):
            step(weft.ones(3))
        late(more)
    assert len(ran) == 1 + 32 + 1
    assert report.checked[REPLAYED] == TURNS - 32 - 1
    assert report.checked["ops that were not looked at"] == TURNS - 32 - 1
    assert places(report) == [("undeclared-write", line_of(step, "add(y)"))]
    assert totals[0] == 2 * TURNS


def counted_script(values: Callable[[int], float]) -> tuple[list[int], Callable[[], None], Any]:
    ran: list[int] = []

    @weft.task
    def scale(x: weft.Read[np.ndarray], y: weft.Overwrite[np.ndarray]) -> None:
        ran.append(1)
        with np.errstate(all="ignore"):
            y[...] = np.log(x)

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        y = weft.empty_like(x)
        scale(x, y)  # here
        return y + 1

    def script() -> None:
        for at in range(TURNS):
            step(weft.full(4, values(at)))  # there
        weft.wait()

    return ran, script, step


@pytest.mark.parametrize(
    ("values", "named"),
    [
        (lambda at: float(at != 3), "# here"),
        (lambda at: float(at < LATE), "# here"),  # the next calls say where
        (lambda at: float(at != LATE), "# there"),
    ],
)
def test_callables_run_once_whatever_they_make(values: Callable[[int], float], named: str) -> None:
    ran, script, step = counted_script(values)
    with weft.doctor(only="first-nan") as report:
        script()
    assert len(ran) == TURNS
    assert places(report) == [("first-nan", line_of(step if named == "# here" else script, named))]


def test_the_call_of_a_function_of_the_script_s_is_named() -> None:
    _, script, _ = counted_script(lambda at: float(at != LATE))
    with weft.doctor(only="first-nan") as report:
        script()
    assert "`step` makes the first values that are not finite: 4 infinite of 4 elements" in report.findings[0].message
    assert report.checked[UNTOLD] == 1


def test_values_that_are_asked_for_are_none_beside_callables() -> None:
    @weft.task
    def look(x: weft.Read[np.ndarray]) -> None:
        x.sum()

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        look(x)
        return weft.maximum(x, weft.full(4, -np.inf)) + weft.full(4, np.inf)

    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            step(weft.ones(4))
    assert report.findings == []


def test_a_registered_op_of_the_script_s_runs_once() -> None:
    ran: list[int] = []

    @weft.ops.register_op("doctor_counted", infer=weft.ops.like_first)
    def counted(y: Any, x: Any) -> None:
        ran.append(1)
        np.sqrt(x, out=y)

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return counted(x)

    with weft.doctor(only="first-nan") as report, np.errstate(all="ignore"):
        for at in range(TURNS):
            step(weft.full(4, 1.0 if at < LATE else -1.0))
        weft.wait()
    assert len(ran) == TURNS
    assert places(report) == [("first-nan", line_of(step, "return counted"))]


def test_ops_behind_replays_are_those_of_other_orders(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(
        """
import numpy as np
import weft

x, y = np.ones(3), np.zeros(3)


@weft.task
def bump(x: weft.Mutate[np.ndarray]) -> None:
    x += 1


@weft.task
def copy(x: weft.Read[np.ndarray], y: weft.Overwrite[np.ndarray]) -> None:
    y[:] = x


@weft.program
def step(z):
    bump(x)
    return z + 1


for at in range(100):
    z = step(weft.ones(3))
copy(x, y)
"""
    )
    checker = Checker(CHECKED, logs=True)
    check(path, checker)
    assert checker.log[-1].number == TURNS + 1
    found, compared = differences(checker.log, logged(path, "shuffled:1", checker.log))
    assert (found, compared) == ({}, len(checker.log))


def test_while_other_threads_run_programs_run_op_by_op() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return x + 1

    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        with weft.doctor(only="first-nan"):
            for _ in range(TURNS):
                step(weft.ones(3))
    finally:
        ends.set()
        thread.join()
    assert len(ran) == TURNS + 1  # and its recording
    assert len(step.programs) == 1


def test_eager_stays_eager() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return x + 1

    with weft.doctor(only="first-nan"), weft.eager():
        for _ in range(TURNS):
            step(weft.ones(3))
    assert len(ran) == TURNS


def test_a_program_in_an_op_runs_op_by_op() -> None:
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        ran.append(1)
        return weft.log(x)  # here

    @weft.task
    def work(x: weft.Read[weft.NDArray]) -> weft.NDArray:
        return step(x)

    with weft.doctor(only="first-nan") as report:
        for at in range(TURNS):
            work(weft.full(3, 1.0 if at < LATE else 0.0))
        weft.wait()
    assert len(ran) == TURNS
    assert ("first-nan", line_of(step, "# here")) in places(report)


def test_a_function_that_no_program_can_be_of() -> None:
    names: set[str] = set()

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        names.add(f"{float(x.sum()):.1f}")  # a value that a recording does not have
        return x + 1

    with weft.doctor(only="first-nan") as report:
        for at in range(20):
            step(weft.full(3, float(at)))
    assert report.findings == []
    assert len(names) == 20


def test_warnings_of_recordings_name_the_line_of_the_call() -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return x + np.random.default_rng(3).normal()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with weft.doctor(only="first-nan"):
            for _ in range(TURNS):
                step(weft.ones(3))
    assert {warning.filename for warning in caught} <= {__file__}


def test_more_functions_than_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_MOST", 2)
    with weft.doctor(only="first-nan") as report:
        for _ in range(4):
            step = weft.program(lambda x: weft.log(x) + 1)
            for at in range(20):
                step(weft.full(3, float(at < 18)))
    assert [one.count for one in report.findings] == [8]


def test_memory_that_is_too_large_to_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_KEPT", 100)
    total = weft.zeros(1000)
    ran: list[int] = []

    @weft.program
    def step(x: weft.NDArray) -> None:
        nonlocal total
        ran.append(1)
        total += x

    with weft.doctor(only="first-nan") as report:
        for _ in range(TURNS):
            step(weft.ones(1000))
    assert report.findings == []
    assert len(ran) == TURNS + 1  # with its recording
    np.testing.assert_array_equal(total, np.full(1000, float(TURNS)))


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.complex64, np.int8, np.bool_])
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[1],
        lambda x: x[:, 2],
        lambda x: x[::-1, ::2],
        lambda x: x.T,
        lambda x: x[1, 2],
        lambda x: x[:0],
    ],
)
def test_elements_are_kept_and_put_back(view: Callable[[Any], Any], dtype: Any) -> None:
    values = (np.arange(20).reshape(4, 5) % 7).astype(dtype)
    x, other = weft.asarray(values), weft.arange(3)
    one = view(x)
    weft.wait()
    kept = _keep([one, other], 1 << 20)
    assert kept == view(values).tobytes() + np.array(other).tobytes()
    one[...] = 1
    other[...] = 5
    weft.wait()
    changed = np.array(x)
    assert _put_back([one, other], kept)
    np.testing.assert_array_equal(x, values)
    np.testing.assert_array_equal(other, np.arange(3))
    assert not _put_back([one], kept)
    assert not _put_back([one, other], kept + b"1")
    np.testing.assert_array_equal(x, values)
    assert changed.shape == values.shape


def test_arrays_whose_elements_are_not_kept() -> None:
    x = weft.ones(4)
    weft.wait()
    assert _keep([x], 31) is None
    assert _keep([x], 32) == np.ones(4).tobytes()
    fixed = np.ones(4)
    fixed.flags.writeable = False
    lent = weft.from_dlpack(fixed) if hasattr(fixed, "__dlpack__") else weft.asarray(fixed)
    kept = _keep([lent], 32)
    assert kept is None or _put_back([lent], kept)
    np.testing.assert_array_equal(fixed, np.ones(4))

    @weft.task
    def fail(x: weft.Mutate[weft.NDArray]) -> None:
        x[0] = 2
        raise ValueError

    fail(x)
    with pytest.raises(ValueError):
        weft.wait()
    assert _keep([x], 32) is None
    assert _are_finite([x]) is True
    assert _are_finite([]) is True


def test_nothing_is_looked_at_while_ops_pend() -> None:
    goes = threading.Event()
    x = weft.ones(4)
    weft.wait()
    kept = _keep([x], 32)
    assert kept is not None
    weft.get_engine().push(goes.wait)
    try:
        assert _keep([x], 32) is None
        assert _are_finite([x]) is None
        assert not _put_back([x], kept)
    finally:
        goes.set()
    weft.wait()
    assert _put_back([x], kept)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_replays_unlooked_at() -> None:
    with weft.doctor(only="first-nan"):
        assert observers.replaying is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # other threads live
            child = os.fork()
        if not child:
            os._exit(observers.replaying is not None)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert observers.replaying is None


def test_functions_are_asked_for_what_they_hold_as_far_as_that_goes() -> None:
    def outer() -> Callable[[], Any]:
        def inner() -> Any:
            return later

        if observers.replaying is not None:
            later = 1
        return inner

    unset = outer()
    unset.__module__ = "weft.later"
    assert programs.is_own(unset)
    held: list[Any] = []
    ring = partial(programs.is_own, held)
    held.append(ring)
    assert programs.is_own(ring)
    assert not programs.is_own(partial(programs.is_own, [lambda: None]))
