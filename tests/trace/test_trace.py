"""`weft.trace` on real engines: what is recorded, when it is written, and what it refuses."""

from __future__ import annotations

import contextlib
import re
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import trace_events

import weft
from weft._trace.record import Kind, Outcome
from weft.errors import ArgumentTypeError, ArgumentValueError, DeadlockError, TraceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Gate, MakeEngine, RunScript


def nothing() -> None:
    """Do nothing."""


def names(trace: weft.Trace, kind: Kind | None = None) -> list[str]:
    """The names of what was recorded, but for waits."""
    chosen = trace.ops["kind"] != Kind.WAIT if kind is None else trace.ops["kind"] == kind
    return [trace.names[name] for name in trace.ops["name"][chosen]]


def test_ops_are_recorded_with_all_that_happened_to_them(engine: weft.Engine) -> None:
    x, y = engine.new_variable("x"), engine.new_variable("y")
    with weft.trace(engine=engine) as trace:
        engine.push(nothing, mutate_vars=[x], name="write", priority=2, nbytes=64)
        engine.push(nothing, [x], [y])
    assert names(trace) == ["write", "nothing"]
    write, read = trace.ops[:2]
    for op in (write, read):
        assert 0 < op["pushed"] <= op["ready"] <= op["started"] <= op["ended"] <= op["settled"] <= trace.duration * 1e9
        assert (op["outcome"], op["kind"]) == (Outcome.DONE, Kind.CALLABLE)
        assert re.search(r"test_trace\.py:\d+$", trace.places[op["place"]])
    assert (write["priority"], write["bytes"]) == (2, 64)
    assert trace.threads[write["pusher"]]["name"] == "MainThread"
    assert write["ended"] <= read["started"]
    assert [variable["name"] for variable in trace.variables] == ["x", "y"]
    assert trace.accesses[["op", "variable", "kind", "version"]].tolist() == [(0, 0, 1, 1), (1, 0, 0, 1), (1, 1, 1, 1)]
    assert trace.dependencies.tolist() == [[0, 1]]
    assert trace.critical_path.tolist() == [0, 1]
    assert (trace.dropped, trace.errors) == (0, {})
    assert repr(trace).startswith("<weft.Trace of ")


def test_workers_are_told_apart(many: weft.Engine) -> None:
    meeting = threading.Barrier(2)
    with weft.trace(engine=many) as trace:
        for _ in range(2):
            many.push(lambda: meeting.wait(20))
    threads = {trace.threads[worker]["name"] for worker in trace.ops["worker"][:2]}
    assert len(threads) == 2
    assert trace.summary().workers == 2


def test_a_trace_waits_for_what_was_pushed_inside(parallel: weft.Engine, gate: Gate) -> None:
    threading.Timer(0.05, gate.open).start()
    with weft.trace(engine=parallel) as trace:
        parallel.push(gate)
    assert trace.ops["outcome"][0] == Outcome.DONE
    assert parallel.pending == 0


def test_failures_are_told_and_stay_unreported(engine: weft.Engine) -> None:
    x = engine.new_variable("x")
    with weft.trace(engine=engine) as trace:
        engine.push(lambda: 1 / 0, mutate_vars=[x], name="divide")
        engine.push(nothing, [x], name="use")
    assert trace.ops["outcome"][:2].tolist() == [Outcome.FAILED, Outcome.SKIPPED]
    assert trace.errors[0] == "ZeroDivisionError: division by zero"
    summary = trace.summary()
    assert (summary.failed, summary.skipped) == (1, 1)
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_all()


