"""The targets' verdicts, ``results.json`` and ``RESULTS.md``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft.bench.tables import number

if TYPE_CHECKING:
    from pathlib import Path

    from harness.targets import Target
    from weft.bench.report import Report
    from weft.bench.settings import Settings
    from weft.bench.tables import Grid

VERDICTS = {True: "reached", False: "MISSED", None: "not measured"}


def verdicts(targets: list[Target]) -> Grid:
    """Return the table of targets."""
    rows = [["target", "bound", "by minima", "by medians", "decided by", ""]]
    for target in targets:
        unit = "" if target.unit == "x" else f" {target.unit}"
        values = [("-" if v is None else number(v) + unit) for v in (target.by_minimum, target.by_median)]
        bound = f"{'>=' if target.at_least else '<='} {target.bound:g}{unit}"
        rows.append([target.name, bound, *values, target.decided_by, VERDICTS[target.reached]])
    return "Targets", rows


def write(folder: Path, report: Report, targets: list[Target], machine: dict[str, str], settings: Settings) -> None:
    """Write ``results.json`` and ``RESULTS.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {
        **report.json(),
        "targets": [{**asdict(target), "reached": target.reached} for target in targets],
    }
    (folder / "results.json").write_text(json.dumps(found, indent=1) + "\n")
    (folder / "RESULTS.md").write_text(_markdown([*report.grids(), verdicts(targets)], machine, settings))


def _markdown(grids: list[Grid], machine: dict[str, str], settings: Settings) -> str:
    lines = [
        "# Results",
        "",
        "Written by `benches/run.py`; what each figure means is in `benches/README.md`.",
        f"Repetitions: {settings.reps}, all implementations interleaved; {settings.workers} workers.",
        "Every pattern was verified against serial order, every array result against NumPy's, before it was timed.",
        "",
        *(f"- {name}: {value}" for name, value in machine.items()),
        "",
    ]
    for title, rows in grids:
        lines += [f"## {title}", "", *_markdown_table(rows), ""]
    return "\n".join(lines[:-1]) + "\n"


def _markdown_table(rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---|" + "---:|" * (len(rows[0]) - 1))
    return lines
