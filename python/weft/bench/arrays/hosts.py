"""Tables C, D, F and R: the processes of the array libraries, their requests, and the jobs that ask them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Self, cast

from weft.bench.arrays.host import ARGUMENTS, ROUNDS, SURROUNDINGS
from weft.bench.arrays.libraries import LIBRARIES
from weft.bench.arrays.networks import NETWORKS
from weft.bench.arrays.programs import FUSED
from weft.bench.samples import Job, VerificationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.samples import Samples
    from weft.bench.settings import Settings

#: The tables that are timed here.
TABLES = ("C", "D", "F", "R", "R first")
# Importing and compiling take seconds; dask beside a spinning thread, too.
_TIMEOUT_S = 120


class _HostError(RuntimeError):
    """The process of a library ended, or did not answer in time."""


class _Host:
    """One library in its process.

    Parameters
    ----------
    key : str
        Its name in `LIBRARIES`.
    settings : Settings
        Sizes of the run.
    """

    def __init__(self, key: str, settings: Settings) -> None:
        self.key = key
        self.name = key
        self.tables: Sequence[str] = ()
        self.networks = False
        command = [sys.executable, "-P", "-m", "weft.bench.arrays.host", key, json.dumps(asdict(settings))]
        self._process = subprocess.Popen(  # noqa: S603 - this very interpreter
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment(key, settings.workers)
        )
        self._requests = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)

    def start(self) -> str | None:
        """Wait until the library is imported; say why, if it cannot be."""
        hello = self._read()
        if "missing" in hello:
            return str(hello["missing"])
        self.name, self.tables, self.networks = hello["name"], hello["tables"], hello["networks"]
        return None

    def ask(self, request: str, *arguments: object) -> Any:
        """Send a request and return the answer.

        Raises
        ------
        _HostError
            When there is none.
        """
        try:
            print(json.dumps([request, *arguments]), file=self._requests, flush=True)
        except BrokenPipeError:
            raise _HostError(f"{self.name}: its process ended") from None
        return self._read()["answer"]

    def _read(self) -> dict[str, Any]:
        # Not select(), which on Windows knows no pipes.
        watchdog = threading.Timer(_TIMEOUT_S, self._process.kill)
        watchdog.start()
        try:
            line = self._answers.readline()
        finally:
            watchdog.cancel()
        if not line:
            raise _HostError(
                f"{self.name}: its process ended with {self._process.wait()}, or gave no answer in {_TIMEOUT_S} s"
            )
        found: dict[str, Any] = json.loads(line)
        return found

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        # Also closes both pipes.
        self._process.communicate()


def _environment(key: str, workers: int) -> dict[str, str]:
    threads = str(LIBRARIES[key].blas_threads or workers)
    own = {
        "OMP_NUM_THREADS": threads,
        "NUMEXPR_MAX_THREADS": str(workers),
        "JAX_PLATFORMS": "cpu",
        "WEFT_WORKERS": str(workers),
        "WEFT_POLICY": "work_stealing",
        "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1",  # a compiled function would not be compiled again
    }
    return {**os.environ, **own}


class ArrayHosts:
    """Every library that is there, verified; a context manager that ends their processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hosts: list[_Host] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for host in self._hosts:
            host.close()

    def start(self, samples: Samples) -> None:
        """Start and verify the libraries; note the missing ones.

        Raises
        ------
        VerificationError
            When a library gives other results than NumPy, or none.
        """
        # All together: imports take seconds, and nothing is timed yet.
        self._hosts = [_Host(key, self._settings) for key in LIBRARIES]
        for host in self._hosts:
            try:
                missing = host.start()
                said = None if missing else host.ask("verify")
            except _HostError as error:
                raise VerificationError(str(error)) from error
            if missing:
                for table in self._tables(LIBRARIES[host.key].tables):
                    samples.missing[table, host.name] = missing
            if said:
                raise VerificationError(f"{host.name}: {said}")

    def _tables(self, names: Sequence[str]) -> list[str]:
        """Return the keys of printed tables: C has two."""
        keys = {"C": ("C return", "C"), "D": ("D",), "F": ("F",), "R": ("R",), "R first": ("R first",)}
        return [key for name in names if name.partition(" ")[0] in self._settings.tables for key in keys[name]]

    def jobs(self) -> dict[str, list[Job]]:
        """Return the jobs of each table that is to be timed."""
        make = {
            "C": self._add_jobs,
            "D": self._script_jobs,
            "F": self._fused_jobs,
            "R": self._call_jobs,
            "R first": self._first_jobs,
        }
        return {table: make[table]() for table in TABLES if table.partition(" ")[0] in self._settings.tables}

    def _add_jobs(self) -> list[Job]:
        return [
            Job(key, size(n), host.name, partial(host.ask, request, n))
            for n in self._settings.add_sizes
            for host in self._hosts
            if "C" in host.tables
            for key, request in (("C return", "returns"), ("C", "many"))
        ]

    def _script_jobs(self) -> list[Job]:
        return [
            Job("D", surroundings, host.name, partial(host.ask, "script", surroundings))
            for surroundings in SURROUNDINGS
            for host in self._hosts
            if "D" in host.tables
        ]

    def _fused_jobs(self) -> list[Job]:
        return [
            Job("F", f"{name}, {size(n)}", host.name, partial(host.ask, "fused", name, n))
            for name in FUSED
            for n in self._settings.fused_sizes
            for host in self._hosts
            if "F" in host.tables
        ]

    def _call_jobs(self) -> list[Job]:
        columns = [(size(n), "rounds", n) for n in self._settings.call_sizes]
        columns += [(given(count), "ends", count) for count in ARGUMENTS]
        return [
            Job("R", column, host.name, partial(host.ask, request, number))
            for column, request, number in columns
            for host in self._hosts
            if "R" in host.tables
        ]

    def _first_jobs(self) -> list[Job]:
        return [
            Job("R first", name, host.name, partial(host.ask, "first", name))
            for name in (ROUNDS, *NETWORKS)
            for host in self._hosts
            if "R first" in host.tables and (name == ROUNDS or host.networks)
        ]


def size(n: int) -> str:
    """Return the name of a column of tables C and R."""
    return f"n={n:,}"


def given(count: int) -> str:
    """Return the name of a column of table R: a function of one op that takes so many arrays."""
    return f"one op, {count} argument{'s' * (count > 1)}"
