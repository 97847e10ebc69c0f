"""Calls that are pushed: ports, layers, failures by access, arenas, what is under way at a fork or a close."""

from __future__ import annotations

import os
import random
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine, RunScript

SOON = 20.0
MOMENT = 0.15


def touch(engine: weft.Engine) -> None:
    """Push a callable that does nothing, so that the program is pushed however small it is."""
    engine.push(lambda: None)


@pytest.mark.parametrize(("policy", "workers"), [("work_stealing", 2), ("per_device", 2)])
def test_the_next_call_begins_layer_by_layer(make_engine: MakeEngine, policy: str, workers: int) -> None:
    engine = make_engine(workers, policy)
    below, above = (weft.zeros(4, engine=engine) for _ in range(2))
    entered, ahead = threading.Event(), threading.Event()
    seen: list[str] = []

    def first() -> None:
        seen.append("first")
        if seen.count("first") == 2:
            ahead.set()

    def second() -> None:
        seen.append("second")
        if seen.count("second") == 1:
            entered.set()
            assert ahead.wait(SOON), "the next call's first layer waits for this call's second one"

    @weft.program
    def step(below: Any, above: Any) -> None:
        engine.push(first, (), [below], name="first")
        engine.push(second, [below], [above], name="second", device=weft.cpu(1))

    # The second layer reads what the first one writes: of the next call, it is free again once it has been copied.
    @weft.program
    def apart(below: Any, above: Any) -> None:
        copy = below + 0
        engine.push(first, (), [below], name="first")
        engine.push(second, [copy], [above], name="second", device=weft.cpu(1))

    apart(below, above)
    assert entered.wait(SOON)
    apart(below, above)
    engine.wait_for_all()
    assert sorted(seen) == ["first", "first", "second", "second"]
    step(below, above)
    engine.wait_for_all()
    assert seen[-2:] == ["first", "second"]


def test_the_third_call_waits_and_its_caller_does_not(make_engine: MakeEngine) -> None:
    engine = make_engine(4)
    x = weft.ones(4, engine=engine)
    entered, opened = threading.Semaphore(0), threading.Event()

    def stand() -> None:
        entered.release()
        assert opened.wait(SOON)

    @weft.program
    def step(x: Any) -> Any:
        engine.push(stand, [x])
        return x + 1

    results = [step(x) for _ in range(4)]
    for _ in range(2):
        assert entered.acquire(timeout=SOON)
    assert not entered.acquire(timeout=MOMENT)
    opened.set()
    assert [result.tolist() for result in results] == [[2.0] * 4] * 4


@pytest.mark.parametrize("sequential", [False, True])
def test_failures_go_by_access(make_engine: MakeEngine, sequential: bool) -> None:
    engine = make_engine(2)

    def outcome(call: Callable[[Any], None], arrays: list[weft.NDArray]) -> list[Any]:
        found: list[Any] = []
        for _ in range(2):
            call(arrays[-1])
            for array in arrays:
                try:
                    found.append(array.tolist())
                except ArithmeticError as error:
                    found.append(str(error))
        return found

    def build() -> tuple[Callable[[Any], None], list[weft.NDArray]]:
        whole, other = weft.zeros(8, engine=engine), weft.ones(8, engine=engine)

        def fail() -> None:
            message = "not now"
            raise ArithmeticError(message)

        def body(last: Any) -> None:
            engine.push(fail, (), [whole[:4]], name="fail")
            whole[4:] += other[:4]
            other[:4] += whole[:4]
            last *= 2.0

        return body, [whole[:4], whole[4:], other[:4], other[4:]]

    body, arrays = build()
    wanted = outcome(body, arrays)
    assert "not now" in wanted
    body, arrays = build()
    assert outcome(weft.program(body, sequential=sequential), arrays) == wanted


