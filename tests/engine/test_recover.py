"""Recovery: what was skipped is as it was before, and that is the value again; what ran and failed is not."""

from __future__ import annotations

import os
import random
import threading
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from conftest import MOMENT, SOON, background
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture(params=["work_stealing", "serial"])
def engine(request: pytest.FixtureRequest) -> Iterator[weft.Engine]:
    """An engine whose failures are the tests' own."""
    made = weft.Engine(2, request.param)
    yield made
    made.close(cancel=True)


def explode(error: BaseException) -> None:
    """Raise it."""
    raise error


def failing(engine: weft.Engine, error: BaseException, *variables: weft.Variable | weft.NDArray) -> None:
    """Push an op that raises, and was to change these."""
    engine.push(partial(explode, error), mutate_vars=variables, name="culprit")


def never() -> None:
    """Fail the test: an op ran that was to be skipped."""
    pytest.fail("it has no input")


def test_a_skipped_variable_is_recovered(engine: weft.Engine) -> None:
    bad, x = engine.new_variable("bad"), engine.new_variable("x")
    error, ran = KeyError("no"), []
    engine.push(lambda: ran.append("before"), mutate_vars=[x])
    failing(engine, error, bad)
    engine.push(never, read_vars=[bad], mutate_vars=[x])
    with pytest.raises(KeyError) as caught:
        engine.wait_for_var(x)
    assert any("weft.recover(x)" in note for note in caught.value.__notes__), "the message leads here"
    assert x.recover() is error
    assert x.recover() is None, "nothing has failed any more"
    engine.wait_for_var(x)
    assert (x.version, x.completed_version) == (2, 2)
    engine.push(lambda: ran.append("after"), mutate_vars=[x])
    engine.wait_for_var(x)
    assert ran == ["before", "after"]


def test_a_changed_variable_is_refused_with_its_cause(engine: weft.Engine) -> None:
    x, y = engine.new_variable("x"), engine.new_variable("y")
    error = KeyError("no")
    failing(engine, error, x)
    engine.push(never, read_vars=[x], mutate_vars=[y])
    with pytest.raises(errors.RecoveryError, match=r"'x' cannot be recovered.*culprit") as refused:
        weft.recover(y, x)
    assert refused.value.__cause__ is error
    assert y.exception() is error, "of all or of none"
    engine.push(int, overwrite_vars=[x])
    assert weft.recover(x, y) == [error]
    assert weft.recover() == []


def test_a_recovery_waits(engine: weft.Engine) -> None:
    if engine.policy == "serial":
        pytest.skip("ops run at their push")
    held, bad, x = engine.new_variable(), engine.new_variable(), engine.new_variable("x")
    gate = threading.Event()
    engine.push(gate.wait, mutate_vars=[held])
    engine.push(partial(explode, KeyError("no")), read_vars=[held], mutate_vars=[bad])
    engine.push(never, read_vars=[bad], mutate_vars=[x])
    with pytest.raises(errors.WaitTimeoutError):
        x.recover(timeout=MOMENT)
    recovering = background(x.recover)
    gate.set()
    assert isinstance(recovering.result(SOON), KeyError)
    engine.wait_for_var(x)


def test_inside_an_op_that_has_it_it_is_a_deadlock(engine: weft.Engine) -> None:
    x = engine.new_variable("x")
    engine.push(x.recover, mutate_vars=[x])
    with pytest.raises(errors.DeadlockError):
        engine.wait_for_var(x)


def test_what_a_recovery_cleared_counts_as_told() -> None:
    with weft.Engine(1) as engine:
        bad, x = engine.new_variable(), engine.new_variable()
        failing(engine, KeyError("no"), bad)
        engine.push(never, read_vars=[bad], mutate_vars=[x])
        assert isinstance(x.recover(), KeyError)


def test_objects_of_tasks() -> None:
    weights, gradient = np.ones(3), np.zeros(3)

    @weft.task
    def compute(out: weft.Overwrite[np.ndarray]) -> None:
        raise ZeroDivisionError(out.size)

    @weft.task
    def update(out: weft.Mutate[np.ndarray], by: weft.Read[np.ndarray]) -> int:
        out -= by
        return 1

    compute(gradient)
    handle = update(weights, gradient)
    assert [type(error) for error in weft.recover(weights)] == [ZeroDivisionError]
    weft.wait(weights)
    assert weights.tolist() == [1, 1, 1]
    with pytest.raises(errors.RecoveryError):
        weft.recover(gradient)
    with pytest.raises(errors.ArgumentTypeError, match="call the task again"):
        weft.recover(handle)
    with pytest.raises(errors.ArgumentTypeError):
        weft.recover(3)
    gradient[:] = 2
    update(weights, weft.asarray(gradient)).wait()
    assert weights.tolist() == [-1, -1, -1]


@pytest.mark.parametrize("size", [3, 100_000])
def test_arrays_keep_their_values(engine: weft.Engine, size: int) -> None:
    x, bad = weft.full(size, 5.0, engine=engine), weft.zeros(size, engine=engine)
    if size > 3:
        x += 1
    error = KeyError("no")
    failing(engine, error, bad)
    before, fresh = x[0].item(), x + bad
    x += bad
    x[1:] *= 2.0
    with pytest.raises(KeyError):
        x.numpy()
    with pytest.raises(errors.RecoveryError, match="nothing was ever written"):
        fresh.recover()
    with pytest.raises(errors.RecoveryError, match="an op that failed"):
        bad.recover()
    assert x.recover() is error
    assert set(x.numpy().tolist()) == {before}
    x += 1
    assert x[0].item() == before + 1


