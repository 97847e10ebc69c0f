"""The environment variables that weft reads."""

from __future__ import annotations

import os

from weft._core import POLICIES
from weft._machine import gpus

#: The effect of each. docs/install.md lists the same.
VARIABLES = {
    "WEFT_POLICY": f"policy of the default engine: {', '.join(POLICIES)}",
    "WEFT_WORKERS": "number of workers of the default engine",
    "WEFT_STALL_AFTER": "seconds without progress after which a wait on the default engine warns, or none",
    "WEFT_RENAME_LIMIT": "how many storages an array may have at a time, so that overwriting it need not wait for its readers; 2 if not set",
    "WEFT_EXIT_TIMEOUT": "seconds that interpreter exit may take to drain what was pushed",
    "WEFT_EXIT_STATUS": "0 leaves the exit status of a script whose op failed unseen as it is, 1 makes it 1",
    "WEFT_CHECK": "1 makes NumPy arrays with pending tasks read-only for everybody else, 0 does not",
    **gpus.VARIABLES,
    "WEFT_COMM_CHECK": "1 lets ranks compare what they call before each collective, 0 does not",
    "WEFT_COMM_TIMEOUT": "seconds that a rank waits for the others, 600 if nobody says otherwise",
    "WEFT_ONEDNN_LIBRARY": "path of oneDNN's library, where it is not in its usual place, or off",
    "WEFT_VECTORS": "vectors of programs' element-wise ops and of networks' kernels, not the widest: sse2, avx2, avx512, neon, plain",
}


def unknown() -> list[str]:
    """Return the names of variables that are set and look like weft's, but are not: misspelt, perhaps.

    Examples
    --------
    >>> import os
    >>> from weft._command.environment import unknown
    >>> os.environ["WEFT_WORKER"] = "2"
    >>> unknown()
    ['WEFT_WORKER']
    >>> del os.environ["WEFT_WORKER"]
    """
    return sorted(name for name in os.environ if name.startswith("WEFT_") and name not in VARIABLES)
