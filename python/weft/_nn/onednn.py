"""oneDNN: its search paths, and the outcome of the search."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

from weft._core import open_onednn

_VARIABLE = "WEFT_ONEDNN_LIBRARY"
#: Its name, and the folder of its wheels in an environment.
_NAME, _FOLDER = {"win32": ("dnnl.dll", "Library/bin"), "darwin": ("libdnnl.3.dylib", "lib")}.get(
    sys.platform, ("libdnnl.so.3", "lib")
)


def _candidates() -> list[str]:
    """Return the files that are tried: the one that a variable names, or those of an installed wheel and of the system."""
    said = os.environ.get(_VARIABLE)
    if said is not None:
        return [] if said.lower() in ("", "off", "0") else [said]
    roots = dict.fromkeys([sys.prefix, sys.base_prefix])
    installed = [Path(root) / _FOLDER / _NAME for root in roots]
    return [*(str(path) for path in installed if path.exists()), _NAME]


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
