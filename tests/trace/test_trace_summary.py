"""Summaries: figures of runs made by hand, and how they are printed."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest
from records import Recording, random_run
from rich.console import Console

from weft._trace.record import Kind, Outcome
from weft._trace.units import amount, seconds

if TYPE_CHECKING:
    from weft._trace.summary import Summary


def summary_of(run: Recording) -> Summary:
    return run.views().summary


def test_figures_of_a_run() -> None:
    run = Recording()
    run.op("load", 1000, 2000, mutate="a", kind=Kind.COPY, pushed=100, ready=400)
    run.op("load", 2000, 3000, mutate="b", kind=Kind.COPY, pushed=200, ready=400)
    run.op("compute", 2000, 5000, read="a", mutate="c", worker=2, kind=Kind.COMPUTE, pushed=300, ready=2000)
    run.op("wait", 500, 5000, read="c", kind=Kind.WAIT, worker=None, pushed=500)
    summary = summary_of(run)
    assert (summary.count, summary.workers, summary.wall, summary.busy) == (3, 2, 4900, 5000)
    assert (summary.critical, summary.critical_path) == (4000, ["load", "compute"])
    assert summary.parallelism == 5000 / 4900
    assert summary.possible_parallelism == 5000 / 4000
    assert (summary.copying, summary.overlap, summary.overlap_fraction) == (2000, 1000, 0.5)
    assert summary.waited == 4500
    load = summary.ops[1]
    assert (load.name, load.kind, load.count, load.total, load.longest) == ("load", "copy", 2, 2000, 1000)
    assert (load.mean, load.queue, load.mean_queue, load.critical) == (1000, 2200, 1100, 1000)
    assert [op.name for op in summary.ops] == ["compute", "load"]


def test_nested_ops_and_waits_inside_ops_are_no_further_work() -> None:
    run = Recording()
    outer = run.op("outer", 1000, 5000)
    run.op("at once", 1500, 2000, parent=outer)
    run.op("wait", 3000, 4000, kind=Kind.WAIT, worker=1, parent=outer)
    summary = summary_of(run)
    assert (summary.busy, summary.waited) == (3000, 0)


def test_async_ops_and_devices_work_beside_their_workers() -> None:
    run = Recording()
    run.op("one", 1000, 4000, kind=Kind.ASYNC)
    run.op("other", 1000, 3000, kind=Kind.ASYNC)
    run.op("launch", 1000, 1100, kind=Kind.LAUNCH, stream=0, device_started=2000, device_ended=6000)
    summary = summary_of(run)
    assert summary.busy == 3000 + 2000 + 100 + 4000
    assert summary.wall == 6000 - 999


def test_outcomes_are_counted_and_failures_told() -> None:
    run = Recording()
    run.op("divide", 10, 20, error="ZeroDivisionError: division by zero")
    run.op("divide", 10, 20, error="ZeroDivisionError: division by zero", worker=2)
    run.op("use", 0, 0, settled=25, outcome=Outcome.SKIPPED)
    run.op("late", 0, 0, settled=25, outcome=Outcome.CANCELLED)
    run.op("never", 0, 0)
    summary = summary_of(run)
    assert (summary.failed, summary.skipped, summary.cancelled, summary.pending) == (2, 1, 1, 1)
    assert summary.errors == ["divide: ZeroDivisionError: division by zero"] * 2
    assert "error          divide: ZeroDivisionError: division by zero (2 times)" in str(summary)


def test_deletions_of_many_objects_are_one_row() -> None:
    run = Recording()
    for at in range(3):
        kind, address = Kind.DELETE, 0x7F08B6C7C090 + 96 * at
        run.op(f"deletion of ndarray at {address:#x}", 1000 * at + 1000, 1000 * at + 1100, mutate="a", kind=kind)
    run.op("look at 0x10", 9000, 9100)
    summary = summary_of(run)
    assert [(op.name, op.count, op.total) for op in summary.ops] == [
        ("deletion of ndarray", 3, 300),
        ("look at 0x10", 1, 100),
    ]
    assert summary.critical_path == ["deletion of ndarray"] * 3


def test_helpers_that_came_too_late_are_no_pending_ops() -> None:
    run = Recording()
    run.op("exp", 1000, 2000, kind=Kind.COMPUTE)
    run.op("helper", 1200, 1900, kind=Kind.COMPUTE, worker=2)
    run.op("helper", 0, 0, kind=Kind.COMPUTE, pushed=1100, outcome=Outcome.PENDING)
    assert (summary_of(run).count, summary_of(run).pending) == (2, 0)
    run.op("helper", 0, 0, pushed=1100, outcome=Outcome.PENDING)  # a callable of this name
    assert (summary_of(run).count, summary_of(run).pending) == (3, 1)


def test_lambdas_are_told_by_their_lines() -> None:
    run = Recording()
    run.op("<lambda>", 1000, 1400, mutate="a", place="a.py:3")
    run.op("<lambda>", 1400, 1500, mutate="a", place="a.py:3")
    run.op("<lambda>", 1500, 1600, mutate="a", place="a.py:7")
    run.op("f", 1600, 1650, mutate="a", place="a.py:8")
    run.op("f", 1650, 1690, mutate="a", place="a.py:9")
    summary = summary_of(run)
    rows = [(op.name, op.count, op.total) for op in summary.ops]
    assert rows == [("<lambda> a.py:3", 2, 500), ("<lambda> a.py:7", 1, 100), ("f", 2, 90)]
    assert summary.critical_path == ["<lambda> a.py:3", "<lambda> a.py:3", "<lambda> a.py:7", "f", "f"]


def test_an_empty_run_has_a_summary() -> None:
    summary = summary_of(Recording())
    assert (summary.wall, summary.busy, summary.parallelism, summary.possible_parallelism) == (0, 0, 0.0, 0.0)
    assert summary.overlap_fraction is None
    assert "critical path  none" in str(summary)


def test_ops_that_have_not_begun_take_no_time() -> None:
    run = Recording()
    run.op("held", 0, 0, pushed=1000, outcome=Outcome.PENDING)
    summary = summary_of(run)
    assert (summary.wall, summary.parallelism, summary.pending) == (0, 0.0, 1)
    run.op("runs", 1200, 1500, pushed=1100)
    assert summary_of(run).wall == 500


def test_text_is_aligned_and_long_paths_are_cut() -> None:
    lines = str(summary_of(random_run(300, 1))).splitlines()
    table = lines[: lines.index("")]
    assert len({len(line) for line in table}) == 1
    assert set(table[1]) == {"-", " "}
    path = next(line for line in lines if line.startswith("critical path"))
    assert path.count(" > ") == 8
    assert " more) > " in path


def test_rich_prints_tables(capsys: pytest.CaptureFixture[str]) -> None:
    run = Recording()
    run.op("[bold]a[/bold]", 1000, 2000)
    summary = summary_of(run)
    printed = io.StringIO()
    Console(file=printed, width=120).print(summary)
    assert "[bold]a[/bold]" in printed.getvalue()  # a name is no markup
    summary.show()
    assert "wall time" in capsys.readouterr().out


def test_without_rich_text_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setattr("weft._trace.summary.find_spec", lambda _: None)
    summary = summary_of(random_run(5, 1))
    summary.show()
    assert capsys.readouterr().out == f"{summary}\n"


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (0, "0 s"),
        (1, "1 ns"),
        (999, "999 ns"),
        (999.9, "1000 ns"),
        (1000, "1 us"),
        (12_345_678, "12.3 ms"),
        (3.6e12, "3600 s"),
    ],
)
def test_times_have_three_digits_and_a_unit(time: float, text: str) -> None:
    assert seconds(time) == text


def test_bytes_have_three_digits_and_a_unit() -> None:
    assert [amount(count) for count in (0, 999, 4096, 5e15)] == ["0 B", "999 B", "4.1 kB", "5000 TB"]
