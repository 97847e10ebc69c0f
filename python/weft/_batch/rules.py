"""How a call goes for many examples at once: by the op's attribute ``"batch"``, or example by example.

| ``batch`` | the op |
|---|---|
| ``"broadcast"`` | computes element by element; operands broadcast |
| ``"axis"`` | works along ``axis`` or ``axes`` of its first operand, which all results have, or have lost |
| ``"stack"`` | takes the last axes of each operand, as matrices, and broadcasts those before |
| ``"last"`` | works along the last axes of its first operand; the others are parameters |
| ``"together"`` | takes operands whose first axes are the same |
| ``"rows"`` | takes the first axis of its first operand row by row, as a layer does its batch |
| a function | ``rule(size, operands, mapped, attributes)``: of `mapped` operands the examples lie along the first axis, and so they do of the results |

Element-wise ops, reductions and `matmul` have it by their other attributes. An op without it, or with operands that its rule does not know, is
called once for each example, and the results are stacked: right, and as slow as a loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import call
from weft._ops.joining import stack
from weft._ops.manipulation import broadcast_to, expand_dims, reshape, squeeze
from weft.errors import ArgumentTypeError, ArgumentValueError, WeftError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._registry.op import Op

    #: A rule: the results, with the examples along their first axis; None where it does not know these operands.
    Rule = Callable[[Op, int, list[Any], list[bool], dict[str, Any]], Any]

_NUMBERS = (bool, int, float, complex)
#: The attribute that follows from a rule for shapes.
_BY_SHAPE = {"reduce": "axis", "extremum": "axis", "matmul": "stack"}


def batched(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> tuple[Any, ...]:
    """Return the results of a call for all examples, which lie along the first axis of `mapped` operands and of results.

    Examples
    --------
    >>> import weft
    >>> from weft._batch.rules import batched
    >>> x = weft.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> batched(weft.ops.get_op("sum"), 2, [x], [True], {"axis": (0,)})
    (NDArray([3., 7.]),)
    """
    if any(mapped[at] for at in op.mutates if at < len(mapped)):
        raise ArgumentTypeError(
            f"weft.vmap: the op {op.name!r} changes an operand, which examples cannot share: {_INSTEAD}"
        )
    said = op.attribute("batch", None)
    if said is None and (op.ufunc is not None or op.attribute("elementwise", False)):
        said = "broadcast"
    elif said is None:
        said = _BY_SHAPE.get(op.attribute("infer_shape", None))
    found = None
    if callable(said):
        found = said(size, operands, mapped, attributes)
    elif said is not None:
        found = _RULES[said](op, size, operands, mapped, attributes)
    if found is None:
        found = _one_by_one(op, size, operands, mapped, attributes)
    return _results(found)


def _results(found: Any) -> tuple[Any, ...]:
    """Return a call's results as a tuple."""
    return (*found,) if isinstance(found, tuple) else (found,)  # pyright: ignore[reportUnknownVariableType]


_INSTEAD = "make a new array instead"


def invoke(op: Op, operands: Sequence[Any], attributes: dict[str, Any]) -> Any:
    """Return the results of a call; of an op that shares memory, a view."""
    view = op.attribute("view", None)
    return call(op, *operands, **attributes) if view is None else view(*operands, **attributes)


def _axes(x: Any) -> int:
    """Return the number of axes of an operand: a number, or a list, has none, or as many as it is deep."""
    if isinstance(x, _NUMBERS):
        return 0
    return len(x.shape)


def _aligned(x: Any, more: int) -> Any:
    """Put `more` axes of one element behind the examples'."""
    return expand_dims(x, tuple(range(1, 1 + more))) if more > 0 else x