def spoiled_momentum(engine: weft.Engine, *, recorded: bool, sequential: bool = False) -> list[list[bytes]]:
    """Run loops over large arrays, of which some have failed before, and return what each array has come to."""
    rng = np.random.default_rng(5)
    arrays = [weft.asarray(rng.normal(size=1 << 15), engine=engine) for _ in range(4)]
    p, m, g, q = arrays

    def fail() -> None:
        raise ArithmeticError

    def step() -> weft.NDArray:
        nonlocal p, m, q
        m *= 0.9
        m += g
        p -= 0.1 * m
        q[...] = p
        q[...] = 0.5 * g
        return weft.tanh(q) * p

    def seen(array: weft.NDArray) -> bytes:
        try:
            return array.tobytes()
        except ArithmeticError:
            return b"failed"

    with weft.capture("momentum", engine=engine) as program:
        result = step()
    found = []
    for spoiled in [(), (p,), (), (m,), (g,), (q,), (p, g)]:
        for array in arrays:
            array.fill(1.5)
        for array in spoiled:
            engine.push(fail, (), [array], name="fail")
        if recorded:
            program.replay(sequential=sequential)
        else:
            result = step()
        found.append([seen(array) for array in [*arrays, result]])
    return found


@pytest.mark.parametrize(("policy", "workers"), [("serial", 1), ("work_stealing", 2), ("per_device", 2)])
def test_fused_loops_fail_one_by_one(make_engine: MakeEngine, policy: str, workers: int) -> None:
    """Loops run as one where nothing has failed; else each that needs it fails, and no other."""
    engine = make_engine(workers, policy)
    wanted = spoiled_momentum(engine, recorded=False)
    all_of_them = [0, 1, 2, 3, 4]
    failed = [[at for at, value in enumerate(row) if value == b"failed"] for row in wanted]
    assert failed == [[], [0, 4], [], [0, 1, 4], all_of_them, [], all_of_them]
    for sequential in (False, True):
        assert spoiled_momentum(engine, recorded=True, sequential=sequential) == wanted


