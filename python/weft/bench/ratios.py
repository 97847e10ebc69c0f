"""How weft compares: ratios of minima, weft's time above a peer's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from weft.bench.runners import CHUNKED_MAP, NATIVE_WEFT
from weft.bench.tables import TABLES, number

if TYPE_CHECKING:
    from weft.bench.samples import Samples
    from weft.bench.tables import Grid

Statistic: TypeAlias = Literal["minimum", "median"]

_OWN = ("weft", NATIVE_WEFT)
_BEST = ("A", "B")
_EACH = ("C return", "C", "D", "F", "M inference", "M training", "M offsets", "N", "R replay", "R", "R first")


def best_peer(samples: Samples, table: str, case: str, statistic: Statistic) -> float | None:
    """Return the smallest value in a column of those that are handed op after op, weft left out."""
    rows = [row for row in samples.rows(table) if not row.startswith("weft") and row != CHUNKED_MAP]
    cells = [samples.cell(table, row, case) for row in rows]
    return min((cell.minimum if statistic == "minimum" else cell.median for cell in cells if cell), default=None)


def ratio_grids(samples: Samples) -> list[Grid]:
    """Return a title and rows for each kind of ratio; no rows where nothing is to be compared."""
    found: list[Grid] = [("Ratios of minima (best peer: of those handed op after op)", _best(samples))]
    found += [
        (f"Ratios of minima, weft / peer: {table.title}", _each(samples, table.key))
        for table in TABLES
        if table.key in _EACH
    ]
    return found


def _best(samples: Samples) -> list[list[str]]:
    rows: list[list[str]] = []
    header: list[str] = []
    for table in _BEST:
        cases = samples.cases(table)
        own = [row for row in samples.rows(table) if row in _OWN]
        peers = [*(row for row in samples.rows(table) if row == "OpenMP"), None]
        rows += [
            [f"{table}: {row} / {peer or 'best peer'}", *(_ratio(samples, table, case, row, peer) for case in cases)]
            for row in own
            for peer in peers
        ]
        header = ["", *cases] if own else header
    return [header, *rows] if rows else []


def _each(samples: Samples, table: str) -> list[list[str]]:
    cases, rows = samples.cases(table), samples.rows(table)
    peers = [row for row in rows if row != "weft"]
    if "weft" not in rows or not peers:
        return []
    return [
        ["", *cases],
        *([f"weft / {peer}", *(_ratio(samples, table, case, "weft", peer) for case in cases)] for peer in peers),
    ]


def _ratio(samples: Samples, table: str, case: str, own: str, peer: str | None) -> str:
    """Return one cell; None stands for the best peer."""
    mine = samples.cell(table, own, case)
    if peer is None:
        other = best_peer(samples, table, case, "minimum")
    else:
        cell = samples.cell(table, peer, case)
        other = cell.minimum if cell else None
    return number(mine.minimum / other) if mine and other else "-"
