"""Arrays of nothing else: of one number, or of numbers in order."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import own_dtype
from weft._mxnet.settings import REQUIRED, Settings, dtype, flag, integer, number, optional, shape
from weft._numpy import namespace
from weft.errors import GraphError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes


def _given_shape(s: Any, ins: Shapes, outs: Shapes) -> None:
    del ins
    outs.learn(0, tuple(None if each in (0, -1) else each for each in s.shape) if s.shape else None)


def _with_shape(attributes: dict[str, Any], made: tuple[int, ...]) -> dict[str, Any]:
    """Return attributes with the shape that follows where a length was not known."""
    return {**attributes, "shape": made}


_MADE = {"shape": (shape, ()), "dtype": (dtype, "float32")}


def _register_made() -> None:
    for name, value in (("_zeros", 0), ("_ones", 1)):
        operator(
            name,
            f"_npi{name}",
            settings=Settings(("ctx",), **_MADE),
            inputs=(),
            shapes=_given_shape,
            dtypes=own_dtype,
            gradient=NONE,
        )(lambda s, value=value: namespace.full(s.shape, value, dtype=s.dtype)).set_attribute("completed", _with_shape)
    operator(
        "_full",
        "_npi_full",
        settings=Settings(("ctx",), **_MADE, value=(number, REQUIRED)),
        inputs=(),
        shapes=_given_shape,
        dtypes=own_dtype,
        gradient=NONE,
    )(lambda s: namespace.full(s.shape, s.value, dtype=s.dtype)).set_attribute("completed", _with_shape)


_register_made()


def in_steps(start: float, step: float, count: int, kind: Any) -> np.ndarray[Any, Any]:
    """Return numbers in order; each is computed in their own dtype, as in MXNet.

    Examples
    --------
    >>> from weft._mxnet.constants import in_steps
    >>> in_steps(1, 2, 3, "float32")
    array([1., 3., 5.], dtype=float32)
    """
    chosen = np.dtype(kind)
    first, by = (np.asarray(each).astype(chosen) for each in (start, step))
    found: np.ndarray[Any, Any] = first + np.arange(count).astype(chosen) * by
    return found


def _is_open(s: Any) -> bool:
    """Return whether the number of numbers is that of another array."""
    return bool(s.infer_range) and s.stop is None


def _with_stop(attributes: dict[str, Any], made: tuple[int, ...]) -> dict[str, Any]:
    """Return attributes with an end that lets in as many numbers as a reader takes."""
    s = _arange.read(attributes)
    if not _is_open(s):
        return attributes
    steps = -(-made[0] // s.repeat)
    return {**attributes, "stop": s.start + (steps - 0.5) * s.step, "infer_range": False}


def _count(s: Any) -> int:
    start, stop = (0.0, s.start) if s.stop is None else (s.start, s.stop)
    count: int = max(0, math.ceil((stop - start) / s.step)) * s.repeat
    return count


@operator(
    "_arange",
    "_npi_arange",
    settings=Settings(
        ("ctx",),
        start=(number, 0.0),
        stop=(optional(number), None),
        step=(number, 1.0),
        repeat=(integer, 1),
        infer_range=(flag, False),
        dtype=(dtype, "float32"),
    ),
    inputs=(),
    shapes=lambda s, ins, outs: outs.learn(0, (None if _is_open(s) else _count(s),)),
    dtypes=own_dtype,
    gradient=NONE,
)
def _arange(s: Any) -> Any:
    if _is_open(s):
        raise GraphError("arange: how many numbers there are follows from no reader: give stop=")
    start = 0.0 if s.stop is None else s.start
    return namespace.asarray(np.repeat(in_steps(start, s.step, _count(s) // s.repeat, s.dtype), s.repeat))


_arange.set_attribute("completed", _with_stop)


@operator(
    "_linspace",
    "_npi_linspace",
    settings=Settings(
        ("ctx",),
        start=(number, REQUIRED),
        stop=(optional(number), None),
        step=(number, 1.0),
        num=(integer, REQUIRED),
        endpoint=(flag, True),
        dtype=(dtype, "float32"),
    ),
    inputs=(),
    shapes=lambda s, ins, outs: outs.learn(0, (s.num,)),
    dtypes=own_dtype,
    gradient=NONE,
)
def _linspace(s: Any) -> Any:
    return namespace.linspace(s.start, s.stop, s.num, dtype=s.dtype, endpoint=s.endpoint)


@operator(
    "_eye",
    "_npi_eye",
    settings=Settings(("ctx",), N=(integer, REQUIRED), M=(integer, 0), k=(integer, 0), dtype=(dtype, "float32")),
    inputs=(),
    shapes=lambda s, ins, outs: outs.learn(0, (s.N, s.M or s.N)),
    dtypes=own_dtype,
    gradient=NONE,
)
def _eye(s: Any) -> Any:
    return namespace.eye(s.N, s.M or s.N, k=s.k, dtype=s.dtype)
