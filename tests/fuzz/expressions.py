"""Expressions of array functions, against NumPy: of any dtype and layout, into new arrays and into places with strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from against import DTYPES

import weft

from .cases import Generator
from .source import Script, outcome

if TYPE_CHECKING:
    from random import Random

__all__ = ["BINARY", "GENERATOR", "UNARY", "operand"]

SHAPES = ((), (1,), (7,), (0, 3), (3, 4), (2, 100), (4, 1), (2, 3, 4), (1, 1))
UNARY = {
    "b": ("logical_not", "isfinite", "abs", "positive"),
    "iu": ("abs", "negative", "square", "sign", "invert", "isfinite", "isnan", "signbit", "sqrt", "floor"),
    "f": (
        *("abs", "negative", "square", "sign", "sqrt", "exp", "sin", "tanh", "log1p", "floor", "rint", "isnan"),
        *("isinf", "isfinite", "isposinf", "isneginf", "cbrt", "arctan"),
    ),
    "c": ("abs", "negative", "square", "conj", "isfinite", "isnan", "exp", "real", "imag"),
}
BINARY = {
    "b": ("logical_and", "logical_or", "logical_xor", "equal", "maximum", "add"),
    "iu": ("add", "subtract", "multiply", "divide", "minimum", "bitwise_xor", "less", "gcd", "hypot"),
    "f": ("add", "subtract", "multiply", "divide", "maximum", "hypot", "copysign", "less_equal", "arctan2", "fmin"),
    "c": ("add", "subtract", "multiply", "not_equal", "divide"),
}
REDUCE = {
    "b": ("any", "all", "count_nonzero", "sum"),
    "iu": ("sum", "max", "min", "argmax", "argmin", "any", "cumsum", "mean", "prod"),
    "f": ("sum", "max", "min", "all", "mean", "var", "nansum", "nanmax"),
    "c": ("sum", "prod", "any", "mean"),
}
LAYOUTS = (
    "{x}",
    "{x}.T",
    "{x}[::-1]",
    "{x}[..., ::2]",
    "{x}[..., None]",
    "{x}.reshape(-1)",
    "xp.concatenate([{x}, {x}])",
)


def row_of(table: dict[str, tuple[str, ...]], dtype: Any) -> tuple[str, ...]:
    """The functions of a table that take a dtype."""
    return next(names for kinds, names in table.items() if np.dtype(dtype).kind in kinds)


def operand(random: Random, name: str, dtype: str | None = None) -> str:
    """Return the line that makes an operand, some of whose floating-point numbers are not finite."""
    dtype = dtype or random.choice(DTYPES)
    shape = random.choice(SHAPES)
    line = f"{name} = sample({dtype!r}, {shape}, {random.randrange(99)})"
    if np.dtype(dtype).kind == "f" and shape and random.random() < 0.4:
        line += f"; {name}.flat[::{random.randrange(2, 5)}] = np.{random.choice(('inf', 'nan'))}"
    return f"{line}; {name} = xp.asarray({name})"


def make(random: Random) -> Script:
    # Dtypes are followed by running NumPy, as what a function takes depends on them.
    lines = [operand(random, "x0")]
    names: dict[str, Any] = {"xp": np, "np": np}
    known = Script((), "None", both)
    for number in range(1, random.randrange(2, 7)):
        made = f"x{number}"
        try:
            with np.errstate(all="ignore"):
                names = known.names(np)
                exec("\n".join(lines), names)
        except Exception:  # noqa: BLE001 - what cannot be computed ends the case
            break
        arrays = _names(lines)
        x = random.choice(arrays)
        kind = random.randrange(6)
        if kind == 0:
            lines.append(operand(random, made))
        elif kind == 1:
            lines.append(f"{made} = {random.choice(LAYOUTS).format(x=x)}")
        elif kind == 2:
            lines.append(f"{made} = xp.{random.choice(row_of(UNARY, names[x].dtype))}({x})")
        elif kind == 3:
            other = random.choice([*arrays, "2", "-1.5", "True", "np.float32(3)", "np.int8(2)"])
            dtype = np.result_type(names[x].dtype, getattr(names.get(other), "dtype", names[x].dtype))
            lines.append(f"{made} = xp.{random.choice(row_of(BINARY, dtype))}({x}, {other})")
        elif kind == 4:
            axis = random.choice([None, *range(-np.ndim(names[x]), np.ndim(names[x]))])
            lines.append(f"{made} = xp.{random.choice(row_of(REDUCE, names[x].dtype))}({x}, axis={axis})")
        else:
            # Into every second place of a row, where what is left out would show.
            name = random.choice(row_of(UNARY, names[x].dtype))
            found = outcome(lambda name=name, x=x, names=names: getattr(np, name)(names[x]))
            if isinstance(found, Exception) or not isinstance(getattr(np, name), np.ufunc):
                continue
            lines.append(f"{made} = xp.zeros({(*found.shape, 2)}, dtype={found.dtype.name!r})[..., 0]")
            lines.append(f"into({made}, xp.{name}, {x})")
    return Script(tuple(lines), "[" + ", ".join(_names(lines)) + "]", both, close=True)


def _names(lines: list[str]) -> list[str]:
    """Return the names that lines give."""
    return sorted({line.split(" = ")[0] for line in lines if " = " in line})


def both(case: Script) -> tuple[Any, Any]:
    """Run the lines on weft, and on NumPy."""
    return outcome(lambda: case.value(weft)), outcome(lambda: case.value(np))


GENERATOR = Generator("expressions", make, few=600)
