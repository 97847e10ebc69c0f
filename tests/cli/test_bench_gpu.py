"""``weft bench gpu``: to its end on a driver of the host's, beside what stands in for CuPy; and its arithmetic."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from calling import call, mistake

from weft.bench.gpu import overlap, tuning
from weft.bench.gpu.bounds import Bound, Figures, NotMeasured, quotient
from weft.bench.gpu.kernels import after, check, numbers
from weft.bench.gpu.measure import LINES, measure
from weft.bench.gpu.settings import Settings
from weft.bench.samples import Job, Samples, VerificationError
from weft.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable

STAND_INS = Path(__file__).parent.parent / "cuda"
#: What is measured runs for longer than it takes to compile.
MEASURED = {"FAKE_NVRTC_LEVEL": "-O1"}
KEYS = ("overlap", "launch", "add", "chain", "graph", "streams")


@pytest.fixture
def cupy(tmp_path: Path) -> dict[str, str]:
    """Put what stands in for CuPy where a script finds it."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    shutil.copy(STAND_INS / "cupy_on_host.py", folder)
    shutil.copy(STAND_INS / "cupy_by_hand.py", folder / "cupy.py")
    return {"PYTHONPATH": str(folder), **MEASURED}


@pytest.fixture
def no_cupy(tmp_path: Path) -> dict[str, str]:
    """Put a CuPy where a script finds it that cannot be imported."""
    folder = tmp_path / "none"
    folder.mkdir()
    (folder / "cupy.py").write_text("raise ImportError('there is none')", encoding="utf-8")
    return {"PYTHONPATH": str(folder), **MEASURED}


@pytest.mark.slow
def test_every_line_is_verified_and_written(tmp_path: Path, fake_cuda: dict[str, str], cupy: dict[str, str]) -> None:
    done = call("gpu", "--smoke", "--json", "found.json", folder=tmp_path, module="weft.bench", **fake_cuda, **cupy)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "found.json").read_text("utf-8"))
    assert (found["missing"], found["problems"]) == ([], {})
    assert found["machine"]["device"] == "Fake 0"
    assert {bound["line"] for bound in found["bounds"]} == set(KEYS)
    assert all(bound["minimum"] > 0 for bound in found["bounds"] if bound["unit"] == "")
    assert all(bound["verdict"] for bound in found["bounds"] if bound["limit"] is not None)
    for table, cells in found["tables"].items():
        names = {cell["implementation"] for cell in cells}
        assert any(name.startswith("weft") for name in names), table
        assert len(names) > 1, table
    page = (tmp_path / "found.md").read_text("utf-8")
    assert page.startswith("# weft on Fake 0\n")
    assert page.count("\n## ") == len(found["tables"]) + 1  # and the bounds
    assert "Bounds" in done.stdout
    counted = sum(bound["limit"] is not None for bound in found["bounds"])
    (told,) = (line for line in page.splitlines() if line.startswith("One repetition, all in turns"))
    assert sum(map(int, re.findall(r"(\d+) (?:reached|MISSED|not measured)", told))) == counted
    assert "Tiny sizes, which verify and measure nothing." in done.stdout


def test_without_cupy_its_rows_say_so(tmp_path: Path, fake_cuda: dict[str, str], no_cupy: dict[str, str]) -> None:
    done = call("bench", "gpu", "--smoke", "--lines", "add,chain", folder=tmp_path, **fake_cuda, **no_cupy)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "gpu-fake-0.json").read_text("utf-8"))
    assert {(entry["table"], entry["implementation"]) for entry in found["missing"]} == {
        ("add", "CuPy"),
        ("chain", "CuPy"),
    }
    assert all("there is none" in entry["reason"] for entry in found["missing"])
    verdicts = {bound["what"]: bound["verdict"] for bound in found["bounds"]}
    assert verdicts["CuPy / the driver back to back"] == "not measured: CuPy is missing: there is none"
    assert verdicts["weft / the driver back to back"] in {"reached", "MISSED"}
    assert "CuPy is missing: there is none" in (tmp_path / "gpu-fake-0.md").read_text("utf-8")


def test_without_a_gpu_nothing_is_written(tmp_path: Path) -> None:
    done = call("bench", "gpu", "--json", "out.json", folder=tmp_path, WEFT_CUDA_LIBRARY="/nowhere/libcuda.so")
    assert "/nowhere/libcuda.so" in mistake(done)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_overlap_is_measured_and_drawn_on_a_gpu(
    tmp_path: Path, fake_cuda: dict[str, str], cupy: dict[str, str]
) -> None:
    small = ("overlap", "--chunks", "3", "--mib", "1", "--reps", "1")
    pictures = ("--figure", "picture.png", "--trace", "trace.svg")
    done = call("bench", *small, *pictures, "--json", folder=tmp_path, MPLBACKEND="Agg", **fake_cuda, **cupy)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["machine"]["device"] == "Fake 0"
    assert [entry["name"] for entry in found["overlap"]] == [
        "weft",
        "weft, three buffers",
        "CuPy, streams and events by hand",
        "CuPy, one stream",
    ]
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert "rounds" in (tmp_path / "trace.svg").read_text("utf-8")


