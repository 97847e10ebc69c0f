"""``weft`` and ``python -m weft``: help, statuses, pipes, and what it costs those who do not use it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from typing import TYPE_CHECKING

import pytest
from calling import call, mistake

import weft
from conftest import SOON, script_env
from weft._command.running import CommandError, run
from weft._command.tables import aligned, show
from weft.bench.progress import progress
from weft.bench.samples import Job

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunScript

COMMANDS = [
    ("weft", ()),
    ("weft", ("info",)),
    ("weft", ("bench",)),
    ("weft", ("bench", "tables")),
    ("weft", ("bench", "overlap")),
    ("weft", ("trace",)),
    ("weft.bench", ()),
    ("weft.bench", ("overlap",)),
]


@pytest.mark.parametrize(("module", "command"), COMMANDS, ids=lambda value: " ".join(value) or "none")
def test_every_command_explains_itself(module: str, command: tuple[str, ...], tmp_path: Path) -> None:
    done = call(*command, "--help", folder=tmp_path, module=module)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: {' '.join(['python -m ' + module, *command])}")
    assert not done.stderr


def test_the_version(tmp_path: Path) -> None:
    assert call("--version", folder=tmp_path).stdout == f"weft {weft.__version__}\n"


def test_the_console_script_is_the_same_program(tmp_path: Path) -> None:
    program = shutil.which("weft", path=sysconfig.get_path("scripts"))
    assert program
    done = subprocess.run([program, "--help"], cwd=tmp_path, capture_output=True, text=True, timeout=SOON, check=True)
    assert done.stdout.startswith("usage: weft ")


def test_without_a_command_there_is_the_help(tmp_path: Path) -> None:
    done = call(folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == call("--help", folder=tmp_path).stdout


def test_a_command_is_known(tmp_path: Path) -> None:
    assert "invalid choice: 'weave'" in mistake(call("weave", folder=tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "weft", "info", "--json"],
        cwd=tmp_path,
        env=script_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        errors = process.stderr.read()
    assert process.returncode == 141
    assert not errors


def test_mistakes_become_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> int:
        raise CommandError("no such thing")

    assert run("weft", fail) == 2
    assert capsys.readouterr().err == "weft: error: no such thing\n"

    def refuse() -> int:
        weft.Engine(0)
        return 0

    assert run("weft", refuse) == 2
    assert "workers" in capsys.readouterr().err
    assert run("weft", lambda: 3) == 3


def test_an_interrupt_has_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt() -> int:
        raise KeyboardInterrupt

    assert run("weft", interrupt) == 130
    assert capsys.readouterr().err == "weft: interrupted\n"


def test_errors_of_weft_itself_are_not_hidden() -> None:
    def fail() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run("weft", fail)


def test_tables_are_plain_text_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    show("[Title]", [["", "ns"], ["[bold]push", "51.2"]])
    assert capsys.readouterr().out == "[Title]\n            ns\n[bold]push  51.2\n\n"
    assert aligned([["a", "b"], ["longer", ""]]) == "a       b\nlonger"


def test_tables_are_drawn_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show("[Title]", [["", "ns"], ["[bold]push", "51.2"]])
    shown = capsys.readouterr().out
    assert "[Title]" in shown
    assert "[bold]push" in shown
    assert "─" in shown or "━" in shown


def ticks(jobs: int) -> None:
    """Go through a few jobs under a progress bar."""
    with progress("table B", jobs) as tick:
        for number in range(jobs):
            tick(Job("B", f"case {number}", "weft", list))


def test_progress_is_a_line_a_tenth_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    ticks(20)
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [f"table B: {done} of 20" for done in range(2, 21, 2)]
    assert not shown.out


def test_progress_is_a_bar_on_a_terminal(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    ticks(3)
    shown = capsys.readouterr()
    assert "of 3" not in shown.err
    assert not shown.out


def test_import_weft_brings_none_of_it(script: RunScript) -> None:
    done = script("""
        import sys
        import weft
        extra = ("weft.bench", "weft._command", "weft._machine", "argparse", "runpy", "rich")
        print(*(name for name in extra if name in sys.modules))
    """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "\n"
