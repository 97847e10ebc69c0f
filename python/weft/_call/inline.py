"""Short hosted calls, computed by the pushing thread: it has the GIL already, and a worker would have to wake up.

Only weft's own functions run this way, because a user's may wait or take long. They get copies of their inputs, which
thus cannot change meanwhile, and write to new arrays. A call that fails is pushed, and fails there.

Ops that are often called with small arrays have an *answer*: a function that returns the result of their `compute` in a
new NumPy array. Such a call needs no look-up: NumPy chooses the shape and dtype of the result, and refuses the same
arguments as the op's rule.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call import callables
from weft._core import compute_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import NDArray
    from weft._registry.op import Op

#: Picoseconds for a byte of a call's arrays, about, by what NumPy does with it. The core knows what is short enough.
GATHERED = 122
USUAL = 244
_LONG = 7_800


def computed(op: Op, run: Callable[..., None], results: tuple[NDArray, ...], inputs: tuple[NDArray, ...]) -> bool:
    """Compute a call of one of weft's ops, whose results are new, if what it reads is there. Return whether that was done."""
    effort = _effort(op)
    if effort is None or op.replaced:
        return False
    return compute_here(run, results, inputs, op.name, effort)


def answers(op: Op, answer: Callable[..., object], *, exact: bool = False) -> None:
    """Let `answer(*inputs, **attributes)` return the results of `op` for small, ready arrays.

    It may raise for unknown calls: these are pushed. An `exact` one sets no floating-point flags.
    """
    op._answer_by(answer if exact else np.errstate(all="ignore")(answer), _effort(op) or USUAL)


def made(op: Op, result: NDArray, attributes: dict[str, Any]) -> bool:
    """Compute a call without operands of one of weft's ops in the same way."""
    return computed(op, callables.of_compute(op.compute["cpu"], (), 1, (), attributes), (result,), ())


@cache
def _effort(op: Op) -> int | None:
    """Return the picoseconds for a byte; None for a user's function."""
    if op.ufunc is not None:
        return USUAL if getattr(np, op.ufunc.__name__, None) is op.ufunc else None
    if not getattr(op.compute["cpu"], "__module__", "").startswith("weft."):
        return None
    return _LONG if op.attribute("superlinear", False) else USUAL
