"""Why this process ends, in words for the other ranks."""

from __future__ import annotations

import sys
import traceback


def reason_of_exit() -> str:
    """Return the uncaught exception and its line; nothing if there was none."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"
