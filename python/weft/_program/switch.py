"""`weft.eager`: programs switched off."""

from __future__ import annotations

from weft._core import Scope


def eager() -> Scope:
    """Switch all programs of the process off for a block, to debug: their functions run without the decorator.

    Inside, breakpoints, ``print`` and values work in the function as anywhere else. Blocks may nest; programs are on
    again after the last one. Recorded programs are kept, and `Program.replay` still replays.

    Returns
    -------
    Scope
        The block's context manager, also a decorator that makes each call of a function such a block.

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
    return Scope(eager=True)
