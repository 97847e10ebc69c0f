"""Collectives of several processes, against NumPy: of any dtype and shape, in place or not, many under way."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .cases import Generator, without_each

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]

MPIEXEC = Path(sys.executable).parent / "mpiexec"
SCRIPT = """
import numpy as np
import weft

world = weft.distributed.Communicator(timeout=60.0)
rank, size = world.rank, world.size

def part(seed, shape, dtype, rank=None):
    who = world.rank if rank is None else rank
    return np.random.default_rng([seed, who]).integers(0, 9, shape).astype(dtype)

checks = []
{lines}
for found, wanted in checks:
    np.testing.assert_array_equal(found.numpy(), wanted)
print("done")
"""
LINES = {
    "all_reduce": "checks.append(({call}(weft.asarray(part({a}))), sum(part({a}, r) for r in range(size)).astype({d!r})))",
    "broadcast": "checks.append(({call}(weft.asarray(part({a})), {root}), part({a}, {root})))",
}
#: Seconds that a case may take: only a hang takes them.
SECONDS = 120


@dataclass(frozen=True)
class Collective:
    """Calls, which all ranks make."""

    lines: tuple[str, ...]
    ranks: int

    def script(self) -> str:
        return SCRIPT.format(lines="\n".join(self.lines))

    def run(self) -> str | None:
        command = [str(MPIEXEC), "-n", str(self.ranks), sys.executable, "-c", self.script()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "hangs"
        good = not done.returncode and done.stdout.count("done") == self.ranks
        return None if good else f"ended with {done.returncode}:\n{done.stderr[-3000:]}"

    def smaller(self) -> Iterator[Collective]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)

    def __str__(self) -> str:
        return f"# mpiexec -n {self.ranks}\n{self.script()}"


def make(random: Random) -> Collective:
    ranks = random.choice((2, 3))
    lines = []
    for _ in range(random.randrange(1, 8)):
        name = random.choice(list(LINES))
        dtype = random.choice(("int32", "int64", "float32", "float64", "uint8"))
        shape = random.choice(((), (3,), (2, 3), (0,), (1000,)))
        given = f"{random.randrange(99)}, {shape}, {dtype!r}"
        lines.append(LINES[name].format(call=f"world.{name}", a=given, d=dtype, root=random.randrange(ranks)))
    return Collective(tuple(lines), ranks)


def missing() -> str | None:
    return None if MPIEXEC.exists() else "there is no MPI: pip install mpich mpi4py"


GENERATOR = Generator("ranks", make, few=1, missing=missing)
