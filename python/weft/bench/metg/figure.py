"""Efficiency over the granularity of tasks as a picture, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._trace.optional import need

if TYPE_CHECKING:
    from pathlib import Path

    from weft.bench.metg.measuring import Curves

#: Paul Tol's "bright" scheme, which suits colour-blind readers, too.
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb", "#000000")


def draw(path: Path, curves: Curves) -> None:
    """Write the picture: a panel for each grid, a line for each implementation, by minima.

    Parameters
    ----------
    path : Path
        The file; the suffix says its format.
    curves : Curves
        The measured curves.
    """
    widths = [width for width in curves.settings.widths if any(grid.width == width for grid in curves.grids())]
    rows = [[grid for grid in curves.grids() if grid.width == width] for width in widths]
    columns = max(map(len, rows))
    figure = need("matplotlib.figure").Figure(
        figsize=(2.6 * columns + 1.4, 2.6 * len(rows) + 0.7), layout="constrained"
    )
    panels = figure.subplots(len(rows), columns, sharex=True, sharey=True, squeeze=False)
    for row, grids in zip(panels, rows, strict=True):
        for axes, grid in zip(row, grids, strict=False):
            for colour, name in zip(_COLOURS, curves.names(), strict=False):
                points = curves.points(grid, name, "minimum")
                axes.semilogx(
                    [point.granularity / 1000 for point in points],
                    [100 * point.efficiency for point in points],
                    color=colour,
                    marker=".",
                    linestyle="-" if name.startswith("weft") else "--",
                    label=name,
                )
            axes.axhline(50, color="#888888", linewidth=0.6)
            axes.set(title=grid.title, ylim=(0, 105))
    figure.supxlabel("granularity, us")
    figure.supylabel("efficiency, %")
    lines, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=4, fontsize=8)
    figure.savefig(path)
