"""Reproducible random numbers: draws that run side by side, and are the same at every number of workers.

What is the volume of the unit ball in ten dimensions? Throw points into a cube and count those inside. The
points come in batches; each batch has a generator of its own, spawned from one seed. A generator's state is
a variable that every draw mutates, so its draws keep their order, whoever runs them.

    python docs/examples/random_numbers.py
"""

from functools import partial
from math import gamma, pi
from typing import Any, TypeAlias

import numpy as np

import weft
from comparison import command_line, compare

#: `numpy` or `weft`, their generators and arrays.
Namespace: TypeAlias = Any
Generator: TypeAlias = Any
Array: TypeAlias = Any

SEED = 7
BATCHES = 16
DIMENSIONS = 10


def hits(xp: Namespace, rng: Generator, points: int) -> list[Array]:
    """Return, for each batch, how many of about ``points / BATCHES`` points of the cube are in the ball."""
    found = []
    for child in rng.spawn(BATCHES):
        x = child.uniform(-1, 1, (points // BATCHES, DIMENSIONS))
        found.append(xp.count_nonzero(xp.sum(x * x, axis=1) <= 1))
    return found


def hits_in_numpy(points: int) -> list[int]:
    """Return the counts by NumPy, with a generator of the kind that weft.random has."""
    return [int(n) for n in hits(np, np.random.Generator(np.random.Philox(SEED)), points)]


def hits_in_weft(points: int) -> list[int]:
    """Return the counts by weft, on the default engine."""
    return [int(n) for n in hits(weft, weft.random.Generator(SEED), points)]


def main() -> None:
    """Count both ways, then with other engines, and compare."""
    options = command_line(__doc__, size=1_000_000, unit="points").parse_args()
    expected, found = compare(partial(hits_in_numpy, options.size), partial(hits_in_weft, options.size), options)
    print(f"{'estimate':18}{2**DIMENSIONS * sum(found) / options.size:8.3f}")
    print(f"{'volume':18}{pi ** (DIMENSIONS / 2) / gamma(DIMENSIONS / 2 + 1):8.3f}")

    engines = {f"{workers} workers": weft.Engine(workers) for workers in (1, 2, 4)}
    engines["serial"] = weft.Engine(policy="serial")
    default = weft.get_engine()
    for name, engine in engines.items():
        with engine:
            weft.set_engine(engine)
            same = hits_in_weft(options.size) == expected
        print(f"{name:18}{'every batch as in NumPy' if same else 'DIFFERENT'}")
    weft.set_engine(default)


if __name__ == "__main__":
    main()