def test_lent_memory_has_had_a_value(engine: weft.Engine) -> None:
    lent, bad = np.arange(4.0), weft.zeros(4, engine=engine)
    x = weft.asarray(lent, copy=False, engine=engine)
    failing(engine, KeyError("no"), bad)
    x *= bad
    assert isinstance(weft.recover(x)[0], KeyError)
    assert x.tolist() == [0, 1, 2, 3]


def test_several_with_one_failure_tell_it_once(engine: weft.Engine) -> None:
    x, y, bad = (weft.ones(4, engine=engine) for _ in range(3))
    failing(engine, KeyError("no"), bad)
    x += bad
    y += bad
    assert [type(error) for error in weft.recover(x, y)] == [KeyError]


class Slices:
    """Ops on slices of one array that note that they ran, and what comes of them."""

    def __init__(self, engine: weft.Engine, seed: int) -> None:
        self.engine, self.random, self.ran = engine, random.Random(seed), set[int]()
        self.x = weft.full(16, 1.0, engine=engine)
        self.bad = weft.zeros(2, engine=engine)
        failing(engine, KeyError("no"), self.bad)
        self.ops: list[tuple[str, int, int, bool]] = []

    def push(self, kinds: list[str]) -> None:
        """Push one at random."""
        first, last = sorted(self.random.sample(range(17), 2))
        kind, number = self.random.choice(kinds), len(self.ops)
        overwrites = self.random.random() < 0.5
        part = self.x if last - first > 12 else self.x[first:last]
        first, last = (0, 16) if part is self.x else (first, last)
        self.ops.append((kind, first, last, overwrites))

        def run() -> None:
            self.ran.add(number)
            values = np.asarray(part)
            if kind == "fails":
                values[: len(values) // 2 + 1] = np.nan
                raise KeyError(number)
            values[:] = number if overwrites else values + number

        read = [self.bad] if kind == "skipped" else []
        if overwrites:
            self.engine.push(run, read, overwrite_vars=[part])
        else:
            self.engine.push(run, read, [part])

    def expected(self) -> tuple[np.ndarray, bool]:
        """What lies there, by the ops that ran, and whether half of an op's work is among it."""
        values = np.ones(16)
        for number, (kind, first, last, overwrites) in enumerate(self.ops):
            if number not in self.ran:
                continue
            if kind == "fails":
                values[first:last] = np.nan
            else:
                values[first:last] = number if overwrites else values[first:last] + number
        return values, bool(np.isnan(values).any())


@pytest.mark.parametrize("kinds", [["runs", "skipped"], ["runs", "skipped", "fails"]], ids=["skipped", "failed"])
def test_slices_are_recovered_whole_or_refused(engine: weft.Engine, kinds: list[str]) -> None:
    recovered = 0
    for seed in range(60):
        slices = Slices(engine, seed)
        for _ in range(slices.random.randrange(1, 12)):
            slices.push(kinds)
        try:
            slices.x.recover()
        except errors.RecoveryError:
            assert "fails" in kinds or any(overwrites for *_, overwrites in slices.ops), f"{seed=}"
            continue
        values, spoilt = slices.expected()
        assert not spoilt, f"{seed=}: {slices.ops}"
        assert slices.x.tolist() == values.tolist(), f"{seed=}: {slices.ops}"
        recovered += 1
    assert recovered > (5 if "fails" in kinds else 20)


def test_programs(engine: weft.Engine) -> None:
    @weft.program
    def step(moments: weft.NDArray, weights: weft.NDArray, gradient: weft.NDArray) -> None:
        moments *= 0.5
        moments += gradient
        weights -= moments

    moments, weights = weft.ones(2000, engine=engine), weft.ones(2000, engine=engine)
    for _ in range(3):
        step(moments, weights, weft.zeros(2000, engine=engine))
    kept, error = weights.numpy().copy(), KeyError("no")
    bad = weft.zeros(2000, engine=engine)
    failing(engine, error, bad)
    step(moments, weights, bad)
    assert weights.recover() is error
    assert np.array_equal(weights.numpy(), kept)
    # The step was taken apart, as its gradient had failed: this half of it has run.
    with pytest.raises((errors.RecoveryError, KeyError)):
        moments.numpy()


def test_forks_keep_what_is_known(script: Callable[..., object]) -> None:
    done = script("""
        import os, sys, weft
        engine = weft.Engine(1)
        bad, x = engine.new_variable(), engine.new_variable("x")
        def fail(): raise KeyError("no")
        engine.push(fail, mutate_vars=[bad])
        engine.push(int, read_vars=[bad], mutate_vars=[x])
        try:
            engine.wait_for_var(x)
        except KeyError:
            pass
        child = os.fork() if hasattr(os, "fork") else 0
        assert isinstance(x.recover(), KeyError)
        engine.wait_for_var(x)
        try:
            bad.recover()
        except weft.errors.RecoveryError:
            print("as ever", flush=True)
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("as ever") == (2 if hasattr(os, "fork") else 1)
