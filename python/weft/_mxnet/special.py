"""Special functions: the error function and its inverse, the gamma function, its logarithm and that one's slope."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.operator import operator
from weft._numpy import namespace
from weft._registry.op import get_op, register_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from weft._registry.avals import Aval

    _Numbers = npt.NDArray[Any]


def _floating(x: Aval) -> Aval:
    if x.dtype.kind != "f":
        raise ArgumentTypeError(f"special functions take floating-point numbers, and dtype {x.dtype} was given")
    return x


def _gamma_of(x: float) -> float:
    try:
        return math.gamma(x)
    except OverflowError:
        return math.inf
    except ValueError:  # a pole
        return math.copysign(math.inf, x) if x == 0 else math.nan


def _gammaln_of(x: float) -> float:
    try:
        return math.lgamma(x)
    except (OverflowError, ValueError):  # a pole
        return math.inf


#: From here on the series that begins with the logarithm has all digits.
_FAR = 10
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _series(terms: tuple[float, ...], inverse: _Numbers) -> _Numbers:
    found = np.zeros_like(inverse)
    for term in reversed(terms):
        found = (found + term) * inverse
    return found


def _digamma_of(x: _Numbers) -> _Numbers:
    """Return the slope of the logarithm of gamma: by recurrence up to 10, then by its asymptotic series."""
    with np.errstate(all="ignore"):
        mirrored = x <= 0
        at = np.where(mirrored, 1 - x, x)
        low = np.zeros_like(at)
        for _ in range(_FAR):
            near = at < _FAR
            low += np.where(near, 1 / at, 0)
            at = np.where(near, at + 1, at)
        found = np.log(at) - 0.5 / at - _series(_DIGAMMA, 1 / at**2) - low
        found = np.where(mirrored, found - math.pi / np.tan(math.pi * x), found)
        return np.where(mirrored & (x == np.floor(x)), np.nan, found)


def _trigamma_of(x: _Numbers) -> _Numbers:
    with np.errstate(all="ignore"):
        mirrored = x <= 0
        at = np.where(mirrored, 1 - x, x)
        low = np.zeros_like(at)
        for _ in range(_FAR):
            near = at < _FAR
            low += np.where(near, 1 / at**2, 0)
            at = np.where(near, at + 1, at)
        found = 1 / at + 0.5 / at**2 + _series(_TRIGAMMA, 1 / at**2) / at + low
        return np.where(mirrored, (math.pi / np.sin(math.pi * x)) ** 2 - found, found)


_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)
#: Winitzki's constant: a first guess that is right to three digits.
_WINITZKI = 0.147
_STEPS = 3


def _erfinv_of(x: _Numbers) -> _Numbers:
    """Return the inverse of the error function: Winitzki's guess, mended by Newton's and Halley's steps."""
    with np.errstate(all="ignore"):
        inside = np.clip(abs(x), 0, np.nextafter(1, 0))
        logs = np.log1p(-inside * inside)
        half = 2 / (math.pi * _WINITZKI) + logs / 2
        y = np.sqrt(np.sqrt(half * half - logs / _WINITZKI) - half)
        for _ in range(_STEPS):
            by_tail = (1 - inside) - np.asarray(_erfc(y), float)
            away = np.where(inside > 0.5, by_tail, np.asarray(_erf(y), float) - inside)
            step = away / (2 / math.sqrt(math.pi) * np.exp(-y * y))
            y = y - step / (1 + y * step)
        y = np.where(abs(x) == 1, np.inf, np.where(abs(x) > 1, np.nan, y))
        return np.copysign(y, x)


def _each(function: Callable[[float], float]) -> Callable[[_Numbers], _Numbers]:
    made = np.frompyfunc(function, 1, 1)
    return lambda x: np.asarray(made(x), float)


#: How each is computed of double numbers.
_VALUES: dict[str, Callable[[_Numbers], _Numbers]] = {
    "gamma": _each(_gamma_of),
    "gammaln": _each(_gammaln_of),
    "digamma": _digamma_of,
    "trigamma": _trigamma_of,
    "erfinv": _erfinv_of,
}


def _called(name: str, x: Any) -> Any:
    return get_op(f"special.{name}")(x)


#: The slope of each, where it has one.
_SLOPES: dict[str, Callable[[Any], Any]] = {
    "gamma": lambda x: _called("gamma", x) * _called("digamma", x),
    "gammaln": lambda x: _called("digamma", x),
    "digamma": lambda x: _called("trigamma", x),
    "erfinv": lambda x: math.sqrt(math.pi) / 2 * namespace.exp(namespace.square(_called("erfinv", x))),
}


def _register(name: str, function: Callable[[_Numbers], _Numbers]) -> None:
    @register_op(f"special.{name}", infer=_floating)
    def op(out: _Numbers, x: _Numbers) -> None:
        out[...] = function(x.astype(float))

    slope = _SLOPES.get(name)
    if slope is None:
        return
    op.set_attribute("gradient", lambda node, grads: (grads[0] * slope(node.inputs[0]),))
    op.set_attribute("gradient_reads", 1)
    operator(name, f"_npx_{name}", inplace=((0, 0),))(lambda s, data: _called(name, data))


for _name, _function in _VALUES.items():
    _register(_name, _function)


@operator("erf", "_npx_erf", inplace=((0, 0),))
def _error_function(s: Any, data: Any) -> Any:
    del s
    found: Any = get_op("erf")(data)
    return found
