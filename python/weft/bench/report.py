"""The report of a run: on the terminal, or as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft._command.tables import show_all
from weft.bench.ratios import ratio_grids
from weft.bench.tables import TABLES, grid

if TYPE_CHECKING:
    from weft.bench.samples import Samples
    from weft.bench.settings import Settings
    from weft.bench.tables import Grid


class Report:
    """One run.

    Parameters
    ----------
    samples : Samples
        What was measured, and what is missing.
    machine : dict of str to str
        Where.
    settings : Settings
        How large.
    """

    def __init__(self, samples: Samples, machine: dict[str, str], settings: Settings) -> None:
        self._samples = samples
        self._machine = machine
        self._settings = settings

    def grids(self) -> list[Grid]:
        """Return a title and rows for each table that has any."""
        found = [(table.heading, grid(table, self._samples)) for table in TABLES]
        return [(title, rows) for title, rows in [*found, *ratio_grids(self._samples)] if rows]

    def print(self) -> None:
        """Print the machine and every table."""
        show_all(self._machine, self.grids())

    def json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return {
            "machine": self._machine,
            "settings": asdict(self._settings),
            "units": {table.key: table.unit for table in TABLES},
            "tables": self._samples.json(),
            "missing": self._samples.reasons(),
        }
