"""The programs of docs/examples run, at small sizes, and find their versions equal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from conftest import FORKS, SOON, Forks, script_env

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SIZES = {"classify": 48, "heat": 64, "hidden_parallelism": 1000, "kmeans": 2, "photographs": 60, "random_numbers": 4000}


TRAININGS = {"text": 1, "towers": 1}


class Run(Protocol):
    """Runs an example in a folder, and returns what it printed."""

    def __call__(self, folder: Path, name: str, *options: str, **env: str) -> str: ...


#: What examples import, which takes longer than most of them compute.
MODULES = ("sklearn.datasets", "scipy.ndimage", "matplotlib.figure", "matplotlib.backends.backend_svg", "PIL.Image")


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    """Make what runs examples, for all tests together."""
    forks = Forks(*MODULES, MPLBACKEND="Agg")

    def run(folder: Path, name: str, *options: str, **env: str) -> str:
        script = EXAMPLES / f"{name}.py"
        if FORKS:
            done = forks.run(folder, script, *options, **env)
        else:
            command, env = [sys.executable, str(script), *options], script_env(MPLBACKEND="Agg", **env)
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=4 * SOON, check=False
            )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout

    yield run
    forks.close()


def test_all_are_run() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")}
    assert programs == {*SIZES, *TRAININGS, "digits", "cnn", "one_buffer", "two_ranks"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_gives_what_numpy_gives(run: Run, tmp_path: Path, name: str) -> None:
    printed = run(tmp_path, name, "--size", str(SIZES[name]), "--repeats", "1", "--timeline", "run.svg")
    assert "speed-up" in printed
    assert "DIFFERENT" not in printed
    assert (tmp_path / "run.svg").read_text("utf-8").startswith("<?xml")


def test_photographs_saves_its_sheet(run: Run, tmp_path: Path) -> None:
    run(tmp_path, "photographs", "--size", "60", "--repeats", "1", "--sheet", "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")


def test_one_buffer_stores_the_same_each_way(run: Run, tmp_path: Path) -> None:
    options = ("--milliseconds", "1", "--repeats", "1", "--picture", "loop.svg", "--timeline", "run.svg")
    printed = run(tmp_path, "one_buffer", *options)
    assert printed.count("median") == 3
    assert (tmp_path / "loop.svg").exists()
    assert (tmp_path / "run.svg").exists()


@pytest.mark.slow
def test_two_ranks_train_as_one_process(run: Run, tmp_path: Path) -> None:
    printed = run(tmp_path, "two_ranks", "--steps", "2", "--rows", "4")
    assert "the same weights, bit for bit" in printed
    assert all((tmp_path / f"rank{rank}.svg").exists() for rank in (0, 1))


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_gives_the_same_weights_however_it_runs(run: Run, tmp_path: Path, name: str) -> None:
    printed = run(tmp_path, name, "--size", str(TRAININGS[name]), "--repeats", "1", "--timeline", "run.svg")
    assert "weights: the same in all runs, bit for bit" in printed
    assert (tmp_path / "run.svg").exists()


@pytest.mark.slow
def test_the_demo(run: Run, tmp_path: Path) -> None:
    printed = run(tmp_path, "cnn", "--quick", "--timeline", "run.svg")
    assert "CNN: weights the same in all runs, bit for bit" in printed
    assert "speed-up" in printed
    assert (tmp_path / "run.svg").exists()
    assert (tmp_path / "demo-losses.png").exists()


@pytest.mark.slow
def test_the_network_learns_the_same_everywhere(run: Run, tmp_path: Path) -> None:
    printed = run(tmp_path, "digits", "--quick", "--hidden", "256", "--timeline", "run.svg")
    assert "the same in all runs, bit for bit" in printed
    assert "differ" not in printed
    assert (tmp_path / "run.svg").exists()


DEVICES = {
    "0": "cpu:0 and cpu:1, logical devices of the CPU, for want of a GPU: CUDA is not available",
    "1": "cuda:0, as two logical devices with streams of their own",
    "2": "cuda:0 and cuda:1",
}
SMALL = ("--epochs", "1", "--repeats", "1", "--hidden", "32", "--timeline", "run.svg")


@pytest.mark.slow
@pytest.mark.parametrize("gpus", DEVICES)
def test_the_network_says_which_devices_it_uses(run: Run, tmp_path: Path, gpus: str, fake_cuda: dict[str, str]) -> None:
    stand_in = Path(__file__).parent / "cuda" / "cupy_on_host.py"
    (tmp_path / "cupy.py").write_text(stand_in.read_text("utf-8"), encoding="utf-8")
    env = {"PYTHONPATH": str(tmp_path), "FAKE_CUDA_DEVICES": gpus}
    printed = run(tmp_path, "digits", *SMALL, **env, **fake_cuda)
    assert printed.startswith(f"devices             {DEVICES[gpus]}")
    assert "NDArray's weights   the same in all runs, bit for bit" in printed
    assert "other weights       the same, but for rounding" in printed
    # Ops that are pushed by hand call NumPy's functions.
    assert ("by hand, serial" in printed) == (gpus == "0")
    assert (tmp_path / "run.svg").exists()


@pytest.mark.slow
def test_the_network_stays_on_the_cpu_without_cupy_and_says_so(
    run: Run, tmp_path: Path, fake_cuda: dict[str, str]
) -> None:
    (tmp_path / "cupy.py").write_text("raise ImportError('there is none')", encoding="utf-8")
    printed = run(tmp_path, "digits", *SMALL, PYTHONPATH=str(tmp_path), **fake_cuda)
    said = "cpu:0 and cpu:1, logical devices of the CPU, for want of a GPU: CuPy cannot be imported (there is none)"
    assert printed.startswith(f"devices             {said}")
    assert "pip install cupy-cuda" in printed.splitlines()[0]
    assert "by hand, serial" in printed
