"""The command line: ``python -m tests.fuzz --seconds 3600 --seed 5 --only programs --resume FILE``."""

from __future__ import annotations

import argparse
import faulthandler
import sys
from pathlib import Path

from .generators import GENERATORS
from .runner import Found, Progress, fuzz


def say(text: str) -> None:
    """Write a line at once: the process may end in the next case."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Attack weft at random.")
    parser.add_argument("--seconds", type=float, help="how long; without it, and without --cases, for ever")
    parser.add_argument("--cases", type=int, help="how many cases of each generator")
    parser.add_argument("--seed", type=int, default=0, help="which random numbers")
    parser.add_argument("--start", type=int, default=0, help="the number of each generator's first case")
    parser.add_argument("--only", help="names of generators, with commas between them")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep there how far it has come, and go on from there"
    )
    given = parser.parse_args()
    wanted = GENERATORS if given.only is None else given.only.split(",")
    if unknown := [name for name in wanted if name not in GENERATORS]:
        parser.error(f"no generator {unknown[0]!r}: there are {', '.join(GENERATORS)}")
    chosen = []
    for name in wanted:
        reason = GENERATORS[name].missing()
        if reason is None:
            chosen.append(GENERATORS[name])
            lacking = GENERATORS[name].without()
            if lacking is not None:
                say(f"{name}: without {lacking}")
        else:
            say(f"{name}: left out: {reason}")
    faulthandler.enable()
    progress = Progress(given.seed, given.start, given.resume)
    if progress.crashed is not None:
        name, number = progress.crashed
        say(f"the process ended in case {number} of {name}: --only {name} --start {number} --cases 1")
    found: list[Found] = []

    def tell(each: Found) -> None:
        found.append(each)
        say(f"\n{each}")

    try:
        ran = fuzz(chosen, progress, seconds=given.seconds, cases=given.cases, tell=tell)
    except KeyboardInterrupt:
        progress.close()
        say("stopped")
        return 130
    for name, count in ran.items():
        wrong = sum(each.name == name for each in found)
        say(f"{name}: {count} cases, {wrong} wrong")
    return bool(found)


sys.exit(main())
