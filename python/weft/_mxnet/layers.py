"""Layers with weights: convolutions both ways, products with a matrix, embeddings."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from weft._mxnet.any_layout import backward_in_plain, data_layout, in_plain, kernel_layout, windows_lie
from weft._mxnet.gradients import Backward
from weft._mxnet.layouts import dense, windows
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import product
from weft._mxnet.settings import REQUIRED, Settings, dtype, flag, integer, optional, shape
from weft._mxnet.shapes_of_windows import convolution, deconvolution, deconvolution_padding, spread
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._registry.op import get_op
from weft._tape.transforms import vjp
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Shapes

#: Attributes that choose algorithms of MXNet's, and change no result.
TUNING = ("cudnn_tune", "cudnn_off", "workspace")

_WINDOWS: dict[str, Any] = {
    "kernel": (shape, REQUIRED),
    "stride": (shape, ()),
    "dilate": (shape, ()),
    "pad": (shape, ()),
    "num_filter": (integer, REQUIRED),
    "num_group": (integer, 1),
    "layout": (optional(data_layout), None),
}


def _weighted(s: Any) -> tuple[str, ...]:
    """Return the names of the inputs of a layer that may have a bias."""
    return ("data", "weight") if s.no_bias else ("data", "weight", "bias")


def _convolution_arguments(s: Any) -> dict[str, Any]:
    count = len(s.kernel)
    return {
        "stride": spread(s.stride, count, 1, "stride"),
        "padding": spread(s.pad, count, 0, "pad"),
        "dilation": spread(s.dilate, count, 1, "dilate"),
        "groups": s.num_group,
    }


def delegated(op: str, node: Any, grads: Sequence[Any], attributes: dict[str, Any]) -> Sequence[Any]:
    """Return the answer of the gradient's rule of another op with the same computation as this node's."""
    rule: Any = get_op(op).attribute("gradient")
    found: Sequence[Any] = rule(
        SimpleNamespace(inputs=node.inputs, outputs=node.outputs[:1], attributes=attributes), grads[:1]
    )
    return found


def _convolution_gradient(s: Any, node: Any, grads: Sequence[Any]) -> Sequence[Any]:
    @backward_in_plain(windows_lie)
    def gradient(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
        plain = SimpleNamespace(inputs=tuple(inputs), outputs=outputs)
        return delegated("nn.conv", plain, grads, _convolution_arguments(s))

    return gradient(s, grads, node.inputs, node.outputs)


@operator(
    "Convolution",
    "Convolution_v1",
    "_npx_convolution",
    settings=Settings(
        TUNING,
        **_WINDOWS,
        no_bias=(flag, False),
        kernel_layout=(optional(kernel_layout), None),
        out_layout=(optional(data_layout), None),
    ),
    inputs=_weighted,
    shapes=convolution,
    layout=windows,
    gradient=_convolution_gradient,
)
@in_plain(windows_lie)
def _convolution(s: Any, data: Any, weight: Any, bias: Any = None) -> Any:
    return nn.conv(data, weight, bias, **_convolution_arguments(s))


@operator(
    "Deconvolution",
    "_npx_deconvolution",
    settings=Settings(TUNING, **_WINDOWS, adj=(shape, ()), target_shape=(shape, ()), no_bias=(flag, True)),
    inputs=_weighted,
    layout=windows,
    shapes=deconvolution,
)
@in_plain(windows_lie)
def _deconvolution(s: Any, data: Any, weight: Any, bias: Any = None) -> Any:
    count = len(s.kernel)
    pad, more = deconvolution_padding(s, data.shape[2:])
    return nn.conv_transpose(
        data,
        weight,
        bias,
        stride=spread(s.stride, count, 1, "stride"),
        padding=pad,
        output_padding=more,
        dilation=spread(s.dilate, count, 1, "dilate"),
        groups=s.num_group,
    )


def _dense_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    wide = ins.length(1, 1)
    if known is not None:
        if not known:
            raise ShapeError("a scalar is no batch of data")
        wide = product(known[1:]) if s.flatten else known[-1]
        lead = known[:1] if s.flatten else known[:-1]
        outs.learn(0, (*lead, s.num_hidden))
    elif s.flatten:
        outs.learn_rank(0, 2)
    ins.learn(1, (s.num_hidden, wide))
    if len(ins) > 2:  # data, weight and bias
        ins.learn(2, (s.num_hidden,))
    found = outs[0]
    if known is not None and found is not None:
        rest = (None,) * (len(known) - 1)
        ins.learn(0, (found[0], *rest) if s.flatten else (*found[:-1], None))
        known = ins[0]
        assert known is not None
        if not s.flatten or len(known) == 2:  # a matrix
            ins.learn(0, (*known[:-1], ins.length(1, 1)))


def _dense_rows(s: Any, data: Any) -> Any:
    return data.reshape((data.shape[0], -1)) if s.flatten and data.ndim != 2 else data  # a matrix


def _dense_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del outputs
    data, weight = inputs[:2]
    rows, grad = _dense_rows(s, data), grads[0]
    by_data = (grad @ weight).reshape(data.shape)
    if grad.ndim != 2:  # a matrix
        rows, grad = rows.reshape((-1, rows.shape[-1])), grad.reshape((-1, grad.shape[-1]))
    found = [by_data, namespace.matrix_transpose(grad) @ rows]
    return found if len(inputs) < 3 else [*found, namespace.sum(grad, axis=0)]


@operator(
    "FullyConnected",
    "_npx_fully_connected",
    settings=Settings(num_hidden=(integer, REQUIRED), no_bias=(flag, False), flatten=(flag, True)),
    inputs=_weighted,
    shapes=_dense_shapes,
    layout=dense,
    gradient=Backward(_dense_backward),
)
def _fully_connected(s: Any, data: Any, weight: Any, bias: Any = None) -> Any:
    found = _dense_rows(s, data) @ namespace.matrix_transpose(weight)
    return found if bias is None else found + bias


def _embedding_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.learn(1, (s.input_dim, s.output_dim))
    known = ins[0]
    if known is not None:
        outs.learn(0, (*known, s.output_dim))
    made = outs[0]
    if made is not None:
        ins.learn(0, made[:-1])


def _embedding_dtypes(s: Any, ins: Any, outs: Any) -> None:
    ins.learn(1, s.dtype)
    ins.alike(outs, [1], [0])


def _rows(s: Any, data: Any) -> Any:
    """Return the numbers of rows: a number outside takes the first or the last one."""
    return namespace.astype(namespace.clip(data, 0, s.input_dim - 1), "int64")


def _embedding_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del outputs
    data, weight = inputs
    _, pull = vjp(lambda table: namespace.take(table, _rows(s, data), axis=0), weight)
    return [None, pull(grads[0])[0]]


@operator(
    "Embedding",
    "_npx_embedding",
    settings=Settings(
        ("sparse_grad",), input_dim=(integer, REQUIRED), output_dim=(integer, REQUIRED), dtype=(dtype, "float32")
    ),
    inputs=("data", "weight"),
    shapes=_embedding_shapes,
    dtypes=_embedding_dtypes,
    gradient=Backward(_embedding_backward),
)
def _embedding(s: Any, data: Any, weight: Any) -> Any:
    return namespace.take(weight, _rows(s, data), axis=0)
