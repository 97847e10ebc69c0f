"""Operators of symbols, and functions as methods: each composes a call."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast

import numpy as np

from weft._core import NDArray
from weft._numpy import namespace
from weft._ops.matrices import trace
from weft._registry import hooks
from weft._registry.op import attribute_map, get_op
from weft._registry.symbol_hook import Symbolic
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.op import Op


class Dunder(Protocol):
    """A method of an operator."""

    def __get__(self, owner: Any, kind: Any = None, /) -> Callable[..., Any]: ...


@cache
def _ops() -> dict[str, Op]:
    """Return the ops of operators, by the names of their methods without underscores."""
    return {dunder: get_op(name) for name, dunder in attribute_map("operator").items()} | {"matmul": get_op("matmul")}


def _compose(dunder: str, *operands: Any) -> Any:
    return hooks.compose(_ops()[dunder], operands, {})


#: Operands of operators; for arrays, composing names the replacement.
_ARRAYS = (Symbolic, np.ndarray, NDArray)
_TAKEN = (*_ARRAYS, bool, int, float, complex, np.generic)
#: These become constants, too. Comparisons leave them to Python: its `in` calls comparisons.
_OPERANDS = (*_TAKEN, list, tuple)


def _unary(dunder: str) -> Dunder:
    """Return the method of an operator of one operand."""

    def method(self: Any) -> Any:
        return _compose(dunder, self)

    return cast("Dunder", method)


def _binary(dunder: str, taken: tuple[type, ...] = _OPERANDS) -> Dunder:
    """Return the method of an operator on a symbol and another operand."""

    def method(self: Any, other: Any) -> Any:
        return _compose(dunder, self, other) if isinstance(other, taken) else NotImplemented

    return cast("Dunder", method)


def _both(dunder: str, taken: tuple[type, ...] = _OPERANDS) -> tuple[Dunder, Dunder]:
    """Return the method of an operator, and that of the operator with the symbol on its right."""

    def reflected(self: Any, other: Any) -> Any:
        return _compose(dunder, other, self) if isinstance(other, taken) else NotImplemented

    return _binary(dunder, taken), cast("Dunder", reflected)


class Operators(Symbolic):
    """A symbol's operators and methods, beside arrays and numbers. It is a value: ``x += 1`` gives the name ``x`` to another symbol.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> (2 * x.sum() > 1).eval(x=[1.0, 2.0])
    [NDArray(True)]
    """

    __slots__ = ()
    __array_priority__ = 1000.0
    __array_ufunc__ = None

    __add__, __radd__ = _both("add")
    __sub__, __rsub__ = _both("sub")
    __mul__, __rmul__ = _both("mul")
    __truediv__, __rtruediv__ = _both("truediv")
    __floordiv__, __rfloordiv__ = _both("floordiv")
    __mod__, __rmod__ = _both("mod")
    __pow__, __rpow__ = _both("pow")
    __and__, __rand__ = _both("and")
    __or__, __ror__ = _both("or")
    __xor__, __rxor__ = _both("xor")
    __lshift__, __rlshift__ = _both("lshift")
    __rshift__, __rrshift__ = _both("rshift")
    __matmul__, __rmatmul__ = _both("matmul", (*_ARRAYS, list, tuple))
    __neg__ = _unary("neg")
    __pos__ = _unary("pos")
    __abs__ = _unary("abs")
    __invert__ = _unary("invert")
    __lt__ = _binary("lt", _TAKEN)
    __le__ = _binary("le", _TAKEN)
    __gt__ = _binary("gt", _TAKEN)
    __ge__ = _binary("ge", _TAKEN)
    __eq__ = _binary("eq", _TAKEN)  # pyright: ignore[reportAssignmentType] # a symbol, not a bool
    __ne__ = _binary("ne", _TAKEN)  # pyright: ignore[reportAssignmentType] # likewise
    __hash__ = object.__hash__

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if isinstance(other, _OPERANDS) else NotImplemented

    def __round__(self, decimals: int | None = None) -> Any:
        given: Any = self
        return namespace.round(given, decimals or 0)

    def _has_no_values(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentTypeError("a symbol has no values yet: compute it by eval(), or bind it")

    __array__ = __float__ = __int__ = __complex__ = _has_no_values

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ArgumentTypeError(
            "a symbol is a value, and no element of it is written to: compose another, by weft.where or weft.concat"
        )

    def __getattr__(self, name: str) -> Any:
        """Return one of weft's functions as a method, as arrays have them: ``x.sum(axis=0)``."""
        if name in _METHODS:
            return partial(trace if name == "trace" else getattr(namespace, name), self)
        raise AttributeError(f"a symbol has no attribute {name!r}")

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the elements in another shape, given as lengths or as one tuple."""
        given: tuple[Any, ...] = (shape[0] if len(shape) == 1 else shape,) if shape or "shape" not in options else ()
        return namespace.reshape(self, *given, **options)

    def transpose(self, *order: Any, **options: Any) -> Any:
        """Return the axes in another order, given one by one or as one tuple; reversed where none are given."""
        return namespace.transpose(self, *(order if len(order) < 2 else (order,)), **options)

    def flatten(self) -> Any:
        """Return the elements along one axis."""
        return self.reshape(-1)

    @property
    def real(self) -> Any:
        """The real part."""
        given: Any = self
        return namespace.real(given)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        given: Any = self
        return namespace.imag(given)

    @property
    def mT(self) -> Any:  # noqa: N802 - the name that arrays have
        """The transpose of each matrix."""
        return namespace.matrix_transpose(self)

    @property
    def T(self) -> Any:  # noqa: N802 - the name that arrays have
        """The transpose."""
        return namespace.transpose(self)


_METHODS = frozenset(
    [
        "abs",
        "all",
        "any",
        "argmax",
        "argmin",
        "argpartition",
        "argsort",
        "astype",
        "clip",
        "conj",
        "conjugate",
        "copy",
        "cumprod",
        "cumsum",
        "cumulative_prod",
        "cumulative_sum",
        "diagonal",
        "dot",
        "exp",
        "expand_dims",
        "flip",
        "log",
        "max",
        "mean",
        "min",
        "moveaxis",
        "nonzero",
        "partition",
        "prod",
        "ptp",
        "ravel",
        "repeat",
        "round",
        "searchsorted",
        "sign",
        "sin",
        "sort",
        "sqrt",
        "square",
        "squeeze",
        "std",
        "sum",
        "swapaxes",
        "take",
        "tanh",
        "trace",
        "var",
    ]
)
