"""The timeline as a page: one file with data, styles and script, without references to others.

The parts lie in ``timeline/``: ``page.html`` has their places. Data are columns of numbers, compressed. The page draws
on a canvas, at a cost that grows with its width and hardly with the number of ops.
"""

from __future__ import annotations

import base64
import json
import zlib
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._trace.curves import curves
from weft._trace.marks import marks_of
from weft._trace.palette import FAILED, shade_of_names, shades
from weft._trace.record import Kind, Record
from weft._trace.units import seconds

if TYPE_CHECKING:
    from pathlib import Path

    from weft._trace.summary import Summary
    from weft._trace.views import Views

#: In order: classes before their uses.
_SCRIPTS = ("trace", "units", "viewport", "layout", "lanes", "scale", "arrows", "search", "details", "main")


def write_page(path: Path, views: Views) -> None:
    """Write the page.

    Parameters
    ----------
    path : Path
        The file.
    views : Views
        The views to show.
    """
    path.write_text(page_of(path.stem, views), encoding="utf-8")


def page_of(title: str, views: Views) -> str:
    """Return the page.

    Parameters
    ----------
    title : str
        Its title.
    views : Views
        The views to show.
    """
    columns, table = _columns(views)
    about = {**_about(views), "columns": table}
    parts = files("weft._trace").joinpath("timeline")
    return Template(parts.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=_escaped(title),
        style=parts.joinpath("page.css").read_text(encoding="utf-8"),
        script="\n".join(parts.joinpath(f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS),
        # "</script" in the name of an op would end the script element.
        trace=json.dumps(about, separators=(",", ":")).replace("<", "\\u003c"),
        columns=base64.b64encode(columns).decode(),
    )


def _about(views: Views) -> dict[str, Any]:
    """Return the data besides the columns."""
    record, summary = views.record, views.summary
    spans = views.spans
    return {
        "from": int(spans.start.min()) if len(spans.op) else 0,
        "to": int(spans.end.max()) if len(spans.op) else record.duration,
        "names": record.names,
        "places": record.places,
        "threads": [thread["name"] for thread in record.threads],
        "streams": [record.stream(index) for index in range(len(record.streams))],
        "variables": [record.variable(index) for index in range(len(record.variables))],
        "errors": record.errors,
        "marks": marks_of(record),
        "lanes": [{"label": lane.label, "depth": lane.depth} for lane in spans.lanes],
        "palette": {**{kind.name.lower(): shades(kind) for kind in Kind}, "failed": [FAILED]},
        "shades": shade_of_names(record).tolist(),
        "figures": _figures(summary),
        "legend": _legend(record),
        "levels": [
            {"name": curve.name, "label": curve.label, "most": int(curve.level.max(initial=0))}
            for curve in curves(record)
        ],
    }


def _figures(summary: Summary) -> list[tuple[str, str]]:
    """Return the figures of the page's head."""
    figures = [
        ("wall time", seconds(summary.wall)),
        ("ops", f"{summary.count:,}"),
        ("parallelism", f"{summary.parallelism:.2f} of {summary.possible_parallelism:.2f} possible"),
        ("critical path", seconds(summary.critical)),
    ]
    if summary.overlap_fraction is not None:
        figures.append(("copies hidden", f"{summary.overlap_fraction:.0%}"))
    counts = {name: getattr(summary, name) for name in ("failed", "skipped", "dropped")}
    return figures + [(name, f"{count:,}") for name, count in counts.items() if count]


def _legend(record: Record) -> list[tuple[str, int, int]]:
    """Return the kinds of the record, with the number of ops that began and their total time."""
    start, end = record.work()
    took = end - start
    found: list[tuple[str, int, int]] = []
    for kind in Kind:
        mine = record.began & (record.ops["kind"] == kind)
        if mine.any():
            found.append((kind.name.lower(), int(mine.sum()), int(took[mine].sum())))
    return found


def _columns(views: Views) -> tuple[bytes, list[dict[str, Any]]]:
    """Return all columns, compressed, and the place of each one."""
    record, spans = views.record, views.spans
    ops, accesses, pairs = record.ops, record.accesses, views.dependencies
    columns: dict[str, tuple[str, Any]] = {
        **{name: ("f8", ops[name]) for name in ("bytes", "moved", "pushed", "ready", "started")},
        "ended": ("f8", record.ends()),
        "deviceStarted": ("f8", ops["device_started"]),
        "deviceEnded": ("f8", ops["device_ended"]),
        **{name: ("u4", ops[name]) for name in ("name", "place")},
        "priority": ("i4", ops["priority"]),
        **{name: ("u2", ops[name]) for name in ("pusher", "worker", "stream")},
        **{name: ("u1", ops[name]) for name in ("kind", "outcome")},
        "spanStart": ("f8", spans.start),
        "spanEnd": ("f8", spans.end),
        **{f"span{name.title()}": ("u4", getattr(spans, name)) for name in ("op", "lane", "row")},
        "before": ("u4", pairs[:, 0]),
        "after": ("u4", pairs[:, 1]),
        "accessVersion": ("f8", accesses["version"]),
        "accessOp": ("u4", accesses["op"]),
        "accessVariable": ("u4", accesses["variable"]),
        "accessKind": ("u1", accesses["kind"]),
        "path": ("u4", views.critical.ops),
    }
    for curve in curves(record):
        columns |= {f"{curve.name}Time": ("f8", curve.times), f"{curve.name}Level": ("f8", curve.level)}
    packed, table = bytearray(), list[dict[str, Any]]()
    for name, (dtype, values) in columns.items():
        packed += bytes(-len(packed) % 8)  # a typed array is aligned to its elements
        table.append({"name": name, "type": dtype, "offset": len(packed), "length": len(values)})
        packed += np.ascontiguousarray(values, f"<{dtype}").tobytes()
    return zlib.compress(bytes(packed), 6), table


def _escaped(text: str) -> str:
    """Return text escaped for HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")
