"""Ends of networks: their results, and gradients that are those of a loss, regardless of the gradients from behind."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE, Backward
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import data_dtype, product
from weft._mxnet.settings import Settings, choice, flag, number
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._tape.leaves import stop_gradient
from weft._tape.user_operators import Operator as TapeOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._mxnet.partial_shapes import Shapes


class _Ending(TapeOperator):
    """A function with a gradient of its own, where the tape hears: as in a graph."""

    def __init__(self, value: Callable[..., Any], back: Callable[..., Sequence[Any]]) -> None:
        self._value, self._back = value, back

    def forward(self, *arrays: Any) -> Any:
        found = self._value(*arrays)
        self.save(*arrays, found)
        return found

    def backward(self, *dys: Any) -> Any:
        *arrays, found = self.saved
        return tuple(self._back(dys, arrays, [found]))


def _ending(s: Any, value: Any, back: Any, *arrays: Any) -> Any:
    return _Ending(value, lambda grads, inputs, outputs: back(s, grads, inputs, outputs))(*arrays)


_NORMALISED: dict[str, Any] = {"normalization": (choice("null", "batch", "valid"), "null")}


def _softmax_output_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    shape, label = ins[0], ins[1]
    if shape is None or len(shape) == 0:
        return
    if label is not None and len(label) == len(shape) and None not in label and label == shape:
        return  # probabilities
    if not s.multi_output:
        ins.learn(1, shape[:-1] if s.preserve_shape or label is None or len(label) != 1 else shape[:1])
    elif label is None:
        ins.learn(1, (shape[0], product(shape[2:])))
    else:
        known = [(shape[0], product(shape[2:])), (shape[0], *shape[2:]), (shape[0], 1, *shape[2:])]
        ins.learn(1, next((each for each in known if len(each) == len(label) and _fits(each, label)), known[0]))


def _fits(one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _probabilities(s: Any, data: Any) -> Any:
    if s.preserve_shape:
        return nn.softmax(data, -1)
    if s.multi_output:
        return nn.softmax(data, 1)
    return nn.softmax(data.reshape((data.shape[0], -1)), -1).reshape(data.shape)


def _softmax_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    label, out = inputs[1], outputs[0]
    if label.shape == out.shape:
        found = (out - label) * s.grad_scale
        return [found * grads[0] if s.out_grad else found, None]
    shape = out.shape
    if s.multi_output:
        flat = out.reshape((shape[0], shape[1], -1))
        classes = namespace.arange(shape[1], engine=out.engine).reshape((1, -1, 1))
        at = label.reshape((shape[0], 1, -1))
    else:
        flat = out.reshape((-1, shape[-1])) if s.preserve_shape else out.reshape((shape[0], -1))
        classes = namespace.arange(flat.shape[1], engine=out.engine).reshape((1, -1))
        at = label.reshape((-1, 1))
    hit = namespace.astype(classes == at.astype("int64"), out.dtype)
    if s.smooth_alpha and not s.multi_output:  # as MXNet has it
        count = flat.shape[1]
        hit = hit * (1.0 - s.smooth_alpha - s.smooth_alpha / (count - 1)) + s.smooth_alpha / (count - 1)
    found = flat - hit
    if s.use_ignore:
        found = namespace.where(at == s.ignore_label, 0.0, found)
    scale: Any = s.grad_scale
    if s.multi_output and s.normalization != "valid":
        scale /= flat.shape[2]
    if s.normalization == "batch":
        scale /= shape[0]
    elif s.normalization == "valid" and s.use_ignore:
        scale = scale / namespace.maximum(namespace.sum(namespace.astype(label != s.ignore_label, out.dtype)), 1.0)
    elif s.normalization == "valid":
        scale /= label.size
    found = (found * scale).reshape(shape)
    return [found * grads[0] if s.out_grad else found, None]


@operator(
    "SoftmaxOutput",
    "Softmax",
    settings=Settings(
        grad_scale=(number, 1.0),
        ignore_label=(number, -1.0),
        multi_output=(flag, False),
        use_ignore=(flag, False),
        preserve_shape=(flag, False),
        **_NORMALISED,
        out_grad=(flag, False),
        smooth_alpha=(number, 0.0),
    ),
    inputs=("data", "label"),
    shapes=_softmax_output_shapes,
    dtypes=data_dtype,
    gradient=Backward(_softmax_backward, inputs=(1,), outputs=(0,)),
    inplace=((0, 0),),
)
def _softmax_output(s: Any, data: Any, label: Any) -> Any:
    return _ending(s, lambda x, _: _probabilities(s, x), _softmax_backward, data, label)


def _regression_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs, [0], [0])
    shape, label = ins[0], ins[1]
    if shape is None:
        return
    if label is None:
        ins.learn(1, shape[:1] if len(shape) == 2 and shape[1] == 1 else shape)  # a column
    elif len(label) == len(shape):
        ins.learn(1, shape)


def _regression(name: str, value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> None:
    def back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        del grads
        out, label = outputs[0], inputs[1]
        each = label.size // max(label.shape[0], 1) if label.ndim else 1
        return [slope(out - label.reshape(out.shape)) * (s.grad_scale / max(each, 1)), None]

    operator(
        name,
        settings=Settings(grad_scale=(number, 1.0)),
        inputs=("data", "label"),
        shapes=_regression_shapes,
        dtypes=data_dtype,
        gradient=Backward(back, inputs=(1,), outputs=(0,), heads=False),
        inplace=((0, 0),),
    )(lambda s, data, label: _ending(s, lambda x, _: value(x), back, data, label))


_regression("LinearRegressionOutput", lambda x: x + 0.0, lambda x: x)
_regression("LogisticRegressionOutput", lambda x: nn.sigmoid(x), lambda x: x)
_regression("MAERegressionOutput", lambda x: x + 0.0, namespace.sign)


def _margin_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return the slope of a hinge, squared by default, over each class: the label's from below, the others' from above."""
    del grads
    out, label = outputs[0], inputs[1]
    classes = namespace.arange(out.shape[1], engine=out.engine)
    sign: Any = namespace.where(classes == label.reshape((-1, 1)).astype("int64"), 1.0, -1.0)
    lack = namespace.maximum(s.margin - sign * out, 0.0)
    slope = namespace.astype(lack > 0, out.dtype) if s.use_linear else lack * 2
    return [namespace.astype(-sign * slope * s.regularization_coefficient, out.dtype), None]


