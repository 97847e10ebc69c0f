"""The tests of tasks run under the doctor, which finds nothing in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import SOON, script_env

HERE = Path(__file__).parent


@pytest.mark.slow
def test_no_false_alarm_of_the_tests_of_tasks() -> None:
    path = script_env().get("PYTHONPATH", "")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-p", "doctored", str(HERE.parent / "engine" / "test_task_results.py")],
        cwd=HERE.parent.parent, env=script_env(PYTHONPATH=f"{HERE}{os.pathsep}{path}".rstrip(os.pathsep)), capture_output=True, text=True,
        timeout=4 * SOON, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
