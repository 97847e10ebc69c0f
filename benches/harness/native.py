"""Programs in C++ and Rust: those of tables A and R, in a process per pattern and repetition, and the floors."""

from __future__ import annotations

import json
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

from weft.bench.patterns import PATTERNS, serial_digest
from weft.bench.samples import Job, VerificationError

if TYPE_CHECKING:
    from pathlib import Path

    from harness.build import Binaries
    from weft.bench.settings import Settings

ATTEMPTS = 4
TIMEOUT_S = 60


FLOORS = ("native call", "uncontended atomic", "cache-line hand-off, one way")


def native_jobs(binaries: Binaries, settings: Settings) -> list[Job]:
    """Return one job per pattern and implementation that could be built."""
    return [
        Job(
            "A",
            pattern,
            name,
            _Run(name, command, pattern, settings.native_ops, settings.share_of_others, settings.workers),
        )
        for pattern in PATTERNS
        for name, command in binaries.programs.items()
    ]


def replay_jobs(binaries: Binaries, settings: Settings) -> list[Job]:
    """Return the jobs of table R: each pattern as a graph that was built before, in each size."""
    return [
        Job("R replay", replay_case(pattern, ops), name, _Run(name, command, pattern, ops, 0.0, settings.workers))
        for ops in settings.replay_ops
        for pattern in PATTERNS
        for name, command in binaries.replays.items()
    ]


def replay_case(pattern: str, ops: int) -> str:
    """Return the name of a column of table R."""
    return f"{pattern}, {ops:,}"


class _Run:
    def __init__(self, name: str, command: list[str], pattern: str, ops: int, share: float, workers: int) -> None:
        self._name = name
        self._pattern = pattern
        # A chain may stay on one thread; elsewhere that means that the machine was too busy to lend a second one.
        self._share_of_others = 0.0 if pattern == "chain" else share
        numbers = ["--ops", str(ops), "--workers", str(workers), "--pattern", pattern]
        self._command = [*command, "--json", *numbers]

    def __call__(self) -> list[float]:
        for _ in range(ATTEMPTS):
            line = self._line()
            if line is None:
                continue
            self._check(line)
            if line.get("by_others", 1.0) >= self._share_of_others:
                return [float(line["ns_per_op"])]
        return []

    def _line(self) -> dict[str, Any] | None:
        try:
            done = subprocess.run(self._command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired as error:
            if not self._name.startswith("weft"):
                return None  # OpenMP's threads spin: on a loaded machine a run may take a thousand times as long
            message = f"{self._name}, {self._pattern}: no answer in {TIMEOUT_S} s"
            raise VerificationError(message) from error
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            message = f"{self._name}, {self._pattern}: no result (exit {done.returncode}): {done.stderr.strip()[-300:]}"
            raise VerificationError(message)
        found: dict[str, Any] = json.loads(lines[-1])
        return found

    def _check(self, line: dict[str, Any]) -> None:
        digest = line.get("digest")
        verified = line.get("verified") is True
        if digest is not None:
            verified = verified and digest == serial_digest(self._pattern, int(line["verified_ops"]))
        if not verified:
            message = f"{self._name}, {self._pattern}: not in serial order: {line}"
            raise VerificationError(message)


def floor_jobs(program: Path, settings: Settings) -> list[Job]:
    """Return the jobs of ``floors.cpp``, in nanoseconds per call."""
    return [Job("floors", name, "floor", partial(_floor, program, name, settings.floor_calls)) for name in FLOORS]


def _floor(program: Path, name: str, n: int) -> list[float]:
    done = subprocess.run([program, name, str(n)], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return [float(json.loads(line)["ns"]) for line in done.stdout.splitlines()]
