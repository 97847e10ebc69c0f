"""Recorded programs against eager code, bit for bit: recorded, replayed, and replayed on other values, in each mode of memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from against import sample

import weft

from .cases import Generator, without_each
from .expressions import BINARY, REDUCE, UNARY, row_of
from .source import compare, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR", "Statement", "body", "statements"]

#: A line of a function's body.
Statement = str
DTYPES = ("int32", "uint8", "float32", "float64", "complex128", "bool")
SHAPES = ((1,), (6,), (3, 4), (1, 1), (4, 1))
INPLACE = {"b": ("&=", "|=", "^="), "iu": ("+=", "-=", "*="), "f": ("+=", "-=", "*="), "c": ("+=", "-=", "*=")}


def body(lines: tuple[Statement, ...], arguments: tuple[str, ...]) -> str:
    """Return the source of a function of these lines that returns all arrays that they name."""
    made = sorted({line.split(" = ")[0] for line in lines if " = " in line and "[" not in line.split(" = ")[0]})
    results = ", ".join((*arguments, *made))
    return "\n    ".join((f"def run({', '.join(arguments)}):", *lines, f"return [{results}]"))


def statements(random: Random, dtype: str, *, changes: bool) -> tuple[Statement, ...]:
    """Return lines over x and y, which may change these in place."""
    lines: list[str] = []
    names = ["x", "y"]
    for number in range(random.randrange(1, 6)):
        one, other = random.choice(names), random.choice([*names, "2", "True"])
        kind = random.randrange(7 if changes else 5)
        name = f"v{number}"
        if kind == 0:
            lines.append(f"{name} = xp.{random.choice(row_of(UNARY, dtype))}({one})")
        elif kind == 1:
            lines.append(f"{name} = xp.{random.choice(row_of(BINARY, dtype))}({one}, {other})")
        elif kind == 2:
            lines.append(f"{name} = {one}{random.choice(('.T', '[::-1]', '[None]', '[..., :1]', '.reshape(-1)'))}")
        elif kind == 3:
            lines.append(f"{name} = xp.{random.choice(row_of(REDUCE, dtype))}({one})")
        elif kind == 4:
            lines.append(f"{name} = xp.where({one} == {one}, {one}, {other})")
        elif kind == 5:
            lines.append(f"{one} {random.choice(row_of(INPLACE, dtype))} {random.choice(['x', 'y', '1'])}")
            continue
        else:
            lines.append(f"{one}[::2] = {random.choice(['0', one + '[::2][::-1]'])}")
            continue
        names.append(name)
    return tuple(lines)


@dataclass(frozen=True)
class Recorded:
    """Lines of a function of two arrays, and how it is recorded."""

    lines: tuple[Statement, ...]
    dtype: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    options: dict[str, Any] = field(default_factory=dict)

    def run(self) -> str | None:
        names: dict[str, Any] = {"xp": weft, "weft": weft}
        exec(body(self.lines, ("x", "y")), names)
        recorded = weft.program(names["run"], **self.options)
        for number in range(4):
            given = [sample(self.dtype, shape, number) for shape in self.shapes]
            wanted = outcome(lambda given=given: names["run"](*map(weft.asarray, given)))
            found = outcome(lambda given=given: recorded(*map(weft.asarray, given)))
            if isinstance(wanted, Exception) and isinstance(found, Exception):
                return None
            problem = compare(found, wanted, close=False) or bits(found, wanted)
            if problem is not None:
                return f"call {number}: {problem}"
        return None

    def smaller(self) -> Iterator[Recorded]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)

    def __str__(self) -> str:
        arrays = ", ".join(f"weft.asarray(sample({self.dtype!r}, {shape}, n))" for shape in self.shapes)
        options = "".join(f", {key}={value!r}" for key, value in self.options.items())
        call = f"for n in range(4):\n    print(weft.program(run{options})({arrays}), run({arrays}))"
        return "\n".join(("import weft; from weft import *; xp = weft", body(self.lines, ("x", "y")), call))


def bits(found: Any, wanted: Any) -> str | None:
    """Return how bits differ; those of NaN may."""
    for one, other in zip(found, wanted, strict=True):
        parts = [np.where(np.isnan(x), 0, x).tobytes() if x.dtype.kind in "fc" else x.tobytes() for x in (one, other)]
        if parts[0] != parts[1]:
            return f"bits:\n{one!r}\nand\n{other!r}"
    return None


def make(random: Random) -> Recorded:
    dtype = random.choice(DTYPES)
    shape = random.choice(SHAPES)
    other = random.choice([shape, shape, shape[-1:], (1,)])
    options = {"memory": random.choice(("min", "balanced", "speed"))}
    return Recorded(statements(random, dtype, changes=True), dtype, (shape, other), options)


GENERATOR = Generator("programs", make, few=120)
