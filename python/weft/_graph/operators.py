"""Operators of symbols, and functions as methods: each composes a call."""

from __future__ import annotations

from functools import partial
from typing import Any, NoReturn

import numpy as np

from weft._call.symbol_hook import Symbolic
from weft._core import NDArray
from weft.errors import ArgumentTypeError

__all__ = ["Operators"]


def _op(name: str, left: Any, right: Any = None, *, unary: bool = False) -> Any:
    found = _OPERATORS.get(name)
    if found is None:
        from weft._graph.composing import compose_call  # noqa: PLC0415 - which knows this module
        from weft._registry.op import get_op  # noqa: PLC0415 - as above

        found = _OPERATORS[name] = compose_call, get_op(name)
    return found[0](found[1], (left,) if unary else (left, right), {})


_OPERATORS: dict[str, Any] = {}

#: What operators compose with, and arrays, of which composing says what to write instead.
_ARRAYS = (Symbolic, np.ndarray, NDArray)
_TAKEN = (*_ARRAYS, bool, int, float, complex, np.generic)
#: What becomes a constant, too. Comparisons leave it to Python, which asks them whether something is in a list.
_OPERANDS = (*_TAKEN, list, tuple)


class Operators(Symbolic):
    """What a symbol can do beside arrays and numbers. It is a value: ``x += 1`` gives the name ``x`` to another symbol.

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

    def __add__(self, other: Any) -> Any:
        return _op("add", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return _op("add", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return _op("subtract", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _op("subtract", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return _op("multiply", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return _op("multiply", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return _op("divide", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return _op("divide", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __floordiv__(self, other: Any) -> Any:
        return _op("floor_divide", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return _op("floor_divide", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return _op("remainder", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return _op("remainder", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __pow__(self, other: Any) -> Any:
        return _op("pow", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rpow__(self, other: Any) -> Any:
        return _op("pow", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        return _op("matmul", self, other) if isinstance(other, (*_ARRAYS, list, tuple)) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return _op("matmul", other, self) if isinstance(other, (*_ARRAYS, list, tuple)) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return _op("bitwise_and", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rand__(self, other: Any) -> Any:
        return _op("bitwise_and", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __or__(self, other: Any) -> Any:
        return _op("bitwise_or", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return _op("bitwise_or", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return _op("bitwise_xor", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rxor__(self, other: Any) -> Any:
        return _op("bitwise_xor", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __lshift__(self, other: Any) -> Any:
        return _op("bitwise_left_shift", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rshift__(self, other: Any) -> Any:
        return _op("bitwise_right_shift", self, other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rlshift__(self, other: Any) -> Any:
        return _op("bitwise_left_shift", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __rrshift__(self, other: Any) -> Any:
        return _op("bitwise_right_shift", other, self) if isinstance(other, _OPERANDS) else NotImplemented

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if isinstance(other, _OPERANDS) else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if isinstance(other, _OPERANDS) else NotImplemented

    def __round__(self, decimals: int | None = None) -> Any:
        import weft  # noqa: PLC0415 - which imports this module

        given: Any = self
        return weft.round(given, decimals or 0)

    def _has_no_values(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentTypeError("a symbol has no values yet: compute it by eval(), or bind it")

    __array__ = __float__ = __int__ = __complex__ = _has_no_values

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ArgumentTypeError(
            "a symbol is a value, and no element of it is written to: compose another, by weft.where or weft.concat"
        )

    def __neg__(self) -> Any:
        return _op("negative", self, unary=True)

    def __pos__(self) -> Any:
        return _op("positive", self, unary=True)

    def __abs__(self) -> Any:
        return _op("abs", self, unary=True)

    def __invert__(self) -> Any:
        return _op("bitwise_invert", self, unary=True)

    def __lt__(self, other: Any) -> Any:
        return _op("less", self, other) if isinstance(other, _TAKEN) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return _op("less_equal", self, other) if isinstance(other, _TAKEN) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return _op("greater", self, other) if isinstance(other, _TAKEN) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return _op("greater_equal", self, other) if isinstance(other, _TAKEN) else NotImplemented

    def __eq__(self, other: object) -> Any:
        return _op("equal", self, other) if isinstance(other, _TAKEN) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _op("not_equal", self, other) if isinstance(other, _TAKEN) else NotImplemented

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        """Return one of weft's functions as a method, as arrays have them: ``x.sum(axis=0)``."""
        if name in _METHODS:
            import weft  # noqa: PLC0415 - which imports this module

            return partial(getattr(weft, name), self)
        raise AttributeError(f"a symbol has no attribute {name!r}")

    def reshape(self, *shape: Any, **options: Any) -> Any:
        """Return the elements in another shape, given as lengths or as one tuple."""
        import weft  # noqa: PLC0415 - which imports this module

        return weft.reshape(self, shape[0] if len(shape) == 1 else shape, **options)

    def transpose(self, *axes: Any) -> Any:
        """Return the axes in another order, given one by one or as one tuple; reversed where none are given."""
        import weft  # noqa: PLC0415 - which imports this module

        return weft.transpose(self, *axes) if len(axes) < 2 else weft.transpose(self, axes)  # noqa: PLR2004 - one by one

    def flatten(self) -> Any:
        """Return the elements along one axis."""
        return self.reshape(-1)

    @property
    def real(self) -> Any:
        """The real part."""
        import weft  # noqa: PLC0415 - which imports this module

        given: Any = self
        return weft.real(given)

    @property
    def imag(self) -> Any:
        """The imaginary part."""
        import weft  # noqa: PLC0415 - which imports this module

        given: Any = self
        return weft.imag(given)

    @property
    def mT(self) -> Any:  # noqa: N802 - the name that arrays have
        """The transpose of each matrix."""
        import weft  # noqa: PLC0415 - which imports this module

        return weft.matrix_transpose(self)

    @property
    def T(self) -> Any:  # noqa: N802 - the name that arrays have
        """The transpose."""
        from weft._ops.manipulation import transpose  # noqa: PLC0415 - which knows of symbols

        return transpose(self)  # a symbol, of a symbol


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
