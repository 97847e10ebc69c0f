"""Libraries in processes of their own, asked in turns."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import weft
from weft._command.running import CommandError
from weft.bench.kernels.host import CASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HOST = Path(__file__).with_name("host.py")


@dataclass(slots=True)
class Measured:
    """Milliseconds of each case, by library."""

    threads: int
    times: dict[str, dict[str, list[float]]] = field(default_factory=dict[str, dict[str, list[float]]])


class _Host:
    """The process of one library."""

    def __init__(self, library: str, python: str, threads: int, environment: dict[str, str]) -> None:
        self.library = library
        limits = {"OMP_NUM_THREADS": str(threads)}
        site = str(Path(weft.__file__).parent.parent)
        paths = {"PYTHONPATH": os.pathsep.join([site, *filter(None, [os.environ.get("PYTHONPATH")])])}
        own = paths if library.startswith("weft") else {}
        self._process = subprocess.Popen(  # noqa: S603 - an interpreter that the user names, or this very one
            [python, str(_HOST), library.partition(" with")[0], str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **limits, **own, **environment},
        )
        self._requests = cast("IO[str]", self._process.stdin)
        self._answers = cast("IO[str]", self._process.stdout)

    def ask(self, case: str, count: int) -> list[float] | None:
        """Return the milliseconds of so many runs; None where the library does not do that."""
        self._requests.write(json.dumps([case, count]) + "\n")
        self._requests.flush()
        answer = self._answers.readline()
        if not answer:
            raise CommandError(f"the process of {self.library} ended: it says above why")
        times: list[float] | None = json.loads(answer)
        return times

    def close(self) -> None:
        """End the process."""
        self._requests.close()
        self._process.wait()
        self._answers.close()


#: The modules that each other library needs.
PEERS = {"torch": ("torch",), "onnxruntime": ("onnxruntime", "onnx")}


def measure(threads: int, reps: int, pythons: Mapping[str, str | None], cases: Sequence[str] = CASES) -> Measured:
    """Time every case with every library, in turns.

    Parameters
    ----------
    threads : int
        Threads, or workers, of each.
    reps : int
        How many turns; a turn has 3 runs.
    pythons : mapping of str to str
        The interpreter of each library in `PEERS`; by default this one, if it has what that needs.
    cases : sequence of str
        The cases to time.
    """
    from weft._nn.onednn import onednn  # noqa: PLC0415 - opened for this alone

    version, where = onednn()
    plain: dict[str, Any] = {"WEFT_ONEDNN_LIBRARY": "off"}
    hosts = [("weft", sys.executable, plain)]
    if version is not None:
        opened: dict[str, Any] = {"WEFT_ONEDNN_LIBRARY": where}
        hosts += [(f"{name} with oneDNN", sys.executable, opened) for name in ("weft", "weft, program")]
    else:
        hosts += [("weft, program", sys.executable, plain)]
    for name, modules in PEERS.items():
        peer = pythons.get(name) or (sys.executable if all(map(find_spec, modules)) else None)
        if peer is not None:
            hosts.append((name, peer, {}))
    found = Measured(threads)
    with ExitStack() as stack:
        running: list[_Host] = []
        for name, python, environment in hosts:
            running.append(_Host(name, python, threads, environment))
            stack.callback(running[-1].close)
        for _ in range(reps):
            for case in cases:
                for host in running:
                    times = host.ask(case, 3)
                    if times is not None:
                        found.times.setdefault(case, {}).setdefault(host.library, []).extend(times)
    return found
