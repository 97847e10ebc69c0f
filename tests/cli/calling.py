"""Calls the command line in a fresh process, as a user does."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from conftest import SOON, script_env

if TYPE_CHECKING:
    from pathlib import Path


def call(*arguments: str, folder: Path, module: str = "weft", **env: str) -> subprocess.CompletedProcess[str]:
    """Run ``python -m weft`` in a folder; neither stream is a terminal."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=folder,
        env=script_env(**env),
        capture_output=True,
        text=True,
        timeout=4 * SOON,  # the longest takes 14 s of one processor, a minute and a half of a busy one
        check=False,
    )


def mistake(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line of what a command that was called wrongly says."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout
    return done.stderr.splitlines()[-1]
