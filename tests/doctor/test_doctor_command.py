"""``weft doctor``: the report, the exit status, and scripts that do not simply end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from defects import DEFECTS

from conftest import SOON, script_env

HEAD = """\
import warnings
import numpy as np
import weft
warnings.simplefilter("ignore")
totals = np.zeros(2)

@weft.task
def add(x: weft.Read[np.ndarray]) -> None:
    totals[0] += x.sum()

@weft.task
def double(x: weft.Mutate[np.ndarray]) -> None:
    x *= 2

x = np.ones(3)
"""


def doctor(folder: Path, source: str, *options: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run the command on a script; return how it ended, and its JSON."""
    (folder / "script.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "weft", "doctor", "--json", "report.json", *options, "script.py", "one", "two"],
        cwd=folder,
        env=script_env(),
        capture_output=True,
        text=True,
        timeout=4 * SOON,
        check=False,
    )
    return done, json.loads((folder / "report.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_all_runs_of_a_script_make_one_report(tmp_path: Path) -> None:
    done, report = doctor(tmp_path, HEAD + "import sys\nprint(sys.argv[1:])\nadd(x).wait()\n")
    assert done.returncode == 1
    assert done.stdout == "['one', 'two']\n"
    (finding,) = report["findings"]
    assert (finding["kind"], finding["severity"], finding["line"]) == ("undeclared-write", "error", 18)
    assert finding["end_line"] == 18
    assert finding["file"] == str((tmp_path / "script.py").resolve())
    assert "`add` (script.py:18) writes `totals` (made at script.py:5)" in done.stderr
    assert "totals: weft.Mutate" in finding["advice"]
    assert report["checked"]["runs in other orders"] == 3
    assert done.stderr.splitlines()[-1].startswith("checked: ops: 1")


@pytest.mark.slow
def test_what_no_single_run_shows(tmp_path: Path) -> None:
    kind, source = DEFECTS["an unseeded generator"]
    done, report = doctor(tmp_path, source, "--only", "nondeterministic", "--runs", "1")
    assert done.returncode == 1
    assert [one["kind"] for one in report["findings"]] == [kind]


@pytest.mark.slow
def test_programs_are_recorded_in_other_orders(tmp_path: Path) -> None:
    """What asks for a function's programs does not fail there, so that its ops are compared."""
    kind, source = DEFECTS["an unseeded generator"]
    asks = """
@weft.program
def inner(x):
    return x + 1

@weft.program
def twice(x):
    return inner(x) * 2

for _ in range(12):
    assert float(twice(weft.ones(3))[0]) == 4
(recorded,) = twice.programs
assert not inner.programs
"""
    done, report = doctor(tmp_path, source + asks, "--only", "nondeterministic", "--runs", "1")
    assert "other runs that failed" not in report["checked"]
    assert ([one["kind"] for one in report["findings"]], done.returncode) == ([kind], 1)


def test_it_says_why_another_run_failed(tmp_path: Path) -> None:
    once = """
from pathlib import Path
double(x).wait()
Path("results").mkdir()
"""
    done, report = doctor(tmp_path, HEAD + once, "--only", "nondeterministic", "--runs", "2")
    told = [line for line in done.stderr.splitlines() if "the script failed" in line]
    assert len(told) == 1, done.stderr
    assert "FileExistsError" in told[0], told
    assert "results" in told[0], told
    assert report["checked"]["other runs that failed"] == 2


@pytest.mark.slow
def test_advice_alone_is_no_error(tmp_path: Path) -> None:
    kind, source = DEFECTS["a number that changes"]
    done, report = doctor(tmp_path, source, "--only", kind)
    assert done.returncode == 0
    assert [one["kind"] for one in report["findings"]] == [kind]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status", "counted"),
    [
        ("raise ValueError('by itself')", 2, "ops"),
        ("import sys\nsys.exit(3)", 2, "ops"),
        ("import sys\nsys.exit(0)", 1, "ops"),
        ("weft.task(lambda: 1 / 0)()", 2, "ops"),
        ("weft.get_engine().close()\nweft.set_engine(None)\ndouble(x).wait()", 1, "ops"),
        ("import os\nif not os.fork():\n    double(x).wait()\n    os._exit(0)\nos.wait()", 1, "forked children, which were not checked"),
        ("with weft.trace() as trace:\n    double(x).wait()\nassert len(trace.ops)", 1, "ops"),
    ],
)  # fmt: skip
def test_scripts_that_do_not_simply_end(tmp_path: Path, end: str, status: int, counted: str) -> None:
    if "fork" in end and sys.platform == "win32":
        pytest.skip("there is no fork")
    done, report = doctor(tmp_path, HEAD + f"add(x).wait()\n{end}\n", "--only", "undeclared-write")
    assert done.returncode == status, done.stderr
    assert [one["kind"] for one in report["findings"]] == ["undeclared-write"]
    assert report["checked"][counted] >= 1


def test_a_script_that_ends_at_once_is_named(tmp_path: Path) -> None:
    done, report = doctor(tmp_path, "import os\nos._exit(0)\n", "--only", "first-nan")
    assert done.returncode == 0
    assert report["checked"] == {"runs that ended without a report": 1}


@pytest.mark.slow
def test_an_op_that_waits_for_the_script_is_let_go(tmp_path: Path) -> None:
    source = (
        HEAD
        + """
import threading
event = threading.Event()
engine = weft.get_engine()
engine.push(event.wait, mutate_vars=[engine.new_variable("door")])
double(x)
event.set()
weft.wait()
"""
    )
    done, report = doctor(tmp_path, source, "--only", "undeclared-write")
    assert done.returncode == 0
    assert report["checked"]["ops that ended later"] >= 1


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_a_script_that_pushes_for_ever_can_be_stopped(tmp_path: Path) -> None:
    source = HEAD + "print('begun', flush=True)\nwhile True:\n    add(x)\n"
    (tmp_path / "script.py").write_text(source, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "weft", "doctor", "--json", "report.json", "script.py"],
        cwd=tmp_path,
        env=script_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=4 * SOON)
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert [one["kind"] for one in report["findings"]] == ["undeclared-write"], errors
    assert process.returncode == 1


