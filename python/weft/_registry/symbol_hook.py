"""The seam between functions of arrays and symbols: such operands exist, and composing takes the place of pushing."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, cast

from weft._core import ArrayFunction
from weft._registry import hooks
from weft._registry.sieve import sifted
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.op import Op

    F = TypeVar("F", bound="Callable[..., Any]")


class Symbolic:
    """The base of `weft.symbol.Symbol`."""

    __slots__ = ()


class Composing(Exception):  # noqa: N818 - no error: the way from an operand that is a symbol to the composer
    """An operand is a symbol: the call is a node, and nothing is pushed."""


class UnknownFactError(GraphError):
    """A function asks for a symbol's unknown shape or dtype: a caller that can wait until it is known makes a node of the call."""


class MixedOperandsError(GraphError):
    """A call has symbols and arrays among its operands."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(
            f"{name}() has a symbol and {kind} among its operands: let a variable stand for the array, "
            "and give the array to eval() or bind()"
        )


class UnknownRank:
    """The number of axes of a symbol, where it is not known: axes that are counted from the front are kept as they were given.

    Examples
    --------
    >>> from weft._registry.shapes import axis_tuple
    >>> from weft._registry.symbol_hook import UnknownRank
    >>> axis_tuple((0, 1), UnknownRank("x"))
    (0, 1)
    """

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        """Return the advice on it."""
        return (
            f"the number of axes of {self._name!r} is not known here: give the variables shapes, as in "
            "weft.symbol.Variable('x', shape=(2, 3))"
        )

    def _refuse(self, *_: object) -> NoReturn:
        raise UnknownFactError(str(self))

    __index__ = __int__ = __lt__ = __le__ = __gt__ = __ge__ = __add__ = __radd__ = __sub__ = __rsub__ = _refuse
    __bool__ = _refuse


def is_symbol(x: object) -> bool:
    """Return whether `x` is a symbol.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.symbol_hook import is_symbol
    >>> is_symbol(weft.symbol.Variable("x")), is_symbol(1)
    (True, False)
    """
    return isinstance(x, Symbolic)


def deferring(name: str, function: F) -> F:
    """Return a function which makes one node of a call, if it knows too little of its symbols to make nodes of its own.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.symbol_hook import deferring
    >>> swapaxes = deferring("swapaxes", weft.swapaxes)
    >>> swapaxes(weft.symbol.Variable("x"), 0, 1).infer_shape(x=(2, 3))[1]
    [(3, 2)]
    """
    return cast("F", functools.wraps(function)(ArrayFunction(name, function, _forgive)))


def _forgive(
    name: str, _function: object, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception
) -> tuple[Any] | None:
    """Make a node of a call that knows too little, or raise weft's error; return None where the error stands."""
    if isinstance(error, UnknownFactError):
        return (deferred(name, args, kwargs, error),)
    refusal = sifted(error)
    if refusal is error:
        return None
    raise refusal from error


def deferred(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], unknown: UnknownFactError) -> Any:
    """Return the symbols of a call of one of weft's functions which is made once the shapes are known.

    Raises
    ------
    GraphError
        If the number of results rests on them, too.
    """
    return hooks.defer(name, args, kwargs, unknown)


def compose(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any], out: object = None) -> Any:
    """Return the symbol of a call of `op`.

    Raises
    ------
    GraphError
        If an operand is an array, or results are to be written somewhere.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.symbol_hook import compose
    >>> compose(weft.ops.get_op("add"), (weft.symbol.Variable("x"), 1), {}).list_arguments()
    ['x']
    """
    if out is not None:
        raise GraphError(
            f"{op.name}() of symbols has no out=: what is written where is decided when it is bound; under weft.vmap results are new"
            " arrays"
        )
    return hooks.compose(op, arrays, attributes)
