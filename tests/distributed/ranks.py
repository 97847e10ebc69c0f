"""What the tests let several ranks do: `mpiexec -n N python ranks.py ROOM` runs each check of a room on all ranks.

A check is a function of a fresh communicator. Each rank prints a line for each check, which says how it ended; the tests
look at these lines. A rank that is thrown off leaves its communicator broken, and the next check has another one.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from typing import TYPE_CHECKING

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.distributed import Communicator

#: The mark of a line that is for the tests.
MARK = "weft-check "
#: Seconds for the other ranks; a check that is about waiting says less.
TIMEOUT = 60.0


def run(checks: dict[str, Callable[[Communicator], None]]) -> None:
    """Run the checks in order, each with a communicator of its own."""
    for name, check in checks.items():
        comm = weft.distributed.Communicator(name=name, timeout=TIMEOUT)
        try:
            check(comm)
            if comm.broken is None:
                comm.close()
            outcome = "passed"
        except BaseException:  # noqa: BLE001 - told to the tests
            outcome = traceback.format_exc()
            comm.close()
        sys.stdout.write(MARK + json.dumps([name, comm.rank, outcome]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    run(importlib.import_module(sys.argv[1]).CHECKS)
