"""`weft.scan` and `weft.cond`: loops and branches whose bodies take and return arrays."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any

from weft._array.joining import stack
from weft._array.operands import as_array
from weft._array.searching import where
from weft._core import NDArray
from weft._program import record
from weft._program.entry import program
from weft._program.function import ProgramFunction
from weft._program.trees import arrays_of, class_of, leaves_of, replaced, unflattened
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cond", "scan"]

#: The programs of the bodies used last, by identity; a program keeps its function.
_bodies: OrderedDict[int, ProgramFunction] = OrderedDict()
_KEPT = 64


def scan(f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, length: int | None = None) -> tuple[Any, Any]:  # noqa: ANN401 - nested arrays
    """Call ``carry, y = f(carry, x)`` for each row of `xs`, and return the last carry and all rows `y`.

    Outside of programs the body is a program: recorded once, then replayed for each row. In a program it becomes part of
    that. The rows are the same as a Python loop would give, bit for bit.

    Parameters
    ----------
    f : callable
        The body. Its carry keeps its structure, shapes and dtypes.
    init : array or nested arrays
        The first carry.
    xs : array or nested arrays
        What is walked over, along the first axis of each array; None with `length`.
    length : int, optional
        How often the body runs, where `xs` is None.

    Returns
    -------
    carry
        The last carry, of the structure of `init`.
    ys
        What the body returned beside it, stacked along a new first axis; None where it is None.

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
    rows = _length(xs, length)
    body = _body(f)
    carry: Any = init
    ys: list[Any] = []
    known = [(x.shape, x.dtype) for x in arrays_of(init)]
    for row in range(rows):
        part = replaced(xs, partial(_row, row))
        returned: Any = body(carry, part)
        if class_of(returned) is not tuple or len(returned) != 2:  # noqa: PLR2004 - carry and row
            raise ArgumentTypeError(
                f"scan: the body returns a pair, the carry and a row, and it returned {type(returned).__name__}"
            )
        carry, y = returned[0], returned[1]
        found = [(x.shape, x.dtype) for x in arrays_of(carry)]
        if found != known:
            raise ArgumentValueError(
                f"scan: the body was given a carry of {_shown(known)}, and returned one of {_shown(found)}"
            )
        ys.append(y)
    return carry, _stacked(ys)


def cond(p: Any, f: Callable[..., Any], g: Callable[..., Any], *args: Any) -> Any:  # noqa: ANN401 - nested arrays
    """Return ``f(*args)`` where `p` is true and ``g(*args)`` where it is not.

    Outside of programs `p` is waited for, and one of the two is called. In a program, where `p` is not known, both are
    computed, and each result is chosen by `where`: so the branches return arrays of the same shapes and dtypes, change
    nothing, and what fails in one fails the result.

    Parameters
    ----------
    p : bool or array
        An array of one element, or a bool, which chooses while recording.
    f, g : callable
        The branches.
    *args
        What they take.

    Returns
    -------
    array or nested arrays
        What the branch returned.

    Raises
    ------
    ArgumentValueError
        In a program, if the branches return other structures, shapes or dtypes.
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
    if not isinstance(p, NDArray) or not record.is_recording():
        return f(*args) if p else g(*args)
    if p.size != 1:
        raise ArgumentValueError(f"cond: p has one element, not the shape {p.shape}")
    with record.unchanging("cond"):
        taken, other = f(*args), g(*args)
    ours, theirs = leaves_of(taken), leaves_of(other)
    if len(ours) != len(theirs):
        raise ArgumentValueError(f"cond: one branch returns {len(ours)} values, the other {len(theirs)}")
    choice = p.reshape(())
    return unflattened(taken, iter([_chosen(choice, *pair) for pair in zip(ours, theirs, strict=True)]))


def _row(row: int, x: Any) -> NDArray:  # noqa: ANN401 - an array
    return as_array(x)[row]


def _chosen(choice: NDArray, one: Any, other: Any) -> Any:  # noqa: ANN401 - leaves of a result
    if not isinstance(one, NDArray) and not isinstance(other, NDArray):
        if one is None and other is None:
            return None
        one, other = as_array(one, choice), as_array(other, choice)
    one, other = as_array(one, other), as_array(other, one)
    if one.shape != other.shape or one.dtype != other.dtype:
        raise ArgumentValueError(
            f"cond: one branch returns {_shown([(one.shape, one.dtype)])}, the other {_shown([(other.shape, other.dtype)])}"
        )
    return where(choice, one, other)


def _body(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the body as a program that is kept with it, or as it is where it is to be part of something else."""
    if isinstance(f, ProgramFunction) or record.is_recording():
        return f
    if not callable(f):
        raise ArgumentTypeError(f"scan: f is called, and is {type(f).__name__}")
    known = _bodies.get(id(f))
    if known is None:
        known = _bodies[id(f)] = program(f)
        while len(_bodies) > _KEPT:
            _bodies.popitem(last=False)
    return known


def _length(xs: Any, length: int | None) -> int:  # noqa: ANN401 - nested arrays
    lengths = {x.shape[0] if x.shape else None for x in arrays_of(xs)}
    if length is not None:
        lengths.add(length)
    if None in lengths:
        raise ArgumentValueError("scan: xs holds an array of no axes, which has no rows")
    if len(lengths) != 1:
        found = " and ".join(map(str, sorted(filter(None, lengths)))) or "nothing"
        raise ArgumentValueError(f"scan: xs and length say one number of rows, and they say {found}")
    return int(lengths.pop() or 0)


def _stacked(ys: list[Any]) -> Any:  # noqa: ANN401 - nested arrays
    if not ys:
        return None
    columns = zip(*map(leaves_of, ys), strict=True)
    joined = [None if column[0] is None else stack([as_array(each) for each in column]) for column in columns]
    return unflattened(ys[0], iter(joined))


def _shown(avals: list[Any]) -> str:
    return ", ".join(f"{dtype}[{', '.join(map(str, shape))}]" for shape, dtype in avals) or "no arrays"
