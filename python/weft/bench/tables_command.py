"""``weft bench tables``: tables A to F, M, N and R."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft._command.arguments import listed, positive
from weft.bench.settings import TABLES, Settings

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

_DESCRIPTION = """\
Verify every implementation, then time them in turns: A. native ops with dependencies, B. Python callables with
dependencies, C. array additions, D. a script with hidden parallelism, E. ops beside a busy main thread,
F. long runs of element-wise ops,
M. the memory that networks are planned in, N. a long chain as a symbol, R. programs, which are recorded once and called
again. Peers that are not installed (torch, jax, mlx, numexpr, dask) are named as missing. Takes some minutes; --reps 3 gives a
first impression.
"""


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser = names.add_parser(
        "tables", help="tables A to F, M, N and R (what runs without a NAME)", description=_DESCRIPTION
    )
    add_options(parser)
    parser.add_argument("--quick", action="store_true", help="is weft fast here? five lines, in a minute")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(command=_tables)


def add_options(parser: ArgumentParser) -> None:
    """Add what says which tables are timed, and how large; `settings_of` reads it."""
    default = Settings()
    parser.add_argument("--tables", type=_names, default=TABLES, help=f"of {','.join(TABLES)} (default: all)")
    parser.add_argument(
        "--reps", type=positive, metavar="N", help=f"repetitions of every cell (default: {default.reps})"
    )
    parser.add_argument(
        "--workers", type=positive, metavar="N", default=default.workers, help="threads of each (default: %(default)s)"
    )
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: verify everything, measure nothing")


def settings_of(options: Namespace) -> Settings:
    """Return the settings that the options ask for."""
    settings = Settings.smoke() if options.smoke else Settings()
    return replace(settings, tables=options.tables, workers=options.workers, reps=options.reps or settings.reps)


def _names(text: str) -> tuple[str, ...]:
    """Read ``A,B,E`` and the like."""
    return listed(text.upper(), TABLES, "tables")


def _tables(options: Namespace) -> int:
    # Imported here: what is timed is much, and --help needs nothing of it.
    from weft.bench.machine import describe  # noqa: PLC0415
    from weft.bench.measure import measure  # noqa: PLC0415
    from weft.bench.quick import run  # noqa: PLC0415
    from weft.bench.report import Report  # noqa: PLC0415
    from weft.bench.samples import VerificationError  # noqa: PLC0415

    machine = describe()
    settings = settings_of(options)
    try:
        if options.quick:
            run(settings)
            return 0
        samples = measure(settings)
    except VerificationError as error:
        print(f"verification failed, nothing is reported: {error}", file=sys.stderr)
        return 1
    report = Report(samples, machine, settings)
    if options.json:
        print(json.dumps(report.json(), indent=1))
    else:
        report.print()
    return 0
