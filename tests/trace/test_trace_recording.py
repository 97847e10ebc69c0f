"""What the core records of ops that are pushed from Python: names, places, kinds, threads, times, failures."""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, address_of, background
from weft._trace.record import Kind, Outcome, Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from conftest import Gate, MakeEngine, RunScript

LIMIT = 1_000_000


@pytest.fixture
def traced(make_engine: MakeEngine) -> weft.Engine:
    """An engine with two workers that is being traced."""
    engine = make_engine(workers=2, name="traced")
    engine._trace_start(LIMIT)
    return engine


@pytest.fixture
def arrays() -> Iterator[weft.Engine]:
    """A default engine of its own, traced."""
    engine = weft.Engine(workers=2)
    before = weft.set_engine(engine)
    engine._trace_start(LIMIT)
    yield engine
    weft.set_engine(before)
    engine.close()


def stop(engine: weft.Engine) -> Record:
    """Everything recorded, when all is done."""
    engine.wait_for_all()
    return Record.read(engine._trace_stop())


def shown(record: Record) -> list[tuple[str, Kind]]:
    """Name and kind of each op that is no wait."""
    kinds = [Kind(kind) for kind in record.ops["kind"]]
    names = [record.names[name] for name in record.ops["name"]]
    return [(name, kind) for name, kind in zip(names, kinds, strict=True) if kind is not Kind.WAIT]


def here(back: int) -> str:
    """The place of the line so many lines before the caller's."""
    frame = sys._getframe(1)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno - back}"


def work() -> None:
    """Do nothing."""


class Worker:
    """Something callable that has no name of its own."""

    def __call__(self) -> None:
        """Do nothing."""


def test_ops_have_names_kinds_and_places(traced: weft.Engine, no_op_address: int) -> None:
    x = traced.new_variable("x")
    traced.push(work, mutate_vars=[x])
    places = [here(1)]
    traced.push(lambda: None, name="named")
    traced.push(Worker())
    traced.push(functools.partial(work))
    traced.push_native(no_op_address)
    traced.push_native(no_op_address, keep_alive=x, name="kept")
    traced.push_async(lambda done: done())
    traced.new_operator(work, name="operator").push()
    traced.delete_variable(x, work)
    record = stop(traced)
    assert shown(record) == [
        ("work", Kind.CALLABLE),
        ("named", Kind.CALLABLE),
        ("Worker", Kind.CALLABLE),
        ("partial", Kind.CALLABLE),
        ("native function", Kind.NATIVE),
        ("kept", Kind.NATIVE),
        ("test_ops_have_names_kinds_and_places.<locals>.<lambda>", Kind.ASYNC),
        ("operator", Kind.CALLABLE),
        ("deletion of x", Kind.DELETE),
    ]
    assert Path(record.places[record.ops["place"][0]]).name == places[0]
    assert all(Path(__file__).name in record.places[op["place"]] for op in record.ops[:7])
    assert (record.ops["outcome"] == Outcome.DONE).all()


@pytest.fixture
def no_op_address() -> int:
    """The address of a function of C that does nothing and answers 0."""
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda _: 0)
    _kept.append(function)
    return address_of(function)


_kept: list[Any] = []


def test_times_go_up(traced: weft.Engine) -> None:
    variables = [traced.new_variable() for _ in range(4)]
    for number in range(200):
        traced.push(work, [variables[number % 3]], [variables[3]])
    ops = stop(traced).ops[:200]
    for before, after in [("pushed", "ready"), ("ready", "started"), ("started", "ended"), ("ended", "settled")]:
        assert (ops[before] <= ops[after]).all()
    assert (ops["pushed"] > 0).all()
    assert (np.diff(ops["number"]) == 1).all()


def test_threads_have_names(traced: weft.Engine) -> None:
    ready = threading.Event()

    def inner() -> None:
        traced.push(work, name="inner")
        ready.set()

    pusher = threading.Thread(target=lambda: traced.push(inner, name="outer"), name="the pusher")
    pusher.start()
    pusher.join()
    assert ready.wait(SOON)
    record = stop(traced)
    by_name = {record.names[op["name"]]: op for op in record.ops}
    threads = record.threads
    assert threads[by_name["outer"]["pusher"]]["name"] == "the pusher"
    assert threads[by_name["inner"]["pusher"]]["kind"] == "worker"
    assert threads[by_name["inner"]["pusher"]]["name"].startswith("traced-0.")
    assert by_name["inner"]["parent"] == 0
    assert threads[by_name["wait_for_all"]["pusher"]]["name"] == threading.current_thread().name
    assert threads[by_name["wait_for_all"]["pusher"]]["ident"] == threading.get_ident()
    assert by_name["outer"]["worker"] != by_name["outer"]["pusher"]


