"""A bar in a notebook, redrawn until it is stopped."""

from __future__ import annotations

import html
import sys
from typing import TYPE_CHECKING, Any

from weft._trace.renewing import Renewed

if TYPE_CHECKING:
    from collections.abc import Callable


def in_notebook() -> bool:
    """Return whether a notebook's cell runs, or other code with a display of IPython's.

    Examples
    --------
    >>> from weft._trace.notebook_bar import in_notebook
    >>> in_notebook()
    False
    """
    ipython: Any = sys.modules.get("IPython")  # imported by every program that runs cells
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def bar(done: int, total: int, text: str) -> str:
    """Return a bar of HTML, and a text behind it.

    Examples
    --------
    >>> from weft._trace.notebook_bar import bar
    >>> bar(1, 2, "a & b")
    '<div><progress value="1" max="2"></progress> a &amp; b</div>'
    """
    return f'<div><progress value="{done}" max="{max(total, 1)}"></progress> {html.escape(text)}</div>'


class Drawn:
    """A display that a notebook shows below the running cell.

    Parameters
    ----------
    figures : callable
        Returns the part done, the total and a text.
    refresh : float
        How often the display is renewed, per second.
    """

    def __init__(self, figures: Callable[[], tuple[int, int, str]], refresh: float) -> None:
        self._figures = figures
        display: Any = sys.modules["IPython"].display
        self._handle: Any = display.display(self._shown(), raw=True, display_id=True)
        self._renewed = Renewed(lambda _: self._handle.update(self._shown(), raw=True), refresh)
        self._renewed.start()

    def stop(self) -> None:
        """Draw the last figures."""
        self._renewed.stop()

    def _shown(self) -> dict[str, str]:
        done, total, text = self._figures()
        return {"text/html": bar(done, total, text), "text/plain": f"{text}: {done:,} of {total:,}"}
