"""Tables C and D: the processes of the array libraries, what they are asked, and the jobs that ask them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from harness.array_host import SURROUNDINGS
from harness.build import BENCHES
from harness.native import VerificationError
from harness.samples import Job
from peers.arrays import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness.samples import Samples
    from harness.settings import Settings

TABLES = ("C", "D")
# Importing and compiling take seconds; dask beside a spinning thread, too.
TIMEOUT_S = 120


class HostError(RuntimeError):
    """The process of a library ended, or did not answer in time."""


class Host:
    """One library in its process.

    Parameters
    ----------
    key
        Its name in `LIBRARIES`.
    settings
        Sizes of the run.
    """

    def __init__(self, key: str, settings: Settings) -> None:
        self.key = key
        self.name = key
        self.tables: Sequence[str] = ()
        command = [sys.executable, "-m", "harness.array_host", key, json.dumps(asdict(settings))]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment(key, settings.workers)
        )

    def start(self) -> str | None:
        """Wait until the library is imported; say why, if it cannot be."""
        hello = self._read()
        if "missing" in hello:
            return hello["missing"]
        self.name, self.tables = hello["name"], hello["tables"]
        return None

    def ask(self, request: str, *arguments: object) -> Any:  # noqa: ANN401 - what JSON holds
        """Send a request and return the answer.

        Raises
        ------
        HostError
            When there is none.
        """
        try:
            print(json.dumps([request, *arguments]), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise HostError(f"{self.name}: its process ended") from None
        return self._read()["answer"]

    def _read(self) -> dict[str, Any]:
        # The answer is one line, and the only one: nothing waits in the buffer behind it.
        if not select.select([self._process.stdout], [], [], TIMEOUT_S)[0]:
            raise HostError(f"{self.name}: no answer in {TIMEOUT_S} s")
        line = self._process.stdout.readline()
        if not line:
            raise HostError(f"{self.name}: its process ended with {self._process.wait()}")
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
        "PYTHONPATH": os.pathsep.join(filter(None, [str(BENCHES), os.environ.get("PYTHONPATH")])),
        "OMP_NUM_THREADS": threads,
        "NUMEXPR_MAX_THREADS": str(workers),
        "JAX_PLATFORMS": "cpu",
        "WEFT_WORKERS": str(workers),
    }
    return {**os.environ, **own}


class ArrayHosts:
    """Every library that is there, verified; a context manager that ends their processes."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hosts: list[Host] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        for host in self._hosts:
            host.close()

    def start(self, samples: Samples) -> None:
        """Start and verify the libraries; note what is missing.

        Raises
        ------
        VerificationError
            When a library gives other results than NumPy, or none.
        """
        # All at once: imports take seconds, and nothing is timed yet.
        self._hosts = [Host(key, self._settings) for key in LIBRARIES]
        for host in self._hosts:
            try:
                missing = host.start()
                said = None if missing else host.ask("verify")
            except HostError as error:
                raise VerificationError(str(error)) from error
            if missing:
                for table in self._tables(LIBRARIES[host.key].tables):
                    samples.missing[table, host.name] = missing
            if said:
                raise VerificationError(f"{host.name}: {said}")

    def _tables(self, names: Sequence[str]) -> list[str]:
        """Return the keys of printed tables: C has two."""
        keys = {"C": ("C return", "C"), "D": ("D",)}
        return [key for name in names if name in self._settings.tables for key in keys[name]]

    def add_jobs(self) -> list[Job]:
        """Return the jobs of table C."""
        jobs = []
        for n in self._settings.add_sizes:
            for host in self._hosts:
                if "C" in host.tables:
                    jobs.append(Job("C return", size(n), host.name, partial(host.ask, "returns", n)))
                    jobs.append(Job("C", size(n), host.name, partial(host.ask, "many", n)))
        return jobs

    def script_jobs(self) -> list[Job]:
        """Return the jobs of table D."""
        return [
            Job("D", surroundings, host.name, partial(host.ask, "script", surroundings))
            for surroundings in SURROUNDINGS
            for host in self._hosts
            if "D" in host.tables
        ]


def size(n: int) -> str:
    """Return the name of a column of table C."""
    return f"n={n:,}"
