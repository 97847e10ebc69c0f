"""`scan` and `cond` against Python's loops and branches: eagerly, in programs, and of symbols."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from against import sample

import weft

from .cases import Generator, without_each
from .source import compare, outcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["GENERATOR"]

LINES = (
    *("c = c * 0.5 + x", "c = xp.tanh(c)", "y = c[::-1] - x", "y = xp.where(c > 0, c, y)", "c, y = y, c"),
    *("y = y.sum() + c", "c = xp.maximum(c, x)", "y = xp.sin(y) * 2", "c = c - x.mean()", "y = -y"),
    "c = weft.cond(c.sum() > x.sum(), lambda c: c + 1, lambda c: c * 0.5, c)",
)


@dataclass(frozen=True)
class Looped:
    """Lines of a body: of a carry `c` and a row `x`, to the next carry and `y`."""

    lines: tuple[str, ...]
    rows: int
    dtype: str
    reverse: bool

    def body(self) -> str:
        """Return the source of the body, whose results keep their dtype."""
        last = "return c, y"
        return "\n    ".join(("def body(c, x):", "y = x", *self.lines, last))

    def run(self) -> str | None:
        names: dict[str, Any] = {"xp": weft, "weft": weft}
        exec(self.body(), names)
        body = names["body"]
        init, xs = weft.asarray(sample(self.dtype, (4,), 1)), weft.asarray(sample(self.dtype, (self.rows, 4), 2))

        def by_loop() -> list[Any]:
            carry, made = init, []
            order = range(self.rows)
            for row in reversed(order) if self.reverse else order:
                carry, y = body(carry, xs[row])
                made.append(y)
            return [carry, weft.stack(made[::-1] if self.reverse else made)]

        def scanned(init: Any, xs: Any) -> list[Any]:
            return list(weft.scan(body, init, xs, reverse=self.reverse))

        wanted = outcome(by_loop)
        recorded = weft.program(scanned)
        variables = [
            weft.symbol.Variable(name, shape=each.shape, dtype=each.dtype) for name, each in (("a", init), ("b", xs))
        ]

        def composed() -> Any:
            symbol = weft.symbol.Group(scanned(*variables))
            given = {name: each for name, each in (("a", init), ("b", xs)) if name in symbol.list_arguments()}
            return list(symbol.eval(**given))

        ways = {"scan": lambda: scanned(init, xs), "program": lambda: recorded(init, xs), "symbol": composed}
        for name, way in ways.items():
            for _ in range(2):
                found = outcome(way)
                if isinstance(found, weft.errors.WeftError):
                    continue  # a body that no loop can be made of is refused
                # In a body several elements may be added in one go, where the loop adds one after the other.
                problem = compare(found, wanted, close=True)
                if problem is not None:
                    return f"{name}: {problem}"
        return None

    def smaller(self) -> Iterator[Looped]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)
        if self.rows > 1:
            yield replace(self, rows=1)

    def __str__(self) -> str:
        arrays = (
            f"weft.asarray(sample({self.dtype!r}, (4,), 1)), weft.asarray(sample({self.dtype!r}, ({self.rows}, 4), 2))"
        )
        return f"import weft; xp = weft\n{self.body()}\nprint(weft.scan(body, {arrays}, reverse={self.reverse}))"


def make(random: Random) -> Looped:
    lines = tuple(random.choices(LINES, k=random.randrange(1, 5)))
    return Looped(lines, random.randrange(1, 6), random.choice(("float32", "float64")), random.random() < 0.3)


GENERATOR = Generator("control", make, few=60)
