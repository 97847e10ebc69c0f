"""``weft trace``: the script runs as it would without, its ops are shown, and mistakes are told before it runs."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from calling import call, mistake

from conftest import SOON, script_env

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
    import sys
    import weft

    def double(x):
        '''Twice.'''

    engine = weft.get_engine()
    x = engine.new_variable("x")
    engine.push(lambda: None, (), (x,), name="write")
    engine.push(lambda: None, (x,), name="read")
    engine.wait_for_all()
    print(__name__, sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that pushes two ops, in a folder of its own."""
    return write(tmp_path, SCRIPT)


def write(folder: Path, source: str, name: str = "program.py") -> Path:
    """Save a dedented script."""
    path = folder / name
    path.write_text(textwrap.dedent(source), encoding="utf-8")
    return path


def test_the_script_runs_and_is_summarized(script: Path) -> None:
    done = call("trace", script.name, "-o", "its own", folder=script.parent)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['-o', 'its own']\n"
    assert "write" in done.stderr
    assert "read" in done.stderr
    assert not list(script.parent.glob("*.json"))


def test_files_are_written_in_the_formats_of_their_suffixes(script: Path) -> None:
    names = ["run.json", "run.json.gz", "run.html", "run.dot"]
    outputs = [argument for name in names for argument in ("-o", name)]
    done = call("trace", *outputs, "--quiet", script.name, folder=script.parent)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == [f"written: {name}" for name in names]
    json.loads((script.parent / "run.json").read_text(encoding="utf-8"))
    assert (script.parent / "run.json.gz").read_bytes().startswith(b"\x1f\x8b")
    assert "<html" in (script.parent / "run.html").read_text(encoding="utf-8")
    assert "digraph" in (script.parent / "run.dot").read_text(encoding="utf-8")


def test_a_picture(script: Path) -> None:
    done = call("trace", "-o", "run.png", script.name, folder=script.parent)
    assert done.returncode == 0, done.stderr
    assert (script.parent / "run.png").read_bytes().startswith(b"\x89PNG")


def test_the_summary_as_json(script: Path) -> None:
    done = call("trace", "--json", script.name, folder=script.parent)
    figures = json.loads(done.stderr)
    assert figures["count"] == 2
    assert figures["critical_path"] == ["write", "read"]


def test_a_module(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    write(tmp_path / "package", "", "__init__.py")
    write(tmp_path / "package", SCRIPT, "program.py")
    done = call("trace", "-q", "-m", "package.program", "--size", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "__main__ ['--size']\n"


def test_a_script_imports_its_neighbours(script: Path, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    write(folder, "import neighbour\n")
    write(folder, "print('imported')\n", "neighbour.py")
    done = call("trace", "-q", "elsewhere/program.py", folder=script.parent)
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(5)", 5, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit('no luck')", 1, "no luck"),
        ("double(", 1, "SyntaxError"),
        ("raise ValueError('bad')", 1, "ValueError: bad"),
        ("engine.push(lambda: 1 / 0, (), (x,)); engine.wait_for_var(x)", 1, "ZeroDivisionError"),
    ],
)
def test_the_status_is_the_scripts(ending: str, status: int, said: str, tmp_path: Path) -> None:
    script = write(tmp_path, textwrap.dedent(SCRIPT) + ending + "\n")
    done = call("trace", "-o", "run.json", "-q", script.name, folder=tmp_path)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
    assert "runpy" not in done.stderr
    assert "_command" not in done.stderr
    assert (tmp_path / "run.json").exists()


def test_failures_that_nobody_waited_for_are_the_scripts_business(tmp_path: Path) -> None:
    script = write(tmp_path, "import weft\nweft.get_engine().push(lambda: 1 / 0, name='divide')\n")
    done = call("trace", "--json", script.name, folder=tmp_path)
    assert done.returncode == 1
    assert '"failed": 1' in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupted_script_leaves_its_trace(tmp_path: Path) -> None:
    source = """
        import sys, threading
        import weft
        weft.get_engine().push(lambda: None, name="before")
        weft.get_engine().wait_for_all()
        print("waiting", flush=True)
        threading.Event().wait()
    """
    script = write(tmp_path, source)
    command = [sys.executable, "-m", "weft", "trace", "-o", "run.json", script.name]
    with subprocess.Popen(
        command, cwd=tmp_path, env=script_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "before" in errors
    assert "Traceback" not in errors
    assert "before" in (tmp_path / "run.json").read_text(encoding="utf-8")


def test_engines_of_the_scripts_own_are_not_recorded(tmp_path: Path) -> None:
    script = write(tmp_path, "import weft\nwith weft.Engine() as engine:\n    engine.push(int)\n")
    done = call("trace", script.name, folder=tmp_path)
    assert done.returncode == 0
    assert "no ops were recorded: only those of the default engine are" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("missing.py",), "there is no script missing.py"),
        (("-m", "no.such_module"), "there is no module no.such_module"),
        (("-m", ".relative"), "there is no module .relative"),
        (("-o", "run.txt", "program.py"), "'run.txt': the suffix of a trace must be one of .json"),
        (("-o", "nowhere/run.json", "program.py"), "there is no folder nowhere"),
        (("--limit", "0", "program.py"), "'0': a number of at least 1"),
        ((), "required: SCRIPT"),
    ],
)
def test_mistakes_are_told_before_the_script_runs(arguments: tuple[str, ...], said: str, script: Path) -> None:
    assert said in mistake(call("trace", *arguments, folder=script.parent))


def test_a_picture_needs_matplotlib(script: Path) -> None:
    write(script.parent, "raise ModuleNotFoundError('no module', name='matplotlib')\n", "matplotlib.py")
    done = call("trace", "-o", "run.png", script.name, folder=script.parent)
    assert "pip install matplotlib" in mistake(done)


def test_an_impossible_environment_is_a_mistake(script: Path) -> None:
    done = call("trace", script.name, folder=script.parent, WEFT_WORKERS="many")
    assert "WEFT_WORKERS" in mistake(done)
