"""Time weft beside its peers, in one run: ``python benches/run.py [--smoke] [--out DIR] [--tables A,B,C,D,E] [--reps N]``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from harness.machine import describe
from harness.measure import measure
from harness.native import VerificationError
from harness.report import Report
from harness.settings import TABLES, Settings
from harness.targets import targets


def main() -> int:
    """Build, verify, time, print and save; 1 when a verification fails or weft is not there."""
    arguments = parse()
    tables = arguments.tables
    if arguments.smoke:
        settings = Settings.smoke(tables, arguments.reps)
    else:
        settings = replace(Settings(tables=tables), reps=arguments.reps or Settings().reps)
    machine = describe()
    try:
        samples = measure(settings)
    except VerificationError as error:
        print(f"verification failed: {error}", file=sys.stderr)
        return 1
    report = Report(samples, targets(samples, tables), machine, settings)
    report.print()
    # Smoke figures mean nothing: they must not replace measured ones.
    fallback = Path(tempfile.gettempdir()) / "weft-bench-smoke" if arguments.smoke else Path(__file__).resolve().parent
    folder = arguments.out or fallback
    report.write(folder)
    print(f"\nwritten: {folder / 'results.json'}, {folder / 'RESULTS.md'}")
    # A peer may be missing on a machine, weft may not.
    return int(any(name == "weft" for _, name in samples.missing))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Time weft beside its peers, all in one run.")
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: verify everything, measure nothing")
    parser.add_argument("--out", type=Path, help="folder of results.json and RESULTS.md (default: benches)")
    parser.add_argument("--tables", type=table_names, default=TABLES, help=f"of {','.join(TABLES)} (default: all)")
    parser.add_argument("--reps", type=positive, help="repetitions of every cell")
    return parser.parse_args()


def table_names(text: str) -> tuple[str, ...]:
    """Read ``A,B,E`` and the like."""
    names = tuple(dict.fromkeys(text.upper().split(",")))
    if not set(names) <= set(TABLES):
        message = f"{text!r}: tables are {', '.join(TABLES)}"
        raise argparse.ArgumentTypeError(message)
    return names


def positive(text: str) -> int:
    """Read a number of at least 1."""
    number = int(text)
    if number < 1:
        message = f"{text}: at least 1"
        raise argparse.ArgumentTypeError(message)
    return number


if __name__ == "__main__":
    sys.exit(main())
