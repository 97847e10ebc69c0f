"""The savings of a program: the ops of a loop's turn recorded once, on stand-ins for its arrays, and timed beside the same ops one by one.

A trace knows the names of ops and their times, not their arrays. So the ops run in a row, on arrays of a size at which they take
about as long as those of the trace did; those that are not element-wise count as additions.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Engine, find_op
from weft._ops.creation import asarray
from weft._program.decorator import program

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: Elements of the stand-ins.
_SIZES = (16, 256, 4_096, 65_536, 1_048_576)
#: Runs for one time, that of the fastest, and seconds of a turn from which on no larger stand-ins are tried.
_RUNS, _LONG = 7, 0.05


def part_saved(names: Iterable[str], seconds: float, workers: int) -> float | None:
    """Return the part of its time that a turn of ops saves as a program; None if too few of its ops are element-wise ones.

    Parameters
    ----------
    names : iterable of str
        The ops of a turn.
    seconds : float
        How long the turn takes.
    workers : int
        Workers of its engine.

    Examples
    --------
    >>> from weft._doctor.replayed import part_saved
    >>> saved = part_saved(["multiply", "add", "tanh"] * 4, 2e-5, 1)
    >>> saved is not None and 0 <= saved < 1
    True
    """
    # An op that is not element-wise is an addition here: one op more, with any result.
    named = [find_op(name) for name in names]
    ops: list[Any] = [op if _is_plain(op) else find_op("add") for op in named]
    if 2 * sum(map(_is_plain, named)) < len(ops):
        return None

    def turn(x: Any, other: Any) -> Any:
        for op in ops:
            x = op(x) if op.ufunc.nin == 1 else op(x, other)
        return x

    nearest: tuple[float, float, Any, Any] | None = None
    with Engine(workers=workers, name="doctor") as engine:
        for size in _SIZES:
            x, other = (asarray(np.full(size, value), engine=engine) for value in (0.5, 0.25))
            eager = _fastest(lambda x=x, other=other: turn(x, other))  # type: ignore[misc]
            distance = abs(np.log(eager / seconds))
            if nearest is None or distance < nearest[0]:
                nearest = float(distance), eager, x, other
            if eager > min(seconds, _LONG):  # larger ones are further off
                break
        assert nearest is not None
        _, eager, x, other = nearest
        recorded = program(turn)
        return max(0.0, 1 - _fastest(lambda: recorded(x, other)) / eager)


def _is_plain(op: Any) -> bool:
    ufunc = getattr(op, "ufunc", None)
    return (
        ufunc is not None
        and ufunc.signature is None
        and ufunc.nout == 1
        and ufunc.nin in {1, 2}
        and "d->" in "".join(ufunc.types)
    )


def _fastest(call: Callable[[], Any]) -> float:
    """Return the seconds of the fastest call, until its result is there."""
    call().wait_to_read()
    times: list[float] = []
    for _ in range(_RUNS):
        begun = time.perf_counter()
        call().wait_to_read()
        times.append(time.perf_counter() - begun)
    return max(min(times), 1e-9)
