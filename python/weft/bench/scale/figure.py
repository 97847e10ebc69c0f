"""The simulation as a picture, drawn by matplotlib: measurements beside the fit, and the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._trace.optional import need
from weft.bench.scale.model import seconds_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weft.bench.scale.model import Algorithm, Link

#: Paul Tol's "bright" scheme, which suits colour-blind readers, too.
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44")
_LOSSES = {"bandwidth": "last bucket and bandwidth", "latency": "latency", "stragglers": "stragglers"}


def draw(
    path: Path, measured: Sequence[tuple[int, int, float]], links: dict[Algorithm, Link], rows: Sequence[dict[str, Any]]
) -> None:
    """Write the picture.

    Parameters
    ----------
    path : Path
        The file; the suffix says its format.
    measured : sequence of (int, int, float)
        Ranks, bytes and seconds of all-reduces; none where links were given.
    links : dict
        The links that follow from them, by algorithm.
    rows : sequence of dict
        A step on so many ranks, as ``weft bench scale --json`` tells it.
    """
    figure = need("matplotlib.figure").Figure(figsize=(13.0, 4.2), layout="constrained")
    panels = list(figure.subplots(1, 3 if measured else 2))
    if measured:
        _fits(panels.pop(0), measured, links)
    _efficiency(panels[0], list(links), rows)
    _losses(panels[1], rows)
    figure.savefig(path)


def _fits(axes: Any, measured: Sequence[tuple[int, int, float]], links: dict[Algorithm, Link]) -> None:
    for colour, ranks in zip(_COLOURS, sorted({ranks for ranks, _, _ in measured}), strict=False):
        points = [(nbytes, 1e6 * seconds) for count, nbytes, seconds in measured if count == ranks]
        sizes = [nbytes for nbytes, _ in points]
        axes.loglog(sizes, [us for _, us in points], "o", color=colour, label=f"{ranks} ranks, measured")
        for algorithm, style in zip(links, ("-", ":"), strict=False):
            fitted = [1e6 * seconds_of(algorithm, links[algorithm], ranks, nbytes) for nbytes in sizes]
            axes.loglog(sizes, fitted, style, color=colour, label=f"{ranks} ranks, {algorithm}")
    axes.set(title="All-reduces here", xlabel="bytes", ylabel="us")
    axes.legend(fontsize=7)


def _efficiency(axes: Any, algorithms: list[Algorithm], rows: Sequence[dict[str, Any]]) -> None:
    ranks = [row["ranks"] for row in rows]
    for colour, algorithm in zip(_COLOURS, algorithms, strict=False):
        for key, style, told in (("efficiency", "-", ""), ("without_stragglers", "--", ", no stragglers")):
            shares = [100.0 * row[algorithm][key] for row in rows]
            axes.semilogx(ranks, shares, style, color=colour, marker=".", label=f"{algorithm}{told}")
    axes.set(title="Efficiency", xlabel="ranks", ylabel="% of one rank's speed", ylim=(0, 105))
    axes.legend(fontsize=7)


def _losses(axes: Any, rows: Sequence[dict[str, Any]]) -> None:
    """Draw the time of the faster algorithm's steps beside their computation."""
    best = [min((row[name] for name in row if name != "ranks"), key=lambda each: each["seconds"]) for row in rows]
    ranks = [row["ranks"] for row in rows]
    stacked = [[1e3 * each["lost"][name] for each in best] for name in _LOSSES]
    axes.stackplot(ranks, stacked, labels=list(_LOSSES.values()), colors=_COLOURS)
    axes.set(title="What a step waits for", xlabel="ranks", ylabel="ms", xscale="log")
    axes.legend(fontsize=7, loc="upper left")
