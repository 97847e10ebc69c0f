"""A display that its own thread renews until it is stopped."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Renewed:
    """Calls a function several times per second, and once more at the end.

    Parameters
    ----------
    show : callable
        Draws; its argument is true for the last time.
    refresh : float
        How often it is called, per second.
    """

    def __init__(self, show: Callable[[bool], object], refresh: float) -> None:
        self._show, self._refresh = show, refresh
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="weft-progress", daemon=True)

    def start(self) -> None:
        """Start to draw."""
        self._thread.start()

    def stop(self) -> None:
        """Draw for the last time."""
        self._over.set()
        self._thread.join()
        self._show(True)

    def _renew(self) -> None:
        while not self._over.wait(1 / self._refresh):
            self._show(False)
