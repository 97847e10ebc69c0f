"""The shape of every printed table: its title, its unit, the statistics in a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from weft.bench.samples import Cell, Samples

#: A title, and rows, of which the first is the header.
Grid: TypeAlias = tuple[str, list[list[str]]]


@dataclass(frozen=True, slots=True)
class Table:
    """How one table is shown."""

    key: str
    title: str
    unit: str
    statistics: tuple[str, ...] = ("minimum", "median")

    @property
    def heading(self) -> str:
        """The title, with the unit and what the figures of a cell are."""
        return f"{self.title} ({self.unit}, {' / '.join(self.statistics)})"


TABLES = (
    Table("floors", "Floors", "ns per call"),
    Table("A", "A. Native no-op ops with dependencies, push and run", "ns per op"),
    Table("B", "B. Python no-op callables with dependencies, push and run", "us per op"),
    Table("push", "Push by itself, push and wait", "us"),
    Table("threads", "Pushes from several threads on disjoint variables, push and run", "us per op"),
    Table("C return", "C. c = a + b, n float32: time to return", "us"),
    Table("C", "C. c = a + b, n float32: per op of 1,000 independent ones, with the final wait", "us per op"),
    Table(
        "D", "D. 8 chains of 20 element-wise ops on 1e6 float32 and two products of 1024 rows, written serially", "ms"
    ),
    Table(
        "F", "F. Functions of 150 element-wise ops on n float32 called again, each call with its wait", "us per call"
    ),
    Table("M inference", "M. Memory that networks are planned in, inference", "MB", ("minimum",)),
    Table("M training", "M. Memory that networks are planned in, training", "MB", ("minimum",)),
    Table(
        "M fit", "M. MiniMalloc's instances, offsets by rule: the arena over the peak of live bytes", "x", ("minimum",)
    ),
    Table("M offsets", "M. MiniMalloc's instances: time of a plan", "ms", ("minimum",)),
    Table("N", "N. A chain of 100,000 ops as a symbol", "s"),
    Table("R replay", "R. Graphs of native no-op ops, built before and run again", "ns per op"),
    Table(
        "R",
        "R. Functions called again, each call with its wait: 100 element-wise ops on n float32, one op on 16",
        "us per call",
    ),
    Table("R first", "R. First calls: recorded or compiled, and run", "ms"),
    Table("E", "E. Beside a busy main thread", "us", ("median", "mean", "p99")),
)


def number(value: float) -> str:
    """Format a figure to three significant digits, without an exponent.

    Examples
    --------
    >>> from weft.bench.tables import number
    >>> number(1234.5), number(-0.05123)
    ('1234', '-0.051')
    """
    size = abs(value)
    if size >= 100:  # three digits stand before the point
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def _show(cell: Cell | None, statistics: tuple[str, ...]) -> str:
    if cell is None:
        return "-"
    return " / ".join(number(getattr(cell, statistic)) for statistic in statistics)


def _rank(row: str) -> int:
    """Sort weft's own rows before its peers', which stay as they are."""
    return 0 if row == "weft" else 1 if row.startswith("weft") else 2


def grid(table: Table, samples: Samples) -> list[list[str]]:
    """Return a header and the rows of a table; empty where nothing was measured or missed."""
    rows, cases = sorted(samples.rows(table.key), key=_rank), samples.cases(table.key)
    missing = {name: reason for (key, name), reason in samples.missing.items() if key == table.key}
    if not rows and not missing:
        return []
    if len(rows) == 1 and not missing:
        # One row and many columns read better turned round.
        return [
            ["", table.unit],
            *([case, _show(samples.cell(table.key, rows[0], case), table.statistics)] for case in cases),
        ]
    body = [[row, *(_show(samples.cell(table.key, row, case), table.statistics) for case in cases)] for row in rows]
    columns = cases or [""]
    body += [[name, reason, *[""] * (len(columns) - 1)] for name, reason in missing.items()]
    return [["", *columns], *body]
