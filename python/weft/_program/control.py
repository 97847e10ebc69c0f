"""`weft.scan` and `weft.cond`: loops and branches over functions of arrays.

| operands | `scan` | `cond` |
|---|---|---|
| arrays, under `weft.eager`, or on a device | row by row: `loops.unrolled` | the chosen branch is called, here |
| arrays, otherwise | a program of its own, recorded once: `_program_of` | the chosen branch is called, here |
| arrays, in a recording | one op of it: `loops.looped` | one op of it: `branches.chosen` |
| the same, heard by the tape | a node whose gradient is another loop: `loops` | a node whose gradient is a choice: `branches` |
| symbols | a node with a symbol as its body: `weft._graph.control` | the same |

A bound node calls `scan` or `cond` again, with its body on arrays: so it takes one of the rows above. The rest is
shared. Bodies and branches are recorded as parts of a recording (`subrecordings`); its `Again` is the gradient of both,
which computes a part once more; `trees` takes nests of arrays apart and puts them together; checks of a body's answer
(`loops.pair`, `branches.pairs`) serve arrays and symbols.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from weft._core import NDArray, is_eager
from weft._ops.draws import drawn_from_by_replay, is_watched
from weft._program import record
from weft._program.branches import chosen
from weft._program.decorator import program
from weft._program.loops import looped, unrolled
from weft._program.trees import arrays_of, leaves_of
from weft._registry import hooks
from weft._registry.levels import LEVELS, is_examples
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._program.function import ProgramFunction

#: The loops over the bodies used last, by identity of these; a program keeps its function.
_loops: OrderedDict[int, ProgramFunction] = OrderedDict()
_KEPT = 64


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """Call ``carry, y = f(carry, x)`` for each row of `xs`, and return the last carry and all rows `y`.

    The body is recorded once and runs as one op. For each row its ops run one after the other, natively if they are
    native, on memory that is taken once. The rows equal those of a Python loop, bit for bit; so do gradients, which
    compute each row of the body once more and keep the carries before them. Over symbols the loop is a node with a
    symbol of its own as its body.

    A body with a result that cannot come from one op is recorded row by row: one that changes its carry or its rows in
    place, that counts in Python's numbers, or holds an async op; where the tape listens, also one that draws numbers or
    changes other arrays. If a row fails, all results of the loop fail.

    Parameters
    ----------
    f : callable
        The body. Its carry keeps its structure, shapes and dtypes.
    init : array or nested arrays
        The first carry.
    xs : array or nested arrays
        The rows, along the first axis of each array; None with `length`.
    length : int, optional
        The number of turns, if `xs` is None.
    reverse : bool, default: False
        Whether the last row comes first. Rows of the result have the places of those of `xs`.

    Returns
    -------
    carry
        The last carry, of the structure of `init`.
    ys
        The rows that the body returned, stacked along a new first axis; None for None.

    Raises
    ------
    ArgumentValueError
        If the arrays of `xs` differ in length, or there is neither `xs` nor `length`.
    ArgumentValueError
        If the body changes a shape or a dtype of the carry.

    Examples
    --------
    >>> import weft
    >>> def add(total, x):
    ...     total = total + x
    ...     return total, total * 2
    >>> weft.scan(add, weft.asarray(0.0), weft.asarray([1.0, 2.0, 3.0]))
    (NDArray(6.), NDArray([ 2.,  6., 12.]))
    """
    if not callable(f):
        raise ArgumentTypeError(f"scan: f is called, and is {type(f).__name__}")
    leaves = leaves_of((init, xs))
    found: tuple[Any, Any]
    if any(map(is_symbol, leaves)):
        scanned = hooks.scan_examples if any(map(is_examples, leaves)) else hooks.scan_symbols
        found = scanned(f, init, xs, length, reverse=reverse)
        return found
    rows = _length(xs, length)
    if rows and LEVELS.get():  # the body may refer to examples
        found = hooks.scan_examples(f, init, xs, length, reverse=reverse)
        return found
    if rows and (is_eager() or any(_is_elsewhere(x) for x in arrays_of((init, xs)))):
        return unrolled(f, init, xs, rows, reverse=reverse)
    if record.is_recording() or is_eager():
        return looped(f, init, xs, rows, reverse=reverse)
    loop = _program_of(f)
    if is_watched():
        for known in loop.programs:
            drawn_from_by_replay(known.states)
    carry, ys = loop(init, xs, rows, reverse)
    return carry, ys


def cond(p: Any, f: Callable[..., Any], g: Callable[..., Any], *args: Any) -> Any:
    """Return ``f(*args)`` if `p` is true, and ``g(*args)`` if not.

    Outside of programs `p` is waited for, and one branch is called. In a program, with an unknown `p`, both are
    recorded, and one op runs the one or the other: so the branches return arrays of the same shapes and dtypes, and
    change nothing. Gradients go back through the branch that ran. Over symbols the choice is a node.

    Parameters
    ----------
    p : bool or array
        An array of one element, or a bool, which chooses while recording.
    f, g : callable
        The branches. They may refer to any array.
    *args
        Their arguments.

    Returns
    -------
    array or nested arrays
        The result of the branch.

    Raises
    ------
    ArgumentValueError
        In a program, if the branches return other structures, shapes or dtypes. A number stands for an array of it.
    CaptureError
        In a program, if a branch changes an array that it did not make.

    Examples
    --------
    >>> import weft
    >>> @weft.program
    ... def relu_sum(x):
    ...     return weft.cond(x.sum() > 0, lambda x: x.sum(), lambda x: weft.zeros_like(x).sum(), x)
    >>> relu_sum(weft.asarray([1.0, 2.0])), relu_sum(weft.asarray([-1.0, -2.0]))
    (NDArray(3.), NDArray(0.))
    """
    for name, branch in (("f", f), ("g", g)):
        if not callable(branch):
            raise ArgumentTypeError(f"cond: {name} is called, and is {type(branch).__name__}")
    leaves = leaves_of((p, args))
    if any(map(is_symbol, leaves)):
        chosen_of = hooks.cond_examples if any(map(is_examples, leaves)) else hooks.cond_symbols
        return chosen_of(p, f, g, args)
    return chosen(p, f, g, args)


def _is_elsewhere(x: Any) -> bool:
    return isinstance(x, NDArray) and x._elsewhere


def _program_of(f: Callable[..., Any]) -> ProgramFunction:
    """Return a loop over the body `f` as a program, which is kept with the body."""
    known = _loops.get(id(f))
    if known is None:

        def scan(init: Any, xs: Any, rows: int, reverse: bool) -> tuple[Any, Any]:
            return looped(f, init, xs, rows, reverse=reverse)

        known = _loops[id(f)] = program(scan)
        while len(_loops) > _KEPT:
            _loops.popitem(last=False)
    return known


def _length(xs: Any, length: int | None) -> int:
    lengths = {x.shape[0] if x.shape else None for x in arrays_of(xs)}
    if length is not None:
        lengths.add(length)
    if None in lengths:
        raise ArgumentValueError("scan: xs holds an array of no axes, which has no rows")
    if len(lengths) != 1:
        found = " and ".join(map(str, sorted(filter(None, lengths)))) or "nothing"
        raise ArgumentValueError(f"scan: xs and length say one number of rows, and they say {found}")
    return int(lengths.pop() or 0)
