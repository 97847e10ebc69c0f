"""``weft trace``: runs a script or a module under `weft.trace`."""

from __future__ import annotations

import json
import sys
from argparse import REMAINDER, RawDescriptionHelpFormatter
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import weft
from weft._command.arguments import positive
from weft._command.outputs import check_trace
from weft._command.running import INTERRUPTED
from weft._command.scripts import check_program, run_program
from weft._trace.optional import need

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction

    from weft._trace.summary import Summary

_EXAMPLES = """\
examples:
  weft trace script.py                       the summary alone
  weft trace -o run.json script.py --size 3  for https://ui.perfetto.dev
  weft trace -o run.png -o run.html -m package.module
"""


def add_to(commands: _SubParsersAction[Any]) -> None:
    """Add the command to a parser's."""
    parser = commands.add_parser(
        "trace",
        help="run a script and show what its ops did",
        description="Run a script or a module as Python would, record the ops of the default engine, write them to files "
        "and print a summary on standard error. The exit status is the script's.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
        usage="%(prog)s [-h] [-o FILE]... [--limit OPS] [--json | --quiet] (SCRIPT | -m MODULE) [ARGUMENT]...",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="write the trace, in the format of the suffix: .json or .json.gz for Perfetto and chrome://tracing, .png, "
        ".svg or .html for a timeline, .dot for the graph of ops; more than once for several",
    )
    parser.add_argument(
        "--limit",
        metavar="OPS",
        type=positive,
        default=1_000_000,
        help="ops to keep; later ones are counted (default: 1,000,000)",
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--json", action="store_true", help="print the summary as one JSON object; times are nanoseconds"
    )
    shown.add_argument("-q", "--quiet", action="store_true", help="print no summary")
    parser.add_argument("-m", "--module", action="store_true", help="what follows is a module, as in python -m")
    parser.add_argument("program", metavar="SCRIPT", help="the script, or the module after -m")
    parser.add_argument("arguments", metavar="ARGUMENT", nargs=REMAINDER, help="what it finds in sys.argv")
    parser.set_defaults(command=_trace)


def _trace(options: Namespace) -> int:
    _check(options)
    trace = weft.trace(limit=options.limit)
    try:
        with trace:
            status = run_program(options.program, options.arguments, module=options.module)
    except KeyboardInterrupt:
        print("interrupted: what follows is what was recorded until then", file=sys.stderr)
        status = INTERRUPTED
    for path in options.output:
        trace.save(path)
        print(f"written: {path}", file=sys.stderr)
    summary = trace.summary()
    if not summary.count:
        print(
            "no ops were recorded: only those of the default engine are; for another one, "
            "write `with weft.trace(engine=...):` in the script",
            file=sys.stderr,
        )
    elif not options.quiet:
        _show(summary, as_json=options.json)
    return status


def _show(summary: Summary, *, as_json: bool) -> None:
    """Print a summary on standard error: standard output is the script's."""
    if as_json:
        figures = {
            **asdict(summary),
            "parallelism": summary.parallelism,
            "possible_parallelism": summary.possible_parallelism,
            "overlap_fraction": summary.overlap_fraction,
        }
        print(json.dumps(figures), file=sys.stderr)
    elif sys.stderr.isatty() and find_spec("rich") is not None:
        need("rich.console").Console(stderr=True).print(summary)
    else:
        print(summary, file=sys.stderr)


def _check(options: Namespace) -> None:
    """Find mistakes before the script has run for an hour."""
    for path in options.output:
        check_trace(path)
    check_program(options.program, module=options.module)
