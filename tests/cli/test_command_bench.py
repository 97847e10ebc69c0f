"""``weft bench`` and ``python -m weft.bench``: verified, complete, and honest about what is missing."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from calling import call, mistake

import weft
from weft.bench import native_ops, quick
from weft.bench.dependencies import callable_jobs, native_jobs
from weft.bench.overlap.by_hand import ThreadsPipeline
from weft.bench.overlap.measuring import Overlap, measure
from weft.bench.overlap.pipelines import NumPyPipeline, Pipeline, WeftPipeline, make_chunks
from weft.bench.ratios import best_peer, ratio_grids
from weft.bench.runners import CHUNKED_MAP, NativeRunner, WeftRunner
from weft.bench.samples import Job, Samples, VerificationError
from weft.bench.settings import Settings
from weft.bench.symbols import chain
from weft.bench.symbols.jobs import Chain
from weft.bench.tables import TABLES, grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.patterns import Program, State

PACKAGE = Path(weft.__file__).parent


@pytest.mark.slow
def test_all_tables_run_without_a_checkout(tmp_path: Path) -> None:
    done = call("bench", "--smoke", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["machine"]["weft"] == weft.__version__
    assert {"floors", "A", "B", "push", "C", "C return", "D", "E", "M inference", "M training", "N", "R"} <= set(
        found["tables"]
    )
    assert all(any(cell["implementation"].startswith("weft") for cell in found["tables"][key]) for key in "ABCDENR")
    missing = {(entry["table"], entry["implementation"]): entry["reason"] for entry in found["missing"]}
    assert "benches/run.py in a checkout" in missing["A", "OpenMP"]
    assert "benches/run.py in a checkout" in missing["R replay", "Taskflow static"]
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_five_lines_say_whether_it_is_fast(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_SECONDS", 0.0)
    before = weft.get_engine()
    quick.run(Settings.smoke())
    assert weft.get_engine() is before
    *lines, last = capfd.readouterr().out.splitlines()
    verdict = r"(\d+\.\d times as (fast|slow)|as fast) +a .*: \S+ \w+, .* \S+ \w+"
    assert [bool(re.fullmatch(verdict, each)) for each in lines] == [True] * 5, lines
    assert "weft bench" in last


@pytest.mark.slow
def test_tables_can_be_chosen_and_piped(tmp_path: Path) -> None:
    done = call("--smoke", "--tables", "b", "--reps", "2", folder=tmp_path, module="weft.bench")
    assert done.returncode == 0, done.stderr
    assert "\nB. Python no-op callables" in done.stdout
    assert "\nC. " not in done.stdout
    assert "table B: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tables", "A,Q"), "'A,Q': the tables are A, B, C, D, E, F, M, N, R"),
        (("tables", "--reps", "0"), "'0': a number of at least 1"),
        (("tables", "--workers", "two"), "'two': a number of at least 1"),
        (("gpus",), "invalid choice: 'gpus'"),
        (
            ("overlap", "--figure", "picture.txt"),
            "picture.txt: the suffix says the format, and is one of .svg, .png, .pdf",
        ),
        (("overlap", "--figure", "nowhere/picture.png"), "there is no folder nowhere"),
        (("overlap", "--device", "tpu:0"), "unknown kind of device 'tpu'"),
    ],
)
def test_mistakes_are_told(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    assert said in mistake(call("bench", *arguments, folder=tmp_path))


def test_a_chain_is_timed_in_a_process_of_its_own_as_often_as_wanted() -> None:
    command = [sys.executable, "-P", chain.__file__, "weft"]
    wanted = Chain("weft", command, 20, most=1)
    assert [len(job.run()) for job in wanted.jobs()] == [1] * len(chain.STEPS)
    assert [len(job.run()) for job in wanted.jobs()] == [0] * len(chain.STEPS)
    with pytest.raises(VerificationError, match=r"nobody: (?s:.*)No module named 'nobody'"):
        Chain("nobody", [*command[:-1], "nobody"], 20).jobs()[0].run()


class Lazy:
    """Runs nothing."""

    name = "lazy"
    patterns = ("chain",)

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:  # noqa: ARG002
        return lambda: None

    def close(self) -> None: ...


def test_who_does_not_run_the_program_is_not_timed() -> None:
    with pytest.raises(VerificationError, match="lazy, chain: not in serial order"):
        callable_jobs([Lazy()], Settings.smoke())


def test_callables_and_native_ops_run_in_serial_order(many: weft.Engine) -> None:
    settings = Settings(verify_ops=1_000, callable_ops=100)
    native = native_ops.load()
    assert callable_jobs([WeftRunner(many)], settings)
    if native is not None:
        assert all(job.run()[0] > 0 for job in native_jobs([NativeRunner(many, native)], settings))


@pytest.mark.parametrize(
    ("file", "place"), [("bench/program.py", "program.py:1"), ("inside.py", "test_command_bench.py")]
)
def test_the_benchmarks_push_as_anybody_does(file: str, place: str, engine: weft.Engine) -> None:
    # What the rest of the package pushes, its caller has pushed; finding the caller takes time.
    x = engine.new_variable("x")
    push = compile("engine.push(lambda: 1 / 0, (), (x,))", str(PACKAGE / file), "exec")
    exec(push, {"engine": engine, "x": x})
    with pytest.raises(ZeroDivisionError) as raised:
        engine.wait_for_var(x)
    assert place in raised.value.__notes__[0]


def samples() -> Samples:
    """Two implementations and one that is missing."""
    found = Samples()
    for name, value in (("pool", 8.0), ("weft", 2.0), (CHUNKED_MAP, 1.0)):
        found.add(Job("B", "chain", name, list), [value, 2 * value, 4 * value])
    found.missing["B", "absent"] = "not available: no module absent"
    return found


def test_tables_name_what_is_missing() -> None:
    (table,) = (table for table in TABLES if table.key == "B")
    assert grid(table, samples()) == [
        ["", "chain"],
        ["weft", "2.00 / 4.00"],
        ["pool", "8.00 / 16.0"],
        [CHUNKED_MAP, "1.00 / 2.00"],
        ["absent", "not available: no module absent"],
    ]


def test_the_best_peer_is_handed_op_after_op() -> None:
    assert best_peer(samples(), "B", "chain", "minimum") == 8.0
    assert best_peer(samples(), "B", "chain", "median") == 16.0
    (_, rows), *_ = ratio_grids(samples())
    assert rows == [["", "chain"], ["B: weft / best peer", "0.250"]]


def test_what_is_hidden() -> None:
    assert Overlap("all", copy=4.0, compute=10.0, pipeline=10.0).hidden == 1.0
    assert Overlap("none", copy=10.0, compute=4.0, pipeline=14.0).hidden == 0.0


@pytest.mark.parametrize("name", ["weft", "by hand", "numpy"])
def test_pipelines_copy_and_multiply(name: str, many: weft.Engine) -> None:
    chunks = make_chunks(5, 64, 8)
    make: dict[str, Callable[[], Pipeline]] = {
        "weft": lambda: WeftPipeline(chunks, many),
        "by hand": lambda: ThreadsPipeline(chunks),
        "numpy": lambda: NumPyPipeline(chunks),
    }
    pipeline = make[name]()
    try:
        pipeline.copy()
        assert all((found == source).all() for found, source in zip(pipeline.results(), chunks.sources, strict=True))
        pipeline.compute()
        pipeline.run()
        for found, source in zip(pipeline.results(), chunks.sources, strict=True):
            assert abs(found - source @ chunks.matrix).max() < 1e-5
    finally:
        pipeline.close()


def test_a_pipeline_that_is_wrong_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumPyPipeline, "run", lambda _: None)
    with pytest.raises(VerificationError, match="NumPy, 1 thread"):
        measure(2, 16, 4, 1)


@pytest.mark.slow
def test_overlap_is_measured_and_drawn(tmp_path: Path) -> None:
    small = ("overlap", "--device", "cpu", "--chunks", "2", "--mib", "1", "--reps", "1")
    done = call("bench", *small, "--figure", "picture.png", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "weft, per_device" in done.stdout
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(call(*small, "--json", folder=tmp_path, module="weft.bench").stdout)
    assert [entry["name"] for entry in found["overlap"]] == [
        "weft, per_device",
        "weft, serial",
        "NumPy, threads by hand",
        "NumPy, 1 thread",
    ]
    assert all(entry["larger"] <= entry["sum"] for entry in found["overlap"])
