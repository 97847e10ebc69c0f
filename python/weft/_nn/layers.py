"""Dense layers, embeddings, dropout, and normalisation over neighbouring channels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import NDArray
from weft._nn.arguments import chosen, fixed, floating, known, plain, refuse, spoiled
from weft._nn.channels import channel_sum
from weft._nn.composite import through
from weft._ops.draws import drawing_op
from weft._ops.elementwise import square
from weft._ops.unbroadcast import reshape_like, stand_in
from weft._registry.avals import Aval
from weft._registry.gradients import gradient_of, needs, no_gradient
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_number
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._ops.random import Generator


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


def _infer_dense_data(g: Aval, weight: Aval, like: Aval, **_: Any) -> Aval:
    return Aval(like.shape, floating("nn.dense_data", g=g, weight=weight))


@register_op("nn.dense_data", infer=_infer_dense_data)
def _dense_data(out: Elements, g: Elements, weight: Elements, like: Elements) -> None:
    del like
    out[...] = np.matmul(g.reshape(-1, g.shape[-1]), weight).reshape(out.shape)


def _infer_dense_weight(x: Aval, g: Aval, like: Aval) -> Aval:
    return Aval(like.shape, floating("nn.dense_weight", x=x, g=g))


@register_op("nn.dense_weight", infer=_infer_dense_weight)
def _dense_weight(out: Elements, x: Elements, g: Elements, like: Elements) -> None:
    del like
    np.matmul(g.reshape(-1, out.shape[0]).T, x.reshape(-1, out.shape[1]), out=out)


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


def _infer_rows(x: Aval, weight: Aval) -> Aval:
    wide = weight.shape[1]
    size = math.prod(x.shape)
    if len(weight.shape) != 2 or (wide and size % wide):  # a matrix
        raise refuse("nn.dense_rows", "data in rows as wide as the weights are taken", x=x, weight=weight)
    return Aval((size // wide if wide else 0, weight.shape[0]), floating("nn.dense_rows", x=x, weight=weight))


@register_op("nn.dense_rows", infer=_infer_rows)
def _dense_rows(out: Elements, x: Elements, weight: Elements) -> None:
    np.matmul(x.reshape(out.shape[0], -1), weight.T, out=out)


@gradient_of("nn.dense_rows", inputs=[0, 1])
def _dense_rows_rule(node: Any, grads: Any) -> Any:
    x, weight = node.inputs
    t = grads[0]
    dx = get_op("nn.dense_data")(t, weight, stand_in(x)) if needs(node, 0) else None
    return dx, get_op("nn.dense_weight")(x, t, stand_in(weight)) if needs(node, 1) else None


def dense(
    x: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    *,
    units: int | None = None,
    flatten: bool = False,
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
        The number of results, from which shapes of symbols' weights follow.
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
    return one(get_op("nn.dense"), *operands, **known(units=plain(units)), flatten=bool(flatten))


def _infer_embedding(indices: Aval, weight: Aval) -> Aval:
    if indices.dtype.kind not in "iu":
        raise ArgumentTypeError(f"nn.embedding: indices are integers, not {indices.dtype}")
    if not weight.shape:
        raise refuse("nn.embedding", "weights (rows, ...) are taken", indices=indices, weight=weight)
    return Aval((*indices.shape, *weight.shape[1:]), weight.dtype)


def _rows(indices: Elements, count: int) -> tuple[Elements, Elements | None]:
    return chosen(
        indices, count, lambda wrong: f"nn.embedding: there is no row {wrong} among {count}: rows count from 0"
    )


@register_op("nn.embedding", infer=_infer_embedding)
def _embedding(out: Elements, indices: Elements, weight: Elements) -> None:
    rows, wrong = _rows(indices, weight.shape[0])
    out[...] = spoiled(weight[rows], wrong)


def _infer_embedding_weight(g: Aval, indices: Aval, like: Aval) -> Aval:
    if g.shape != (*indices.shape, *like.shape[1:]):
        raise refuse("nn.embedding_weight", "gradients have the shape of the rows", g=g, indices=indices, weight=like)
    return Aval(like.shape, g.dtype)


@register_op("nn.embedding_weight", infer=_infer_embedding_weight)
def _embedding_weight(out: Elements, g: Elements, indices: Elements, like: Elements) -> None:
    del like
    out[...] = 0
    rows, wrong = _rows(indices, out.shape[0])
    np.add.at(out, rows.reshape(-1), spoiled(g, wrong).reshape(rows.size, *out.shape[1:]))


@gradient_of("nn.embedding", inputs=[0])
def _embedding_rule(node: Any, grads: Any) -> Any:
    indices, weight = node.inputs
    return None, get_op("nn.embedding_weight")(grads[0], indices, stand_in(weight)) if needs(node, 1) else None


@gradient_of("nn.embedding_weight", inputs=[1])
def _embedding_weight_rule(node: Any, grads: Any) -> Any:
    return get_op("nn.embedding")(node.inputs[1], grads[0]), None, None


def embedding(indices: ArrayLike, weight: ArrayLike) -> NDArray:
    """Return the rows of `weight` that integers name.

    Parameters
    ----------
    indices : array_like of int
        Numbers of rows, from 0.
    weight : array_like
        Shape ``(rows, ...)``.

    Raises
    ------
    IndexError
        When the result is waited for, if there is no such row.

    Examples
    --------
    >>> import weft
    >>> weft.nn.embedding([2, 0], [[1.0], [2.0], [3.0]]).tolist()
    [[3.0], [1.0]]
    """
    like = weight if isinstance(weight, NDArray) or is_symbol(weight) else None
    indices = as_array(indices, like)
    return one(get_op("nn.embedding"), indices, as_array(weight, indices))


def _infer_mask(like: Aval, *, rate: float) -> Aval:
    _check_rate(rate)
    return Aval(like.shape, floating("nn.dropout", x=like))


def _check_rate(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ArgumentValueError(f"nn.dropout: rate is at least 0 and less than 1, not {rate!r}")


def _fill_mask(generator: np.random.Generator, out: Elements, like: Elements, *, rate: float) -> None:
    del like
    drawn = cast("Elements", generator.random(out.shape, dtype=np.float32))
    kept = np.greater_equal(drawn, np.float32(rate))
    np.multiply(kept, 1 / (1 - rate), out=out, casting="unsafe")


drawing_op("dropout_mask", _infer_mask, _fill_mask, refused=False)
no_gradient("random.dropout_mask")


def dropout(x: ArrayLike, rate: float, generator: Generator) -> NDArray:
    """Put 0 in place of elements by chance, and scale the others so that the mean stays.

    The draw is an op on the generator's state, as all draws are: each replay of a program draws anew.

    Parameters
    ----------
    x : array_like
        Data.
    rate : float
        The probability of each element to be dropped: at least 0, less than 1.
    generator : weft.random.Generator
        What draws. Of a symbol `x`, a symbol that stands for a generator's state: ``Variable("state")``.

    Examples
    --------
    >>> import weft
    >>> x = weft.nn.dropout(weft.ones(1000), 0.5, weft.random.default_rng(7))
    >>> sorted(set(x.tolist()))
    [0.0, 2.0]
    """
    x = as_array(x)
    rate = float(rate)
    _check_rate(rate)
    state: Any = generator if is_symbol(generator) else getattr(generator, "_state", None)
    if state is None:
        raise ArgumentTypeError(f"nn.dropout: generator is a weft.random.Generator, not {type(generator).__name__}")
    found: NDArray = x * one(get_op("random.dropout_mask"), state, x, rate=rate)
    return found


def _infer_window_sum(x: Aval, *, size: int, reverse: bool = False) -> Aval:
    del reverse
    if len(x.shape) < 2:  # a batch of channels
        raise refuse("nn.lrn", "data (N, C, ...) are taken", x=x)
    if size < 1:
        raise ArgumentValueError(f"nn.lrn: size is a number of channels of at least 1, not {size!r}")
    return Aval(x.shape, floating("nn.lrn", x=x))


@register_op("nn.window_sum", infer=_infer_window_sum)
def _window_sum(out: Elements, x: Elements, *, size: int, reverse: bool = False) -> None:
    """Add up `size` channels, of which half are before; the other way for `reverse`."""
    before, after = (size // 2, (size - 1) // 2)[:: -1 if reverse else 1]
    out[...] = 0
    count = x.shape[1]
    for apart in range(-before, after + 1):
        first, last = max(-apart, 0), min(count - apart, count)
        if first < last:
            out[:, first:last] += x[:, first + apart : last + apart]


@gradient_of("nn.window_sum")
def _window_sum_rule(node: Any, grads: Any) -> Any:
    given = {**node.attributes, "reverse": not node.attributes.get("reverse", False)}
    return (get_op("nn.window_sum")(grads[0], **given),)


def _infer_lrn(x: Aval, *, size: int, alpha: float, beta: float, k: float) -> Aval:
    del alpha, beta, k
    return _infer_window_sum(x, size=size)


def _lrn_of(x: Any, *, size: int, alpha: float, beta: float, k: float) -> Any:
    """In functions of arrays, whose gradients are the op's."""
    total: Any = get_op("nn.window_sum")(square(x), size=size)
    return x * (total * (alpha / size) + k) ** -beta


