"""oneDNN: its search paths, and the outcome of the search."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from weft._core import open_onednn

__all__ = ["onednn"]

_VARIABLE = "WEFT_ONEDNN_LIBRARY"


def _candidates() -> list[str]:
    """Return the files that are tried: the one that a variable names, or those of an installed wheel and of the system."""
    said = os.environ.get(_VARIABLE)
    if said is not None:
        return [] if said.lower() in ("", "off", "0") else [said]
    roots = dict.fromkeys([sys.prefix, sys.base_prefix])
    installed = [str(Path(root) / "lib" / "libdnnl.so.3") for root in roots]
    return [*(path for path in installed if Path(path).exists()), "libdnnl.so.3"]


@cache
def onednn() -> tuple[str | None, str]:
    """Open oneDNN, once for the process, and return its version and its file; None and why where it is not used.

    Examples
    --------
    >>> from weft._nn.onednn import onednn
    >>> version, where = onednn()
    >>> version is None or version.startswith("3.")
    True
    """
    return open_onednn(_candidates())
