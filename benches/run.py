"""Time weft beside its peers, those in C++ among them: ``python benches/run.py [--smoke] [--out DIR] [--tables A,B] [--reps N]``.

What needs no checkout is `weft.bench`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from harness.additions import additions
from harness.build import build, workshop
from harness.results import verdicts, write
from harness.targets import targets
from harness.toolchain import versions
from weft._command.tables import show
from weft.bench.machine import describe
from weft.bench.measure import measure
from weft.bench.report import Report
from weft.bench.samples import VerificationError
from weft.bench.tables_command import add_options, settings_of


def main() -> int:
    """Build, verify, time, print and save; 1 when a verification fails or weft's own program could not be built."""
    arguments = parse()
    settings = settings_of(arguments)
    machine = {**describe(), **versions()}
    with workshop() as folder:
        binaries = build(Path(folder), settings.tables)
        try:
            samples = measure(settings, additions(binaries, settings))
        except VerificationError as error:
            print(f"verification failed: {error}", file=sys.stderr)
            return 1
    report = Report(samples, machine, settings)
    reached = targets(samples, settings.tables)
    report.print()
    show(*verdicts(reached))
    # Smoke figures mean nothing: they must not replace measured ones.
    fallback = Path(tempfile.gettempdir()) / "weft-bench-smoke" if arguments.smoke else Path(__file__).resolve().parent
    folder = arguments.out or fallback
    write(folder, report, reached, machine, settings)
    print(f"written: {folder / 'results.json'}, {folder / 'RESULTS.md'}")
    # A peer may be missing on a machine, weft may not.
    return int(any(name == "weft" for _, name in samples.missing))


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Time weft beside its peers, all in one run.")
    add_options(parser)
    parser.add_argument("--out", type=Path, help="folder of results.json and RESULTS.md (default: benches)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
