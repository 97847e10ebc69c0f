"""The timeline as a picture, drawn by matplotlib."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._trace.curves import curves
from weft._trace.measures import thinned
from weft._trace.optional import need
from weft._trace.palette import COLOURS, FAILED, shade_of_names, shades
from weft._trace.record import Kind, Outcome
from weft._trace.units import seconds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy.typing as npt

    from weft._trace.views import Views

_WIDTH = 14.0  # inches
_DPI = 140
_LANES = 0.86  # part of the width for lanes
_PIXELS = _WIDTH * _DPI * _LANES
_INK, _FAINT, _BAND, _LEVEL, _MARK = "#1b1f24", "#667079", "#f5f6f8", "#8a94a0", "#111111"
_HEIGHT = 0.86  # of an op, in rows
_LETTER = 8.0  # pixels per letter of a name
_TEXT = 8.0  # points
_NAMED = 400  # ops with their names, the longest first: a picture has no room for more
_VECTORS = 2_000  # boxes of one style in an SVG; more become an image in it
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))


@dataclass(slots=True, eq=False)
class _Boxes:
    """The rectangles of a picture: one for each op, or for each pixel if ops are narrower."""

    start: npt.NDArray[np.float64]
    width: npt.NDArray[np.float64]
    row: npt.NDArray[np.int64]
    op: npt.NDArray[np.int64]


def draw_timeline(path: Path, views: Views) -> None:
    """Write the picture.

    Parameters
    ----------
    path : Path
        The file; the suffix gives the format.
    views : Views
        The views to show.
    """
    figure_of, style = need("matplotlib.figure").Figure, need("matplotlib.style").context
    record, spans = views.record, views.spans
    depths = [lane.depth for lane in spans.lanes]
    rows = max(1, sum(depths))
    below = curves(record)
    lanes_height = min(30.0, max(1.0, 0.42 * rows))
    heights = [lanes_height, *[0.55] * len(below)]
    own = {"font.size": 9, "svg.fonttype": "none", "axes.edgecolor": _FAINT, "text.color": _INK}
    with style(["default", own]):  # independent of the user's own style
        figure = figure_of(figsize=(_WIDTH, sum(heights) + 1.5), dpi=_DPI, layout="constrained")
        panels = figure.subplots(len(heights), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        first, last = (int(spans.start.min()), int(spans.end.max())) if len(spans.op) else (0, max(record.duration, 1))
        size, unit = next((scale for scale in _UNITS if last - first >= scale[0]), _UNITS[-1])
        panels[0].set_xlim(first / size, max(last, first + 1) / size)
        _draw_lanes(panels[0], views, size, (last - first) / size)
        for axes, curve in zip(panels[1:], below, strict=True):
            times, level = thinned(curve.times, curve.level, int(_PIXELS))
            axes.fill_between(times / size, level, step="post", color=_LEVEL, linewidth=0)
            axes.set_ylim(0, int(level.max(initial=1)) * 1.08)
            axes.set_ylabel(curve.label, rotation=0, ha="right", va="center", labelpad=8)
            axes.yaxis.set_major_locator(need("matplotlib.ticker").MaxNLocator(2, integer=True))
            axes.yaxis.set_label_coords(-0.05, 0.5)  # left of the widest level
            if curve.name == "bytes":
                axes.yaxis.set_major_formatter(need("matplotlib.ticker").EngFormatter("B", sep=" "))
            axes.tick_params(labelsize=7, colors=_FAINT)
            axes.spines[["top", "right", "left"]].set_visible(False)
        panels[0].xaxis.set_major_formatter(_in(unit))
        _draw_head(figure, views)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


def _in(unit: str) -> Callable[[float, int], str]:
    """Return a function that writes times in a unit."""

    def write(time: float, _: int) -> str:
        return f"{time:,.10g} {unit}"

    return write


def _draw_head(figure: Any, views: Views) -> None:
    """Write title and legend."""
    patches = need("matplotlib.patches")
    record, summary = views.record, views.summary
    parallel = f"parallelism {summary.parallelism:.2f} of {summary.possible_parallelism:.2f} possible"
    head = f"{summary.count:,} ops in {seconds(summary.wall)}, {parallel}, critical path {seconds(summary.critical)}"
    if summary.overlap_fraction is not None:
        head += f", {summary.overlap_fraction:.0%} of copies hidden"
    figure.suptitle(head, x=0.01, ha="left", fontsize=10)
    handles: list[Any] = []
    for kind in Kind:
        if (record.began & (record.ops["kind"] == kind)).any():
            hatched = {"facecolor": "none", "edgecolor": COLOURS[kind], "hatch": "////", "linewidth": 0}
            drawn = hatched if kind is Kind.WAIT else {"color": COLOURS[kind]}
            handles.append(patches.Patch(label=kind.name.lower(), **drawn))
    if len(views.critical.ops):
        handles.append(patches.Patch(facecolor="none", edgecolor=_MARK, linewidth=1.5, label="critical path"))
    if summary.failed:
        handles.append(patches.Patch(color=FAILED, label="failed"))
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles) or 1, frameon=False, fontsize=8)


def _draw_lanes(axes: Any, views: Views, size: float, range_: float) -> None:
    """Draw the lanes: a band for each row, the ops, their names."""
    record, spans = views.record, views.spans
    offsets = np.concatenate(([0], np.cumsum([lane.depth for lane in spans.lanes], dtype=np.int64)))
    for at, lane in enumerate(spans.lanes):
        axes.axhspan(offsets[at] - 0.47, offsets[at] + lane.depth - 0.53, color=_BAND, linewidth=0, zorder=0)
    pixel = range_ / _PIXELS
    boxes = _boxes(views, offsets, size, max(pixel, 1e-12))
    on_path = np.isin(boxes.op, views.critical.ops)
    palette = {kind: shades(kind) for kind in Kind}
    numbers = shade_of_names(record)
    kinds, names = record.ops["kind"][boxes.op], record.ops["name"][boxes.op]
    waits = kinds == Kind.WAIT
    colours = np.array([palette[Kind(kind)][numbers[name]] for kind, name in zip(kinds, names, strict=True)], "U7")
    edged = (boxes.width > 4 * pixel) & ~waits
    _fill(axes, boxes, ~waits & ~edged, facecolors=colours[~waits & ~edged], linewidths=0)
    _fill(axes, boxes, edged & ~on_path, facecolors=colours[edged & ~on_path], edgecolors="white", linewidths=0.4)
    _fill(axes, boxes, waits, facecolors="none", edgecolors=COLOURS[Kind.WAIT], hatch="////", linewidths=0)
    marked = edged & on_path
    _fill(axes, boxes, marked, facecolors=colours[marked], edgecolors=_MARK, linewidths=1.3, zorder=3)
    _fill(axes, boxes, on_path & ~waits, (-0.43, 0.1), facecolors=_MARK, linewidths=0, zorder=4)
    failed = (record.ops["outcome"][boxes.op] == Outcome.FAILED) & ~waits
    _fill(axes, boxes, failed, (0.25, 0.18), facecolors=FAILED, linewidths=0, zorder=4)
    _write_names(axes, views, boxes, colours, waits, pixel)
    axes.set_ylim(offsets[-1] - 0.4, -0.6)
    axes.set_yticks([offsets[at] for at in range(len(spans.lanes))], [lane.label for lane in spans.lanes])
    axes.tick_params(axis="y", left=False, pad=6)
    axes.tick_params(axis="x", bottom=False, colors=_FAINT, labelbottom=True, labelsize=8)
    axes.grid(axis="x", color="#d9dce1", linewidth=0.6, zorder=1)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _boxes(views: Views, offsets: npt.NDArray[np.int64], size: float, pixel: float) -> _Boxes:
    """Return the boxes; ops narrower than a pixel share one box for each pixel that they touch."""
    spans = views.spans
    start, end = spans.start / size, spans.end / size
    row = offsets[spans.lane] + spans.row
    wide = np.nonzero(end - start >= pixel)[0]
    narrow = np.nonzero(end - start < pixel)[0]
    column = np.floor(start[narrow] / pixel).astype(np.int64)
    key = row[narrow] * (int(column.max(initial=0)) + 1) + column
    # The longest of those in one pixel shows; one of the critical path takes precedence.
    longest = np.lexsort((end[narrow] - start[narrow], np.isin(spans.op[narrow], views.critical.ops), key))
    shown = narrow[longest[np.append(np.diff(key[longest]) > 0, np.True_)]] if len(narrow) else narrow
    chosen = np.concatenate((wide, shown))
    width = np.concatenate((end[wide] - start[wide], np.full(len(shown), pixel)))
    return _Boxes(start[chosen], width, row[chosen], spans.op[chosen])


def _fill(
    axes: Any,
    boxes: _Boxes,
    which: npt.NDArray[np.bool_],
    strip: tuple[float, float] = (-_HEIGHT / 2, _HEIGHT),
    **style: Any,
) -> None:
    """Draw some of the boxes, or a strip of them: its upper edge below the middle of the row, and its height."""
    if not which.any():
        return
    left, right = boxes.start[which], boxes.start[which] + boxes.width[which]
    top = boxes.row[which] + strip[0]
    bottom = top + strip[1]
    corners = np.stack(
        [np.stack(corner, -1) for corner in ((left, top), (right, top), (right, bottom), (left, bottom))], 1
    )
    many = len(corners) > _VECTORS
    boxes_of = need("matplotlib.collections").PolyCollection
    axes.add_collection(boxes_of(corners, **{"zorder": 2, "rasterized": many, **style}), autolim=False)


def _write_names(
    axes: Any, views: Views, boxes: _Boxes, colours: npt.NDArray[np.str_], waits: npt.NDArray[np.bool_], pixel: float
) -> None:
    """Write names where there is room, into the widest boxes first."""
    for at in np.argsort(-boxes.width, kind="stable")[:_NAMED].tolist():
        room = int(boxes.width[at] / pixel / _LETTER) - 1
        name = views.record.label(int(boxes.op[at]))
        if room < min(3, len(name)):
            continue
        axes.text(
            boxes.start[at] + boxes.width[at] / 2,
            boxes.row[at],
            name if len(name) <= room else f"{name[: room - 1]}\u2026",
            color=_INK if waits[at] else _ink_on(str(colours[at])),
            fontsize=_TEXT,
            ha="center",
            va="center_baseline",
            clip_on=True,
            parse_math=False,
            zorder=5,
            bbox={"facecolor": _BAND, "edgecolor": "none", "pad": 1} if waits[at] else None,
        )


def _ink_on(colour: str) -> str:
    """Return black or white: the more legible one on a colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#111111" if 0.299 * red + 0.587 * green + 0.114 * blue > 140 else "#ffffff"  # luminance
