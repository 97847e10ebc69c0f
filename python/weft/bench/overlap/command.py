"""``weft bench overlap``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.arguments import positive
from weft._command.outputs import check_picture, check_trace
from weft._command.tables import show
from weft.bench.tables import number

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from collections.abc import Sequence

    from weft.bench.overlap.measuring import Overlap

__all__ = ["add_to"]

_DESCRIPTION = """\
Time a pipeline over chunks, which copies each to another device, multiplies it there by a matrix and copies the product
back, written as a serial loop on arrays under the policies per_device and serial, with threads by hand, and in NumPy on one
thread. Each is compared with its copies alone and its products alone: 'hidden' is the share of the smaller part that the
pipeline hides behind the larger. The devices are logical CPUs and share the machine's cores: it takes two.
"""
_COLUMNS = 32
_ITEM_BYTES = 4
_MIB = 2**20
_PICTURES = (".png", ".svg", ".pdf")


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("overlap", help="copies beside compute, with a picture", description=_DESCRIPTION)
    parser.add_argument("--chunks", type=positive, metavar="N", default=16, help="how many (default: %(default)s)")
    parser.add_argument(
        "--mib", type=positive, metavar="N", default=4, help="size of each in MiB (default: %(default)s)"
    )
    parser.add_argument("--reps", type=positive, metavar="N", default=15, help="repetitions (default: %(default)s)")
    parser.add_argument("--figure", type=Path, metavar="FILE", help=f"draw the times: {', '.join(_PICTURES)}")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="write the trace of one run, as weft trace -o does")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(command=_overlap)


def _overlap(options: Namespace) -> int:
    from weft.bench.machine import describe  # noqa: PLC0415 - --help needs nothing of it
    from weft.bench.overlap.measuring import measure  # noqa: PLC0415
    from weft.bench.samples import VerificationError  # noqa: PLC0415

    if options.figure is not None:
        check_picture(options.figure, _PICTURES)
    if options.trace is not None:
        check_trace(options.trace)
    rows = options.mib * _MIB // _ITEM_BYTES // _COLUMNS
    machine = describe()
    try:
        found = measure(options.chunks, rows, _COLUMNS, options.reps, options.trace)
    except VerificationError as error:
        print(f"verification failed, nothing was timed: {error}", file=sys.stderr)
        return 1
    title = f"{options.chunks} chunks of {options.mib} MiB, copied in, multiplied, copied out"
    if options.json:
        sizes = {"chunks": options.chunks, "rows": rows, "columns": _COLUMNS, "reps": options.reps}
        print(
            json.dumps(
                {"machine": machine, "settings": sizes, "unit": "ms", "overlap": [o.json() for o in found]}, indent=1
            )
        )
    else:
        show("Machine", [[name, value] for name, value in machine.items()], header=False)
        show(f"{title} (ms, minimum)", _rows(found))
    if options.figure is not None:
        from weft.bench.overlap.figure import draw  # noqa: PLC0415 - matplotlib takes a second

        draw(options.figure, found, f"{title}, on {machine['CPUs usable']} CPUs")
    for path in filter(None, [options.figure, options.trace]):
        print(f"written: {path}", file=sys.stderr)
    return 0


def _rows(found: Sequence[Overlap]) -> list[list[str]]:
    header = ["", "copies", "compute", "larger", "sum", "pipeline", "pipeline / larger", "hidden"]
    return [
        header,
        *(
            [
                o.name,
                *map(number, (o.copy, o.compute, o.larger, o.sum, o.pipeline, o.pipeline / o.larger)),
                f"{o.hidden:.0%}",
            ]
            for o in found
        ),
    ]
