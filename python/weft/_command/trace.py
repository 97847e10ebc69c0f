"""``weft trace``: runs a script or a module under `weft.trace`."""

from __future__ import annotations

import json
import runpy
import sys
from argparse import REMAINDER, RawDescriptionHelpFormatter
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import weft
from weft._command.arguments import positive
from weft._command.outputs import check_trace
from weft._command.running import INTERRUPTED, CommandError
from weft._trace.optional import need

if TYPE_CHECKING:
    from argparse import Namespace, _SubParsersAction
    from types import TracebackType

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
            status = _run(options.program, options.arguments, module=options.module)
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
    if options.module:
        _check_module(options.program)
    elif not Path(options.program).exists():
        raise CommandError(f"there is no script {options.program}")


def _check_module(name: str) -> None:
    sys.path.insert(0, "")  # as python -m looks for it
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        found = None  # its package is missing, or it is no name
    finally:
        del sys.path[0]
    if found is None:
        raise CommandError(f"there is no module {name}")


def _run(program: str, arguments: list[str], *, module: bool) -> int:
    """Run the script as ``__main__`` and return the exit status that it would have had."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [program, *arguments]
    try:
        if module:
            sys.path.insert(0, "")
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(program).resolve().parent))
            runpy.run_path(str(Path(program).resolve()), run_name="__main__")
    except SystemExit as exit_:
        return _status(exit_.code)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would show it
        own = _own(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _status(code: object) -> int:
    """Return the exit status that ``SystemExit(code)`` means, and print what it says."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _own(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that is the script's: without the frames of this command and of runpy."""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name not in {__file__, runpy.__file__, "<frozen runpy>"}:
            break
        traceback = traceback.tb_next
    return traceback
