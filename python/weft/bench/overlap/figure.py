"""The picture: each pipeline between the larger of its parts and their sum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._trace.optional import need

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weft.bench.overlap.measuring import Overlap

_COMPUTE, _COPY, _PIPELINE = "#4477aa", "#ee7733", "#228833"


def draw(path: Path, found: Sequence[Overlap], title: str) -> None:
    """Write bars for each pipeline: its parts one after the other, and both together.

    Parameters
    ----------
    path : Path
        The file; its suffix says the format.
    found : sequence of Overlap
        The figures.
    title : str
        The title.
    """
    figure = need("matplotlib.figure").Figure(figsize=(9, 1.2 + 0.9 * len(found)), layout="constrained")
    axes = figure.subplots()
    for row, overlap in enumerate(found):
        first, second = sorted(
            [("compute", overlap.compute, _COMPUTE), ("copies", overlap.copy, _COPY)], key=lambda part: -part[1]
        )
        left = 0.0
        for label, width, colour in (first, second):
            axes.barh(row - 0.2, width, 0.36, left=left, color=colour, label=label if not row else None)
            left += width
        axes.barh(row + 0.2, overlap.pipeline, 0.36, color=_PIPELINE, label="pipeline" if not row else None)
        axes.plot([overlap.larger] * 2, [row - 0.42, row + 0.42], color="black", linewidth=1)
        axes.text(
            max(overlap.pipeline, overlap.larger), row + 0.2, f"  hides {max(overlap.hidden, 0.0):.0%}", va="center"
        )
    axes.set_yticks(range(len(found)), [overlap.name for overlap in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set_xlim(0, 1.15 * max(overlap.sum for overlap in found))
    axes.set_xlabel("milliseconds; the line is the larger part, which bounds the pipeline")
    axes.set_title(title, loc="left", fontsize="medium")
    axes.tick_params(left=False)
    axes.spines[["left", "right", "top"]].set_visible(False)
    figure.legend(loc="outside lower right", ncols=3, frameon=False)
    figure.savefig(path, dpi=150)