def test_ranges_that_were_named_otherwise_before(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x = weft.asarray(np.arange(8.0), engine=engine)
    known = np.arange(8.0)

    @weft.program
    def halves(x: Any) -> None:
        touch(engine)
        x[:4] *= 2.0
        x[4:] += 1.0

    for lower, upper in [(2, 6), (0, 8), (3, 5), (4, 8), (1, 3)]:
        x[lower:upper] -= 3.0
        known[lower:upper] -= 3.0
        total = x[lower:upper].sum()
        halves(x)
        known[:4] *= 2.0
        known[4:] += 1.0
        del total
    assert x.tolist() == known.tolist()


def random_steps(chance: random.Random, length: int) -> list[tuple[str, int, int]]:
    kinds = chance.choices(
        ["add", "tanh", "in place", "assign", "fail", "task", "clean"], [5, 4, 4, 3, 1, 2, 1], k=length
    )
    return [(kind, chance.randrange(6), chance.randrange(6)) for kind in kinds]


def failing(  # noqa: C901 - one branch for each kind of step
    engine: weft.Engine, steps: list[tuple[str, int, int]], **options: Any
) -> list[Any]:
    """Run steps of which some fail at some calls, and return what each array has come to."""
    states = [weft.asarray(np.arange(6.0) + at, engine=engine) for at in range(6)]
    calls = [0]

    def body(*states: weft.NDArray) -> list[weft.NDArray]:
        arrays = list(states)
        for number, (kind, one, other) in enumerate(steps):
            a, b = arrays[one], arrays[other]

            def run(b: weft.NDArray = b, number: int = number, kind: str = kind) -> None:
                if kind == "fail" and (calls[0] + number) % 2:
                    raise ArithmeticError(number)
                if kind != "clean":
                    np.multiply(np.asarray(b), 0.5, out=np.asarray(b))

            if kind == "add":
                arrays[one] = a + b
            elif kind == "tanh":
                arrays[one] = weft.tanh(a)
            elif kind == "in place":
                a += b
            elif kind == "assign":
                a[...] = b
            elif a is not b:
                engine.push(run, [a], [b], always_run=kind == "clean")
        return arrays

    call = weft.program(body, **options) if options else body
    found: list[Any] = []
    for _ in range(4):
        for array in [*call(*states), *states]:
            try:
                found.append(array.tolist())
            except ArithmeticError as error:
                found.append(error.args)
        calls[0] += 1
    return found


@pytest.mark.parametrize(("policy", "workers"), [("serial", 1), ("work_stealing", 2), ("per_device", 2)])
def test_random_failures_are_those_of_eager_code(make_engine: MakeEngine, policy: str, workers: int) -> None:
    chance = random.Random(f"{policy} {workers}")
    for _ in range(25):
        steps = random_steps(chance, chance.choice([4, 12, 40]))
        passes = {"passes": ()} if chance.random() < 0.3 else {}
        wanted = failing(make_engine(workers, policy), steps)
        found = failing(make_engine(workers, policy), steps, sequential=chance.random() < 0.3, **passes)
        assert found == wanted, steps


def layers(x: Any, w: Any) -> Any:
    """Return a small number of many temporaries."""
    for _ in range(4):
        x = weft.tanh(x @ w) + x
    return x.sum()


@pytest.mark.filterwarnings("ignore::weft.errors.RecordingWarning")
def test_programs_share_their_arenas() -> None:
    step = weft.program(layers, max_programs=64)
    w = weft.full((64, 64), 0.01)
    inputs = [weft.ones((64 * length, 64)) for length in range(1, 33)]
    weft.wait_all()
    weft.memory_trim()
    before = weft.memory_stats()["allocated"]
    chance = random.Random(5)
    chance.shuffle(inputs)
    for x in inputs:
        step(x, w).wait_to_read()
    weft.wait_all()
    largest = max(program.nbytes for program in step.programs)
    assert len(step.programs) == 32
    assert weft.memory_stats()["allocated"] - before <= 1.05 * largest


def test_an_arena_is_in_use_while_its_call_is_under_way(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x, w, state = (
        weft.ones((512, 64), engine=engine),
        weft.full((64, 64), 0.01, engine=engine),
        weft.ones(2, engine=engine),
    )
    opened = threading.Event()

    @weft.program
    def step(x: Any, w: Any) -> Any:
        total = layers(x, w)
        engine.push(lambda: opened.wait(SOON), (), [state])
        return total

    program = step.lower(x, w)
    engine.wait_for_all()
    weft.memory_trim()
    before = weft.memory_stats()["in_use"]
    step(x, w).wait_to_read()
    during = weft.memory_stats()["in_use"]
    opened.set()
    engine.wait_for_all()
    assert during - before == -(-program.nbytes // 64) * 64
    assert weft.memory_stats()["in_use"] == before


def test_no_memory_for_an_arena_changes_nothing() -> None:
    huge = 1 << 46
    state = weft.ones(2)

    @weft.program
    def step(x: Any) -> Any:
        nonlocal state
        state += 1.0
        return weft.tanh(weft.broadcast_to(x, (huge,)) + 1).sum()

    x = weft.ones(1)
    for _ in range(2):
        with pytest.raises(MemoryError, match="allocate"):
            step(x)
        assert state.tolist() == [1.0, 1.0]
    step.clear()
    huge = 4
    step(x).wait_to_read()
    assert state.tolist() == [2.0, 2.0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_program_under_way_at_a_fork_goes_on_in_the_child(script: RunScript) -> None:
    done = script(
        """
        import os, threading, weft
        entered, gate = threading.Event(), threading.Event()
        x, w = weft.ones((256, 64)), weft.full((64, 64), 0.01)
        wait = [True]

        def stand():
            entered.set()
            if wait[0]:
                gate.wait()

        @weft.program
        def step(x, w):
            h = weft.tanh(x @ w)
            weft.get_engine().push(stand, [x])
            return (h + x).sum()

        results = [step(x, w) for _ in range(3)]
        assert entered.wait(20)
        child = os.fork()
        if child == 0:
            wait[0] = False
            again = [step(x, w).item() for _ in range(4)]
            os._exit(0 if again == [weft.tanh(x @ w).__add__(x).sum().item()] * 4 else 3)
        _, status = os.waitpid(child, 0)
        gate.set()
        assert len({result.item() for result in results}) == 1
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0"


def test_close_with_cancel_drops_what_has_not_begun(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    x = weft.ones(4, engine=engine)
    entered, opened = threading.Event(), threading.Event()
    ran: list[str] = []

    def stand() -> None:
        entered.set()
        opened.wait(SOON)

    @weft.program
    def step(x: Any) -> Any:
        engine.push(stand, (), [x])
        engine.push(lambda: ran.append("after"), (), [x])
        return x + 1

    result = step(x)
    assert entered.wait(SOON)
    threading.Timer(MOMENT, opened.set).start()
    engine.close(cancel=True)
    with pytest.raises(weft.errors.WeftError):
        result.wait_to_read()
    assert not ran


@pytest.mark.parametrize("workers", [1, 2])
def test_large_loops_fall_into_parts(make_engine: MakeEngine, workers: int) -> None:
    engine = make_engine(workers)
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(700, 300)), rng.normal(size=(700, 300))

    def body(x: Any, y: Any, module: Any) -> Any:
        t = x * y + module.tanh(x)
        u = t.T + 1.0
        t = t - u.T * 0.5
        t[::2] = t[1::2]
        return (t @ u)[:, ::3] + t.sum(), u

    step = weft.program(lambda x, y: body(x, y, weft))
    x, y = weft.asarray(a, engine=engine), weft.asarray(b, engine=engine)
    for _ in range(3):
        for found, wanted in zip(step(x, y), body(x, y, weft), strict=True):
            assert found.tobytes() == wanted.tobytes()


def test_a_draw_that_fails_is_that_of_its_call(make_engine: MakeEngine) -> None:
    engine = make_engine(4)
    rng = weft.random.default_rng(7, engine=engine)
    step = weft.program(lambda scale: rng.normal(0.0, scale))
    good, bad = (weft.asarray([value] * 3, engine=engine) for value in (1.0, -1.0))
    for _ in range(20):
        failed, drawn = step(bad), step(good)
        drawn.wait_to_read()
        with pytest.raises(ValueError, match="scale"):
            failed.wait_to_read()


@pytest.mark.parametrize("kind", ["embedding", "cross entropy", "loop"])
def test_what_may_fail_runs_though_nobody_looks_at_it(make_engine: MakeEngine, kind: str) -> None:
    engine = make_engine(2)
    table, wrong = weft.ones((4, 3), engine=engine), weft.asarray(np.array([1, 7]), engine=engine)

    def look_up(table: Any) -> Any:
        return weft.nn.embedding(wrong, table).sum()

    def function(table: Any) -> Any:
        if kind == "embedding":
            look_up(table)
        elif kind == "cross entropy":
            weft.nn.cross_entropy(table[:2], wrong)
        else:
            weft.scan(lambda carry, _: (carry + look_up(table), None), weft.zeros((), engine=engine), None, length=2)
        return table * 2.0

    for call in (function, weft.program(function)):
        assert call(table).tolist() == [[2.0] * 3] * 4
        with pytest.raises(IndexError, match="7 among"):
            engine.wait_for_all()


def test_calls_that_take_long_are_pushed(make_engine: MakeEngine) -> None:
    engine = make_engine(2)
    x = weft.ones(100_000, engine=engine)

    def pushed_by(function: Any) -> int:
        program = weft.program(function)
        program(x).wait_to_read()
        engine.wait_for_all()
        before = engine.stats()["pushed"]
        program(x)
        return int(engine.stats()["pushed"] - before)

    assert pushed_by(lambda x: x + 1.0) == 0
    assert pushed_by(lambda x: x**1.5) > 0