def test_failures_are_told_in_a_line(traced: weft.Engine) -> None:
    x = traced.new_variable("x")

    def fail() -> None:
        message = "the first line\nand another"
        raise ValueError(message)

    traced.push(fail, overwrite_vars=[x], name="culprit")
    traced.push(work, [x], name="victim")
    with pytest.raises(ValueError, match="the first line"):
        traced.wait_for_all()
    record = Record.read(traced._trace_stop())
    assert record.errors == {0: "ValueError: the first line", 1: "skipped, as op 'culprit' failed"}
    assert record.ops["outcome"][:2].tolist() == [Outcome.FAILED, Outcome.SKIPPED]


def test_reading_goes_on_and_stopping_ends(traced: weft.Engine, gate: Gate) -> None:
    gate.hold(traced, name="held")
    traced.push(work, name="free")
    with pytest.raises(weft.errors.TraceError, match="is being traced already; stop that trace first"):
        traced._trace_start(1)
    (held, *_) = Record.read(traced._trace_read()).ops
    assert held["started"] > 0
    assert held["ended"] == held["settled"] == held["outcome"] == 0
    gate.open()
    assert {name for name, _ in shown(stop(traced))} == {"held", "free"}
    for read in (traced._trace_read, traced._trace_stop):
        with pytest.raises(weft.errors.TraceError, match="is not being traced"):
            read()
    traced._trace_start(LIMIT)
    traced.push(work, name="second")
    assert shown(stop(traced)) == [("second", Kind.CALLABLE)]


def test_the_limit_counts_what_it_leaves_out(make_engine: MakeEngine) -> None:
    engine = make_engine(workers=1)
    engine._trace_start(10)
    for _ in range(30):
        engine.push(work)
    record = stop(engine)
    assert (len(record.ops), record.dropped) == (10, 21)


def test_a_closed_engine_keeps_its_trace(make_engine: MakeEngine) -> None:
    engine = make_engine(workers=1)
    engine._trace_start(LIMIT)
    engine.push(work)
    engine.close()
    assert shown(Record.read(engine._trace_stop())) == [("work", Kind.CALLABLE)]


def test_names_are_not_kept_alive(traced: weft.Engine) -> None:
    worker = Worker()
    gone = weakref.ref(worker)
    traced.push(worker)
    traced.wait_for_all()
    del worker
    gc.collect()
    assert gone() is None


def test_many_threads_push_into_one_trace(traced: weft.Engine) -> None:
    variable = traced.new_variable()

    def push() -> None:
        for _ in range(500):
            traced.push(work, mutate_vars=[variable])

    for pusher in [background(push) for _ in range(4)]:
        pusher.result(SOON)
    record = stop(traced)
    assert len(shown(record)) == 2000
    assert record.accesses["version"].tolist() == list(range(1, 2001))
    assert sorted(np.bincount(record.ops["pusher"]).tolist())[-4:] >= [500] * 4


def test_engines_that_are_traced_at_once_know_their_threads(make_engine: MakeEngine) -> None:
    engines = [make_engine(workers=1, name=f"engine {number}") for number in range(4)]
    for engine in engines:
        engine._trace_start(500)
    for _ in range(100):
        for engine in engines:
            engine.push(int)
    for engine in engines:
        record = stop(engine)
        assert len(shown(record)) == 100
        assert not record.dropped
        assert len(record.threads) <= 2


def test_ops_on_arrays_have_the_names_of_their_functions(arrays: weft.Engine) -> None:
    x = weft.ones(200_000)
    arrays._trace_stop()
    arrays._trace_start(LIMIT)
    y = weft.exp(x) * 2
    z = y.sum()
    z2 = x.copy()
    place = here(1)
    m = weft.ones((8, 8))
    p = m @ m
    record = stop(arrays)
    names = shown(record)
    assert ("exp", Kind.COMPUTE) in names
    assert ("multiply", Kind.COMPUTE) in names
    assert ("sum", Kind.COMPUTE) in names
    assert ("matmul", Kind.COMPUTE) in names
    assert ("copy", Kind.COPY) in names
    copy = record.ops[[record.names[name] for name in record.ops["name"]].index("copy")]
    assert Path(record.places[copy["place"]]).name == place
    assert {variable["bytes"] for variable in record.variables} >= {200_000 * x.dtype.itemsize}
    # An op asks for help while it runs, so after the wait was pushed: nobody waits for a helper that came too late.
    own = [record.names[name] != "helper" for name in record.ops["name"]]
    assert (record.ops["outcome"][own] == Outcome.DONE).all()
    del y, z, z2, p


