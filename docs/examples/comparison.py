"""What the examples have in common: a command line, and a fair race between NumPy and weft.

Each example computes one thing twice: as plain NumPy, and with weft. `compare` runs both and says how
much faster one was here, today; `--timeline` draws what ran when.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TypeVar

import weft

T = TypeVar("T")


def command_line(doc: str | None, size: int, unit: str) -> argparse.ArgumentParser:
    """Return a parser of the options that all examples take.

    Parameters
    ----------
    doc : str
        The docstring of the example; its first line describes the command.
    size : int
        How much there is to compute, if the command line does not say.
    unit : str
        What `size` counts.
    """
    parser = argparse.ArgumentParser(
        description=(doc or "").partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--size", type=int, default=size, help=unit)
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each version")
    parser.add_argument("--timeline", type=Path, nargs="+", default=[], help="draw a run: .png, .svg or .html")
    return parser


def compare(in_numpy: Callable[[], T], in_weft: Callable[[], T], options: argparse.Namespace) -> tuple[T, T]:
    """Run two versions of one computation, print their best times, and return both results.

    Parameters
    ----------
    in_numpy, in_weft : callable
        The versions; each returns when everything is computed.
    options : argparse.Namespace
        What `command_line` has parsed.
    """
    serial, expected = best_of(in_numpy, options.repeats)
    parallel, found = best_of(in_weft, options.repeats)
    workers = f"weft, {weft.get_engine().workers} workers"
    print(f"{'NumPy':18}{1e3 * serial:8.1f} ms")
    print(f"{workers:18}{1e3 * parallel:8.1f} ms")
    print(f"{'speed-up':18}{serial / parallel:8.2f}")
    if options.timeline:
        with weft.trace() as trace:
            in_weft()
        for path in options.timeline:
            trace.timeline(path)
    return expected, found


def best_of(run: Callable[[], T], repeats: int) -> tuple[float, T]:
    """Return the seconds of the fastest of several runs, and what the last one gave."""
    best, result = float("inf"), run()  # the first run warms up caches, threads and memory
    for _ in range(repeats):
        started = perf_counter()
        result = run()
        best = min(best, perf_counter() - started)
    return best, result
