"""Attention of several heads, with queries, keys and values interleaved; normalisation of groups of channels."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, flag, integer, number
from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes

_HEADS = Settings(heads=(integer, REQUIRED))


def _parts(data: Any, heads: int, count: int) -> list[Any]:
    """Return the parts of (length, batch, heads * count * width), each (batch * heads, length, width)."""
    length, batch, wide = data.shape
    width = wide // (heads * count)
    whole = data.reshape((length, batch, heads, count, width))
    whole = namespace.permute_dims(whole, (3, 1, 2, 0, 4)).reshape((count, batch * heads, length, width))
    return [whole[at] for at in range(count)]


def _scores(queries: Any, keys: Any) -> Any:
    return (queries / math.sqrt(queries.shape[-1])) @ namespace.matrix_transpose(keys)


def _joined(attention: Any, values: Any, heads: int) -> Any:
    """Return the values that attention weighs, as (length, batch, heads * width)."""
    found = attention @ values
    of_all, length, width = found.shape
    found = found.reshape((of_all // heads, heads, length, width))
    return namespace.permute_dims(found, (2, 0, 1, 3)).reshape((length, of_all // heads, heads * width))


def _times(a: int | None, b: int) -> int | None:
    return None if a is None else a * b


def _check(s: Any, known: Any, count: int) -> None:
    if known is not None and (len(known) != 3 or (known[2] is not None and known[2] % (count * s.heads))):
        raise ShapeError(f"data is (length, batch, {s.heads} heads * {count} * width), and its shape is {known}")


def _own_scores(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    _check(s, known, 3)
    if known is not None:
        outs.learn(0, (_times(known[1], s.heads), known[0], known[0]))


@operator(
    "_contrib_interleaved_matmul_selfatt_qk",
    settings=_HEADS,
    inputs=("queries_keys_values",),
    shapes=_own_scores,
)
def _selfatt_qk(s: Any, data: Any) -> Any:
    queries, keys, _ = _parts(data, s.heads, 3)
    return _scores(queries, keys)


def _own_values(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    _check(s, known, 3)
    if known is not None:
        outs.learn(0, (known[0], known[1], None if known[2] is None else known[2] // 3))
        ins.learn(1, (_times(known[1], s.heads), known[0], known[0]))


@operator(
    "_contrib_interleaved_matmul_selfatt_valatt",
    settings=_HEADS,
    inputs=("queries_keys_values", "attention"),
    shapes=_own_values,
)
def _selfatt_valatt(s: Any, data: Any, attention: Any) -> Any:
    return _joined(attention, _parts(data, s.heads, 3)[2], s.heads)


def _other_scores(s: Any, ins: Shapes, outs: Shapes) -> None:
    queries, keys = ins[0], ins[1]
    _check(s, queries, 1)
    _check(s, keys, 2)
    if queries is not None and keys is not None:
        outs.learn(0, (_times(queries[1], s.heads), queries[0], keys[0]))


@operator(
    "_contrib_interleaved_matmul_encdec_qk",
    settings=_HEADS,
    inputs=("queries", "keys_values"),
    shapes=_other_scores,
)
def _encdec_qk(s: Any, queries: Any, data: Any) -> Any:
    return _scores(_parts(queries, s.heads, 1)[0], _parts(data, s.heads, 2)[0])


def _other_values(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    _check(s, known, 2)
    if known is not None:
        length = ins.length(1, 1)
        outs.learn(0, (length, known[1], None if known[2] is None else known[2] // 2))
        ins.learn(1, (_times(known[1], s.heads), None, known[0]))


@operator(
    "_contrib_interleaved_matmul_encdec_valatt",
    settings=_HEADS,
    inputs=("keys_values", "attention"),
    shapes=_other_values,
)
def _encdec_valatt(s: Any, data: Any, attention: Any) -> Any:
    return _joined(attention, _parts(data, s.heads, 2)[1], s.heads)


def _group_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    known = ins[0]
    if known is None:
        return
    if len(known) < 3 or (known[1] is not None and known[1] % s.num_groups):
        raise ShapeError(f"GroupNorm takes data (n, c, ...) with channels in {s.num_groups} groups, and got {known}")
    for at in (1, 2):
        if ins[at] is None or ins[at] != (known[1],):  # newer files have one number for each channel
            ins.learn(at, (s.num_groups,))
        outs.learn(at, (known[0], s.num_groups))


@operator(
    "GroupNorm",
    "_npx_group_norm",
    settings=Settings(num_groups=(integer, 1), eps=(number, 1e-5), output_mean_var=(flag, False)),
    inputs=("data", "gamma", "beta"),
    outputs=3,
    visible=lambda s: 3 if s.output_mean_var else 1,
    output_names=("output", "mean", "std"),
    shapes=_group_shapes,
)
def _group_norm(s: Any, data: Any, gamma: Any, beta: Any) -> Any:
    groups = data.reshape((data.shape[0], s.num_groups, -1))
    mean = namespace.mean(groups, axis=2, keepdims=True)
    std = namespace.sqrt(namespace.mean(namespace.square(groups - mean), axis=2, keepdims=True) + s.eps)
    found = (groups - mean) / std
    spread = (1, -1, *(1,) * (data.ndim - 2))
    if gamma.size == s.num_groups:
        found = (found * gamma[:, None] + beta[:, None]).reshape(data.shape)
    else:
        found = found.reshape(data.shape) * gamma.reshape(spread) + beta.reshape(spread)
    return found, mean[:, :, 0], std[:, :, 0]