def test_small_ops_on_arrays_are_recorded_where_they_run(arrays: weft.Engine) -> None:
    x = weft.ones(10)
    arrays.wait_for_all()
    arrays._trace_stop()
    arrays._trace_start(LIMIT)
    y = x + x
    record = stop(arrays)
    (add,) = [op for op in record.ops if record.names[op["name"]] == "add"]
    assert add["pushed"] == add["ready"] == add["started"] > 0
    assert add["settled"] == add["ended"] >= add["started"]
    assert add["pusher"] == add["worker"]
    assert not (record.accesses["op"] == 0).any()
    assert float(y[0]) == 2


def test_what_is_taken_along_ends_when_it_is_computed(arrays: weft.Engine, gate: Gate) -> None:
    x = weft.ones(1_000_000)
    arrays.wait_for_all()
    arrays._trace_stop()
    other = [gate, type(gate)()]
    for held in other:
        held.hold(arrays)
    arrays._trace_start(LIMIT)
    y = x + 1
    z = y * 2
    for held in other:
        held.open()
    arrays.wait_for_all()
    answer = arrays._trace_stop()
    names = [answer["names"][name] for name in np.frombuffer(answer["ops"]["name"], np.uint32)]
    times = {key: np.frombuffer(answer["ops"][key], np.int64) for key in ("ready", "started", "ended", "settled")}
    add, multiply = names.index("add"), names.index("multiply")
    assert times["started"][multiply] < times["ended"][add] <= times["settled"][add] <= times["settled"][multiply]
    for before, after in [("ready", "started"), ("started", "ended"), ("ended", "settled")]:
        assert (times[before][[add, multiply]] <= times[after][[add, multiply]]).all()
    del y, z


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_forked_child_is_not_traced(script: RunScript) -> None:
    done = script("""
        import os, weft
        engine = weft.Engine(workers=2)
        engine._trace_start(1000)
        engine.push(lambda: None, name="parent")
        engine.wait_for_all()
        child = os.fork()
        if child == 0:
            engine.push(lambda: None, name="child")
            engine.wait_for_all()
            try:
                engine._trace_stop()
            except weft.errors.TraceError:
                engine._trace_start(1000)
                engine.push(lambda: None, name="child")
                engine.wait_for_all()
                os._exit(0 if "child" in engine._trace_stop()["names"] else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        engine.push(lambda: None, name="after")
        engine.wait_for_all()
        names = engine._trace_stop()["names"]
        assert "parent" in names and "after" in names and "child" not in names, names
    """)
    assert done.returncode == 0, done.stderr


def test_an_interpreter_may_end_while_it_is_traced(script: RunScript) -> None:
    done = script("""
        import time, weft
        engine = weft.Engine(workers=2)
        engine._trace_start(1000)
        other = weft.Engine(workers=1)
        other._trace_start(1000)
        for _ in range(100):
            engine.push(lambda: time.sleep(0.001))
        del other
        print("end")
    """)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "end", "")


@pytest.mark.parametrize("policy", ["serial", "per_device", "work_stealing"])
def test_every_policy_is_traced(make_engine: MakeEngine, policy: Any) -> None:
    engine = make_engine(workers=2, policy=policy)
    engine._trace_start(LIMIT)
    x = engine.new_variable("x")
    push: Callable[..., None] = engine.push
    for number in range(20):
        push(work, mutate_vars=[x], name="even" if number % 2 == 0 else "odd", device=weft.cpu(number % 2))
    record = stop(engine)
    assert [name for name, _ in shown(record)] == ["even", "odd"] * 10
    assert record.accesses["version"].tolist() == list(range(1, 21))
    assert record.variables == [{"id": 0, "name": "x", "bytes": 0}]


def test_a_trace_that_is_dropped_ends(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    weft.trace(engine=engine).start()
    gc.collect()
    with weft.trace(engine=engine) as trace:
        engine.push(lambda: None, name="seen")
    assert "seen" in trace.names


def test_an_interrupt_while_it_starts_leaves_the_engine_untraced(make_engine: MakeEngine) -> None:
    engine, kept, interrupted = make_engine(1), list[object](), set[int]()

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is not weft.Trace.start.__code__:
            return None
        if event == "line" and frame.f_lineno not in interrupted:
            interrupted.add(frame.f_lineno)
            raise KeyboardInterrupt
        return interrupt

    def start() -> bool:
        kept.append(trace := weft.trace(engine=engine))
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            trace.start()
        except KeyboardInterrupt:
            return False
        finally:
            sys.settrace(before)
        trace.stop()
        return True

    while not start():
        weft.trace(engine=engine).start().stop()
    assert len(interrupted) > 5
