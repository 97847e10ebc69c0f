"""What is shown again and again, by a thread of its own, until it is stopped."""

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
        What shows; it takes whether it is the last time.
    refresh : float
        How often it is called, per second.
    """

    def __init__(self, show: Callable[[bool], object], refresh: float) -> None:
        self._show, self._refresh = show, refresh
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew, name="weft-progress", daemon=True)

    def start(self) -> None:
        """Begin to show it."""
        self._thread.start()

    def stop(self) -> None:
        """Show it for the last time."""
        self._over.set()
        self._thread.join()
        self._show(True)

    def _renew(self) -> None:
        while not self._over.wait(1 / self._refresh):
            self._show(False)
