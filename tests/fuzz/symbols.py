"""Symbols against eager code: composed, written to JSON and read back, evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from against import sample

import weft

from .cases import Generator, without_each
from .programs import DTYPES, SHAPES, body, statements
from .source import compare, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]


@dataclass(frozen=True)
class Composed:
    """Lines of a function of two arrays, or two symbols."""

    lines: tuple[str, ...]
    dtype: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]

    def run(self) -> str | None:
        names: dict[str, Any] = {"xp": weft, "weft": weft, "np": np}
        exec(body(self.lines, ("x", "y")), names)
        x, y = (weft.asarray(sample(self.dtype, shape, 3)) for shape in self.shapes)
        wanted = outcome(lambda: names["run"](x, y))
        try:
            variables = [
                weft.symbol.Variable(name, shape=array.shape, dtype=array.dtype) for name, array in (("x", x), ("y", y))
            ]
            made = weft.symbol.Group([each for each in names["run"](*variables) if hasattr(each, "tojson")])
        except weft.errors.WeftError:
            return None  # symbols know less: of some calls there are no nodes
        for symbol in (made, weft.symbol.load_json(made.tojson())):
            given = {name: array for name, array in (("x", x), ("y", y)) if name in symbol.list_arguments()}
            found = outcome(lambda symbol=symbol, given=given: list(symbol.eval(**given)))
            if isinstance(found, Exception) and isinstance(wanted, Exception):
                return None
            # A view lies elsewhere than what a node makes in its place: the last place may differ.
            problem = compare(found, wanted, close=True)
            if problem is not None:
                return problem
        return None

    def smaller(self) -> Iterator[Composed]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)

    def __str__(self) -> str:
        arrays = [f"weft.asarray(sample({self.dtype!r}, {shape}, 3))" for shape in self.shapes]
        return "\n".join(
            (
                "import weft; xp = weft",
                body(self.lines, ("x", "y")),
                f"print(run({', '.join(arrays)}))",
                "symbol = weft.symbol.Group(run(weft.symbol.Variable('x'), weft.symbol.Variable('y')))",
                f"print(symbol.eval(x={arrays[0]}, y={arrays[1]}))",
            )
        )


def make(random: Random) -> Composed:
    dtype = random.choice(DTYPES)
    shape = random.choice(SHAPES)
    lines = statements(random, dtype, changes=False)
    strong = random.choice(("np.float32(2)", "np.int64(3)", "np.float16(1)", "np.uint8(5)"))
    if random.random() < 0.3:
        lines = (*lines, f"w = xp.add(x, {strong})")
    return Composed(lines, dtype, (shape, random.choice([shape, shape[-1:]])))


GENERATOR = Generator("symbols", make, few=200)
