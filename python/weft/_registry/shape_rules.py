"""Rules of ops with shapes by the core: one rule, found by its name, serves arrays, recordings, symbols and passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import ShapeRule
from weft._registry.avals import Aval, result_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.avals import DType
    from weft._registry.shapes import Shape

_rules: dict[str, ShapeRule] = {}


def shaped_by(rule: str, dtypes: Callable[..., DType] = result_dtype) -> Callable[..., Aval]:
    """Return the rule of an op of one result: its shape by the core's rule of this name, its dtype by a function.

    An op with such a rule states nothing more about shapes: passes ask the core's rule, in both directions.

    Parameters
    ----------
    rule : str
        The core's rule for the shape: see `weft._core.ShapeRule`.
    dtypes : callable
        ``dtypes(*avals, **attributes)`` returns the dtype of the result, or raises. By default operands promote.

    Examples
    --------
    >>> import numpy, weft
    >>> from weft._registry.shape_rules import dtype_of_first, shaped_by
    >>> x = weft.ops.Aval((2, 3), numpy.dtype("float32"))
    >>> shaped_by("concat", dtype_of_first)(x, x, axis=1)
    Aval(shape=(2, 6), dtype=dtype('float32'), weak=False)
    """
    shape_of = rule_named(rule)

    def infer(*avals: Aval, **attributes: Any) -> Aval:
        return Aval(shape_of(tuple([aval.shape for aval in avals]), attributes), dtypes(*avals, **attributes))

    infer.shapes = rule  # type: ignore[attr-defined] # the registry hands it to passes
    infer.dtypes = dtypes  # type: ignore[attr-defined] # its signature names the attributes
    return infer


def dtype_of_first(first: Aval, /, *_others: Aval, **_attributes: object) -> DType:
    """Return the dtype of the first operand."""
    return first.dtype


def reduced_shape(shape: Shape, axes: Shape | None, *, keepdims: bool) -> Shape:
    """Return the shape once `axes` are reduced.

    Examples
    --------
    >>> from weft._registry.shape_rules import reduced_shape
    >>> reduced_shape((2, 3), (1,), keepdims=True)
    (2, 1)
    """
    return rule_named("reduce")((shape,), {"axis": axes, "keepdims": keepdims})


def resolved_shape(old: Shape, new: object) -> Shape:
    """Return the shape `new` for the elements of `old`; a single -1 in it is what is left of them.

    Examples
    --------
    >>> from weft._registry.shape_rules import resolved_shape
    >>> resolved_shape((2, 3), (3, -1))
    (3, 2)
    """
    return rule_named("reshape")((old,), {"shape": new})


def rule_named(name: str) -> ShapeRule:
    """Return the core's rule of this name."""
    return _rules.get(name) or _rules.setdefault(name, ShapeRule(name))