@pytest.mark.slow
def test_overlap_without_cupy_leaves_its_pipelines_out(
    tmp_path: Path, fake_cuda: dict[str, str], no_cupy: dict[str, str]
) -> None:
    small = ("overlap", "--device", "cuda:1", "--chunks", "2", "--mib", "1", "--reps", "1")
    done = call("bench", *small, folder=tmp_path, **fake_cuda, **no_cupy)
    assert done.returncode == 0, done.stderr
    assert "CuPy" not in done.stdout.partition("2 chunks of 1 MiB in pinned memory")[2]
    assert "Fake 1" in done.stdout
    assert "CuPy is missing: there is none: its pipelines are left out" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--lines", "add,quick"), "'add,quick': the lines are overlap, launch, add, chain, graph, streams"),
        (("--json", "out.txt"), "out.txt: the suffix says the format, and is one of .json"),
        (("--json", "nowhere/out.json"), "there is no folder nowhere"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in mistake(call("bench", "gpu", *arguments, folder=tmp_path))


def samples(values: dict[tuple[str, str, str], list[float]]) -> Samples:
    """What was measured, by table, implementation and case."""
    found = Samples()
    for (table, name, case), each in values.items():
        found.add(Job(table, case, name, list), each)
    return found


@pytest.mark.parametrize(
    ("own", "limit", "at_least", "verdict"),
    [
        ([1.0, 1.04, 1.05], 1.05, False, "reached"),
        ([1.0, 1.06, 1.10], 1.05, False, "reached by minima, MISSED by medians"),
        ([1.06, 1.06, 1.06], 1.05, False, "MISSED"),
        ([1.9, 1.9, 1.9], 1.8, True, "reached"),
        ([1.7, 1.9, 1.9], 1.8, True, "MISSED"),
        ([9.9, 9.9, 9.9], None, False, ""),
    ],
)
def test_verdicts(own: list[float], limit: float | None, at_least: bool, verdict: str) -> None:
    found = samples({("t", "weft", "c"): own, ("t", "peer", "c"): [1.0, 1.0, 2.0]})
    result = Bound("t", "ratio", quotient("t", "weft", "peer", "c"), limit, at_least=at_least).evaluate(found)
    assert (result.minimum, result.median) == (min(own), sorted(own)[1])
    assert result.verdict == verdict


def test_what_is_missing_is_no_verdict() -> None:
    found = samples({("t", "weft", "c"): [1.0]})
    found.missing["t", "peer"] = "peer is missing: not installed"
    bound = Bound("t", "ratio", quotient("t", "weft", "peer", "c"), 1.0)
    assert bound.evaluate(found).verdict == "not measured: peer is missing: not installed"
    with pytest.raises(NotMeasured, match="somebody was not timed"):
        Figures(found, "minimum")("t", "somebody", "c")


def test_a_pipeline_is_held_to_the_longest_stage_as_anybody_does_it() -> None:
    stages = {
        overlap.FRESH: {"copy in": 4.0, "compute": 12.0, "copy out": 3.0, "pipeline": 11.0},
        overlap.BY_HAND: {"copy in": 5.0, "compute": 10.0, "copy out": 3.0, "pipeline": 10.0},
    }
    found = samples(
        {("overlap", name, case): [value] for name, cases in stages.items() for case, value in cases.items()}
    )
    assert overlap.longest("overlap", Figures(found, "minimum")) == 10.0
    results = {bound.what: bound.evaluate(found) for bound in overlap.LINE.bounds(Settings())}
    over, beside = results["weft, pinned memory / longest stage"], results["weft, pinned memory / CuPy by hand"]
    assert (over.minimum, over.verdict) == (1.1, "MISSED")
    assert (beside.minimum, beside.limit) == (1.1, "at most 1.02")
    assert results["weft, three buffers, pinned memory / longest stage"].verdict.startswith("not measured")


def test_a_worker_is_held_to_the_drivers_own_launch() -> None:
    found = samples(
        {("issue", "weft's worker", "per launch"): [2.5], ("issue", "the driver, back to back", "per launch"): [2.25]}
    )
    (line,) = (line for line in LINES if line.key == "launch")
    results = {bound.what: bound.evaluate(found) for bound in line.bounds(Settings())}
    worker = results["a worker's launch - the driver's launch"]
    assert (worker.minimum, worker.limit, worker.verdict) == (0.25, "at most 0.3 us", "reached")


def test_every_promise_has_its_bound() -> None:
    limits = [(b.line, b.limit, b.at_least) for line in LINES for b in line.bounds(Settings()) if b.limit is not None]
    assert tuple(line.key for line in LINES) == KEYS
    assert set(limits) == {
        ("overlap", 1.05, False),
        ("overlap", 1.02, False),
        ("launch", 1.0, False),
        ("launch", 0.3, False),
        ("add", 0.7, False),
        ("chain", 1.1, False),
        ("graph", 1.05, False),
        ("streams", 1.8, True),
    }


def test_what_kernels_compute_is_foretold() -> None:
    start = numbers(100)
    one_by_one = start
    for _ in range(37):
        one_by_one = one_by_one * np.uint32(1_664_525) + np.uint32(1_013_904_223)
    check(after(start, 37), one_by_one, "nobody")
    with pytest.raises(VerificationError, match="somebody: the results are wrong"):
        check(after(start, 36), one_by_one, "somebody")


@pytest.mark.parametrize(("target", "steps"), [(100.0, 4750), (1000.0, 49750), (1.0, 1)])
def test_steps_for_a_time(target: float, steps: int) -> None:
    assert tuning.steps_for(target, lambda count: 5.0 + count / 50) == pytest.approx(steps, abs=1)


@pytest.fixture
def swallowed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What finalizers have raised, which fails no test."""
    found: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", found.append)
    return found


def test_a_line_that_fails_leaves_the_others() -> None:
    class Setup:
        def __init__(self) -> None:
            self.settings, self.samples = Settings(reps=2), Samples()

    def failing(_setup: object) -> list[Job]:
        raise VerificationError("weft: the results are wrong")

    def fine(_setup: object) -> list[Job]:
        return [Job("t", "c", "weft", lambda: [1.0])]

    def line(key: str, prepare: Callable[[Any], list[Job]]) -> Any:
        return overlap.Line(key, (Table("t", "", "us", ("minimum",)),), lambda _: (), prepare)

    setup: Any = Setup()
    written: list[dict[str, str]] = []
    problems = measure(setup, [line("first", failing), line("second", fine)], lambda found: written.append(dict(found)))
    assert problems == {"first": "VerificationError: weft: the results are wrong"}
    ended = "not done when the run was ended"
    assert written == [{"first": ended}, problems, {**problems, "second": ended}, problems]
    assert setup.samples.values == {("t", "weft", "c"): [1.0, 1.0]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_a_line_that_takes_too_long_leaves_what_it_has_measured_and_the_others() -> None:
    setup: Any = SimpleNamespace(settings=Settings(reps=3, run_s=200.0), samples=Samples())
    ran: list[int] = []

    def run() -> list[float]:
        ran.append(len(ran))
        if len(ran) == 2:
            signal.raise_signal(signal.SIGALRM)  # as if the time were over
        return [1.0]

    def line(key: str) -> Any:
        table = Table(key, "", "us", ("minimum",))
        return overlap.Line(key, (table,), lambda _: (), lambda _: [Job(key, "c", "weft", run)])

    problems = measure(setup, [line("slow"), line("next")], lambda _: None)
    assert problems == {"slow": "TimeoutError: it was not done after 180 s"}
    assert setup.samples.values == {("slow", "weft", "c"): [1.0], ("next", "weft", "c"): [1.0, 1.0, 1.0]}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
def test_the_end_of_a_lines_time_is_told_again_if_a_finalizer_has_swallowed_it(swallowed: list[object]) -> None:
    setup: Any = SimpleNamespace(settings=Settings(reps=1, run_s=1.0), samples=Samples())

    class Final:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGALRM)

    def run() -> list[float]:
        Final()
        while True:
            threading.Event().wait(1.0)

    line: Any = overlap.Line("line", (), lambda _: (), lambda _: [Job("line", "c", "weft", run)])
    assert measure(setup, [line], lambda _: None).keys() == {"line"}
    assert swallowed


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signal")
@pytest.mark.usefixtures("swallowed")  # it may come amid a garbage collection
def test_a_line_for_which_no_time_is_left_says_so_and_leaves_the_others() -> None:
    setup: Any = SimpleNamespace(settings=Settings(reps=1, run_s=-1.0), samples=Samples())

    def forever() -> list[float]:
        while True:
            threading.Event().wait(1.0)

    def line(key: str) -> Any:
        return overlap.Line(key, (), lambda _: (), lambda _: [Job(key, "c", "weft", forever)])

    problems = measure(setup, [line("first"), line("second")], lambda _: None)
    assert problems.keys() == {"first", "second"}
    assert all(problem.startswith("TimeoutError: it was not done after") for problem in problems.values())