@pytest.mark.slow
def test_mistakes_are_told_before_the_script_runs(tmp_path: Path) -> None:
    for options in (["--only", "nonsense"], ["--runs", "-1"], ["--json", "none/report.json"]):
        done = subprocess.run(
            [sys.executable, "-m", "weft", "doctor", *options, "script.py"],
            cwd=tmp_path, env=script_env(), capture_output=True, text=True, timeout=SOON, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert "Traceback" not in done.stderr


EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
_SMALL = ("--repeats", "1")
GALLERY = [
    ("kmeans", "--size", "2", *_SMALL),
    ("hidden_parallelism", "--size", "1000", *_SMALL),
    ("photographs", "--size", "60", *_SMALL),
    ("classify", "--size", "48", *_SMALL),
    ("random_numbers", "--size", "4000", *_SMALL),
]
#: They have no ops of Python's functions alone, which are the ones that other orders are for.
TRAIN = [
    ("heat", "--size", "64", *_SMALL),
    ("text", "--size", "1", *_SMALL),
    ("towers", "--size", "1", *_SMALL),
    ("cnn", "--quick"),
    ("digits", "--epochs", "1", "--hidden", "32", *_SMALL),
]
#: Runs the examples, which import much, one after the other in one process.
IN_TURN = """\
import runpy
import sys
sys.path.insert(0, {folder!r})
for name, *options in {examples!r}:
    sys.argv = [f"{folder}/{{name}}.py", *options]
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        assert not end.code, end
    print("ran", name)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("examples", "runs"), [pytest.param(GALLERY, 1, id="gallery"), pytest.param(TRAIN, 0, id="what trains")]
)
def test_no_false_alarm_of_the_examples(tmp_path: Path, examples: list[tuple[str, ...]], runs: int) -> None:
    script = tmp_path / "in_turn.py"
    script.write_text(IN_TURN.format(folder=str(EXAMPLES), examples=examples), encoding="utf-8")
    printed, report = doctor_of_examples(tmp_path, script, runs=runs)
    assert re.findall("^ran (.*)$", printed, re.MULTILINE) == [name for name, *_ in examples]
    assert [one for one in report["findings"] if one["severity"] == "error"] == []
    assert "other runs that failed" not in report["checked"]


@pytest.mark.slow
def test_no_false_alarm_of_two_ranks(tmp_path: Path) -> None:
    options = ("--steps", "2", "--rows", "4")
    _, report = doctor_of_examples(tmp_path, EXAMPLES / "two_ranks.py", *options, runs=1)
    assert [one for one in report["findings"] if one["severity"] == "error"] == []


def doctor_of_examples(folder: Path, script: Path, *options: str, runs: int) -> tuple[str, dict[str, Any]]:
    """Run the command on an example; return what that printed, and the command's JSON."""
    command = [sys.executable, "-m", "weft", "doctor", "--runs", str(runs), "--json", "report.json", str(script)]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env=script_env(MPLBACKEND="Agg"),
        capture_output=True,
        text=True,
        timeout=6 * SOON,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "report.json").read_text(encoding="utf-8"))
