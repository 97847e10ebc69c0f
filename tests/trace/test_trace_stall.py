"""A wait beside which nothing finishes says so: what runs, and who waits for whom."""

from __future__ import annotations

import logging
import queue
import time
from typing import TYPE_CHECKING

import pytest

import weft
from conftest import SOON, Gate, background

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import MakeEngine

SHORT = 0.1


class Heard(logging.Handler):
    """Collects what the logger ``weft`` is told, and opens a gate at the first word."""

    def __init__(self, gate: Gate) -> None:
        super().__init__()
        self.gate = gate
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note a record."""
        assert record.levelno == logging.WARNING
        self.lines += record.getMessage().splitlines()
        self.gate.open()


@pytest.fixture
def heard(gate: Gate) -> Iterator[Heard]:
    handler = Heard(gate)
    logger = logging.getLogger("weft")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def test_a_wait_names_what_runs_and_who_waits_for_whom(make_engine: MakeEngine, gate: Gate, heard: Heard) -> None:
    engine = make_engine(workers=1, name="still", stall_after=SHORT)
    x, y = engine.new_variable("x"), engine.new_variable("y")
    gate.hold(engine, mutate=(x,), name="load")
    engine.push(lambda: None, [x], [y], name="fit")
    engine.push(lambda: None, [y], name="show")
    engine.wait_to_write(y)
    assert heard.lines[0].startswith("engine still: no op has finished for ")
    assert heard.lines[0].endswith("3 are pending")
    runs, *waits = heard.lines[1:]
    assert runs.startswith("  runs: op 'load', for ")
    assert "pushed at " in runs
    assert waits[0].startswith("  waits: wait_to_write, for 'y' of op 'fit', pushed at ")
    assert f"{__file__}:" in waits[0]
    assert waits[1].startswith("  waits: op 'fit', for 'x' of op 'load', pushed at ")
    assert f"{__file__}:" in waits[1]
    assert len(waits) == 2


def test_a_stall_is_told_once(make_engine: MakeEngine, gates: Callable[[], Gate], heard: Heard) -> None:
    engine = make_engine(workers=1, stall_after=SHORT)
    held = gates()
    held.hold(engine)
    for _ in range(3):
        with pytest.raises(weft.errors.WaitTimeoutError):
            engine.wait_for_all(3 * SHORT)
    held.open()
    engine.wait_for_all(SOON)
    assert len([line for line in heard.lines if line.startswith("engine ")]) == 1


def test_an_op_whose_token_is_out_counts_as_running(make_engine: MakeEngine, gate: Gate, heard: Heard) -> None:
    engine = make_engine(workers=1, stall_after=SHORT)
    tokens: queue.Queue[weft.Completion] = queue.Queue()
    engine.push_async(tokens.put, name="transfer")
    token = tokens.get(timeout=SOON)  # it is out before the wait begins, which may be told of soon
    waiting = background(engine.wait_for_all)
    assert gate._open.wait(SOON)
    token()
    waiting.result(SOON)
    assert any(line.startswith("  runs: op 'transfer', for ") for line in heard.lines)


def test_nothing_is_said_where_ops_finish_or_nobody_asked(
    make_engine: MakeEngine, gates: Callable[[], Gate], heard: Heard
) -> None:
    never = make_engine(workers=1, stall_after=None)
    held = gates()
    held.hold(never)
    with pytest.raises(weft.errors.WaitTimeoutError):
        never.wait_for_all(3 * SHORT)
    held.open()
    never.wait_for_all(SOON)
    assert heard.lines == []


def test_a_report_can_be_asked_for(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(workers=2)
    x = engine.new_variable("x")
    gate.hold(engine, mutate=(x,), name="gate")
    engine.push(lambda: None, [x], name="later")
    waiting = background(lambda: engine.wait_to_write(x))
    while not (report := engine._stall_report())["waiting"]:
        time.sleep(0)
    gate.open()
    waiting.result(SOON)
    assert [op["label"] for op in report["running"]] == ["op 'gate'"]
    assert ".py:" in report["running"][0]["place"]
    assert report["pending"] == 2
    (wait,) = report["waiting"]
    assert (wait["label"], wait["variable"], wait["blocked_by"]) == ("wait_to_write", "'x'", ["op 'gate'"])
    assert engine._stall_report() == {"running": [], "waiting": [], "pending": 0}


def test_a_hook_that_raises_does_not_end_the_wait(
    make_engine: MakeEngine, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        gate.open()
        message = "broken on purpose"
        raise RuntimeError(message)

    unraisable: list[str] = []
    monkeypatch.setattr("weft._trace.stall.log_stall", broken)
    monkeypatch.setattr("sys.unraisablehook", lambda raised: unraisable.append(str(raised.exc_value)))
    engine = make_engine(workers=1, stall_after=SHORT)
    gate.hold(engine)
    engine.wait_for_all(SOON)
    assert unraisable == ["broken on purpose"]


@pytest.mark.parametrize("wrong", [-1.0, float("nan")])
def test_a_wrong_time_is_refused(wrong: float) -> None:
    with pytest.raises(weft.errors.ArgumentValueError, match="stall_after must be None or a number of seconds"):
        weft.Engine(stall_after=wrong)


def test_a_callable_without_a_name_goes_by_what_its_thread_runs(
    make_engine: MakeEngine, gate: Gate, heard: Heard
) -> None:
    engine = make_engine(workers=1, stall_after=SHORT)
    x, y = engine.new_variable("x"), engine.new_variable("y")

    def stuck() -> None:
        gate.entered.set()
        gate._open.wait(SOON)

    engine.push(stuck, mutate_vars=[x])
    assert gate.entered.wait(SOON)
    engine.push(int, [x], [y])
    engine.wait_to_write(y)
    name = f"({stuck.__qualname__})"
    runs, first, second = heard.lines[1:]
    assert runs.startswith(f"  runs: op #0 {name}, for ")
    assert first.startswith("  waits: wait_to_write, for 'y' of op #1, pushed at ")
    assert second.startswith(f"  waits: op #1, for 'x' of op #0 {name}, pushed at ")
