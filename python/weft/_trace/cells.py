"""The cells of notebooks, which run under the names of temporary files."""

from __future__ import annotations

import sys
from typing import Any


def cell_of(file: str) -> str | None:
    """Return the name that tracebacks give to the cell that ran as a file, or None if none did.

    Parameters
    ----------
    file : str
        The file name in the code that ran.

    Examples
    --------
    >>> from weft._trace.cells import cell_of
    >>> cell_of("script.py")
    """
    ipython: Any = sys.modules.get("IPython")  # imported by every program that runs cells
    shell = None if ipython is None else ipython.get_ipython()
    known: Any = getattr(getattr(shell, "compile", None), "_filename_map", {})
    number = known.get(file)
    return None if number is None else f"Cell In[{number}]"
