"""Task Bench's patterns as serial programs (Slaughter et al.: Task Bench, SC 2020).

A program is a grid: ``steps`` rows of tasks. A task reads what the row before it left in some columns, and leaves a value in
its own. Two rows of variables take turns, so a task also comes after whoever still reads what it overwrites. Tasks of
``trivial`` have nothing to do with each other.

The programs in C++ and Rust read them from a file (`write`): there is this one definition.
"""

from __future__ import annotations

from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from weft.bench.patterns import Op, Program, digest_of, splitmix64

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATTERNS = ("trivial", "stencil_1d", "fft", "tree", "random_nearest", "all_to_all")
#: More columns do not fit into the ops of the programs in C++ and Rust.
MOST_COLUMNS = 16
#: Of ``random_nearest``: so many neighbours on either side, each with this chance.
_NEAREST = 2
_CHANCE = 0.5
_SEED = 0x6D657467


def width_at(pattern: str, width: int, step: int) -> int:
    """Return how many tasks a row has: a tree doubles until it is as wide as wanted."""
    return min(width, 1 << min(step, 62)) if pattern == "tree" else width


def needs(pattern: str, width: int, step: int, column: int, draws: Iterator[int]) -> tuple[int, ...]:
    """Return the columns of the row before that a task reads, in order.

    Parameters
    ----------
    pattern : str
        One of `PATTERNS`.
    width : int
        Columns of the grid.
    step, column : int
        Which task.
    draws : iterator of int
        Numbers of 64 bits, for ``random_nearest``: the same for the whole program.

    Raises
    ------
    ValueError
        If there is no such pattern.
    """
    if pattern not in PATTERNS:
        raise ValueError(f"unknown pattern {pattern!r}: one of {', '.join(PATTERNS)}")
    if step == 0 or pattern == "trivial":
        return ()
    if pattern == "stencil_1d":
        wanted = [column - 1, column, column + 1]
    elif pattern == "fft":
        # Butterflies of distance 1, 2, 4, ..., and again.
        far = 1 << (step - 1) % max(1, (width - 1).bit_length())
        wanted = [column - far, column, column + far]
    elif pattern == "tree":
        wanted = [column // 2]
    elif pattern == "random_nearest":
        near = range(column - _NEAREST, column + _NEAREST + 1)
        drawn = islice(draws, len(near))
        wanted = [other for other, draw in zip(near, drawn, strict=True) if other == column or draw < _CHANCE * 2**64]
    else:
        wanted = [*range(width)]
    return tuple(other for other in wanted if 0 <= other < width)


@cache
def make_program(pattern: str, width: int, steps: int) -> Program:
    """Return the tasks of a grid, row by row."""
    draws = splitmix64(_SEED)
    ops: list[Op] = []
    for step in range(steps):
        own, before = step % 2 * width, (step + 1) % 2 * width
        for column in range(width_at(pattern, width, step)):
            reads = tuple(before + other for other in needs(pattern, width, step, column, draws))
            ops.append(Op(reads, () if pattern == "trivial" else (own + column,)))
    return Program(pattern, 2 * width, tuple(ops))


@cache
def serial_digest(pattern: str, width: int, steps: int) -> str:
    """Return the digest of the pattern's program."""
    return digest_of(make_program(pattern, width, steps))


def write(program: Program, path: Path) -> None:
    """Write a program for those in C++ and Rust.

    A line says how many variables and ops there are; one for each op which variable it mutates, or -1, how many it reads, and which.
    """
    lines = [f"{program.variables} {len(program.ops)}"]
    for op in program.ops:
        target = op.mutates[0] if op.mutates else -1
        lines.append(" ".join(map(str, (target, len(op.reads), *op.reads))))
    path.write_text("\n".join(lines) + "\n", encoding="ascii")
