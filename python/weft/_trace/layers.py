"""A large graph as a picture without Graphviz: ops in layers, each below all ops that it waits for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from weft._trace.optional import need
from weft._trace.palette import shade_of_names, shades
from weft._trace.record import Kind

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from weft._trace.views import Views

_SWEEPS = 6  # over the layers, to bring connected ops together
_NAMED = 250  # ops: names of more would hide each other
_LARGEST = 60.0  # inches


def draw_layers(path: Path, views: Views, shown: npt.NDArray[np.int64]) -> None:
    """Draw ops and dependencies.

    Parameters
    ----------
    path : Path
        The file.
    views : Views
        The views to draw.
    shown : ndarray
        The ops to draw.
    """
    figure_of = need("matplotlib.figure").Figure
    lines = need("matplotlib.collections").LineCollection
    record = views.record
    place = np.full(len(record.ops), -1, np.int64)
    place[shown] = np.arange(len(shown))
    pairs = place[views.dependencies]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    layer = _layers(len(shown), pairs)
    across = _across(layer, pairs)
    width, height = float(across.max(initial=0) - across.min(initial=0)) + 1, int(layer.max(initial=0)) + 1
    size = (min(_LARGEST, max(6.0, 1.1 * width)), min(_LARGEST, max(3.0, 0.7 * height)))
    figure = figure_of(figsize=size, layout="constrained")
    axes = figure.subplots()
    critical = np.zeros(len(record.ops), np.bool_)
    critical[views.critical.ops] = True
    marked = critical[shown]
    ends = np.stack((across[pairs], layer[pairs]), -1)
    both = marked[pairs].all(axis=1)
    many = len(pairs) > 5 * _NAMED
    for which, style in (
        (~both, {"colors": "#9aa3ad", "linewidths": 0.5}),
        (both, {"colors": "#111111", "linewidths": 1.4}),
    ):
        axes.add_collection(lines(ends[which], rasterized=many, zorder=1, **style), autolim=False)
    numbers, palette = shade_of_names(record), {kind: shades(kind) for kind in Kind}
    names, kinds = record.ops["name"][shown], record.ops["kind"][shown]
    colours = [palette[Kind(kind)][numbers[name]] for kind, name in zip(kinds, names, strict=True)]
    edges = np.where(marked, "#111111", "#ffffff")
    dots = 160 if len(shown) <= _NAMED else 30
    axes.scatter(
        across, layer, dots, colours, marker="s", edgecolors=edges, linewidths=1 + marked, zorder=2, rasterized=many
    )
    if len(shown) <= _NAMED:
        for at, op in enumerate(shown.tolist()):
            axes.text(
                across[at], layer[at] + 0.3, record.label(op), ha="center", va="top", fontsize=7, parse_math=False
            )
    axes.set_ylim(height - 0.2, -0.6)
    axes.set_xlim(across.min(initial=0) - 0.8, across.max(initial=0) + 0.8)
    axes.set_axis_off()
    with need("matplotlib").rc_context({"svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})


def _layers(count: int, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return for each op the number of ops on the longest path to it."""
    layer = [0] * count
    listed: list[list[int]] = pairs.tolist()
    for before, after in listed:  # in order of the second
        layer[after] = max(layer[after], layer[before] + 1)
    return np.array(layer, np.int64)


def _across(layer: npt.NDArray[np.int64], pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the place of each op in its layer: near the ops connected with it (Sugiyama's barycentres)."""
    across = np.zeros(len(layer))
    order = np.argsort(layer, kind="stable")
    bounds: list[int] = np.searchsorted(layer[order], np.arange(int(layer.max(initial=0)) + 2)).tolist()
    for members in (order[left:right] for left, right in pairwise(bounds)):
        across[members] = np.arange(len(members)) - (len(members) - 1) / 2
    links = np.bincount(pairs.ravel(), minlength=len(layer))
    for _ in range(_SWEEPS):
        pull = np.bincount(pairs[:, 1], across[pairs[:, 0]], len(layer)) + np.bincount(
            pairs[:, 0], across[pairs[:, 1]], len(layer)
        )
        wanted = np.where(links > 0, pull / np.maximum(links, 1), across)
        sorted_ = np.lexsort((wanted, layer))
        for left, right in pairwise(bounds):
            across[sorted_[left:right]] = np.arange(right - left) - (right - left - 1) / 2
    return across
