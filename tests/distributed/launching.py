"""Launches of several ranks, each of which runs many checks (`ranks.py`)."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import MARK

__all__ = ["launch", "needs_mpi", "outcomes"]

HERE = Path(__file__).parent
MPIEXEC = Path(sys.executable).parent / "mpiexec"

needs_mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="pip install mpich mpi4py brings an MPI")


def launch(ranks: int, *command: str, options: tuple[str, ...] = (), **env: str) -> subprocess.CompletedProcess[str]:
    """Run a Python command on so many ranks."""
    return subprocess.run(
        [str(MPIEXEC), *options, "-n", str(ranks), sys.executable, *command],
        cwd=HERE,
        env={**os.environ, "WEFT_COMM_CHECK": "1", "OMP_NUM_THREADS": "1", **env},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@functools.cache
def outcomes(ranks: int, room: str) -> tuple[dict[tuple[str, int], str], str]:
    """How each check of a room ended on each rank; and all that was printed."""
    done = launch(ranks, "ranks.py", room)
    lines = [line.partition(MARK)[2] for line in done.stdout.splitlines() if MARK in line]
    found = {(name, rank): outcome for name, rank, outcome in map(json.loads, lines)}
    return found, done.stdout + done.stderr
