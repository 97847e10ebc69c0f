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
from weft._command.running import CommandError
from weft._command.tables import show, show_all

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from collections.abc import Sequence

    from weft.bench.plan.measuring import Planned
    from weft.bench.plan.training import PlannedNetwork

_DESCRIPTION = """\
Plan offsets for the intervals of every CSV file in a folder: by rule, and by exact search within a capacity. A file has a
line for each interval, with the columns lower, upper and size, as those of MiniMalloc's benchmarks have; NAME.CAPACITY.csv tells
the capacity, too. Every placement is verified. With --minimalloc its program is timed in turns on the same files.

With --networks the memory of networks is planned that are written as symbols: for inference, for training, and for training with
results computed again.
"""


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("plan", help="offsets in memory for the intervals of files", description=_DESCRIPTION)
    parser.add_argument("folder", type=Path, metavar="FOLDER", nargs="?", help="where the files are")
    parser.add_argument("--networks", action="store_true", help="plan networks instead of files")
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

    if options.networks:
        return _plan_networks(as_json=options.json)
    if options.folder is None:
        raise CommandError("weft bench plan wants a FOLDER of files, or --networks")
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
        show_all(machine, [("Offsets (times: minimum / median)", _rows(found))])
    return 0


def _plan_networks(*, as_json: bool) -> int:
    from weft.bench.plan.networks import NETWORKS  # noqa: PLC0415 - as above
    from weft.bench.plan.training import plan_network  # noqa: PLC0415 - as above

    found: list[PlannedNetwork] = []
    for network in NETWORKS:
        print(network.name, file=sys.stderr)
        found.append(plan_network(network))
    if as_json:
        print(json.dumps({"networks": [one.json() for one in found]}, indent=1))
        return 0
    rows = [["MB", "inference", "/ peak", "MXNet", "training", "/ peak", "MXNet", "computed again", "s"]]
    rows += [
        [
            one.name,
            f"{one.inference.megabytes:,.1f}",
            f"{one.inference.to_peak:.3f}",
            f"{one.mxnet_inference:,}",
            f"{one.training.megabytes:,.1f}",
            f"{one.training.to_peak:.3f}",
            f"{one.mxnet_training:,}",
            f"{one.again.megabytes:,.1f}",
            f"{one.inference.seconds:.2g} / {one.training.seconds:.2g} / {one.again.seconds:.2g}",
        ]
        for one in found
    ]
    show("Planned memory (MXNet 1.9.1: its default plan, as measured by peers)", rows)
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
