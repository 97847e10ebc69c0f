"""``weft bench gpu``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft._command.arguments import listed, positive
from weft._command.outputs import check_suffix

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace, _SubParsersAction

_DESCRIPTION = """\
Measure weft on a CUDA device, beside CuPy by hand and the driver by itself: a pipeline over chunks, the host's cost of
launches and of additions, a chain of small kernels, the replay of a graph, two streams side by side. Each result is
verified before anything is timed, all are timed in turns, and each figure stands beside its bound. Takes some two
minutes, and seven at most; writes one JSON file and one page of Markdown beside it, after each line.
"""
_KEYS = ("overlap", "launch", "add", "chain", "graph", "streams")


def add_to(names: _SubParsersAction[Any]) -> None:
    """Add the benchmark to a parser's."""
    parser: ArgumentParser = names.add_parser(
        "gpu", help="launches, copies and streams of a GPU", description=_DESCRIPTION
    )
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--lines", type=_lines, default=_KEYS, help=f"of {','.join(_KEYS)} (default: all)")
    chosen.add_argument("--all", action="store_const", const=_KEYS, dest="lines", help="all lines")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="the device (default: %(default)s)")
    parser.add_argument("--reps", type=positive, metavar="N", help="repetitions of every cell")
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="the file; the page is beside it (default: gpu-DEVICE.json, here)"
    )
    parser.add_argument("--seconds", type=positive, metavar="N", help="the most that all lines may take together")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: verify everything, measure nothing")
    parser.set_defaults(command=_gpu)


def _lines(text: str) -> tuple[str, ...]:
    return listed(text.lower(), _KEYS, "lines")


def _gpu(options: Namespace) -> int:
    # Imported here: what is timed is much, and --help needs nothing of it.
    import weft  # noqa: PLC0415
    from weft.bench.gpu.machine import describe, file_stem  # noqa: PLC0415
    from weft.bench.gpu.measure import LINES, measure  # noqa: PLC0415
    from weft.bench.gpu.report import Report  # noqa: PLC0415
    from weft.bench.gpu.settings import Settings  # noqa: PLC0415
    from weft.bench.gpu.setup import Setup  # noqa: PLC0415

    if options.json is not None:
        check_suffix(options.json, (".json",))
    settings = Settings.smoke() if options.smoke else Settings()
    settings = replace(settings, reps=options.reps or settings.reps, run_s=options.seconds or settings.run_s)
    setup = Setup(settings, weft.gpu(options.device))
    machine = describe(setup)
    lines = [line for line in LINES if line.key in options.lines]
    out: Path = options.json or Path(f"{file_stem(machine['device'])}.json")
    page = out.with_suffix(".md")

    def write(problems: dict[str, str]) -> None:
        report = Report(machine, settings, lines, setup.samples, problems)
        out.write_text(json.dumps(report.json(), indent=1) + "\n", encoding="utf-8")
        page.write_text(report.markdown(), encoding="utf-8")

    problems = measure(setup, lines, write)
    Report(machine, settings, lines, setup.samples, problems).print()
    print(f"written: {out}, {page}", file=sys.stderr)
    return 1 if problems else 0
