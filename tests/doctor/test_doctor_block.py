"""`weft.doctor` as a block: its report, what it leaves behind, marks in timelines."""

from __future__ import annotations

import json
import re
import runpy
import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from weft._core import _watch
from weft._doctor.findings import KINDS
from weft._doctor.orders import OrderLog
from weft._trace.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable

PAGE = Path(__file__).parent.parent.parent / "docs" / "howto" / "find-what-is-wrong.md"


@pytest.fixture
def undeclared() -> Callable[[], None]:
    """A function that pushes an op which writes to an array that it does not declare."""
    totals = np.zeros(2)

    def add() -> None:
        totals[0] += 1

    def push() -> None:
        weft.get_engine().push(add)

    return push


def test_the_report_in_all_its_forms(undeclared: Callable[[], None]) -> None:
    with weft.doctor() as report:
        undeclared()
    assert [one.kind for one in report.errors] == ["undeclared-write"]
    assert "does not say so" in report.summary()
    assert "undeclared-write" in report._repr_html_()
    answer = json.loads(report.to_json())
    assert set(answer) == {"findings", "checked"}
    assert {"kind", "severity", "file", "line", "end_line", "message", "advice", "count", "seconds"} <= set(
        answer["findings"][0]
    )
    assert repr(report) == "<weft doctor: 1 errors, 0 advices>"


def test_nothing_is_left_behind(undeclared: Callable[[], None]) -> None:
    report = None

    def body() -> None:
        nonlocal report
        with weft.doctor() as report:
            undeclared()
            raise KeyError("of the block")

    with pytest.raises(KeyError):
        body()
    assert report is not None
    assert report.errors
    recorded: list[weft.NDArray] = []

    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        recorded.append(x)
        return x + 1

    step(weft.ones(2))
    step(weft.ones(2)).wait_to_read()
    assert len(recorded) == 1  # programs are on again
    with weft.Engine(workers=1) as engine:
        engine.push(lambda: None)


def test_one_block_at_a_time() -> None:
    with weft.doctor(only="first-nan"), pytest.raises(weft.errors.TraceError, match="another"), weft.doctor():
        pass
    with weft.doctor(only="first-nan") as report:
        weft.log(weft.zeros(3)).wait_to_read()
    assert len(report.findings) == 1


@pytest.mark.parametrize("size", [3, 300_000])
def test_ops_are_looked_at_at_their_push_and_on_workers(size: int) -> None:
    x = weft.zeros(size)
    x.wait_to_read()
    with weft.doctor(only="first-nan") as report:
        for _ in range(4):
            weft.log(x)
        weft.wait()
    assert [(one.kind, one.count) for one in report.findings] == [("first-nan", 4)]
    assert report.checked["array ops"] == 4


@pytest.mark.parametrize("only", ["nonsense", ["first-nan", 3], 7])
def test_kinds_that_are_none(only: object) -> None:
    with pytest.raises((weft.errors.ArgumentValueError, weft.errors.ArgumentTypeError)):
        weft.doctor(only=only)  # type: ignore[arg-type]


