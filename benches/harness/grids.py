"""Grids of tasks in C++ and Rust: a process for each grid and repetition."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from weft.bench.metg.measuring import RUNS, Additions
from weft.bench.metg.patterns import make_program, serial_digest, write
from weft.bench.samples import VerificationError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.build import Binaries
    from weft.bench.metg.measuring import Grid, Settings

_TIMEOUT_S = 60


def additions(binaries: Binaries, folder: Path, settings: Settings) -> Additions:
    """Return what was built, and the reasons for what was not."""
    found = Additions(missing=dict(binaries.missing))
    for name, command in binaries.programs.items():
        found.sweeps[name] = partial(_sweep, name, command, folder, settings)
    return found


def _sweep(name: str, command: list[str], folder: Path, settings: Settings, grid: Grid) -> dict[int, float]:
    file = folder / f"{grid.pattern}-{grid.width}.txt"
    if not file.exists():
        write(make_program(grid.pattern, grid.width, grid.steps), file)
    lengths = ",".join(map(str, settings.lengths))
    numbers = ["--lengths", lengths, "--runs", str(RUNS), "--workers", str(settings.workers)]
    try:
        done = subprocess.run(
            [*command, "--json", "--program", str(file), *numbers],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        if name.startswith("weft"):
            raise VerificationError(f"{name}, {grid.title}: no answer in {_TIMEOUT_S} s") from error
        # OpenMP's threads spin: on a loaded machine a run may take a thousand times as long.
        print(f"{name}, {grid.title}: no answer in {_TIMEOUT_S} s", file=sys.stderr)
        return {}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        message = f"{name}, {grid.title}: no result (exit {done.returncode}): {done.stderr.strip()[-300:]}"
        raise VerificationError(message)
    told = json.loads(lines[-1])
    if told["verified"] is not True or told["digest"] != serial_digest(grid.pattern, grid.width, grid.steps):
        raise VerificationError(f"{name}, {grid.title}: not in serial order: {lines[-1]}")
    return dict(zip(settings.lengths, told["ns_per_op"], strict=True))
