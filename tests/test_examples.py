"""The programs of docs/examples run, at small sizes, and find their versions equal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from conftest import script_env

EXAMPLES = Path(__file__).parent.parent / "docs" / "examples"
SIZES = {"hidden_parallelism": 1000, "kmeans": 2, "photographs": 60, "random_numbers": 4000}


def run(folder: Path, name: str, *options: str) -> str:
    """Run an example in a folder, and return what it printed."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *options]
    done = subprocess.run(
        command, cwd=folder, env=script_env(MPLBACKEND="Agg"), capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def test_all_are_run() -> None:
    programs = {path.stem for path in EXAMPLES.glob("*.py") if '__name__ == "__main__"' in path.read_text("utf-8")}
    assert programs == {*SIZES, "digits"}


@pytest.mark.parametrize("name", SIZES)
def test_gives_what_numpy_gives(tmp_path: Path, name: str) -> None:
    printed = run(tmp_path, name, "--size", str(SIZES[name]), "--repeats", "1", "--timeline", "run.svg")
    assert "speed-up" in printed
    assert "DIFFERENT" not in printed
    assert (tmp_path / "run.svg").read_text("utf-8").startswith("<?xml")


def test_photographs_saves_its_sheet(tmp_path: Path) -> None:
    run(tmp_path, "photographs", "--size", "60", "--repeats", "1", "--sheet", "sheet.png")
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_network_learns_the_same_everywhere(tmp_path: Path) -> None:
    printed = run(tmp_path, "digits", "--quick", "--hidden", "256", "--timeline", "run.svg")
    assert "the same in all runs, bit for bit" in printed
    assert "differ" not in printed
    assert (tmp_path / "run.svg").exists()
