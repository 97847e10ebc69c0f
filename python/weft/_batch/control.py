"""`weft.scan`, `weft.cond` and operators of the user's under `weft.vmap`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._ops.joining import stack
from weft._ops.searching import where
from weft._program.loops import pair
from weft._registry.levels import LEVELS, Examples, innermost, inside
from weft._tape.pytree import flatten, several
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._tape.user_operators import Operator


def scanned(f: Callable[..., Any], init: Any, xs: Any, length: int | None, *, reverse: bool) -> tuple[Any, Any]:
    """Go through the rows by a loop: each turn computes all examples."""
    columns, build = flatten(xs)
    lengths: set[int | None] = {x.shape[0] if x.shape else None for x in columns}
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1 or None in lengths:
        raise ArgumentValueError(f"scan: xs and length say one number of rows, and they say {lengths or 'nothing'}")
    rows = range(next(iter(lengths)) or 0)
    if not rows:
        raise ArgumentValueError("scan: under weft.vmap there is at least one row")
    ys: list[list[Any]] = []
    carry, rebuild = init, build
    for row in reversed(rows) if reverse else rows:
        carry, y = pair(f(carry, build([x[row] for x in columns])))
        made, rebuild = flatten(y)
        ys.append(made)
    if reverse:
        ys.reverse()
    return carry, rebuild([stack(list(column)) for column in zip(*ys, strict=True)])


def chosen(p: Any, f: Callable[..., Any], g: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Compute both branches, and choose for each example; only one where all examples share the choice and it is known."""
    if isinstance(p, bool):
        return f(*args) if p else g(*args)
    (taken, build), (other, _) = flatten(f(*args)), flatten(g(*args))
    if len(taken) != len(other):
        raise ArgumentValueError(f"cond: one branch returned {len(taken)} arrays, and the other {len(other)}")
    return build([where(p, x, y) for x, y in zip(taken, other, strict=True)])


def applied(operator: Operator, operands: tuple[Any, ...]) -> Any:
    """Call an operator for each example: its methods may do anything."""
    level = innermost(operands)
    given = [x.value if isinstance(x, Examples) and x.level is level else None for x in operands]
    if not level.size:
        raise ArgumentValueError(f"weft.vmap: there is no example to call {type(operator).__name__}() for")
    with inside(LEVELS.get()[: level.depth]):
        answers = [
            operator(*(x if value is None else value[at] for x, value in zip(operands, given, strict=True)))
            for at in range(level.size)
        ]
        made = [level.show(stack(list(column))) for column in zip(*map(several, answers), strict=True)]
    return tuple(made) if isinstance(answers[0], tuple) else made[0]
