"""Arrays of parts: joins along an axis, or along a new one."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import Settings, integer
from weft._numpy import namespace

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Lengths, Shapes


def _several(s: Any) -> tuple[str, ...] | None:
    return None if s.num_args is None else tuple(f"arg{at}" for at in range(s.num_args))


def _join_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = [each for each in (*ins, outs[0]) if each is not None]
    if not known:
        return
    rank = len(known[0])
    at = place(s.dim, rank)
    for each in range(len(ins)):
        ins.learn_rank(each, rank)
    outs.learn_rank(0, rank)

    def others(shape_: Lengths | None) -> Lengths:
        return tuple(None if axis == at else each for axis, each in enumerate(shape_ or ()))

    for _ in range(2):
        for each in range(len(ins)):
            outs.learn(0, others(ins[each]))
        for each in range(len(ins)):
            ins.learn(each, others(outs[0]))
    lengths = [ins.length(each, at) for each in range(len(ins))]
    total = outs.length(0, at)
    unknown = [each for each, length in enumerate(lengths) if length is None]
    known_sum = sum(each or 0 for each in lengths)
    if not unknown:
        outs.learn(0, tuple(known_sum if axis == at else None for axis in range(rank)))
    elif len(unknown) == 1 and total is not None:
        ins.learn(unknown[0], tuple(total - known_sum if axis == at else None for axis in range(rank)))


@operator(
    "Concat",
    "concat",
    "_sparse_concat",
    settings=Settings(num_args=(integer, None), dim=(integer, 1)),
    layout="concat",
    inputs=_several,
    shapes=_join_shapes,
    gradient=LINEAR,
)
def _concat(s: Any, *arrays: Any) -> Any:
    return namespace.concat(arrays, axis=s.dim)


@operator(
    "_npi_concatenate",
    settings=Settings(num_args=(integer, None), axis=(integer, 0)),
    inputs=_several,
    shapes=lambda s, ins, outs: _join_shapes(_Along(s.axis), ins, outs),
    gradient=LINEAR,
)
def _concatenate(s: Any, *arrays: Any) -> Any:
    return namespace.concat(arrays, axis=s.axis)


@operator(
    "_rnn_param_concat",
    "_npi_rnn_param_concat",
    settings=Settings(num_args=(integer, None), dim=(integer, 0)),
    inputs=_several,
    shapes=_join_shapes,
    gradient=LINEAR,
)
def _parameters(s: Any, *arrays: Any) -> Any:
    return namespace.concat(arrays, axis=s.dim)


class _Along:
    """Settings of a join with another name for its axis."""

    def __init__(self, axis: int) -> None:
        self.dim = axis


def _stack_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, None, [])
    known = ins[0]
    if known is not None:
        at = place(s.axis, len(known) + 1)
        outs.learn(0, (*known[:at], len(ins), *known[at:]))


@operator(
    "stack",
    "_npi_stack",
    settings=Settings(axis=(integer, 0), num_args=(integer, None)),
    inputs=_several,
    shapes=_stack_shapes,
    gradient=LINEAR,
)
def _stack(s: Any, *arrays: Any) -> Any:
    return namespace.stack(arrays, axis=s.axis)
