"""Forward rules asked by passes: where shapes or dtypes alone are known, the other is stood in for."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import Input
from weft._registry.avals import Aval, scalar_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft._registry.op import Op

_STAND_INS = tuple(np.dtype(name) for name in ("float32", "int64", "bool", "complex64"))
#: So many dtypes that are not known are guessed each by itself.
_MIXED = 4
_RANKS = ((), (2,), (2, 2), (2, 2, 2), (2, 2, 2, 2), (1,), (1, 1), (3,), (3, 3))


def operands_of(attributes: dict[str, Any], inputs: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the operands of a node in order, numbers among them, and its attributes without those.

    Examples
    --------
    >>> from weft._core import Input
    >>> from weft._registry.forward import operands_of
    >>> operands_of({"operands": (Input(), 2)}, ["x"])
    (('x', 2), {})
    """
    template = attributes.get("operands")
    if template is None:
        return tuple(inputs), attributes
    rest = iter(inputs)
    found = tuple(next(rest) if type(each) is Input else each for each in template)
    return found, {key: value for key, value in attributes.items() if key != "operands"}


def infer_forward(op: Op, attributes: dict[str, Any], shapes: Any, dtypes: list[Any]) -> list[tuple[Any, Any]]:
    """Return shape and dtype of each result; None where a stand-in decided.

    Parameters
    ----------
    op : Op
        The op.
    attributes : dict
        Its attributes.
    shapes : list of tuple, or None
        The shapes of its inputs.
    dtypes : list of numpy.dtype or None
        Their dtypes.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.forward import infer_forward
    >>> infer_forward(weft.ops.get_op("sin"), {}, [(2, 3)], [None])
    [((2, 3), None)]
    """
    if shapes is None:
        return _types_alone(op, attributes, dtypes)
    if all(dtype is not None for dtype in dtypes):
        return [(aval.shape, aval.dtype) for aval in _infer(op, attributes, shapes, dtypes)]
    refused: Exception | None = None
    for stand_ins in _guesses(dtypes):
        try:
            found = _infer(op, attributes, shapes, stand_ins)
        except TypeError as error:  # other dtypes may do
            refused = refused or error
        else:
            return [(aval.shape, None) for aval in found]
    assert refused is not None
    raise refused


def _guesses(dtypes: list[Any]) -> Iterator[list[Any]]:
    """Return dtypes in the places of those that are not known: the same in all, and numbers and indices mixed."""
    for stand_in in _STAND_INS:
        yield [stand_in if each is None else each for each in dtypes]
    unknown = [at for at, each in enumerate(dtypes) if each is None]
    if 1 < len(unknown) <= _MIXED:
        for mixed in product(_STAND_INS[:2], repeat=len(unknown)):
            found = list(dtypes)
            for at, stand_in in zip(unknown, mixed, strict=True):
                found[at] = stand_in
            yield found


def _types_alone(op: Op, attributes: dict[str, Any], dtypes: list[Any]) -> list[tuple[Any, Any]]:
    """Dtypes do not depend on shapes: the first shapes that the rule takes will do."""
    for shape in _RANKS:
        try:
            found = _infer(op, attributes, [shape] * len(dtypes), dtypes)
        except (ValueError, IndexError):  # np.exceptions.AxisError is both
            continue
        return [(None, aval.dtype) for aval in found]
    return [(None, None)] * op.nout


def _infer(op: Op, attributes: dict[str, Any], shapes: Sequence[Any], dtypes: Sequence[Any]) -> tuple[Aval, ...]:
    inputs = [Aval(tuple(shape), dtype) for shape, dtype in zip(shapes, dtypes, strict=True)]
    operands, rest = operands_of(attributes, inputs)
    avals = [x if isinstance(x, Aval) else Aval((), scalar_dtype(x.__class__), weak=True) for x in operands]
    return op._results_of(avals, rest)
