"""The five dependency patterns of tables A and B, and the values that tell whether they ran in a right order.

``benches/peers/patterns.hpp`` and ``crates/engine/benches/patterns`` hold the same definitions for C++ and Rust; equal
digests show that all ran the same program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PATTERNS = ("chain", "independent", "fan", "random", "stencil")
_SEED = 0x77656674
INDEPENDENT_VARIABLES = 1024
_RANDOM_VARIABLES = 256
_FAN_READERS = 64
_STENCIL_WIDTH = 64
_MASK = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Op:
    """The variables, by number, that one op reads and mutates."""

    reads: tuple[int, ...]
    mutates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Program:
    """A serial program: ``ops`` in push order over ``variables`` variables."""

    pattern: str
    variables: int
    ops: tuple[Op, ...]


def splitmix64(state: int) -> Iterator[int]:
    """Yield 64-bit numbers (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014)."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        yield z ^ (z >> 31)


@cache
def make_program(pattern: str, ops: int) -> Program:
    """Return the first ``ops`` ops of a pattern.

    Parameters
    ----------
    pattern
        One of `PATTERNS`.
    ops
        Number of ops.
    """
    if pattern == "chain":
        return Program(pattern, 1, (Op((), (0,)),) * ops)
    if pattern == "independent":
        n = INDEPENDENT_VARIABLES
        return Program(pattern, n, tuple(Op((), (i % n,)) for i in range(ops)))
    if pattern == "fan":
        return Program(pattern, 1, tuple(_fan_op(i) for i in range(ops)))
    if pattern == "random":
        draws = splitmix64(_SEED)
        return Program(pattern, _RANDOM_VARIABLES, tuple(_random_op(draws) for _ in range(ops)))
    if pattern == "stencil":
        return Program(pattern, 2 * _STENCIL_WIDTH, tuple(_stencil_op(i) for i in range(ops)))
    raise ValueError(f"unknown pattern {pattern!r}: one of {', '.join(PATTERNS)}")


def _fan_op(i: int) -> Op:
    place = i % (_FAN_READERS + 2)
    return Op((), (0,)) if place in {0, _FAN_READERS + 1} else Op((0,), ())


def _random_op(draws: Iterator[int]) -> Op:
    chosen: list[int] = []
    while len(chosen) < 3:  # two reads and a mutation, all distinct
        variable = next(draws) % _RANDOM_VARIABLES
        if variable not in chosen:
            chosen.append(variable)
    return Op((chosen[0], chosen[1]), (chosen[2],))


def _stencil_op(i: int) -> Op:
    row, column = divmod(i, _STENCIL_WIDTH)
    before = (row + 1) % 2 * _STENCIL_WIDTH
    # Clipped at both ends: the outermost ops of a row read two variables.
    columns = range(max(column - 1, 0), min(column + 2, _STENCIL_WIDTH))
    return Op(tuple(before + c for c in columns), (row % 2 * _STENCIL_WIDTH + column,))


class State:
    """Order-sensitive values: a mutation folds the op's number and all it read into its variable."""

    def __init__(self, program: Program) -> None:
        self._ops = program.ops
        self._values = [0] * program.variables
        self._slots = [0] * len(program.ops)

    def step(self, op_id: int) -> None:
        """Run op ``op_id``."""
        op = self._ops[op_id]
        values = self._values
        slot = op_id + 1
        for variable in op.reads:
            slot = (slot * 31 + values[variable]) & _MASK
        for variable in op.mutates:
            values[variable] = (values[variable] * 31 + slot) & _MASK
        self._slots[op_id] = slot

    def digest(self) -> str:
        """Fold every variable and every op's slot into 16 hex digits."""
        folded = 0
        for value in (*self._values, *self._slots):
            folded = (folded * 31 + value) & _MASK
        return f"{folded:016x}"


def digest_of(program: Program) -> str:
    """Return the digest of a program run op by op."""
    state = State(program)
    for op_id in range(len(program.ops)):
        state.step(op_id)
    return state.digest()


@cache
def serial_digest(pattern: str, ops: int) -> str:
    """Return the digest of the pattern's program."""
    return digest_of(make_program(pattern, ops))
