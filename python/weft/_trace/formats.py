"""The view for each suffix, and its requirements."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft._trace.optional import need
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from weft._trace.views import Views

EVENTS = (".json", ".json.gz")
TIMELINES = (".png", ".svg", ".html")
GRAPHS = (".dot", ".svg")


def check(
    path: str | os.PathLike[str], suffixes: Sequence[str] = (*EVENTS, *TIMELINES, ".dot"), view: str = "trace"
) -> Path:
    """Return a path that a view can be written to.

    Parameters
    ----------
    path : str or PathLike
        The path.
    suffixes : sequence of str
        The suffixes allowed.
    view : str
        The name of the view in messages.

    Raises
    ------
    ArgumentTypeError
        If it is no path.
    ArgumentValueError
        If it ends in something else.
    ImportError
        If the format needs ``weft[trace]``.
    """
    try:
        place = Path(path)
    except TypeError:
        raise ArgumentTypeError(f"a {view} is written to a path, not to {type(path).__name__}") from None
    suffix = next((suffix for suffix in suffixes if place.name.endswith(suffix)), None)
    if suffix is None:
        raise ArgumentValueError(f"{place.name!r}: the suffix of a {view} must be one of {', '.join(suffixes)}")
    if suffix == ".png" or (suffix == ".svg" and view != "graph"):
        need("matplotlib")
    return place


def write(path: Path, views: Views) -> None:
    """Write the view for the suffix of a path."""
    if path.name.endswith(EVENTS):
        from weft._trace.chrome import write_events  # noqa: PLC0415 - only needed modules are imported

        write_events(path, views)
    elif path.suffix == ".dot":
        write_graph(path, views)
    else:
        write_timeline(path, views)


def write_timeline(path: Path, views: Views) -> None:
    """Write a timeline: a page, or a picture."""
    if path.suffix == ".html":
        from weft._trace.page import write_page  # noqa: PLC0415 - likewise

        write_page(path, views)
    else:
        from weft._trace.picture import draw_timeline  # noqa: PLC0415 - likewise

        draw_timeline(path, views)


def write_graph(path: Path, views: Views) -> None:
    """Write a graph: its text, or a picture."""
    from weft._trace.graph import write_dot, write_svg  # noqa: PLC0415 - likewise

    (write_dot if path.suffix == ".dot" else write_svg)(path, views)
