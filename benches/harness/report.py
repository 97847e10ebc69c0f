"""Results on the terminal, as JSON and as Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from harness.tables import TABLES, grid, number
from harness.targets import best_peer

if TYPE_CHECKING:
    from pathlib import Path

    from harness.samples import Samples
    from harness.settings import Settings
    from harness.tables import Table
    from harness.targets import Target

# Tables of which each peer's ratio is shown.
WITH_PEERS = ("C return", "C", "D")
VERDICTS = {True: "reached", False: "MISSED", None: "not measured"}


class Report:
    """One run: what was measured, where, and which targets it reached."""

    def __init__(self, samples: Samples, targets: list[Target], machine: dict[str, str], settings: Settings) -> None:
        self._samples = samples
        self._targets = targets
        self._machine = machine
        self._settings = settings
        self._grids = [(_title(table), grid(table, samples)) for table in TABLES]
        self._grids += [
            ("Ratios of minima (best peer: of those handed op after op)", self._ratios()),
            *(
                (f"Ratios of minima, weft / peer: {table.title}", self._peers(table.key))
                for table in TABLES
                if table.key in WITH_PEERS
            ),
            ("Targets", self._verdicts()),
        ]

    def print(self) -> None:
        """Print every table."""
        for title, rows in self._grids:
            if rows:
                _print(title, rows)

    def write(self, folder: Path) -> None:
        """Write ``results.json`` and ``RESULTS.md``."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "results.json").write_text(json.dumps(self._json(), indent=1) + "\n")
        (folder / "RESULTS.md").write_text(self._markdown())

    def _ratios(self) -> list[list[str]]:
        rows = []
        for table, peer in (("A", "OpenMP"), ("A", None), ("B", None)):
            cases = self._samples.cases(table)
            if not cases or "weft" not in self._samples.rows(table):
                continue
            cells = []
            for case in cases:
                cell = self._samples.cell(table, peer, case) if peer else None
                other = (
                    cell.minimum if cell else best_peer(self._samples, table, case, "minimum") if peer is None else None
                )
                own = self._samples.cell(table, "weft", case)
                cells.append(number(own.minimum / other) if own and other else "-")
            rows.append([f"{table}: weft / {peer or 'best peer'}", *cells])
            header = ["", *cases]
        return [header, *rows] if rows else []

    def _peers(self, table: str) -> list[list[str]]:
        cases = self._samples.cases(table)
        own = [self._samples.cell(table, "weft", case) for case in cases]
        peers = [row for row in self._samples.rows(table) if row != "weft"]
        if not any(own) or not peers:
            return []
        rows = []
        for peer in peers:
            others = [self._samples.cell(table, peer, case) for case in cases]
            cells = [
                number(cell.minimum / other.minimum) if cell and other else "-"
                for cell, other in zip(own, others, strict=True)
            ]
            rows.append([f"weft / {peer}", *cells])
        return [["", *cases], *rows]

    def _verdicts(self) -> list[list[str]]:
        rows = [["target", "bound", "by minima", "by medians", "decided by", ""]]
        for target in self._targets:
            unit = "" if target.unit == "x" else f" {target.unit}"
            values = [("-" if v is None else number(v) + unit) for v in (target.by_minimum, target.by_median)]
            bound = f"{'>=' if target.at_least else '<='} {target.bound:g}{unit}"
            rows.append([target.name, bound, *values, target.decided_by, VERDICTS[target.reached]])
        return rows if self._targets else []

    def _json(self) -> dict[str, Any]:
        cells: dict[str, list[dict[str, Any]]] = {}
        for table, implementation, case in self._samples.values:
            cell = self._samples.cell(table, implementation, case)
            if cell is not None:
                cells.setdefault(table, []).append({"implementation": implementation, "case": case, **asdict(cell)})
        return {
            "machine": self._machine,
            "settings": asdict(self._settings),
            "units": {table.key: table.unit for table in TABLES},
            "tables": cells,
            "missing": [
                {"table": table, "implementation": name, "reason": reason}
                for (table, name), reason in self._samples.missing.items()
            ],
            "targets": [{**asdict(target), "reached": target.reached} for target in self._targets],
        }

    def _markdown(self) -> str:
        s = self._settings
        lines = [
            "# Results",
            "",
            "Written by `benches/run.py`; what each figure means is in `benches/README.md`.",
            f"Repetitions: {s.reps}, all implementations interleaved; {s.workers} workers.",
            "Every pattern was verified against serial order, every array result against NumPy's, before it was timed.",
            "",
            *(f"- {name}: {value}" for name, value in self._machine.items()),
            "",
        ]
        for title, rows in self._grids:
            if rows:
                lines += [f"## {title}", "", *_markdown_table(rows), ""]
        return "\n".join(lines[:-1]) + "\n"


def _title(table: Table) -> str:
    return f"{table.title} ({table.unit}, {' / '.join(table.statistics)})"


def _markdown_table(rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---|" + "---:|" * (len(rows[0]) - 1))
    return lines


def _print(title: str, rows: list[list[str]]) -> None:
    try:
        from rich.console import Console  # noqa: PLC0415 - optional
        from rich.table import Table as RichTable  # noqa: PLC0415
    except ImportError:
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        print(f"\n{title}")
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())
        return
    shown = RichTable(title=title, title_justify="left")
    for i, name in enumerate(rows[0]):
        shown.add_column(name, justify="right" if i else "left", overflow="fold")
    for row in rows[1:]:
        shown.add_row(*row)
    console = Console()
    # A log has no width of its own.
    (console if console.is_terminal else Console(width=150)).print(shown)
