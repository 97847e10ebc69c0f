"""One buffer in a loop: load, compute and store fill the same arrays again and again, and yet run side by side.

Each stage waits for something that is no processor, a disk or a network, and then touches its arrays. The naive loop
has one array for the batch and one for the result; its twin has two of each, written by hand.

    python docs/examples/one_buffer.py --milliseconds 4 10
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any, TypeAlias

import numpy as np

import weft

#: An array of weft's where a task is called, its values as NumPy has them inside.
Values: TypeAlias = Any

LENGTH = 20_000
TURNS = 30


@weft.task
def load(batch: weft.Overwrite[Values], turn: int, seconds: float) -> None:
    """Fill the batch."""
    time.sleep(seconds)
    batch[...] = turn


@weft.task
def compute(result: weft.Overwrite[Values], batch: weft.Read[Values], seconds: float) -> None:
    """Compute the result of the batch."""
    time.sleep(seconds)
    np.sqrt(batch, out=result)


@weft.task
def store(stored: list[float], result: weft.Read[Values], seconds: float) -> None:
    """Store the result."""
    time.sleep(seconds)
    stored.append(float(result[0]))


def run(buffers: int, seconds: float) -> tuple[float, list[float]]:
    """Return the seconds that a turn takes with so many buffers of each kind, and what was stored."""
    batches, results = ([weft.zeros(LENGTH) for _ in range(buffers)] for _ in range(2))
    stored: list[float] = []
    weft.wait_all()
    start = time.perf_counter()
    for turn, batch, result in zip(range(TURNS), cycle(batches), cycle(results), strict=False):
        load(batch, turn, seconds)
        compute(result, batch, seconds)
        store(stored, result, seconds)
    weft.wait_all()
    return (time.perf_counter() - start) / TURNS, stored


def with_limit(limit: int, measure: Callable[[], tuple[float, list[float]]]) -> tuple[float, list[float]]:
    """Measure on an engine with this limit."""
    previous = weft.get_engine()
    with weft.Engine(workers=4, rename_limit=limit) as engine:
        weft.set_engine(engine)
        try:
            return measure()
        finally:
            weft.set_engine(previous)


def draw(times: dict[str, list[float]], milliseconds: list[float], path: str) -> None:
    """Draw the times of a turn as bars."""
    import matplotlib.pyplot as plt  # noqa: PLC0415 - only for a picture

    figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
    width = 0.8 / len(times)
    for at, (name, found) in enumerate(times.items()):
        axes.bar([place + at * width for place in range(len(milliseconds))], found, width, label=name)
    middle = 0.4 - width / 2
    axes.set_xticks(
        [place + middle for place in range(len(milliseconds))], [f"stages of {each:g} ms" for each in milliseconds]
    )
    axes.set_ylabel("ms a turn")
    axes.legend(fontsize="small")
    figure.savefig(path)


def main() -> None:
    """Measure the three loops in turn, and print their times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--milliseconds", type=float, nargs="+", default=[4.0, 10.0], help="what a stage takes")
    parser.add_argument("--repeats", type=int, default=5, help="measurements of each loop")
    parser.add_argument("--picture", help="where to draw the times")
    parser.add_argument("--timeline", nargs="*", help="where to draw the naive loop")
    options: Any = parser.parse_args()
    ways = {
        "one buffer, rename_limit=1": (1, 1),
        "one buffer, rename_limit=2": (2, 1),
        "two buffers by hand": (1, 2),
    }
    best: dict[str, list[float]] = {name: [] for name in ways}
    wanted = [float(np.sqrt(turn)) for turn in range(TURNS)]
    for milliseconds in options.milliseconds:
        found: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(options.repeats):
            for name, (limit, buffers) in ways.items():
                seconds, stored = with_limit(limit, partial(run, buffers, milliseconds / 1000))
                if sorted(stored) != wanted:
                    raise SystemExit(f"{name}: stored {stored}")
                found[name].append(seconds * 1000)
        print(
            f"stages of {milliseconds:g} ms; two turns pass before all stages have work: at best {milliseconds * (TURNS + 2) / TURNS:.2f} ms a turn"
        )
        for name, times in found.items():
            print(f"  {name:28}best {min(times):6.2f}   median {statistics.median(times):6.2f}")
            best[name].append(min(times))
    if options.picture:
        draw(best, options.milliseconds, options.picture)
    if options.timeline:
        with weft.trace() as trace:
            run(1, options.milliseconds[0] / 1000)
        for path in options.timeline:
            trace.timeline(path)


if __name__ == "__main__":
    main()
