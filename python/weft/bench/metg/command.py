"""``weft bench metg``."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentTypeError
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.arguments import listed, positive
from weft._command.outputs import check_picture
from weft._command.running import CommandError

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

    from weft.bench.metg.measuring import Additions

_DESCRIPTION = """\
Find METG(50 %): the shortest tasks with which the machine still does half of the work that it can. Grids of tasks with the
dependencies of Task Bench's patterns (Slaughter et al., SC 2020) are run with a native function that computes for as long as
wanted, and every grid is verified before it is timed. A task's granularity counts what its scheduling costs.
benches/metg.py in a checkout times weft from Rust, OpenMP, oneTBB and Taskflow in the same run.
"""


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser("metg", help="the shortest tasks that pay", description=_DESCRIPTION)
    add_options(parser)
    parser.set_defaults(command=measure)


def add_options(parser: ArgumentParser) -> None:
    """Add what says which grids are run, and what is written; `measure` reads it."""
    parser.add_argument("--patterns", type=_patterns, metavar="NAMES", help="some of them, with commas (default: all)")
    parser.add_argument("--widths", type=_widths, metavar="N", help="columns, with commas (default: 2,16)")
    parser.add_argument("--tasks", type=positive, metavar="N", help="of a grid (default: 8192)")
    parser.add_argument("--reps", type=positive, metavar="N", help="repetitions (default: 5)")
    parser.add_argument(
        "--workers", type=positive, metavar="N", default=2, help="threads of each (default: %(default)s)"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: verify everything, measure nothing")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the curves: .svg, .png or .pdf, by matplotlib")
    parser.add_argument("--json", action="store_true", help="print one JSON object, with the curves, instead of tables")


def _patterns(text: str) -> tuple[str, ...]:
    from weft.bench.metg.patterns import PATTERNS  # noqa: PLC0415 - as below

    return listed(text, PATTERNS, "patterns")


def _widths(text: str) -> tuple[int, ...]:
    from weft.bench.metg.patterns import MOST_COLUMNS  # noqa: PLC0415 - as below

    widths = tuple(dict.fromkeys(map(positive, text.split(","))))
    if max(widths) > MOST_COLUMNS:
        raise ArgumentTypeError(f"{text!r}: at most {MOST_COLUMNS} columns")
    return widths


def measure(options: Namespace, additions: Additions | None = None) -> int:
    """Measure what the options ask for, beside what a checkout adds, and print it.

    Raises
    ------
    CommandError
        If the C library has no function of one pointer to call.
    """
    # Imported here: --help needs nothing of it.
    from weft.bench import native_ops  # noqa: PLC0415
    from weft.bench.machine import describe  # noqa: PLC0415
    from weft.bench.metg import measuring  # noqa: PLC0415
    from weft.bench.metg.figure import draw  # noqa: PLC0415
    from weft.bench.metg.report import Report  # noqa: PLC0415
    from weft.bench.samples import VerificationError  # noqa: PLC0415

    if options.plot is not None:
        check_picture(options.plot)
    native = native_ops.load()
    if native is None:
        raise CommandError("the C library has no functions of one pointer to call")
    machine = describe()
    try:
        curves = measuring.measure(settings_of(options), native, additions or measuring.OUTSIDE)
    except VerificationError as error:
        print(f"verification failed, nothing is reported: {error}", file=sys.stderr)
        return 1
    if options.plot is not None:
        draw(options.plot, curves)
    report = Report(curves, machine)
    if options.json:
        print(json.dumps(report.json(), indent=1))
    else:
        report.print()
    return 0


def settings_of(options: Namespace) -> Any:
    """Return the settings that the options ask for."""
    from weft.bench.metg.measuring import Settings  # noqa: PLC0415 - as above

    settings = Settings.smoke() if options.smoke else Settings()
    return replace(
        settings,
        patterns=options.patterns or settings.patterns,
        widths=options.widths or settings.widths,
        tasks=options.tasks or settings.tasks,
        reps=options.reps or settings.reps,
        workers=options.workers,
    )