@register_op("nn.lrn", infer=_infer_lrn)
def _lrn(out: Elements, x: Elements, *, size: int, alpha: float, beta: float, k: float) -> None:
    total = np.empty_like(x)
    _window_sum.compute["cpu"](total, np.square(x), size=size)
    total *= x.dtype.type(alpha / size)
    total += x.dtype.type(k)
    np.multiply(x, total ** x.dtype.type(-beta), out=out)


gradient_of("nn.lrn", inputs=[0])(through(_lrn_of))


def lrn(x: ArrayLike, size: int, *, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> NDArray:
    """Divide each element by a power of the squares of its neighbours in other channels.

    Parameters
    ----------
    x : array_like
        Data of shape ``(N, C, ...)``.
    size : int
        Over how many channels squares are added; half of them before.
    alpha, beta, k : float
        Of ``x / (k + alpha / size * sum) ** beta``.

    Examples
    --------
    >>> import weft
    >>> weft.nn.lrn([[1.0, 2.0]], 1, alpha=1.0, beta=1.0, k=0.0).tolist()
    [[1.0, 0.5]]
    """
    given: dict[str, Any] = {
        "size": plain(size),
        "alpha": as_number(alpha, "alpha"),
        "beta": as_number(beta, "beta"),
        "k": as_number(k, "k"),
    }
    return one(get_op("nn.lrn"), as_array(x), **given)