def _broadcast(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    del size
    own = [_axes(x) - is_mapped for x, is_mapped in zip(operands, mapped, strict=True)]
    most = max(own)
    given = [
        _aligned(x, most - axes) if is_mapped else x for x, axes, is_mapped in zip(operands, own, mapped, strict=True)
    ]
    return invoke(op, given, attributes)


def _axis(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    x = operands[0]
    if not mapped[0]:
        x = spread(x, size)
    rest: list[Any] = []
    for each, is_mapped in zip(operands[1:], mapped[1:], strict=True):
        more = x.ndim - 1 - (_axes(each) - is_mapped)
        rest.append(_aligned(each, more) if is_mapped else each)
    given = {key: _moved(each) if key in _AXES else each for key, each in attributes.items()}
    named = [given[key] for key in _AXES if key in given]
    if op.attribute("infer_shape", None) in {"reduce", "extremum"} and given.get("axis") is None:
        given["axis"] = tuple(range(1, x.ndim))
    elif not named or None in named:
        return None
    return invoke(op, [x, *rest], given)


#: Attributes that are axes of the first operand.
_AXES = ("axis", "axes", "axis1", "axis2")


def _moved(axis: Any) -> Any:
    """Return axes of one example as those of all: those counted from the end stay."""
    if axis.__class__ in (tuple, list):
        return tuple(map(_moved, axis))
    return axis if axis is None or axis < 0 else axis + 1


def _stack(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    del size
    own = [_axes(x) - is_mapped for x, is_mapped in zip(operands, mapped, strict=True)]
    if any(is_mapped and not axes for axes, is_mapped in zip(own, mapped, strict=True)):
        return None  # a number beside the matrices
    if (
        len(operands) > 1 and 1 in own
    ):  # a vector, which is a matrix of one row on the left, and of one column on the right
        return _of_vectors(op, operands, mapped, own, attributes) if len(operands) == 2 else None
    most = max(own)
    given = [
        _aligned(x, most - axes) if is_mapped else x for x, axes, is_mapped in zip(operands, own, mapped, strict=True)
    ]
    return invoke(op, given, attributes)


def _of_vectors(op: Op, operands: list[Any], mapped: list[bool], own: list[int], attributes: dict[str, Any]) -> Any:
    """Return products, or solutions, where one operand is a vector."""
    left, right = operands
    gone: list[int] = []
    if own[0] == 1:
        left, gone = expand_dims(left, -2), [-2]
    if own[1] == 1:
        right, gone = expand_dims(right, -1), [*gone, -1]
    found = _stack(op, 0, [left, right], mapped, attributes)
    return squeeze(found, tuple(gone))


def _rows(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    if not mapped[0] or any(mapped[1:]) or operands[0].ndim < 2:
        return None
    x = operands[0]
    rows = x.shape[1]
    found = invoke(op, [reshape(x, (size * rows, *x.shape[2:])), *operands[1:]], attributes)
    results = [reshape(each, (size, rows, *each.shape[1:])) for each in _results(found)]
    return tuple(results) if isinstance(found, tuple) else results[0]


def _last(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    del size
    if any(mapped[1:]):
        return None
    return invoke(op, operands, {key: _moved(each) if key in _AXES else each for key, each in attributes.items()})


def _together(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    given = [x if is_mapped else spread(x, size) for x, is_mapped in zip(operands, mapped, strict=True)]
    return invoke(op, given, attributes)


_RULES: dict[str, Rule] = {
    "broadcast": _broadcast,
    "axis": _axis,
    "stack": _stack,
    "last": _last,
    "together": _together,
    "rows": _rows,
}


def spread(x: Any, size: int) -> Any:
    """Return an array that is the same for all examples, with them along a first axis.

    Examples
    --------
    >>> import weft
    >>> from weft._batch.rules import spread
    >>> spread(weft.arange(2), 3).shape
    (3, 2)
    """
    return broadcast_to(x, (size, *x.shape))


def _one_by_one(op: Op, size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    """Call the op for each example, and stack the results."""
    if size == 0:
        raise ArgumentValueError(
            f"weft.vmap: there is no example to call the op {op.name!r} for, which is called for each by itself"
        )
    made: list[tuple[Any, ...]] = []
    for at in range(size):
        given = [x[at] if is_mapped else x for x, is_mapped in zip(operands, mapped, strict=True)]
        found = invoke(op, given, attributes)
        made.append(_results(found))
    try:
        return tuple(stack(list(column)) for column in zip(*made, strict=True))
    except WeftError as error:
        shapes = " and ".join(sorted({str(row[0].shape) for row in made}))
        raise ArgumentValueError(
            f"weft.vmap: the results of {op.name!r} differ in shape from example to example: {shapes}"
        ) from error
