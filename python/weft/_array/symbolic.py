"""What functions of arrays know of symbols: that there are such operands, and that composing takes the place of pushing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from weft.errors import GraphError

if TYPE_CHECKING:
    from weft.ops import Op

__all__ = ["Composing", "Symbolic", "UnknownRank", "compose", "is_symbol"]


class Symbolic:
    """The base of `weft.symbol.Symbol`."""

    __slots__ = ()


class Composing(Exception):  # noqa: N818 - no error: the way from an operand that is a symbol to who composes
    """An operand is a symbol: the call is a node, and nothing is pushed."""


class UnknownRank:
    """The number of axes of a symbol, where it is not known: axes are kept as they were given.

    Examples
    --------
    >>> from weft._array.shapes import axis_tuple
    >>> from weft._array.symbolic import UnknownRank
    >>> axis_tuple((0, -1), UnknownRank("x"))
    (0, -1)
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _refuse(self, *_: object) -> NoReturn:
        raise GraphError(
            f"this function asks for the number of axes of {self._name!r}, which is not known: give the variables "
            "shapes, as in weft.symbol.Variable('x', shape=(None, 3))"
        )

    __index__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __bool__ = _refuse  # type: ignore[assignment]


def is_symbol(x: object) -> bool:
    """Return whether `x` is a symbol.

    Examples
    --------
    >>> import weft
    >>> from weft._array.symbolic import is_symbol
    >>> is_symbol(weft.symbol.Variable("x")), is_symbol(1)
    (True, False)
    """
    return isinstance(x, Symbolic)


def compose(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any], out: object = None) -> Any:  # noqa: ANN401 - a symbol
    """Return the symbol of a call of `op`.

    Raises
    ------
    GraphError
        If an operand is an array, or results are to be written somewhere.

    Examples
    --------
    >>> import weft
    >>> from weft._array.symbolic import compose
    >>> compose(weft.ops.get_op("add"), (weft.symbol.Variable("x"), 1), {}).list_arguments()
    ['x']
    """
    from weft._symbol.composing import compose_call  # noqa: PLC0415 - which knows the functions of arrays

    if out is not None:
        raise GraphError(f"{op.name}() of symbols has no out=: what is written where is decided when it is bound")
    return compose_call(op, arrays, attributes)
