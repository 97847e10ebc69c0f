"""Default attributes of ops: names, counts and rules that follow from the registration.

All of it is set at a level below that of `Op.set_attribute`, so an author's attribute counts instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import format_value, parse_value

if TYPE_CHECKING:
    from weft._registry.op import Group, Op

#: The level at which attributes are set that follow from others.
LEVEL = -1000

_POSITIONAL_ONLY_STAR, _DOUBLE_STAR = 0x04, 0x08


def state(op: Op | Group, **attributes: object) -> None:
    """Give one of weft's ops, or a group of them, attributes that others may give it anew: below the level of `Op.set_attribute`.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.defaults import state
    >>> state(weft.ops.get_op("sinh"), doctest_odd=True)
    >>> weft.ops.get_op("sinh").set_attribute("doctest_odd", "yes")
    """
    for key, value in attributes.items():
        op.set_attribute(key, value, LEVEL + 1)


def describe_op(op: Op) -> None:
    """Give an op that was just made the attributes that follow from its registration.

    Examples
    --------
    >>> import weft
    >>> weft.ops.get_op("matmul").attribute("input_names"), weft.ops.get_op("concat").attribute("num_inputs")
    (('x1', 'x2'), None)
    """
    entry = op._entry
    names, count, keywords = _operands(op)
    entry.set_attribute("num_inputs", count, LEVEL)
    entry.set_attribute("num_outputs", op.nout, LEVEL)
    if names:
        entry.set_attribute("input_names", names, LEVEL)
    if op.inplace:
        entry.set_attribute("inplace", op.inplace, LEVEL)
    if op.mutates:
        entry.set_attribute("mutates", op.mutates, LEVEL)
    entry.set_attribute("pure", True, LEVEL)
    entry.set_attribute("elementwise", op.ufunc is not None and op.nout == 1, LEVEL)
    entry.hold("parse", parse_attributes, LEVEL)
    entry.hold("infer", op.infer, LEVEL)
    entry.hold("cost", _cost, LEVEL)
    if keywords is not None:
        entry.set_attribute("attribute_names", keywords, LEVEL)
    entry.set_forward(_Forward(op), LEVEL)
    if op.ufunc is not None:
        entry.set_attribute("infer_shape", "broadcast", LEVEL + 1)


def _operands(op: Op) -> tuple[tuple[str, ...], int | None, tuple[str, ...] | None]:
    """Return the names and the number of operands, and the names of attributes; None for any."""
    if op.ufunc is not None:
        count = op.ufunc.nin
        return (("x",) if count == 1 else tuple(f"x{at + 1}" for at in range(count))), count, ("dtype",)
    compute = op.compute["cpu"]
    code: Any = getattr(compute, "__code__", None)
    if code is None:
        return (), None, None
    names = code.co_varnames
    positional = names[op.nout : code.co_argcount]
    only = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    open_ended = bool(code.co_flags & _DOUBLE_STAR)
    rule: Any = getattr(op.infer, "__code__", None)
    if open_ended and rule is not None and not rule.co_flags & _DOUBLE_STAR:
        only = rule.co_varnames[rule.co_argcount : rule.co_argcount + rule.co_kwonlyargcount]
        open_ended = False
    inputs = tuple(name.strip("_") for name in positional)
    defaults: tuple[object, ...] = getattr(compute, "__defaults__", None) or ()
    if code.co_flags & _POSITIONAL_ONLY_STAR or defaults:
        return inputs, None, None if open_ended else tuple(only)
    return inputs, len(inputs), None if open_ended else tuple(only)


class _Forward:
    """The forward rule of an op, as passes ask for it: shapes and dtypes of results from those of inputs."""

    __slots__ = ("_op",)

    def __init__(self, op: Op) -> None:
        self._op = op

    def __call__(self, attributes: dict[str, Any], shapes: Any, dtypes: Any) -> list[tuple[Any, Any]]:
        from weft._registry.forward import infer_forward  # noqa: PLC0415 - needed with a graph alone

        return infer_forward(self._op, attributes, shapes, dtypes)

    def __repr__(self) -> str:
        return f"<the forward rule of {self._op.name}>"


def _cost(attributes: dict[str, Any], shapes: list[Any], dtypes: list[Any]) -> tuple[float, float]:
    """Return the cost of an op that touches each element of its operands once: (flops, bytes)."""
    del attributes
    flops = size = 0.0
    for shape, dtype in zip(shapes, dtypes, strict=False):
        count = 1.0
        for length in shape or ():
            count *= length or 1
        flops = max(flops, count)
        size += count * (dtype.itemsize if dtype is not None else 4)
    return flops, size


def parse_attributes(texts: dict[str, str]) -> dict[str, Any]:
    """Return attributes from the texts that a file has for them: Python's literals, or else the text itself.

    Examples
    --------
    >>> from weft._registry.defaults import parse_attributes
    >>> parse_attributes({"axis": "(0, 1)", "mode": "wrap"})
    {'axis': (0, 1), 'mode': 'wrap'}
    """
    return {key: parse_value(text) for key, text in texts.items()}


def format_attributes(attributes: dict[str, Any]) -> dict[str, str]:
    """Return attributes as the texts that `parse_attributes` reads.

    Examples
    --------
    >>> from weft._registry.defaults import format_attributes
    >>> format_attributes({"axis": (0, 1), "mode": "wrap", "keepdims": True})
    {'axis': '(0, 1)', 'mode': 'wrap', 'keepdims': 'True'}
    """
    return {key: format_value(value) for key, value in attributes.items()}
