"""Hosted calls that are short, computed by the thread that pushes them: it has the GIL, and a worker would have to wake up.

Only weft's own functions are: a user's may wait, or take long. They get copies of their inputs, which thus cannot
change meanwhile, and write to new arrays. A call that fails is pushed, and fails there.

Ops that are called often with small arrays have an *answer*: a function that returns what their `compute` would write,
in NumPy's own new array. Such a call needs no look-up, as NumPy chooses the shape and dtype of the result, and refuses
the same arguments as the op's rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call import callables
from weft._core import compute_here

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import NDArray
    from weft._registry.op import Op

#: Elements up to which arrays of few numbers, as ranges are, are asked of the core; its own limit is as many bytes as these of float64.
FEW = 1 << 13

#: Bytes of the arrays of a call at most, by what it takes for each of them.
GATHERED = 1 << 17
USUAL = 1 << 16
_LONG = 1 << 11
_THEIRS = 0

_limits: dict[Op, int] = {}


def computed(op: Op, run: Callable[..., None], results: tuple[NDArray, ...], inputs: tuple[NDArray, ...]) -> bool:
    """Compute a call of one of weft's ops, whose results are new, if what it reads is there. Return whether that was done."""
    limit = _limits.get(op)
    if limit is None:
        limit = _limits[op] = _limit(op)
    if limit == _THEIRS or op.replaced:
        return False
    return compute_here(run, results, inputs, op.name, limit)


def answers(op: Op, answer: Callable[..., object], *, exact: bool = False) -> None:
    """Let `answer(*inputs, **attributes)` say what `op` returns for small arrays that are there.

    It may raise for calls that it does not know: these are pushed. An `exact` one sets no flags of floating-point numbers.
    """
    op._answer_by(answer if exact else np.errstate(all="ignore")(answer), _limit(op))


def made(op: Op, result: NDArray, attributes: dict[str, Any]) -> bool:
    """Compute a call of one of weft's ops without operands likewise."""
    return computed(op, callables.of_compute(op.compute["cpu"], (), 1, (), attributes), (result,), ())


def _limit(op: Op) -> int:
    if op.ufunc is not None:
        return USUAL if getattr(np, op.ufunc.__name__, None) is op.ufunc else _THEIRS
    if not getattr(op.compute["cpu"], "__module__", "").startswith("weft."):
        return _THEIRS
    return _LONG if op.attribute("superlinear", False) else USUAL
