"""The one command for a machine with a GPU, `benches/gpu/everything.py`: whatever hangs, it ends in time and keeps what was there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import weft
from conftest import script_env

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).parents[2] / "benches" / "gpu" / "everything.py"
METADATA = {
    "METADATA": "Metadata-Version: 2.1\nName: weft\nVersion: 0.1.0\n",
    "WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "RECORD": "",
}


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("everything", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "everything", module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package under test as a wheel."""
    path = tmp_path_factory.mktemp("wheel") / "weft-0.1.0-py3-none-any.whl"
    package = Path(weft.__file__).parent
    with zipfile.ZipFile(path, "w") as file:
        for each in package.rglob("*"):
            if each.is_file() and each.suffix != ".pyc":
                file.write(each, Path("weft") / each.relative_to(package))
        for name, text in METADATA.items():
            file.writestr(f"weft-0.1.0.dist-info/{name}", text)
    return path


def run(wheel: Path, out: Path, *arguments: str, **env: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    command = [sys.executable, SCRIPT, "--wheel", wheel, "--out", out, *arguments]
    environment = {key: value for key, value in script_env(**env).items() if key != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=110, check=False)
    return done, json.loads((out / "gpu-steps.json").read_text(encoding="utf-8"))


def is_running(process: int) -> bool:
    try:
        # One that nobody has waited for yet has ended all the same.
        state = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_what_hangs_is_ended_with_all_that_it_started_and_the_next_one_runs(
    everything: ModuleType, tmp_path: Path
) -> None:
    hangs = f"""
import pathlib, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import signal, time; signal.pause()"])
pathlib.Path({str(tmp_path / "child")!r}).write_text(str(child.pid))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("figures so far", flush=True)
signal.pause()
"""
    looks = f"""
import json, pathlib
ends = json.loads(pathlib.Path({str(tmp_path / "gpu-steps.json")!r}).read_text())
assert ends["hangs"]["ended"].startswith("HUNG"), ends
assert "not done" in ends["looks"]["ended"]
"""
    chosen = [
        everything.Step("hangs", ["-c", hangs], 1, 4),
        everything.Step("fails", ["-c", "raise SystemExit(3)"], 5, 30),
        everything.Step("looks", ["-c", looks], 5, 30),
    ]
    start = time.monotonic()
    environment = script_env(PYTHONFAULTHANDLER="1")
    assert not everything.run_all(chosen, start + 60, environment, tmp_path)
    assert time.monotonic() - start < 50
    ends = json.loads((tmp_path / "gpu-steps.json").read_text(encoding="utf-8"))
    assert [found["ended"] for found in ends.values()] == ["HUNG (more than 4 s)", "FAILED (3)", "ok"]
    log = (tmp_path / "gpu.log").read_text(encoding="utf-8")
    assert "figures so far" in log
    assert 'File "<string>", line 7 in <module>' in log, "where it hung"
    assert not is_running(int((tmp_path / "child").read_text()))


#: Tests of which some end their process, and one loses the device.
TESTS = """
import ctypes, os
import pytest
import weft

x = weft.zeros(64, dtype="float32", device="cuda:0")

def test_fails():
    raise AssertionError

def test_ends():
    os._exit(7)

def test_loses_the_device():
    ctypes.CDLL(os.environ["WEFT_CUDA_LIBRARY"]).fake_cuda_order(0, 700)
    (x + 1).numpy()

def test_goes_on_behind():
    assert (x + 1).numpy()[0] == 1

def test_ends_too():
    os.abort()
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_tests_behind_one_that_ends_its_process_are_run_by_the_next(
    everything: ModuleType, tmp_path: Path, fake_cuda: dict[str, str]
) -> None:
    conftest = Path(__file__).parents[1]
    (tmp_path / "test_bad.py").write_text(TESTS, encoding="utf-8")
    arguments = [
        "-m",
        "pytest",
        "-v",
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(tmp_path),
        str(tmp_path),
    ]
    path = ":".join(filter(None, (str(conftest), os.environ.get("PYTHONPATH"))))
    environment = script_env(WEFT_REQUIRE_GPU="1", PYTHONPATH=path, **fake_cuda)
    ended = everything.run(everything.Step("tests", arguments, 5, 100), 100, environment, tmp_path / "log")
    log = (tmp_path / "log").read_text(encoding="utf-8")
    assert ended == "FAILED (7) then FAILED (1) then FAILED (-6)", log
    assert "test_goes_on_behind PASSED" in log
    assert log.count("test_fails FAILED") == 1
    assert "the device is lost, and with it this process" in log


def test_a_wheel_of_another_checkout_is_told(everything: ModuleType, wheel: Path, tmp_path: Path) -> None:
    assert everything.strange(wheel) == []
    other = tmp_path / "weft-0.1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            if name != "weft/errors.py":
                new.writestr(name, old.read(name) + b"#" * (name == "weft/cuda.py"))
    assert everything.strange(other) == ["weft/cuda.py", "weft/errors.py"]


def test_a_wheel_is_unpacked_where_there_is_no_pip(
    everything: ModuleType, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    everything.install(wheel, str(tmp_path))
    assert (tmp_path / "weft" / "cuda.py").exists()


def test_what_cupy_compiles_has_a_place(
    everything: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "CUPY_CACHE_DIR" not in everything.surroundings("/wheel")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert everything.surroundings("/wheel")["CUPY_CACHE_DIR"] == str(Path("/wheel/.cupy"))


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_needs_no_python_that_can_make_environments() -> None:
    command = ["make", "-n", "gpu", "PYTHON=", "GPU_PYTHON="]  # as .ci/find-python answers where ensurepip is missing
    done = subprocess.run(command, cwd=SCRIPT.parents[2], capture_output=True, text=True, check=True)
    assert "python3 benches/gpu/everything.py" in done.stdout


def test_whatever_steps_take_all_end_in_nine_minutes(everything: ModuleType) -> None:
    chosen = everything.steps(Path())
    names = [step.name for step in chosen]
    assert names.index("tests") < names.index("bench") < names.index("captures") < names.index("torch")
    budget = 525.0
    assert budget + everything.GRACE * 2 < 540
    for hang in [set(), set(names), {"first"}, {"bench", "tests"}, {"smoke", "cupy"}]:
        left = budget - everything.INSTALLED
        for at, step in enumerate(chosen):
            allowed = step.allowed(chosen[at + 1 :], left)
            # Whoever hung before has taken a moment more.
            assert step.least - 2 * everything.GRACE * at <= allowed <= step.most
            left -= allowed + 2 * everything.GRACE if step.name in hang else 10
        assert left >= -2 * everything.GRACE


@pytest.mark.slow
@pytest.mark.timeout(120)  # processes that import much
def test_without_a_driver_it_fails_and_says_why(wheel: Path, tmp_path: Path) -> None:
    done, ends = run(wheel, tmp_path, "--steps", "first,torch", WEFT_CUDA_LIBRARY="/nowhere/libcuda.so")
    assert done.returncode == 1, done.stderr
    assert {name: found["ended"] for name, found in ends.items()} == {
        "first": "FAILED (1)",
        "torch": "FAILED (1)",
    }
    log = (tmp_path / "gpu.log").read_text(encoding="utf-8")
    assert "the NVIDIA driver cannot be loaded (/nowhere/libcuda.so" in log
    assert "1 skipped" not in log
    first = json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))
    assert len(first) == 5
    assert all("failed" in part for part in first.values())


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_first_look_works_on_the_tests_driver(wheel: Path, tmp_path: Path, fake_cuda: dict[str, str]) -> None:
    done, ends = run(wheel, tmp_path, "--steps", "first", "--quick", **fake_cuda)
    log = (tmp_path / "gpu.log").read_text(encoding="utf-8")
    assert done.returncode == 0, log
    assert ends["first"]["ended"] == "ok"
    first = json.loads((tmp_path / "first.json").read_text(encoding="utf-8"))
    assert first["machine"]["name"] == "Fake 0"
    assert set(first["driver's calls, us"]) == {
        "launch",
        "launch + event",
        "allocation",
        "free",
        "query",
        "cross-stream wait",
    }
    assert set(first["kernels on as many streams, ms"]) >= {"1", "8", "16"}
    captured = first["during a global capture"]
    assert captured["begin, weft's ops"] == captured["end, weft's ops"] == 0
    assert captured["sum"] == 6400.0
    assert not captured["device lost"]
