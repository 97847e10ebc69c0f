"""``weft bench scale``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.arguments import positive
from weft._command.outputs import check_picture
from weft._command.tables import show

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction

    from weft.bench.scale.model import Link

_DESCRIPTION = """\
Simulate data-parallel training on up to so many ranks. All-reduces of 2, 3 and 4 ranks are timed here and give the latency
and the bandwidth of a link, for a ring and for a tree; a step of training is then run in virtual time: backward fills
buckets, each is reduced while the next fills, and the slowest rank holds up all.
"""
#: Bytes that are timed.
_SIZES = [4, 256, 4096, 65536, 1 << 20, 1 << 22]


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("scale", help="training on many ranks, simulated", description=_DESCRIPTION)
    parser.add_argument("--ranks", type=positive, metavar="N", default=10_000, help="up to (default: %(default)s)")
    parser.add_argument(
        "--parameters", type=_number, metavar="N", default=25.6e6, help="of the network (default: %(default)g)"
    )
    parser.add_argument("--layers", type=positive, metavar="N", default=54, help="of equal size (default: %(default)s)")
    parser.add_argument(
        "--forward", type=_number, metavar="S", default=0.1, help="seconds on one rank (default: %(default)s)"
    )
    parser.add_argument(
        "--backward", type=_number, metavar="S", default=0.2, help="seconds on one rank (default: %(default)s)"
    )
    parser.add_argument(
        "--bucket", type=positive, metavar="BYTES", default=8 << 20, help="sent together (default: %(default)s)"
    )
    parser.add_argument(
        "--spread",
        type=_number,
        metavar="SHARE",
        default=0.02,
        help="of a rank's computing time, one standard deviation (default: %(default)s)",
    )
    parser.add_argument("--alpha", type=_number, metavar="S", help="latency of a link; with --beta nothing is timed")
    parser.add_argument("--beta", type=_number, metavar="S", help="seconds for a byte")
    parser.add_argument("--reps", type=positive, metavar="N", default=5, help="repetitions (default: %(default)s)")
    parser.add_argument(
        "--figure",
        type=Path,
        metavar="PATH",
        help="draw it, by matplotlib: the suffix (.svg, .png, .pdf) says the format",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(command=_scale)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not (found >= 0.0 and isfinite(found)):
        raise ArgumentTypeError(f"{text!r}: a number of at least 0")
    return found


def _counts(most: int) -> list[int]:
    """Return 1, 2, 4, 8, 16, 64, 256, ... up to `most`."""
    found = [1, 2, 4, 8, 16]
    while found[-1] < most:
        found.append(4 * found[-1])
    return [*(count for count in found if count < most), most]


def _scale(options: Namespace) -> int:
    # Imported here: --help needs nothing of it.
    from weft.bench.machine import describe  # noqa: PLC0415
    from weft.bench.scale.figure import draw  # noqa: PLC0415
    from weft.bench.scale.measuring import measure  # noqa: PLC0415
    from weft.bench.scale.model import ALGORITHMS, Algorithm, Link, Network, error_of, fit, step  # noqa: PLC0415

    if options.figure is not None:
        check_picture(options.figure)
    measured: list[tuple[int, int, float]] = []
    links: dict[Algorithm, tuple[Link, float]] = {}
    if options.alpha is not None and options.beta is not None:
        links = {algorithm: (Link(options.alpha, options.beta), 1.0) for algorithm in ALGORITHMS}
    else:
        for ranks in (2, 3, 4):
            print(f"{ranks} ranks", file=sys.stderr)
            measured += measure(ranks, _SIZES, options.reps)
        links = {algorithm: fit(algorithm, measured) for algorithm in ALGORITHMS}
    layer = max(1, int(4 * options.parameters / options.layers))
    network = Network((layer,) * options.layers, options.forward, options.backward)
    alone = options.forward + options.backward
    rows: list[dict[str, Any]] = []
    for ranks in _counts(options.ranks):
        row: dict[str, Any] = {"ranks": ranks}
        for algorithm in ALGORITHMS:
            link = links[algorithm][0]
            found = step(network, link, algorithm, ranks, bucket=options.bucket, spread=options.spread)
            calm = step(network, link, algorithm, ranks, bucket=options.bucket)
            instant = step(network, Link(0.0, link.beta), algorithm, ranks, bucket=options.bucket)
            row[algorithm] = {
                "seconds": found.seconds,
                "efficiency": alone / found.seconds,
                "without_stragglers": alone / calm.seconds,
                "hidden": found.hidden,
                "lost": {
                    "bandwidth": instant.seconds - alone,
                    "latency": calm.seconds - instant.seconds,
                    "stragglers": found.seconds - calm.seconds,
                },
            }
        rows.append(row)
    if options.figure is not None:
        draw(options.figure, measured, {name: link for name, (link, _) in links.items()}, rows)
    counts = sorted({ranks for ranks, _, _ in measured})
    off_by = {
        name: {ranks: error_of(name, link, [each for each in measured if each[0] == ranks]) for ranks in counts}
        for name, (link, _) in links.items()
    }
    if options.json:
        told = {
            name: {"alpha": link.alpha, "beta": link.beta, "off_by": off, "off_by_ranks": off_by[name]}
            for name, (link, off) in links.items()
        }
        print(json.dumps({"machine": describe(), "measured": measured, "links": told, "steps": rows}, indent=1))
        return 0
    show("Machine", [[name, value] for name, value in describe().items()], header=False)
    if measured:
        header = ["bytes", *(f"{ranks} ranks, us" for ranks in (2, 3, 4))]
        by = {(ranks, nbytes): seconds for ranks, nbytes, seconds in measured}
        show(
            "All-reduces (minimum)",
            [header, *([f"{n:,}", *(f"{1e6 * by[r, n]:.1f}" for r in (2, 3, 4))] for n in _SIZES)],
        )
    fitted = [
        [
            name,
            f"{1e6 * link.alpha:.2f}",
            f"{1e-9 / link.beta:.2f}" if link.beta else "",
            f"{off:.2f}",
            *(f"{off_by[name][ranks]:.2f}" for ranks in counts),
        ]
        for name, (link, off) in links.items()
    ]
    show("Links", [["", "alpha, us", "GB/s", "off by times", *(f"{ranks} ranks" for ranks in counts)], *fitted])
    header = [
        "ranks",
        *(f"{name}: {what}" for name in ALGORITHMS for what in ("efficiency", "no stragglers", "hidden")),
    ]
    lines = [
        [
            f"{row['ranks']:,}",
            *(
                f"{100 * row[name][what]:.1f} %"
                for name in ALGORITHMS
                for what in ("efficiency", "without_stragglers", "hidden")
            ),
        ]
        for row in rows
    ]
    show(f"Training, {options.parameters:,.0f} parameters", [header, *lines])
    waits: list[list[str]] = []
    for row in rows:
        name = min(ALGORITHMS, key=lambda each: row[each]["seconds"])
        waits.append([f"{row['ranks']:,}", name, *(f"{1e3 * each:.2f}" for each in row[name]["lost"].values())])
    header = ["ranks", "", "last bucket and bandwidth", "latency", "stragglers"]
    show("What a step waits for, ms", [header, *waits])
    print(_in_words(rows[-1], alone))
    return 0


def _in_words(row: dict[str, Any], alone: float) -> str:
    """Say what holds the most ranks back."""
    name = min((key for key in row if key != "ranks"), key=lambda key: row[key]["seconds"])
    lost = row[name]["lost"]
    terms = {"stragglers": "stragglers", "bandwidth": "the last bucket and bandwidth", "latency": "latency"}
    told = [f"{terms[key]} ({1e3 * lost[key]:.2f} ms)" for key in sorted(lost, key=lost.__getitem__, reverse=True)]
    return (
        f"On {row['ranks']:,} ranks a step takes {1e3 * row[name]['seconds']:.1f} ms, with a {name}: "
        f"{1e3 * alone:.1f} ms of computing, and the rest is waiting for {', '.join(told[:-1])} and {told[-1]}."
    )
