"""The report of a run on a GPU: on the terminal, as JSON, and as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft._command.tables import show, show_all
from weft.bench.tables import grid, number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.gpu.bounds import Result
    from weft.bench.gpu.settings import Settings
    from weft.bench.gpu.setup import Line
    from weft.bench.samples import Samples
    from weft.bench.tables import Grid

TINY = ["Tiny sizes, which verify and measure nothing."]


class Report:
    """One run.

    Parameters
    ----------
    machine : dict of str to str
        Where.
    settings : Settings
        How large.
    lines : sequence of Line
        The lines with their figures.
    samples : Samples
        The times, and the missing rows.
    problems : dict of str to str
        Lines that came to no result, and why.
    """

    def __init__(
        self,
        machine: dict[str, str],
        settings: Settings,
        lines: Sequence[Line],
        samples: Samples,
        problems: dict[str, str],
    ) -> None:
        self._machine, self._settings, self._lines = machine, settings, lines
        self._samples, self._problems = samples, problems

    def results(self) -> list[Result]:
        """Return every bound with its findings."""
        bounds = [bound for line in self._lines for bound in line.bounds(self._settings)]
        return [bound.evaluate(self._samples) for bound in bounds]

    def grids(self) -> list[Grid]:
        """Return a title and rows for the bounds, and for each table that has any."""
        promised = [["", "figure", "minimum", "median", "bound", "verdict"]]
        promised += [
            [
                found.bound.line,
                found.bound.what,
                *(_figure(value, found.bound.unit) for value in (found.minimum, found.median)),
                found.limit,
                found.verdict,
            ]
            for found in self.results()
        ]
        tables = [(table.heading, grid(table, self._samples)) for line in self._lines for table in line.tables]
        return [("Bounds", promised), *((title, rows) for title, rows in tables if rows)]

    def print(self) -> None:
        """Print the machine and every table."""
        show_all(self._machine, self.grids())
        show("In short", [[self.verdicts()], *([TINY] * (not self._settings.measures))], header=False)
        if self._problems:
            show("Without a result", [[name, why] for name, why in self._problems.items()], header=False)

    def verdicts(self) -> str:
        """Return in one line how many bounds are reached."""
        kinds = ("reached", "reached by minima, MISSED by medians", "MISSED", "not measured")
        found = Counter(one.verdict.partition(":")[0] for one in self.results() if one.bound.limit is not None)
        return "bounds: " + (", ".join(f"{found[kind]} {kind}" for kind in kinds if found[kind]) or "none")

    def json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "machine": self._machine,
            "settings": asdict(self._settings),
            "bounds": [found.json() for found in self.results()],
            "units": {table.key: table.unit for line in self._lines for table in line.tables},
            "tables": self._samples.json(),
            "missing": self._samples.reasons(),
            "problems": self._problems,
        }

    def markdown(self) -> str:
        """Return everything as a page."""
        parts = [f"# weft on {self._machine['device']}"]
        if not self._settings.measures:
            parts.extend(TINY)
        parts.append(_table([["", ""], *([name, value] for name, value in self._machine.items())]))
        count = self._settings.reps
        repeated = "One repetition" if count == 1 else f"Minima and medians of {count} repetitions"
        parts.append(f"{repeated}, all in turns; every result was verified first. Of the {self.verdicts()}.")
        parts += [f"## {title}\n\n{_table(rows)}" for title, rows in self.grids()]
        if self._problems:
            rows = [["", "why"], *([name, why] for name, why in self._problems.items())]
            parts.append(f"## Without a result\n\n{_table(rows)}")
        return "\n\n".join(parts) + "\n"


def _figure(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{number(value)} {unit}".rstrip()


def _table(rows: Sequence[Sequence[str]]) -> str:
    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"

    header, *body = rows
    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, body)])
