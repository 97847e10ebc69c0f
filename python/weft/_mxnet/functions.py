"""Special functions, and reductions that few networks have."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import Settings, flag, optional, shape
from weft._numpy import namespace
from weft._registry.op import get_op

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes


@operator("erf", "_npx_erf", inplace=((0, 0),))
def _erf(s: Any, data: Any) -> Any:
    del s
    found: Any = get_op("erf")(data)
    return found


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
