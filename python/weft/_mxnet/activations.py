"""Activations, and probabilities from scores."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft._mxnet.draws import generator_of, kept
from weft._mxnet.gradients import Backward, again_as_drawn
from weft._mxnet.layouts import as_written
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, choice, dtype, flag, integer, number, optional, shape
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._tape.modes import TRAINING
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Shapes

_KINDS: dict[str, Any] = {
    "relu": lambda x: nn.relu(x),
    "sigmoid": lambda x: nn.sigmoid(x),
    "tanh": lambda x: namespace.tanh(x),
    "softrelu": lambda x: nn.softplus(x),
    "softsign": lambda x: x / (1.0 + abs(x)),
}

#: The factor by which each changes the gradient, of the result `y`.
_SLOPES: dict[str, Any] = {
    "relu": lambda y: namespace.astype(y > 0, y.dtype),
    "sigmoid": lambda y: y * (1.0 - y),
    "tanh": lambda y: 1.0 - y * y,
    "softrelu": lambda y: -namespace.expm1(-y),
    "softsign": lambda y: namespace.square(1.0 - abs(y)),
}


def _by_result(kind: str | None = None) -> Backward:
    """Return the gradient of an activation that follows from its result."""

    def back(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
        del inputs
        return [grads[0] * _SLOPES[kind or s.act_type](outputs[0])]

    return Backward(back, inputs=(), outputs=(0,))


@operator(
    "Activation",
    "_npx_activation",
    settings=Settings(act_type=(choice(*_KINDS), REQUIRED)),
    gradient=_by_result(),
    inplace=((0, 0),),
)
def _activation(s: Any, data: Any) -> Any:
    return _KINDS[s.act_type](data)


def _register_kinds() -> None:
    for name in ("relu", "sigmoid", "softsign"):
        operator(name, f"_npx_{name}", f"_sparse_{name}", gradient=_by_result(name), inplace=((0, 0),))(
            lambda s, data, kind=name: _KINDS[kind](data)
        )


_register_kinds()

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def _leaky_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], range(len(outs)))
    shape = ins[0]
    if len(ins) > 1 and shape is not None and ins[1] is None:
        ins.learn(1, (shape[1] if len(shape) > 1 else 1,))


@operator(
    "LeakyReLU",
    "_npx_leaky_relu",
    settings=Settings(
        act_type=(choice("leaky", "elu", "prelu", "selu", "gelu", "rrelu"), "leaky"),
        slope=(number, 0.25),
        lower_bound=(number, 0.125),
        upper_bound=(number, 0.334),
    ),
    inputs=lambda s: ("data", "gamma") if s.act_type == "prelu" else ("data",),
    outputs=lambda s: 2 if s.act_type == "rrelu" else 1,
    visible=1,
    shapes=_leaky_shapes,
    layout=as_written,
    gradient=again_as_drawn(lambda s: (1,) if s.act_type == "rrelu" else ()),
    inplace=((0, 0),),
    pure=lambda s: s.act_type != "rrelu",
)
def _leaky(s: Any, data: Any, gamma: Any = None, drawn: Sequence[Any] = ()) -> Any:
    kind = s.act_type
    if kind == "leaky":
        return nn.leaky_relu(data, s.slope)
    if kind == "elu":
        return nn.elu(data, s.slope)
    if kind == "selu":
        return nn.elu(data, _SELU_ALPHA) * _SELU_SCALE
    if kind == "gelu":
        return nn.gelu(data)
    if kind == "prelu":
        return namespace.where(data > 0, data, data * _beside(data, gamma))
    if drawn:
        [slope] = drawn
    elif TRAINING.get():
        slope = namespace.astype(generator_of(data).uniform(s.lower_bound, s.upper_bound, data.shape), data.dtype)
    else:
        slope = namespace.full_like(data, (s.lower_bound + s.upper_bound) / 2)
    return namespace.where(data > 0, data, data * slope), slope


_leaky.set_attribute("draws_untrained", value=False)


def _beside(data: Any, gamma: Any) -> Any:
    """Return prelu's slopes in a shape that goes with the data's: their last axis is of channels or, failing that, of examples."""
    left, shape = list(gamma.shape), [1] * data.ndim
    for at in range(min(2, data.ndim) - 1, -1, -1):
        if left and left[-1] in (1, data.shape[at]):
            shape[at] = left.pop()
    if not left:
        return gamma.reshape(tuple(shape))
    if gamma.ndim < data.ndim:
        raise ShapeError(f"LeakyReLU: slopes of shape {gamma.shape} do not go with data of shape {data.shape}")
    return gamma


def _lengths_mask(data: Any, lengths: Any, axis: int) -> Any:
    """Return where along an axis an element counts."""
    at = axis % data.ndim
    shape = [1] * data.ndim
    shape[at] = data.shape[at]
    known = namespace.expand_dims(lengths, at)
    return namespace.arange(data.shape[at], engine=data.engine).reshape(tuple(shape)) < known


_SOFTMAX = Settings(
    axis=(integer, -1), temperature=(optional(number), None), dtype=(optional(dtype), None), use_length=(flag, False)
)


def _softmax_inputs(s: Any) -> tuple[str, ...]:
    return ("data", "length") if s.use_length else ("data",)


def _softmax_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    shape = ins[0]
    if len(ins) > 1 and shape is not None:
        at = s.axis % len(shape)
        ins.learn(1, shape[:at] + shape[at + 1 :])


def _softmax_dtypes(s: Any, ins: Any, outs: Any) -> None:
    outs.learn(0, s.dtype)
    ins.alike(outs, [0], [0])
    for at in range(1, len(ins)):
        ins.learn(at, "int32")


def _scores(s: Any, data: Any) -> Any:
    found = data if s.dtype is None or s.dtype == data.dtype else namespace.astype(data, s.dtype)
    return found if s.temperature is None else found / s.temperature


def _register_softmax() -> None:
    kinds: dict[str, Any] = {
        "softmax": lambda x, axis: nn.softmax(x, axis),
        "log_softmax": lambda x, axis: nn.log_softmax(x, axis),
        "softmin": lambda x, axis: nn.softmax(-x, axis),
    }
    for name, kind in kinds.items():

        def apply(s: Any, data: Any, length: Any = None, *, kind: Any = kind) -> Any:
            if length is None:
                return kind(_scores(s, data), s.axis)
            counts = _lengths_mask(data, length, s.axis)
            found = kind(namespace.where(counts, _scores(s, data), -1e30), s.axis)
            return namespace.where(counts, found, 0.0)

        operator(
            name,
            f"_npx_{name}",
            settings=_SOFTMAX,
            inputs=_softmax_inputs,
            shapes=_softmax_shapes,
            dtypes=_softmax_dtypes,
            places=(1,),
            inplace=((0, 0),),
        )(apply)


_register_softmax()


@operator(
    "SoftmaxActivation",
    settings=Settings(mode=(choice("instance", "channel"), "instance")),
    inplace=((0, 0),),
)
def _softmax_activation(s: Any, data: Any) -> Any:
    if s.mode == "channel":
        return nn.softmax(data, 1)
    return nn.softmax(data.reshape((data.shape[0], -1)), -1).reshape(data.shape)


@operator("hard_sigmoid", settings=Settings(alpha=(number, 0.2), beta=(number, 0.5)))
def _hard_sigmoid(s: Any, data: Any) -> Any:
    return namespace.clip(data * s.alpha + s.beta, 0.0, 1.0)


@operator("smooth_l1", "_npx_smooth_l1", settings=Settings(scalar=(number, 1.0)))
def _smooth_l1(s: Any, data: Any) -> Any:
    square = s.scalar * s.scalar
    size = abs(data)
    return namespace.where(size < 1.0 / square, 0.5 * square * namespace.square(data), size - 0.5 / square)


@operator("_contrib_div_sqrt_dim")
def _div_sqrt_dim(s: Any, data: Any) -> Any:
    del s
    return data / math.sqrt(data.shape[-1])


def _dropout_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del inputs
    return [grads[0] * outputs[0] if _drops(s) else grads[0]]


def _drops(s: Any) -> bool:
    return s.p > 0 and (TRAINING.get() or s.mode == "always")


def _dropout_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    known = ins[0]
    if known is not None:
        outs.learn(1, _drawn(s, known))


def _drawn(s: Any, known: Any) -> Any:
    """Return the shape of the draws: one number along axes that are dropped together."""
    return tuple(1 if at in s.axes else each for at, each in enumerate(known))


@operator(
    "Dropout",
    "_npx_dropout",
    settings=Settings(
        ("cudnn_off",),
        p=(number, 0.5),
        mode=(choice("training", "always"), "training"),
        axes=(shape, ()),
    ),
    outputs=2,
    visible=1,
    output_names=("output", "mask"),
    shapes=_dropout_shapes,
    layout=as_written,
    gradient=Backward(_dropout_backward, inputs=(), outputs=(1,)),
    inplace=((0, 0),),
    pure=False,
)
def _dropout(s: Any, data: Any) -> Any:
    if not _drops(s):
        return data, namespace.ones(_drawn(s, data.shape), dtype=data.dtype, engine=data.engine)
    mask = kept(data, s.p, _drawn(s, data.shape))
    return data * mask, mask


def _always_drops(attributes: dict[str, Any]) -> bool:
    s = _dropout.read(attributes)
    return bool(s.p > 0 and s.mode == "always")


def _drops_in_training(attributes: dict[str, Any]) -> bool:
    return bool(_dropout.read(attributes).p > 0)


_dropout.set_attribute("draws_untrained", _always_drops)
_dropout.set_attribute("draws_trained", _drops_in_training)
