"""A program as a picture: ops in layers, each below all that it waits for; written without any library."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from weft._program.summary import shown_view
from weft._trace.markup import pictured, table
from weft._trace.units import amount
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    import os

    from weft._core import Compiled, _Step

_WIDTH, _HEIGHT, _GAP = 168, 40, 26  # of a box, and between boxes
_SHOWN = 200  # ops in a notebook


def draw(name: str, compiled: Compiled, path: str | os.PathLike[str]) -> None:
    """Write a program as ``.dot`` or ``.svg``.

    Raises
    ------
    ArgumentValueError
        If `path` has another suffix.
    """
    path = Path(path)
    steps = compiled.describe()
    if path.suffix == ".dot":
        text = _dot(name, steps)
    elif path.suffix == ".svg":
        text = svg(name, steps)
    else:
        raise ArgumentValueError(f"draw: {path.name!r} ends in neither .dot nor .svg")
    path.write_text(text, encoding="utf-8")


def shown(name: str, compiled: Compiled) -> str:
    """Return what a notebook shows of a program: its figures, and its ops as a picture, of many the first ones.

    Examples
    --------
    >>> import weft
    >>> @weft.program
    ... def double(x):
    ...     return x * 2
    >>> "<svg" in double.lower(weft.ones(2))._repr_html_()
    True
    """
    steps = compiled.describe()
    figures = [("ops", compiled.ops), ("arena", amount(compiled.nbytes)), ("states", len(compiled.states))]
    more = f"<p>the first {_SHOWN} of {len(steps)} ops</p>" if len(steps) > _SHOWN else ""
    return pictured(table([(f"program {name}", "")], figures) + more, svg(name, steps[:_SHOWN]))


def _told(step: _Step) -> str:
    """Return what an op reads and writes, line by line."""
    reads = [f"reads {shown_view(view)}" for view in step["inputs"]]
    writes = [f"writes {shown_view(view)}" for view in step["outputs"]]
    return "\n".join([*reads, *writes, step["location"] or ""]).strip()


def _dot(name: str, steps: list[_Step]) -> str:
    lines = [f"digraph {_quoted(name)} {{", '  node [shape=box, fontname="Helvetica,Arial,sans-serif", fontsize=11];']
    for step in steps:
        label = step["name"] + "".join(f"\n{shown_view(view)}" for view in step["outputs"])
        lines.append(f"  o{step['number']} [label={_quoted(label)}, tooltip={_quoted(_told(step))}];")
    lines += [f"  o{before} -> o{step['number']};" for step in steps for before in step["dependencies"]]
    return "\n".join([*lines, "}", ""])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def svg(name: str, steps: list[_Step]) -> str:
    """Return a program as a picture."""
    places = _places(steps)
    width = max((x for x, _ in places), default=0) + _WIDTH + 2 * _GAP
    height = max((y for _, y in places), default=0) + _HEIGHT + 2 * _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}">',
        '<g font-family="Helvetica,Arial,sans-serif" font-size="11" text-anchor="middle">',
        f"<title>{escape(name)}</title>",
        '<g fill="none" stroke="#9aa3ad">',
    ]
    for step, (x, y) in zip(steps, places, strict=True):
        for before in step["dependencies"]:
            left, top = places[before]
            start, end = left + _WIDTH / 2, x + _WIDTH / 2
            top, middle = top + _HEIGHT, (top + _HEIGHT + y) / 2
            parts.append(
                f'<path d="M{start:.0f} {top:.0f}C{start:.0f} {middle:.0f} {end:.0f} {middle:.0f} {end:.0f} {y:.0f}"/>'
            )
    parts.append("</g>")
    for step, (x, y) in zip(steps, places, strict=True):
        result = ", ".join(shown_view(view) for view in step["outputs"])
        parts += [
            f"<g><title>{escape(_told(step))}</title>",
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{_WIDTH}" height="{_HEIGHT}" rx="4" fill="#e3edf7" stroke="#3b6ea5"/>',
            f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 17:.0f}">{escape(step["name"])}</text>',
            f'<text x="{x + _WIDTH / 2:.0f}" y="{y + 32:.0f}" fill="#566">{escape(result[:30])}</text></g>',
        ]
    return "\n".join([*parts, "</g>", "</svg>", ""])


def _places(steps: list[_Step]) -> list[tuple[float, float]]:
    """Return where the boxes lie: by layer, and in a layer below what they wait for."""
    layers: list[int] = []
    for step in steps:
        layers.append(1 + max((layers[before] for before in step["dependencies"]), default=-1))
    across: list[float] = [0.0] * len(steps)
    for layer in range(max(layers, default=-1) + 1):
        members = [at for at, found in enumerate(layers) if found == layer]
        wanted = {at: _mean([across[before] for before in steps[at]["dependencies"]]) for at in members}
        column = 0.0
        for at in sorted(members, key=wanted.__getitem__):
            across[at] = max(column, wanted[at])
            column = across[at] + 1
    wide, high = _WIDTH + _GAP, _HEIGHT + _GAP
    return [(_GAP + x * wide, _GAP + layer * high) for x, layer in zip(across, layers, strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
