"""The jobs of tables M and N."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache, partial
from typing import TYPE_CHECKING

from weft.bench.plan.networks import NETWORKS
from weft.bench.plan.training import PlannedNetwork, plan_network
from weft.bench.samples import Job, VerificationError
from weft.bench.symbols import chain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.bench.plan.networks import Network
    from weft.bench.settings import Settings

#: The rows of figures that were measured elsewhere, and of the least that a plan can take.
QUOTED = "MXNet 1.9.1, quoted"
PEAK = "peak of live bytes"
_TIMEOUT_S = 120


class Chain:
    """A chain in a process of a library's own, and its timed steps that are not asked for yet.

    Parameters
    ----------
    name : str
        How its row is called.
    command : sequence of str
        What runs `weft.bench.symbols.chain` with this library's Python.
    ops : int
        The length of the chain.
    most : int, optional
        How many processes there are at most; later repetitions of a slow one tell nothing.
    """

    def __init__(self, name: str, command: Sequence[str], ops: int, most: int | None = None) -> None:
        self.name = name
        self._left = most
        self._command = [*command, str(ops)]
        self._timed: dict[str, list[float]] = {step: [] for step in chain.STEPS}

    def seconds(self, step: str) -> list[float]:
        """Return the time of a step: of the last process, unless that has told it already.

        Raises
        ------
        VerificationError
            If the process fails, or the loaded chain is not the saved one.
        """
        if not self._timed[step] and self._left != 0:
            self._run()
        found, self._timed[step] = self._timed[step], []
        return found

    def _run(self) -> None:
        if self._left is not None:
            self._left -= 1
        done = subprocess.run(  # noqa: S603 - this very interpreter, or one that the user names
            self._command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode:
            raise VerificationError(f"{self.name}: {done.stderr.strip() or done.returncode}")
        found: dict[str, float] = json.loads(done.stdout)
        if not found["verified"]:
            raise VerificationError(f"{self.name}: the chain that was loaded is not the one that was saved")
        self._timed = {step: [found[step]] for step in chain.STEPS}

    def jobs(self) -> list[Job]:
        """Return a job for each step."""
        return [Job("N", step, self.name, partial(self.seconds, step)) for step in chain.STEPS]


def chain_jobs(settings: Settings) -> list[Job]:
    """Return the jobs of table N."""
    return Chain("weft", [sys.executable, "-P", chain.__file__, "weft"], settings.chain_nodes).jobs()


@cache
def _planned(network: Network) -> PlannedNetwork:
    # The same in every repetition.
    return plan_network(network)


def inference_jobs(settings: Settings) -> list[Job]:
    """Return the jobs of table M that plan inference."""
    parts: dict[str, Callable[[PlannedNetwork], float]] = {
        "weft": lambda found: found.inference.megabytes,
        PEAK: lambda found: found.inference.peak / 2**20,
        QUOTED: lambda found: found.mxnet_inference,
    }
    return _network_jobs("M inference", parts, settings)


def training_jobs(settings: Settings) -> list[Job]:
    """Return the jobs of table M that plan training."""
    parts: dict[str, Callable[[PlannedNetwork], float]] = {
        "weft": lambda found: found.training.megabytes,
        "weft, results computed again": lambda found: found.again.megabytes,
        PEAK: lambda found: found.training.peak / 2**20,
        QUOTED: lambda found: found.mxnet_training,
    }
    return _network_jobs("M training", parts, settings)


def _network_jobs(table: str, parts: dict[str, Callable[[PlannedNetwork], float]], settings: Settings) -> list[Job]:
    def run(network: Network, part: Callable[[PlannedNetwork], float]) -> list[float]:
        return [part(_planned(network))]

    return [
        Job(table, network.name, name, partial(run, network, part))
        for network in NETWORKS[-settings.networks :]
        for name, part in parts.items()
    ]