def _margin_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.learn(0, (None, None))
    ins.alike(outs, [0], [0])
    ins.learn(1, (ins.length(0, 0),))


@operator(
    "SVMOutput",
    settings=Settings(margin=(number, 1.0), regularization_coefficient=(number, 1.0), use_linear=(flag, False)),
    inputs=("data", "label"),
    shapes=_margin_shapes,
    dtypes=data_dtype,
    gradient=Backward(_margin_backward, inputs=(1,), outputs=(0,), heads=False),
    inplace=((0, 0),),
)
def _margins(s: Any, data: Any, label: Any) -> Any:
    return _ending(s, lambda x, _: x + 0.0, _margin_backward, data, label)


def _loss_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del grads, inputs
    out = outputs[0]
    if s.normalization == "batch":
        return [namespace.full_like(out, s.grad_scale / out.shape[0])]
    if s.normalization == "valid":
        count = namespace.maximum(namespace.sum(namespace.astype(out > s.valid_thresh, out.dtype)), 1.0)
        return [namespace.ones_like(out) * s.grad_scale / count]
    return [namespace.full_like(out, s.grad_scale)]


@operator(
    "MakeLoss",
    settings=Settings(grad_scale=(number, 1.0), valid_thresh=(number, 0.0), **_NORMALISED),
    gradient=Backward(_loss_backward, inputs=(), outputs=(0,), heads=False),
    inplace=((0, 0),),
    identity=True,
)
def _make_loss(s: Any, data: Any) -> Any:
    return _ending(s, lambda x: x, _loss_backward, data)


def _ones(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del s, grads, inputs
    return [namespace.ones_like(outputs[0])]


@operator(
    "make_loss",
    "_sparse_make_loss",
    gradient=Backward(_ones, inputs=(), outputs=(0,), heads=False),
    inplace=((0, 0),),
    identity=True,
)
def _plain_loss(s: Any, data: Any) -> Any:
    return _ending(s, lambda x: x, _ones, data)


@operator("BlockGrad", "stop_gradient", "_sparse_stop_gradient", gradient=NONE, inplace=((0, 0),), identity=True)
def _block(s: Any, data: Any) -> Any:
    del s
    return stop_gradient(data)


def _scalar_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    outs.learn(0, (1,))
    shape = ins[0]
    if shape is not None:
        ins.learn(1, shape[:1])


@operator("softmax_cross_entropy", inputs=("data", "label"), shapes=_scalar_shapes, dtypes=data_dtype)
def _cross_entropy(s: Any, data: Any, label: Any) -> Any:
    del s
    return namespace.sum(nn.cross_entropy(data, label.astype("int64"))).reshape((1,))
