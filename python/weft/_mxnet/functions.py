"""Functions of all elements that few networks have: moments, checks of finite and of equal numbers, a parabola."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import REQUIRED, Settings, flag, integer, number, optional, shape
from weft._numpy import namespace

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _moment_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    gone = {place(at, len(known)) for at in s.axes} if s.axes is not None else set(range(len(known)))
    left = tuple(1 if at in gone else each for at, each in enumerate(known) if s.keepdims or at not in gone) or (1,)
    for at in range(2):
        outs.learn(at, left)


@operator(
    "moments",
    settings=Settings(axes=(optional(shape), None), keepdims=(flag, False)),
    outputs=2,
    shapes=_moment_shapes,
)
def _moments(s: Any, data: Any) -> Any:
    found = (
        namespace.mean(data, axis=s.axes, keepdims=s.keepdims),
        namespace.var(data, axis=s.axes, keepdims=s.keepdims),
    )
    return tuple(each if each.ndim else each.reshape((1,)) for each in found)


@operator(
    "_contrib_quadratic",
    settings=Settings(a=(number, 0.0), b=(number, 0.0), c=(number, 0.0)),
    inplace=((0, 0),),
)
def _quadratic(s: Any, data: Any) -> Any:
    return (data * s.a + s.b) * data + s.c


def _one_shape(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s, ins
    outs.learn(0, (1,))


def _single(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s, ins
    outs.learn(0, "float32")


def _answer(found: Any) -> Any:
    """Return a yes as 1, a no as 0, as MXNet has it."""
    return namespace.astype(found, "float32").reshape((1,))


def _are_finite(*arrays: Any) -> Any:
    found = namespace.all(namespace.isfinite(arrays[0]))
    for each in arrays[1:]:
        found = found & namespace.all(namespace.isfinite(each))
    return _answer(found)


@operator(
    "all_finite",
    settings=Settings(init_output=(flag, True)),
    shapes=_one_shape,
    dtypes=_single,
    gradient=NONE,
)
def _all_finite(s: Any, data: Any) -> Any:
    del s
    return _are_finite(data)


def _numbered(s: Any) -> tuple[str, ...]:
    return tuple(f"array_{at}" for at in range(s.num_arrays))


@operator(
    "multi_all_finite",
    settings=Settings(num_arrays=(integer, 1), init_output=(flag, True)),
    inputs=_numbered,
    shapes=_one_shape,
    dtypes=_single,
    gradient=NONE,
)
def _multi_all_finite(s: Any, *arrays: Any) -> Any:
    del s
    return _are_finite(*arrays)


def _close_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, theirs=())
    _one_shape(s, ins, outs)


def _close_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    ins.alike(outs, theirs=())
    _single(s, ins, outs)


@operator(
    "_contrib_allclose",
    settings=Settings(rtol=(number, 1e-5), atol=(number, 1e-8), equal_nan=(flag, True)),
    inputs=("a", "b"),
    shapes=_close_shapes,
    dtypes=_close_dtypes,
    gradient=NONE,
)
def _allclose(s: Any, a: Any, b: Any) -> Any:
    return _answer(namespace.allclose(a, b, rtol=s.rtol, atol=s.atol, equal_nan=s.equal_nan))


def _cast_to_widest(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    known = [np.dtype(each) for each in ins if each is not None]
    if len(known) < len(ins):
        return
    chosen = (min if s.cast_narrow else max)(known, key=lambda kind: kind.itemsize)
    for at in range(len(outs)):
        outs.learn(at, chosen)


def _each_alike(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    for at in range(len(ins)):
        ins.alike(outs, [at], [at])


def _many(s: Any) -> tuple[str, ...]:
    return tuple(f"data_{at}" for at in range(s.num_outputs))


@operator(
    "amp_multicast",
    settings=Settings(num_outputs=(integer, REQUIRED), cast_narrow=(flag, False)),
    inputs=_many,
    outputs=lambda s: s.num_outputs,
    shapes=_each_alike,
    dtypes=_cast_to_widest,
)
def _multicast(s: Any, *arrays: Any) -> Any:
    chosen = (min if s.cast_narrow else max)((each.dtype for each in arrays), key=lambda kind: kind.itemsize)
    found = tuple(namespace.astype(each, chosen) for each in arrays)
    return found[0] if len(found) == 1 else found
