"""``weft bench plan``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from math import isfinite
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from weft._command.arguments import positive
from weft._command.tables import show

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from collections.abc import Sequence

    from weft.bench.plan.measuring import Planned

__all__ = ["add_to"]

_DESCRIPTION = """\
Plan offsets for the intervals of every CSV file in a folder: by rule, and by exact search within a capacity. A file has a
line for each interval, with the columns lower, upper and size, as those of MiniMalloc's benchmarks have; NAME.CAPACITY.csv tells
the capacity, too. Every placement is verified. With --minimalloc its program is timed in turns on the same files.
"""


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("plan", help="offsets in memory for the intervals of files", description=_DESCRIPTION)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the files are")
    parser.add_argument(
        "--capacity",
        type=positive,
        metavar="BYTES",
        help="default: what the file's name tells, or the peak of live bytes",
    )
    parser.add_argument(
        "--seconds", type=_seconds, metavar="S", default=60.0, help="of one search, at most (default: %(default)s)"
    )
    parser.add_argument("--reps", type=positive, metavar="N", default=3, help="repetitions (default: %(default)s)")
    parser.add_argument(
        "--minimalloc", type=Path, metavar="FILE", help="MiniMalloc's program, as its own build makes it"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(command=_plan)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0.0 or not isfinite(seconds):
        raise ArgumentTypeError(f"{text!r}: a number of seconds above 0")
    return seconds


def _plan(options: Namespace) -> int:
    # Imported here: --help needs nothing of it.
    from weft.bench.machine import describe  # noqa: PLC0415
    from weft.bench.plan.instances import read_folder  # noqa: PLC0415
    from weft.bench.plan.measuring import measure  # noqa: PLC0415
    from weft.bench.samples import VerificationError  # noqa: PLC0415

    machine = describe()
    found: list[Planned] = []
    try:
        for instance in read_folder(options.folder):
            print(f"{instance.name}: {len(instance.size)} intervals", file=sys.stderr)
            found.append(measure(instance, options.capacity, options.seconds, options.reps, options.minimalloc))
    except VerificationError as error:
        print(f"verification failed, nothing is reported: {error}", file=sys.stderr)
        return 1
    if options.json:
        settings = {"seconds": options.seconds, "reps": options.reps}
        print(json.dumps({"machine": machine, "settings": settings, "files": [one.json() for one in found]}, indent=1))
    else:
        show("Machine", [[name, value] for name, value in machine.items()], header=False)
        show("Offsets (times: minimum / median)", _rows(found))
    return 0


def _rows(found: Sequence[Planned]) -> list[list[str]]:
    with_peer = any(one.peer_seconds for one in found)
    header = ["", "intervals", "peak", "by rule / peak", "ms", "capacity", "search / peak", "s"]
    rows = [[*header, *(["MiniMalloc, s", "search / MiniMalloc"] if with_peer else [])]]
    for one in found:
        searched = "not found" if one.searched is None else _ratio(one.searched, one.peak)
        row = [
            one.name,
            f"{one.intervals:,}",
            f"{one.peak:,}",
            _ratio(one.by_rule, one.peak),
            _times([1e3 * seconds for seconds in one.rule_seconds]),
            f"{one.capacity:,}",
            searched,
            _times(one.search_seconds),
        ]
        if with_peer:
            both = one.search_seconds and one.peer_seconds
            row += [_times(one.peer_seconds), _ratio(min(one.search_seconds), min(one.peer_seconds)) if both else ""]
        rows.append(row)
    return rows


def _ratio(value: float, to: float) -> str:
    return f"{value / to:.3f}" if to else ""


def _times(values: Sequence[float]) -> str:
    return f"{min(values):.3g} / {median(values):.3g}" if values else ""
