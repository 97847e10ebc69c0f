"""The graph of ops and versions: as text for Graphviz, and as a picture.

A box is an op, an ellipse a version of a variable. A solid arrow from a version means that an op sees it; one to a
version, that an op makes it. A dotted arrow between ops means that the second overwrites an input of the first.
"""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np

from weft._trace.palette import FAILED, shade_of_names, shades
from weft._trace.record import Access, Kind, Outcome, Record
from weft._trace.units import seconds

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from weft._trace.views import Views

_LARGEST = 500  # ops that Graphviz lays out in seconds


def write_dot(path: Path, views: Views) -> None:
    """Write the graph in Graphviz's language.

    Parameters
    ----------
    path : Path
        The file.
    views : Views
        The views to draw: the ops that access variables.
    """
    path.write_text(_text(views), encoding="utf-8")


def write_svg(path: Path, views: Views) -> None:
    """Draw the graph: by ``dot`` if that is installed and the graph is not too large for it, or else layer by layer.

    Parameters
    ----------
    path : Path
        The file.
    views : Views
        The views to draw.
    """
    if len(_shown(views.record)) > _LARGEST or not laid_out(_text(views), path):
        from weft._trace.layers import draw_layers  # noqa: PLC0415 - matplotlib is optional

        draw_layers(path, views, _shown(views.record))


def laid_out(text: str, path: Path) -> bool:
    """Draw Graphviz text into a file, in the format of its suffix; return whether ``dot`` is installed.

    Parameters
    ----------
    text : str
        The text.
    path : Path
        The picture.
    """
    dot = shutil.which("dot")
    if dot is not None:
        kind = path.suffix.removeprefix(".")
        subprocess.run([dot, f"-T{kind}", "-o", path], input=text.encode(), check=True)  # noqa: S603 - names a file
    return dot is not None


def _shown(record: Record) -> npt.NDArray[np.int64]:
    """Return the ops that access variables, without waits."""
    accessing = np.unique(record.accesses["op"]).astype(np.int64)
    return accessing[~record.waits[accessing]]


def _text(views: Views) -> str:
    """Return the graph in Graphviz's language."""
    lines = [
        "digraph weft {",
        '  node [fontname="Helvetica,Arial,sans-serif", fontsize=11];',
        '  edge [color="#667079", arrowsize=0.7];',
        *_ops(views),
        *_versions(views),
        "}",
    ]
    return "\n".join(lines) + "\n"


def _ops(views: Views) -> Iterator[str]:
    """Yield a node for each op."""
    record = views.record
    took, numbers, critical = record.durations(), shade_of_names(record), set(views.critical.ops.tolist())
    for op in _shown(record).tolist():
        kind, outcome = Kind(record.ops["kind"][op]), Outcome(record.ops["outcome"][op])
        detail = seconds(int(took[op])) if outcome is Outcome.DONE else outcome.name.lower()
        colour = shades(kind)[numbers[record.ops["name"][op]]]
        style = {"label": f"{record.label(op)}\n{detail}", "tooltip": record.place(op), "fillcolor": f"{colour}66"}
        if outcome is Outcome.FAILED:
            style |= {"color": FAILED, "penwidth": "2"}
        elif op in critical:
            style |= {"penwidth": "2.5"}
        yield f"  o{op} [shape=box, style=filled, {_attributes(style)}];"


def _versions(views: Views) -> Iterator[str]:
    """Yield a node for each version, the arrows from and to it, and arrows without a version."""
    record = views.record
    shown = set(_shown(record).tolist())
    seen: dict[tuple[int, int], None] = {}
    makers: dict[tuple[int, int], int] = {}
    arrows: list[str] = []
    explained: set[tuple[int, int]] = set()
    for op, variable, kind, version in record.accesses[["op", "variable", "kind", "version"]].tolist():
        if op not in shown:
            continue
        # A deletion is alone on its variable, and makes no version.
        makes = kind != Access.READ and record.ops["kind"][op] != Kind.DELETE
        if makes:
            seen[variable, version] = None
            makers[variable, version] = op
            arrows.append(f"  o{op} -> v{variable}_{version};")
        source = (variable, version - makes)
        if kind != Access.OVERWRITE:
            seen[source] = None
            arrows.append(f"  v{variable}_{source[1]} -> o{op};")
            if source in makers:
                explained.add((makers[source], op))
    for variable, version in seen:
        label = _attributes({"label": f"{record.variable(variable)} v{version}"})
        yield f'  v{variable}_{version} [shape=ellipse, height=0.3, color="#9aa3ad", {label}];'
    yield from arrows
    for before, after in views.dependencies.tolist():
        if (before, after) not in explained and {before, after} <= shown:
            yield f"  o{before} -> o{after} [style=dotted];"


def _attributes(values: dict[str, str]) -> str:
    """Return attributes in Graphviz's language."""
    return ", ".join(f"{name}={_quoted(value)}" for name, value in values.items())


def _quoted(text: str) -> str:
    """Return a string of Graphviz's language that shows as `text`."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
