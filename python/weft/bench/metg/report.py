"""METG as a table and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft._command.tables import show_all
from weft.bench.tables import number

if TYPE_CHECKING:
    from weft.bench.metg.measuring import Curves

_STATISTICS = ("minimum", "median")


class Report:
    """The findings of a run.

    Parameters
    ----------
    curves : Curves
        The measured curves.
    machine : dict of str to str
        Where.
    """

    def __init__(self, curves: Curves, machine: dict[str, str]) -> None:
        self._curves = curves
        self._machine = machine

    def grids(self) -> list[tuple[str, list[list[str]]]]:
        """Return a title and rows for each width; the first row is the header."""
        curves = self._curves
        found: list[tuple[str, list[list[str]]]] = []
        for width in curves.settings.widths:
            grids = [grid for grid in curves.grids() if grid.width == width]
            rows = [["", *(grid.pattern for grid in grids)]]
            rows += [
                [
                    name,
                    *(" / ".join(_microseconds(curves.metg(grid, name, key)) for key in _STATISTICS) for grid in grids),
                ]
                for name in curves.names()
            ]
            rows += [[name, reason, *[""] * (len(grids) - 1)] for name, reason in curves.missing.items()]
            title = f"METG(50 %), width {width}, {curves.settings.workers} workers (us, by minima / by medians)"
            found.append((title, rows))
        return found

    def efficiencies(self) -> list[tuple[str, list[list[str]]]]:
        """Return the curves of each grid by medians, as `grids` does: a row for tasks of one length, a column each."""
        curves = self._curves
        found: list[tuple[str, list[list[str]]]] = []
        for grid in curves.grids():
            columns = {name: points for name in curves.names() if (points := curves.points(grid, name, "median"))}
            most = max(len(points) for points in columns.values())
            # An implementation that took too long has no points: each of the others has all of them.
            complete = {name: points for name, points in columns.items() if len(points) == most}
            rows = [["work of a task (us)", *complete]]
            rows += [
                [_microseconds(length / curves.peak), *(f"{points[at].efficiency:.0%}" for points in complete.values())]
                for at, length in enumerate(curves.settings.lengths)
            ]
            found.append((f"Efficiency, {grid.title}, {curves.settings.workers} workers (by medians)", rows))
        return found

    def print(self, *, curves: bool = False) -> None:
        """Print the machine and the tables, those of the curves among them if wanted."""
        show_all(self._machine, [*self.grids(), *(self.efficiencies() if curves else [])])

    def json(self) -> dict[str, Any]:
        """Return everything, curves and all."""
        curves = self._curves
        return {
            "machine": self._machine,
            "settings": asdict(curves.settings),
            "peak_digits_per_ns": curves.peak,
            "curves": [
                {
                    "pattern": grid.pattern,
                    "width": grid.width,
                    "steps": grid.steps,
                    "implementation": name,
                    **{
                        key: {
                            "metg_ns": curves.metg(grid, name, key),
                            "points": [asdict(point) for point in curves.points(grid, name, key)],
                        }
                        for key in _STATISTICS
                    },
                }
                for grid in curves.grids()
                for name in curves.names()
                if curves.points(grid, name, "minimum")
            ],
            "missing": [{"implementation": name, "reason": reason} for name, reason in curves.missing.items()],
        }


def _microseconds(nanoseconds: float | None) -> str:
    return "-" if nanoseconds is None else number(nanoseconds / 1000)
