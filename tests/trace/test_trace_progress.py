"""Progress on a terminal and elsewhere, and the words of a stall."""

from __future__ import annotations

import logging
import os
import re
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

import weft
from conftest import SOON, script_env, write_script
from weft._trace.stall import describe, log_stall
from weft.errors import ArgumentTypeError, ArgumentValueError, WaitTimeoutError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Gate, MakeEngine


def test_figures_count_from_the_beginning_of_the_block(engine: weft.Engine) -> None:
    engine.push(lambda: None)
    engine.wait_for_all()
    with weft.progress(engine, description="squares") as shown:
        for _ in range(3):
            engine.push(lambda: None)
        engine.push(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.wait_for_all()
        assert re.fullmatch(r"squares: 4 ops in [\d.]+ \w+, 1 failed", str(shown))


def test_figures_before_the_block_count_from_the_beginning_of_their_object(engine: weft.Engine) -> None:
    shown = weft.progress(engine)
    engine.push(lambda: None)
    engine.wait_for_all()
    assert re.fullmatch(r"weft: 1 ops in [\d.]+ \w+", str(shown))


def test_figures_tell_what_runs_and_what_is_pending(single: weft.Engine, gate: Gate) -> None:
    with weft.progress(single) as shown:
        gate.hold(single)
        for _ in range(2):
            single.push(lambda: None)
        assert re.fullmatch(r"weft: 0 ops in [\d.]+ \w+, 1 running, 2 pending", str(shown))


def test_progress_wraps_a_wait(engine: weft.Engine, default_engine: weft.Engine) -> None:
    engine.push(lambda: None)
    weft.progress(engine).wait()
    assert engine.pending == 0
    weft.progress().wait()
    assert default_engine.pending == 0


def test_the_wait_takes_a_timeout_and_raises_failures(single: weft.Engine, gate: Gate) -> None:
    gate.hold(single)
    with pytest.raises(WaitTimeoutError):
        weft.progress(single).wait(timeout=0.01)
    gate.open()
    single.push(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        weft.progress(single).wait()


def test_where_nobody_looks_nothing_is_shown_but_for_long_runs(
    make_engine: MakeEngine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(1)
    monkeypatch.setattr("weft._engine.progress._LONG", float("inf"))
    with weft.progress(engine):
        engine.push(lambda: None)
        engine.wait_for_all()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("weft._engine.progress._LONG", 0.0)
    with weft.progress(engine, description="long"):
        engine.push(lambda: None)
        engine.wait_for_all()
    assert re.fullmatch(r"long: 1 ops in [\d.]+ \w+\n", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"engine": 3}, ArgumentTypeError, "takes a weft.Engine or None, not int"),
        ({"refresh": 0}, ArgumentValueError, "per second, over 0: not 0"),
        ({"refresh": "often"}, ArgumentTypeError, "per second, not str"),
    ],
)
def test_misuse_is_told(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        weft.progress(**arguments)


def on_a_terminal(path: Path, seconds: float = SOON, until: str | None = None) -> str:
    """Run a script whose streams are a terminal, and return what it wrote there; press Enter when ``until`` is there."""
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    ours, theirs = pty.openpty()
    env = script_env(TERM="xterm", COLUMNS="120", LINES="24")
    process = subprocess.Popen([sys.executable, path], stdout=theirs, stderr=theirs, stdin=theirs, env=env)
    os.close(theirs)
    written, deadline = b"", time.monotonic() + seconds
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux says so when the other side is closed
                break
            if not piece:
                break
            written += piece
            if until is not None and until.encode() in written:
                os.write(ours, b"\n")
                until = None
    assert process.wait(timeout=seconds) == 0, written
    os.close(ours)
    return written.decode()


def test_on_a_terminal_the_line_is_renewed_while_the_wait_lasts(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        import sys, weft
        with weft.Engine(workers=1) as engine, weft.progress(engine, description="loading", refresh=50):
            engine.push(sys.stdin.readline)
            engine.push(lambda: None)
            engine.wait_for_all()
        """,
    )
    written = on_a_terminal(script, until="1 running, 1 pending")
    assert "0 of 2" in written
    assert "1 running, 1 pending" in written
    assert "2 of 2" in written
    assert "loading" in written


def test_on_a_terminal_without_rich_the_line_is_plain_text(tmp_path: Path) -> None:
    script = write_script(
        tmp_path,
        """
        import importlib.util, sys, weft
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, package=None: None if name == "rich" else find(name, package)
        with weft.Engine(workers=1) as engine, weft.progress(description="loading", refresh=50):
            engine.push(sys.stdin.readline)
            engine.push(lambda: None)
            engine.wait_for_all()
        assert "rich" not in sys.modules
        """,
    )
    written = on_a_terminal(script, until="1 running, 1 pending")
    assert written.rstrip().rpartition("\x1b[K")[2].startswith("loading: 2 ops in ")


def test_all_engines_count_unless_one_is_named(make_engine: MakeEngine, gate: Gate) -> None:
    with weft.Executor(1) as executor, weft.progress() as everything, weft.progress(executor) as its:
        held = make_engine(1)
        gate.hold(held)
        executor.submit(int).result(SOON)
        executor._engine.wait_for_all()
        assert re.match(r"weft: 1 ops in .*, 1 running$", str(everything))
        assert re.match(r"weft: 1 ops in [\d.]+ \w+$", str(its))
        gate.open()
        held.wait_for_all()
        held.close()
        del held
        assert re.match(r"weft: 2 ops in [\d.]+ \w+$", str(everything))


def report(running: int, waiting: int) -> dict[str, Any]:
    return {
        "running": [{"label": f"'r{at}'", "place": "a.py:1", "seconds": 31.0, "thread": None} for at in range(running)],
        "waiting": [
            {"label": f"'w{at}'", "place": "", "variable": "'x'", "blocked_by": ["'r0'", "'r1'"]}
            for at in range(waiting)
        ],
        "pending": running + waiting,
    }


def test_a_stall_is_one_warning_of_the_logger_weft(caplog: pytest.LogCaptureFixture) -> None:
    log_stall("default", 30.0, report(1, 1))
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("weft", logging.WARNING)
    assert record.getMessage().splitlines() == [
        "engine default: no op has finished for 30 s, 2 are pending",
        "  runs: 'r0', for 31 s, pushed at a.py:1",
        "  waits: 'w0', for 'x' of 'r0' and 'r1'",
    ]


def test_a_stall_names_ten_and_counts_the_rest() -> None:
    lines = describe("default", 30.0, report(12, 15)).splitlines()
    assert len(lines) == 1 + 10 + 10 + 2
    assert lines[-2:] == ["  and 2 more that run", "  and 5 more that wait"]


def test_a_stall_with_nothing_running_says_so() -> None:
    assert describe("default", 30.0, report(0, 1)).splitlines()[1] == "  nothing runs"
