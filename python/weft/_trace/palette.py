"""Colours of the kinds of ops, for all kinds of colour vision.

They are those of Paul Tol's "vibrant" and "light" schemes (https://sronpersonalpages.nl/~pault/). Ops of one kind get one
of three shades by their names, so that neighbours of different names can be told apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft._trace.record import Kind

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._trace.record import Record

COLOURS = {
    Kind.CALLABLE: "#0077bb",
    Kind.NATIVE: "#44bb99",
    Kind.COMPUTE: "#33bbee",
    Kind.COPY: "#ee7733",
    Kind.ASYNC: "#aa4499",
    Kind.LAUNCH: "#ddcc55",
    Kind.WAIT: "#9aa3ad",
    Kind.DELETE: "#666677",
    Kind.LANDING: "#eecc99",
}
FAILED = "#cc1133"
_SHADES = 3


def shades(kind: Kind) -> list[str]:
    """Return the shades of a kind: as it is, lighter, darker.

    Examples
    --------
    >>> from weft._trace.palette import Kind, shades
    >>> shades(Kind.COPY)
    ['#ee7733', '#f39c6a', '#b75c27']
    """
    colour = COLOURS[kind]
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))

    def mixed(other: int, part: float) -> str:
        return "#" + "".join(f"{round(value + (other - value) * part):02x}" for value in (red, green, blue))

    return [colour, mixed(255, 0.27), mixed(0, 0.23)]


def shade_of_names(record: Record) -> npt.NDArray[np.int64]:
    """Return the shade of each name in a record: names of one kind take turns, in the order of their first runs."""
    numbers = np.zeros(len(record.names), np.int64)
    names, first = np.unique(record.ops["name"], return_index=True)
    turns = dict.fromkeys(Kind, 0)
    for name in names[np.argsort(first)].tolist():
        kind = Kind(record.ops["kind"][first[np.searchsorted(names, name)]])
        numbers[name] = turns[kind] % _SHADES
        turns[kind] += 1
    return numbers
