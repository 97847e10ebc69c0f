"""Dense layers: products of data with weights along the last axis, and the ops of their gradients."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._nn.arguments import fixed, floating, known, plain, refuse
from weft._nn.channels import channel_sum
from weft._nn.facts import along, cost_of, elements, first, join
from weft._nn.running import add_bias, is_plain
from weft._ops.manipulation import broadcast_to, matrix_transpose, reshape
from weft._ops.products import matmul
from weft._ops.unbroadcast import reshape_like, stand_in
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.facts import Shapes


def _are_products(out: NDArray, *operands: NDArray) -> bool:
    """Return whether the core computes products of these."""
    return out.size > 0 and all(x.size > 0 and x.dtype == out.dtype for x in operands)


def _infer_dense(x: Aval, weight: Aval, *bias: Aval, units: int | None = None, flatten: bool = False) -> Aval:
    op = "nn.dense"
    if not x.shape or len(weight.shape) != 2:  # a matrix
        raise refuse(op, "data (..., features) and weights (units, features) are taken", x=x, weight=weight)
    wide = math.prod(x.shape[1:]) if flatten else x.shape[-1]
    out, features = weight.shape
    if features != wide or (units is not None and units != out):
        why = f"data of {wide} features and units={units} do not suit these weights (units, features)"
        raise refuse(op, why, x=x, weight=weight)
    dtype = floating(op, x=x, weight=weight, bias=bias[0] if bias else None)
    if bias:
        fixed(op, "bias", bias[0], (out,), weight=weight)
    return Aval((x.shape[0], out) if flatten else (*x.shape[:-1], out), dtype)


def _dense_shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op, flatten = "nn.dense", attributes.get("flatten", False)
    (x, weight, *bias), (out,) = ins, outs
    units = first(attributes.get("units"), along(weight, 0), along(out, -1), *(along(each, 0) for each in bias))
    wide = along(weight, 1)
    if x is not None:
        features = x[1:] if flatten else x[-1:]
        if None not in features:
            wide = first(wide, math.prod(each or 0 for each in features))
    weight = join(op, "weight", weight, (units, wide))
    if flatten:
        out = join(op, "the result", out, (first(along(x, 0), along(out, 0)), units))
        if x is not None:
            x = join(op, "x", x, (along(out, 0), *x[1:]))
    else:
        ahead = x[:-1] if x is not None else out[:-1] if out is not None else None
        if ahead is not None:
            out = join(op, "the result", out, (*ahead, units))
            x = join(op, "x", x, (*tuple(out or ())[:-1], wide))
    return [x, weight, *(join(op, "bias", each, (units,)) for each in bias)], [out]


@register_op("nn.dense", infer=_infer_dense)
def _dense(
    out: Elements, x: Elements, weight: Elements, *bias: Elements, units: int | None = None, flatten: bool = False
) -> None:
    del units
    rows = x.reshape(x.shape[0], -1) if flatten else x.reshape(-1, x.shape[-1])
    found = np.matmul(rows, weight.T)
    if bias:
        found += bias[0]
    out[...] = found.reshape(out.shape)


def _push_dense(
    outputs: tuple[NDArray], operands: tuple[NDArray, ...], *, units: int | None = None, flatten: bool = False
) -> bool:
    del units
    (out,), (x, weight) = outputs, operands[:2]
    if not _are_products(out, *operands) or not is_plain(out):
        return False
    rows = x.reshape(x.shape[0], -1) if flatten else x.reshape(-1, x.shape[-1])
    get_op("matmul")(rows, weight.mT, out=out.reshape(rows.shape[0], -1))
    for bias in operands[2:]:
        add_bias(out, bias, -1)
    return True


def _dense_for_all(size: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    """Each example may have weights of its own: then it is a product of stacks."""
    x, weight, *bias = operands
    if not mapped[0]:
        x = broadcast_to(x, (size, *x.shape))
    if attributes.get("flatten", False):
        x = reshape(x, (*x.shape[:2], -1))
    if not any(mapped[1:]):
        return one(_dense, x, weight, *bias, units=attributes.get("units"))
    line = x.ndim == 2  # each example is one vector
    rows = reshape(x, (size, -1, x.shape[-1]))
    found = matmul(rows, matrix_transpose(weight))
    if bias:
        found = found + (reshape(bias[0], (size, 1, -1)) if mapped[2] else bias[0])
    return reshape(found, (size, found.shape[-1]) if line else (*x.shape[:-1], found.shape[-1]))


state(
    _dense,
    infer_shape=_dense_shapes,
    batch=_dense_for_all,
    infer_type="same",
    cost=cost_of(lambda x, w: elements(x) * w[0]),
    push=_push_dense,
)


def _infer_dense_data(g: Aval, weight: Aval, like: Aval, **_: Any) -> Aval:
    return Aval(like.shape, floating("nn.dense_data", g=g, weight=weight))


@register_op("nn.dense_data", infer=_infer_dense_data)
def _dense_data(out: Elements, g: Elements, weight: Elements, like: Elements) -> None:
    del like
    out[...] = np.matmul(g.reshape(-1, g.shape[-1]), weight).reshape(out.shape)


def _push_dense_data(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (g, weight) = outputs, operands[:2]
    if not _are_products(out, g, weight) or not is_plain(out):
        return False
    get_op("matmul")(g.reshape(-1, g.shape[-1]), weight, out=out.reshape(-1, weight.shape[1]))
    return True


state(
    _dense_data, infer_type="same", ignores=(2,), cost=cost_of(lambda g, w: elements(g) * w[1]), push=_push_dense_data
)


def _infer_dense_weight(x: Aval, g: Aval, like: Aval) -> Aval:
    return Aval(like.shape, floating("nn.dense_weight", x=x, g=g))


@register_op("nn.dense_weight", infer=_infer_dense_weight)
def _dense_weight(out: Elements, x: Elements, g: Elements, like: Elements) -> None:
    del like
    np.matmul(g.reshape(-1, out.shape[0]).T, x.reshape(-1, out.shape[1]), out=out)


def _push_dense_weight(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (x, g) = outputs, operands[:2]
    if not _are_products(out, x, g):
        return False
    get_op("matmul")(g.reshape(-1, out.shape[0]).mT, x.reshape(-1, out.shape[1]), out=out)
    return True


state(
    _dense_weight,
    infer_type="same",
    ignores=(2,),
    cost=cost_of(lambda x, g: elements(x) * g[-1]),
    push=_push_dense_weight,
)


def _infer_rows(x: Aval, weight: Aval) -> Aval:
    wide = weight.shape[1]
    size = math.prod(x.shape)
    if len(weight.shape) != 2 or (wide and size % wide):  # a matrix
        raise refuse("nn.dense_rows", "data in rows as wide as the weights are taken", x=x, weight=weight)
    return Aval((size // wide if wide else 0, weight.shape[0]), floating("nn.dense_rows", x=x, weight=weight))


@register_op("nn.dense_rows", infer=_infer_rows)
def _dense_rows(out: Elements, x: Elements, weight: Elements) -> None:
    np.matmul(x.reshape(out.shape[0], -1), weight.T, out=out)


def _push_dense_rows(outputs: tuple[NDArray], operands: tuple[NDArray, ...]) -> bool:
    (out,), (x, weight) = outputs, operands
    if not _are_products(out, x, weight):
        return False
    get_op("matmul")(x.reshape(out.shape[0], -1), weight.mT, out=out)
    return True


state(_dense_rows, infer_type="same", cost=cost_of(lambda x, w: elements(x) * w[0]), push=_push_dense_rows)


@gradient_of("nn.dense", inputs=[0, 1])
def _dense_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs[:2]
    g = grads[0]
    dx = get_op("nn.dense_data")(g, weight, stand_in(x)) if needs(node, 0) else None
    dw = get_op("nn.dense_weight")(x, g, stand_in(weight)) if needs(node, 1) else None
    return dx, dw, *(channel_sum(g, -1) if needs(node, at) else None for at in range(2, len(node.inputs)))


@gradient_of("nn.dense_data", inputs=[0, 1])
def _dense_data_rule(node: Any, grads: Any) -> Any:
    """Results are products with the data in rows; gradients of weights are sums over rows."""
    g, weight, _ = node.inputs
    t = grads[0]
    dg = reshape_like(get_op("nn.dense_rows")(t, weight), g) if needs(node, 0) else None
    return dg, get_op("nn.dense_weight")(t, g, stand_in(weight)) if needs(node, 1) else None, None


@gradient_of("nn.dense_weight", inputs=[0, 1])
def _dense_weight_rule(node: Any, grads: Any) -> Any:
    x, g, _ = node.inputs
    t = grads[0]
    dx = get_op("nn.dense_data")(g, t, stand_in(x)) if needs(node, 0) else None
    return dx, reshape_like(get_op("nn.dense_rows")(x, t), g) if needs(node, 1) else None, None


@gradient_of("nn.dense_rows", inputs=[0, 1])
def _dense_rows_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs
    t = grads[0]
    dx = get_op("nn.dense_data")(t, weight, stand_in(x)) if needs(node, 0) else None
    return dx, get_op("nn.dense_weight")(x, t, stand_in(weight)) if needs(node, 1) else None


def dense(
    x: ArrayLike, weight: ArrayLike, bias: ArrayLike | None = None, *, units: int | None = None, flatten: bool = False
) -> NDArray:
    """Multiply data by weights along their last axis: ``x @ weight.T + bias``.

    Parameters
    ----------
    x : array_like
        Shape ``(..., features)``.
    weight : array_like
        Shape ``(units, features)``.
    bias : array_like, optional
        Shape ``(units,)``.
    units : int, optional
        The number of results; the shapes of symbols' weights follow from it.
    flatten : bool, default: False
        Whether all axes but the first are features.

    Examples
    --------
    >>> import weft
    >>> weft.nn.dense([[1.0, 2.0]], [[1.0, 1.0], [0.0, 1.0]], [0.5, 0.0]).tolist()
    [[3.5, 2.0]]
    """
    x = as_array(x)
    operands = [x, as_array(weight, x), *([] if bias is None else [as_array(bias, x)])]
    return one(_dense, *operands, **known(units=plain(units)), flatten=bool(flatten))
