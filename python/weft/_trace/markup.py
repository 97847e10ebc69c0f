"""Tables and pages as notebooks show them."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def framed(page: str, height: int) -> str:
    """Return a whole page as a frame in another one, separate from its styles and scripts."""
    text = html.escape(page)
    return f'<iframe srcdoc="{text}" style="width: 100%; height: {height}px; border: 0" title="weft"></iframe>'


def table(head: Iterable[tuple[str, ...]], rows: Iterable[tuple[object, ...]]) -> str:
    """Return a table of HTML with the texts escaped."""

    def line(cells: tuple[object, ...], kind: str) -> str:
        return "<tr>" + "".join(f"<{kind}>{html.escape(str(cell))}</{kind}>" for cell in cells) + "</tr>"

    above = "".join(line(cells, "th") for cells in head)
    return f"<table><thead>{above}</thead><tbody>{''.join(line(cells, 'td') for cells in rows)}</tbody></table>"


def pictured(above: str, svg: str) -> str:
    """Return a picture below other HTML; it scrolls if it is larger than the page."""
    return f'{above}<div style="overflow: auto; max-height: 640px; background: white">{svg}</div>'
