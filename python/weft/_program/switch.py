"""`weft.eager`: programs switched off."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from weft._core import set_eager

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["eager"]


@contextmanager
def eager() -> Generator[None]:
    """Switch all programs of the process off for a block, to debug: their functions run as if they were not decorated.

    Inside, breakpoints, ``print`` and values work in the function as anywhere else. Blocks may nest; programs are on again
    after the last one. Recorded programs are kept, and `Program.replay` still replays.

    Yields
    ------
    None

    Examples
    --------
    >>> import weft
    >>> @weft.program
    ... def step(x):
    ...     print("as Python runs")
    ...     return x + 1
    >>> x = weft.ones(2)
    >>> with weft.eager():
    ...     y = step(x)
    ...     y = step(x)
    as Python runs
    as Python runs
    """
    set_eager(True)
    try:
        yield
    finally:
        set_eager(False)
