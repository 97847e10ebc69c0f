"""The cells of notebooks, which run as files of other names."""

from __future__ import annotations

import sys
from typing import Any


def cell_of(file: str) -> str | None:
    """Return what tracebacks call the cell that ran as a file, or None if none did.

    Parameters
    ----------
    file : str
        The name in the code of what ran.

    Examples
    --------
    >>> from weft._trace.cells import cell_of
    >>> cell_of("script.py")
    """
    ipython: Any = sys.modules.get("IPython")  # who runs a cell has imported it
    shell = None if ipython is None else ipython.get_ipython()
    known: Any = getattr(getattr(shell, "compile", None), "_filename_map", {})
    number = known.get(file)
    return None if number is None else f"Cell In[{number}]"
