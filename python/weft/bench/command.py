"""``weft bench``: which benchmark is meant, by itself as ``python -m weft.bench``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any

from weft._command.running import run
from weft.bench import tables_command
from weft.bench.gpu import command as gpu_command
from weft.bench.kernels import command as kernels_command
from weft.bench.metg import command as metg_command
from weft.bench.overlap import command as overlap_command
from weft.bench.plan import command as plan_command
from weft.bench.scale import command as scale_command

if TYPE_CHECKING:
    from argparse import _SubParsersAction
    from collections.abc import Sequence

_DESCRIPTION = "Measure weft on this machine, beside the peers that are installed. Without a NAME: tables."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run ``python -m weft.bench``.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words behind the program's name; by default those of this process.

    Returns
    -------
    int
        The exit status.
    """
    program = "python -m weft.bench"
    parser = ArgumentParser(prog=program, description=_DESCRIPTION)
    _fill(parser)
    options = parser.parse_args(or_tables(sys.argv[1:] if arguments is None else arguments))
    return run(program, lambda: options.command(options))


def add_to(commands: _SubParsersAction[Any]) -> None:
    """Add the command to a parser's."""
    _fill(commands.add_parser("bench", help="measure weft on this machine, beside its peers", description=_DESCRIPTION))


def or_tables(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with ``tables`` before them where no benchmark is named.

    Examples
    --------
    >>> from weft.bench.command import or_tables
    >>> or_tables(["--tables", "A"]), or_tables(["overlap"])
    (['tables', '--tables', 'A'], ['overlap'])
    """
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in {"-h", "--help"}):
        return ["tables", *arguments]
    return [*arguments]


def _fill(parser: ArgumentParser) -> None:
    names = parser.add_subparsers(metavar="NAME", required=True)
    tables_command.add_to(names)
    overlap_command.add_to(names)
    gpu_command.add_to(names)
    kernels_command.add_to(names)
    metg_command.add_to(names)
    plan_command.add_to(names)
    scale_command.add_to(names)
