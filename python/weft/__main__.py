"""The command ``weft``, and ``python -m weft``: reads the name of a command and runs it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import TYPE_CHECKING

import weft
from weft._command import doctor, graph, info, trace
from weft._command.running import run
from weft.bench import command as bench

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words behind the program's name; by default those of this process.

    Returns
    -------
    int
        The exit status.

    Examples
    --------
    >>> from weft.__main__ import main
    >>> main(["bench", "--tables", "Q"])
    Traceback (most recent call last):
        ...
    SystemExit: 2
    """
    program = _program()
    parser = ArgumentParser(prog=program, description="weft: a dependency engine for Python.")
    parser.add_argument("--version", action="version", version=f"weft {weft.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    info.add_to(commands)
    bench.add_to(commands)
    trace.add_to(commands)
    graph.add_to(commands)
    doctor.add_to(commands)
    given = sys.argv[1:] if arguments is None else [*arguments]
    if not given:
        parser.print_help()
        return 0
    if given[:1] == ["bench"]:
        given[1:] = bench.or_tables(given[1:])
    options = parser.parse_args(given)
    return run(program, lambda: options.command(options))


def _program() -> str:
    name = Path(sys.argv[0]).stem
    return name if name == "weft" else "python -m weft"


if __name__ == "__main__":
    sys.exit(main())
