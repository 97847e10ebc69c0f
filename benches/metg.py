"""METG of weft beside its peers, those in C++ among them: ``python benches/metg.py``, with the options of ``weft bench metg``.

What needs no checkout is `weft.bench.metg`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.build import build_grids, workshop
from harness.grids import additions
from weft._command.running import run
from weft.bench.metg.command import add_options, measure, settings_of


def main() -> int:
    """Build, verify, time and print; 1 when a verification fails."""
    parser = argparse.ArgumentParser(description="METG of weft and its peers, all in one run.")
    add_options(parser)
    options = parser.parse_args()
    with workshop() as folder:
        added = additions(build_grids(Path(folder)), Path(folder), settings_of(options))
        return run(parser.prog, lambda: measure(options, added))


if __name__ == "__main__":
    sys.exit(main())