def test_waits_are_recorded_with_who_waited(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable("x")
    threading.Timer(0.05, gate.open).start()
    with weft.trace(engine=parallel) as trace:
        parallel.push(gate, mutate_vars=[x])
        parallel.wait_for_var(x)
    (wait,) = (op for op in trace.ops if trace.names[op["name"]] == "wait_for_var")
    assert wait["ended"] - wait["started"] > 10e6
    assert trace.threads[wait["pusher"]]["name"] == "MainThread"
    assert trace.dependencies.tolist() == [[0, 1]]
    assert trace.summary().waited > 10e6


def test_nested_pushes_know_their_parents(parallel: weft.Engine) -> None:
    def outer() -> None:
        parallel.push(nothing, name="inner")

    with weft.trace(engine=parallel) as trace:
        parallel.push(outer, name="outer")
    work = trace.ops[trace.ops["kind"] != Kind.WAIT]
    inner = next(op for op in work if trace.names[op["name"]] == "inner")
    assert trace.names[trace.ops["name"][inner["parent"]]] == "outer"


def test_async_ops_end_when_their_token_does(engine: weft.Engine) -> None:
    timers = []

    def later(done: weft.Completion) -> None:
        timers.append(threading.Timer(0.05, done))
        timers[-1].start()

    with weft.trace(engine=engine) as trace:
        engine.push_async(later, name="request")
    op = trace.ops[0]
    assert op["kind"] == Kind.ASYNC
    assert op["ended"] - op["started"] > 10e6


def test_kinds_of_ops_on_arrays(make_engine: MakeEngine, default_engine: weft.Engine) -> None:  # noqa: ARG001 - an engine to close
    with weft.trace() as trace:
        x = weft.linspace(0, 1, 300_000)
        y = weft.exp(x) + x
        y.copyto(z := weft.empty_like(y))
        float(z.sum())
    computed, copied = names(trace, Kind.COMPUTE), names(trace, Kind.COPY)
    assert {"exp", "add"} <= set(computed)
    assert copied
    assert trace.summary().copying > 0


def test_small_ops_that_run_at_their_push_are_recorded(default_engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(16)
    x.wait_to_read()
    with weft.trace() as trace:
        for _ in range(5):
            x = x + 1
    assert names(trace, Kind.COMPUTE) == ["add"] * 5


def test_copy_lanes_hold_copies(make_engine: MakeEngine) -> None:
    for policy in ("per_device", "work_stealing"):
        engine = make_engine(1, policy)
        with weft.trace(engine=engine) as trace:
            engine.push(nothing, device=weft.cpu(0).copy)
            engine.push(nothing, device=weft.cpu(0))
        assert [Kind(kind) for kind in trace.ops["kind"][:2]] == [Kind.COPY, Kind.CALLABLE]


def test_other_engines_are_not_recorded(make_engine: MakeEngine) -> None:
    one, other = make_engine(1), make_engine(1)
    with weft.trace(engine=one) as trace, weft.trace(engine=other) as beside:
        one.push(nothing, name="one")
        other.push(nothing, name="other")
    assert (names(trace), names(beside)) == (["one"], ["other"])


def test_the_default_engine_is_recorded_if_none_is_given(default_engine: weft.Engine) -> None:
    with weft.trace() as trace:
        default_engine.push(nothing, name="here")
    assert names(trace) == ["here"]


def test_over_the_limit_ops_are_counted(engine: weft.Engine) -> None:
    with weft.trace(engine=engine, limit=10) as trace:
        for _ in range(50):
            engine.push(nothing)
    assert len(trace.ops) <= 10
    assert trace.dropped >= 40
    assert f"{trace.dropped:,} ops over the limit" in str(trace.summary())


def test_a_trace_can_be_looked_at_while_it_is_recorded(parallel: weft.Engine, gate: Gate) -> None:
    trace = weft.trace(engine=parallel).start()
    gate.hold(parallel, name="holds")
    parallel.push(nothing, name="later")
    assert repr(trace) == "<weft.Trace, recording>"
    holds = next(op for op in trace.ops if trace.names[op["name"]] == "holds")
    assert (holds["started"] > 0, holds["ended"], holds["outcome"]) == (True, 0, Outcome.PENDING)
    assert trace.summary().pending >= 1
    gate.open()
    trace.stop()
    assert trace.summary().pending == 0


@pytest.mark.parametrize("suffix", ["json", "json.gz", "html", "png", "svg", "dot"])
def test_the_suffix_says_what_is_written(engine: weft.Engine, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"run.{suffix}"
    x = engine.new_variable("x")
    with weft.trace(path, engine=engine):
        for _ in range(3):
            engine.push(nothing, mutate_vars=[x], name="step")
    begins = {
        "json": b"{",
        "json.gz": b"\x1f\x8b",
        "html": b"<!doctype html>",
        "png": b"\x89PNG",
        "svg": b"<?xml",
        "dot": b"digraph",
    }
    assert path.read_bytes().startswith(begins[suffix])
    if suffix.startswith("json"):
        slices = trace_events.of(trace_events.read(path), "X")
        assert [event["name"] for event in slices if event["cat"] != "wait"] == ["step"] * 3


def test_views_are_written_by_name(engine: weft.Engine, tmp_path: Path) -> None:
    with weft.trace(engine=engine) as trace:
        engine.push(nothing, mutate_vars=[engine.new_variable()])
    trace.save(str(tmp_path / "run.json"))
    trace.timeline(tmp_path / "run.html")
    trace.graph(tmp_path / "run.svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.html", "run.json", "run.svg"]


@pytest.mark.slow
def test_a_hundred_threads_and_thousands_of_ops_pass_the_strict_reader(many: weft.Engine, tmp_path: Path) -> None:
    variables = [many.new_variable(str(at)) for at in range(8)]

    def push(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(40):
            *reads, mutated = rng.choice(8, 3, replace=False)
            many.push(nothing, [variables[read] for read in reads], [variables[mutated]])

    with weft.trace(tmp_path / "run.json.gz", engine=many) as trace:
        threads = [threading.Thread(target=push, args=(seed,)) for seed in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(names(trace)) == 4000
    events = trace_events.read(tmp_path / "run.json.gz")
    assert trace_events.arrows(events) == set(map(tuple, trace.dependencies.tolist()))
    before, after = trace.ops[trace.dependencies[:, 0]], trace.ops[trace.dependencies[:, 1]]
    assert (before["ended"] <= np.where(after["kind"] == Kind.WAIT, after["ended"], after["started"])).all()


def test_an_exception_of_the_body_passes_and_the_trace_is_written(engine: weft.Engine, tmp_path: Path) -> None:
    def body() -> None:
        with weft.trace(tmp_path / "run.json", engine=engine):
            engine.push(nothing, name="before")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        body()
    assert not hasattr(caught.value, "__notes__")
    assert "before" in (tmp_path / "run.json").read_text(encoding="utf-8")


def test_an_exception_of_the_body_is_not_hidden_by_one_of_writing(engine: weft.Engine, tmp_path: Path) -> None:
    path = tmp_path / "gone" / "run.json"

    def body() -> None:
        path.parent.rmdir()
        raise KeyError("mine")

    path.parent.mkdir()
    with pytest.raises(KeyError, match="mine") as caught, weft.trace(path, engine=engine):
        body()
    assert re.match("weft: the trace was not written: FileNotFoundError", caught.value.__notes__[0])
    path.parent.mkdir()
    with pytest.raises(FileNotFoundError), weft.trace(path, engine=engine):
        path.parent.rmdir()


def test_a_folder_that_is_missing_is_told_before_the_run(engine: weft.Engine, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"the folder that the trace is .* not there.*run\.json"):
        weft.trace(tmp_path / "missing" / "run.json", engine=engine)
    with weft.trace(tmp_path / "run.json", engine=engine):
        pass


def test_ctrl_c_does_not_wait_for_ops(parallel: weft.Engine, gate: Gate) -> None:
    with contextlib.suppress(KeyboardInterrupt), weft.trace(engine=parallel) as trace:
        gate.hold(parallel)
        raise KeyboardInterrupt
    assert trace.ops["outcome"][0] == Outcome.PENDING


def test_an_engine_may_be_closed_inside(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    with weft.trace(engine=engine) as trace:
        engine.push(nothing, name="last")
        engine.close()
    assert names(trace) == ["last"]


def test_inside_an_op_a_trace_would_wait_for_itself(parallel: weft.Engine) -> None:
    def body() -> None:
        with weft.trace(engine=parallel):
            pass

    parallel.push(body, name="body")
    with pytest.raises(DeadlockError, match="body"):
        parallel.wait_for_all()
    with weft.trace(engine=parallel):  # that one has ended
        pass


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: weft.trace("run.txt"), ArgumentValueError, r"'run.txt': the suffix of a trace must be one of .json"),
        (lambda: weft.trace(engine="x"), ArgumentTypeError, "takes a weft.Engine or None, not str"),
        (lambda: weft.trace(limit="x"), ArgumentTypeError, "a number of ops, not str"),
        (lambda: weft.trace(limit=0), ArgumentValueError, "at least one op, not 0"),
        (lambda: weft.trace().stop(), TraceError, "is not recording: start"),
        (lambda: weft.trace().ops, TraceError, "has recorded nothing yet: start"),
        (lambda: weft.trace().summary(), TraceError, "has recorded nothing yet: start"),
    ],
)
def test_misuse_is_told(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_wrong_suffixes_of_views_are_told(engine: weft.Engine) -> None:
    with weft.trace(engine=engine) as trace:
        pass
    for view, suffix in ((trace.timeline, ".json"), (trace.graph, ".png")):
        with pytest.raises(ArgumentValueError, match=f"the suffix of a {view.__name__} must be one of"):
            view("run" + suffix)
    with pytest.raises(ArgumentTypeError, match="written to a path, not to int"):
        trace.save(3)
    trace.summary()


def test_a_trace_records_once(engine: weft.Engine) -> None:
    trace = weft.trace(engine=engine)
    with trace, pytest.raises(TraceError, match="was started before: make another one"):
        trace.start()
    with pytest.raises(TraceError, match="was started before"), trace:
        pass
    with weft.trace(engine=engine):
        pass


def test_an_engine_has_one_trace_at_a_time(engine: weft.Engine) -> None:
    with weft.trace(engine=engine) as trace:
        with pytest.raises(TraceError, match="is being traced already"), weft.trace(engine=engine):
            pass
        engine.push(nothing, name="still recorded")
    assert names(trace) == ["still recorded"]


def test_given_an_array_it_is_numpys_trace() -> None:
    matrix = np.arange(12).reshape(3, 4)
    assert weft.trace(matrix).item() == weft.trace(weft.asarray(matrix)).item() == np.trace(matrix)
    assert weft.trace([[1, 2], [3, 4]], 1).item() == 2
    assert isinstance(np.trace(weft.asarray(matrix)), weft.NDArray)


def test_without_matplotlib_the_extra_is_named_before_the_run(script: RunScript) -> None:
    done = script("""
        import sys
        sys.modules["matplotlib"] = None
        import weft
        try:
            weft.trace("run.png")
        except ImportError as error:
            print(error)
        weft.trace("run.html")
    """)
    assert done.stdout == "this needs matplotlib: pip install matplotlib\n", done.stderr


def test_import_brings_no_views(script: RunScript) -> None:
    done = script("""
        import sys, weft
        print([name for name in sys.modules if name.startswith(("weft._trace.", "rich", "matplotlib"))])
    """)
    assert "chrome" not in done.stdout
    assert "record'" not in done.stdout
    assert "rich" not in done.stdout