def test_threads_that_push_at_the_same_time() -> None:
    @weft.task
    def add(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    arrays = [np.zeros(100) for _ in range(4)]

    def work(own: np.ndarray) -> None:
        for _ in range(25):
            add(own)
        weft.wait(own)
        own[0] = 7

    with weft.doctor() as report:
        threads = [threading.Thread(target=work, args=(own,)) for own in arrays]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert report.findings == []
    assert [own[1] for own in arrays] == [25] * 4


def test_engines_that_guard_arrays_are_looked_into() -> None:
    totals = np.zeros(2)
    with warnings.catch_warnings(), weft.Engine(workers=1, check=True) as engine:
        warnings.simplefilter("ignore", weft.errors.UndeclaredAccessWarning)

        @weft.task(engine=engine)
        def add(x: weft.Read[np.ndarray]) -> None:
            totals[0] += x.sum()

        with weft.doctor() as report:
            add(np.ones(3)).wait()
    assert [one.kind for one in report.findings] == ["undeclared-write"]
    assert "`totals`" in report.findings[0].message
    assert "totals: weft.Mutate" in report.findings[0].message


def test_advice_leaves_engines_to_traces_of_the_program() -> None:
    with weft.Engine(workers=1) as engine, weft.doctor(only="short-task") as report:
        engine.push(lambda: None, name="before")
        with weft.trace(engine=engine) as trace:
            engine.push(lambda: None, name="inside")
        engine.push(lambda: None, name="behind")
    names = [trace.names[op["name"]] for op in trace.ops]
    assert names[0] == "inside"
    assert not {"before", "behind"} & {*names}
    assert report.errors == []


def test_runs_in_other_orders_log_the_ops_that_were_checked() -> None:
    hook = OrderLog({(threading.current_thread().name, 2)})
    with weft.Engine(workers=1) as engine:
        _watch(hook)
        try:
            for name in ("first", "second", "third"):
                engine.push(lambda: None, name=name)
            engine.wait_for_all()
        finally:
            _watch(None)
    assert [(one.number, one.name) for one in hook.log] == [(2, "second")]


def test_short_ops_are_traced_now_and_then() -> None:
    x = weft.ones(2)
    pushed = 60_000
    with weft.doctor(only="short-task") as report:
        for _ in range(pushed):
            x + 1
    assert 0 < report.checked["traced ops"] < pushed


def test_a_trace_that_is_full_waits_for_its_ops() -> None:
    gate = threading.Event()

    @weft.task
    def bump(x: weft.Mutate[np.ndarray]) -> None:
        x += 1

    with weft.Engine(workers=1) as engine:
        previous = weft.set_engine(engine)
        try:
            with weft.doctor(only="short-task") as report:
                engine.push(gate.wait)
                x = np.zeros(2)
                for _ in range(600):
                    bump(x)
                looked = time.process_time() + 0.05  # some ten looks
                while time.process_time() < looked:
                    pass
                gate.set()
                weft.wait()
        finally:
            gate.set()
            weft.set_engine(previous)
    assert [one.kind for one in report.findings] == ["short-task"]


def test_findings_are_marks_in_a_timeline(tmp_path: Path) -> None:
    with weft.Engine(workers=1) as engine, weft.trace(engine=engine) as trace:
        x = np.zeros(3)
        of_x, other = engine.variable_of(x), engine.new_variable("other")
        with weft.doctor(only="undeclared-write") as report:
            engine.push(lambda: x.fill(1), mutate_vars=[of_x], name="declares")
            engine.push(lambda: x.fill(2), mutate_vars=[other], name="does not")
    trace.save(tmp_path / "run.json")
    trace.save(tmp_path / "run.html")
    events = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["traceEvents"]
    (mark,) = [event for event in events if event.get("cat") == "doctor"]
    assert mark["name"] == "undeclared-write"
    (op,) = [event for event in events if event.get("args", {}).get("doctor")]
    assert op["name"] == "does not"
    assert report.findings[0].message in op["args"]["doctor"]
    assert report.findings[0].message.partition("`")[0] in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_each_kind_has_an_example_that_finds_it(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for number, block in enumerate(re.findall(r"^```\{run\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)):
        path = tmp_path / f"block{number}.py"
        path.write_text(block, encoding="utf-8")
        runpy.run_path(str(path))
    printed = capfd.readouterr().out
    told = {"undeclared-write": "writes `totals`", "first-nan": "`log` makes the first values"}
    threads = {"too-many-threads"}  # which takes more than one processor, and a BLAS of several threads
    assert [kind for kind in KINDS if kind not in threads and told.get(kind, kind) not in printed] == []


def test_a_trace_that_can_show_nothing_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(_: object) -> None:
        pytest.fail("it was read")

    monkeypatch.setattr(Record, "read", read)
    buffers = [np.zeros(3) for _ in range(4)]

    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        x[0] += 1

    with weft.doctor(only=[kind for kind, severity in KINDS.items() if severity == "advice"]) as report:
        x = weft.ones(3)
        for at in range(40):
            x = x + 1
            if at % 10 == 0:
                work(buffers[at // 10])
        weft.wait()
    assert report.findings == []
    assert report.checked["traced ops"] >= 44


def test_a_program_saves_nothing_of_tasks() -> None:
    @weft.task
    def work(x: weft.Mutate[np.ndarray]) -> None:
        until = time.perf_counter() + 2e-4
        while time.perf_counter() < until:
            x[0] += 1

    a, x = np.zeros(3), weft.ones(3)
    with weft.doctor(only="repeated-ops") as report:
        for _ in range(100):
            work(a)
            _ = x + 1
        weft.wait()
    assert report.findings == []
