"""Normalisation: over the batch, over channels, over neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.any_layout import backward_in_plain, channel_layout, channels_lie, in_plain, shapes_in_plain
from weft._mxnet.gradients import Backward
from weft._mxnet.layouts import along_channels, as_written, blocked_channels
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, choice, flag, integer, number, optional, text
from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._tape.modes import AGAIN, TRAINING, no_grad
from weft._tape.transforms import vjp
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._mxnet.partial_shapes import Dtypes, Shapes


def _axis(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(f"there is no axis {axis} in data of {rank} axes")
    return axis % rank


@shapes_in_plain(channels_lie)
def _channel_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    """One number for each channel, of all but the data."""
    ins.alike(outs, [0], [0])
    rank = ins.rank(0)
    channels = None if rank is None else ins.length(0, _axis(s.axis, rank))
    others = [(ins, at) for at in range(1, len(ins))] + [(outs, at) for at in range(1, len(outs))]
    for shapes, at in others:
        if channels is None:
            channels = shapes.length(at, 0)
    for shapes, at in others:
        shapes.learn(at, (channels,))
    if rank is not None:
        at = _axis(s.axis, rank)
        ins.learn(0, tuple(channels if each == at else None for each in range(rank)))
        ins.alike(outs, [0], [0])


def _norm_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    """Statistics of half numbers are single."""
    del s
    ins.alike(outs, [0], [0])
    kind = ins[0]
    wide = "float32" if kind is not None and kind.itemsize == 2 else kind  # bytes of a half number
    for dtypes, count in ((ins, len(ins)), (outs, len(outs))):
        for at in range(1, count):
            dtypes.learn(at, wide)


def _gamma(s: Any, gamma: Any) -> Any:
    return namespace.ones_like(gamma) if s.fix_gamma else gamma


def _by_batch(s: Any) -> bool:
    return TRAINING.get() and not s.use_global_stats


@backward_in_plain(channels_lie)
def _batch_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    del outputs
    data, gamma, beta, mean, variance = inputs
    axis = _axis(s.axis, data.ndim)

    def normed(x: Any, scale: Any, shift: Any) -> Any:
        if _by_batch(s):
            return nn.batch_norm_train(x, scale, shift, eps=s.eps, axis=axis)[0]
        return nn.batch_norm(x, scale, shift, mean, variance, eps=s.eps, axis=axis)

    _, pull = vjp(normed, data, _gamma(s, gamma), beta)
    by_data, by_gamma, by_beta = pull(grads[0])
    return [by_data, None if s.fix_gamma else by_gamma, by_beta, None, None]


_BATCH: dict[str, Any] = {
    "eps": (number, 1e-3),
    "momentum": (number, 0.9),
    "fix_gamma": (flag, True),
    "use_global_stats": (flag, False),
    "output_mean_var": (flag, False),
}


def _visible(settings: Any) -> int:
    """Return how many outputs a symbol shows."""
    return 3 if settings.output_mean_var else 1


#: The common rules of both ops of a batch's statistics.
_BATCH_RULES: dict[str, Any] = {
    "inputs": ("data", "gamma", "beta", "moving_mean", "moving_var"),
    "outputs": 3,
    "visible": _visible,
    "output_names": ("output", "mean", "var"),
    "dtypes": _norm_dtypes,
    "inplace": ((0, 0),),
    "mutates": (3, 4),
}


def _by_statistics(s: Any, data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any) -> tuple[Any, Any, Any]:
    """Return the data normalised, with its mean and variance."""
    axis = _axis(s.axis, data.ndim)
    if not _by_batch(s):
        found = nn.batch_norm(data, _gamma(s, gamma), beta, moving_mean, moving_var, eps=s.eps, axis=axis)
        return found, moving_mean, moving_var
    found, mean, variance = nn.batch_norm_train(data, _gamma(s, gamma), beta, eps=s.eps, axis=axis)
    if not AGAIN.get():
        with no_grad():  # each by one op, which a batch that has failed fails
            namespace.add(moving_mean * s.momentum, mean * (1 - s.momentum), out=moving_mean)
            namespace.add(moving_var * s.momentum, variance * (1 - s.momentum), out=moving_var)
    return found, mean, variance


@operator(
    "BatchNorm",
    "BatchNorm_v1",
    "CuDNNBatchNorm",
    "_npx_batch_norm",
    settings=Settings(
        ("cudnn_off", "min_calib_range", "max_calib_range"),
        **_BATCH,
        axis=(integer, 1),
        layout=(optional(channel_layout), None),
    ),
    shapes=_channel_shapes,
    layout=blocked_channels,
    gradient=Backward(_batch_backward),
    **_BATCH_RULES,
)
@in_plain(channels_lie)
def _batch_norm(s: Any, *arrays: Any) -> Any:
    """Return the data normalised, its mean, and the inverse of its deviation, which MXNet names ``var``."""
    found, mean, variance = _by_statistics(s, *arrays)
    return found, mean, (variance + s.eps) ** -0.5 if s.output_mean_var else variance


def _of_one_device(s: Any) -> Any:
    """Return the settings as those of a norm of one device.

    Raises
    ------
    GraphError
        If a batch lies on several: its statistics are not gathered.
    """
    if s.ndev > 1 and _by_batch(s):
        raise GraphError(
            f"SyncBatchNorm: statistics of ndev={s.ndev} devices are not gathered in training: write ndev=1"
        )
    return _second(s)


def _second_backward(s: Any, grads: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Sequence[Any]:
    return _batch_backward(_second(s), grads, inputs, outputs)


@operator(
    "_contrib_SyncBatchNorm",
    settings=Settings(**_BATCH, ndev=(integer, 1), key=(optional(text), None)),
    shapes=lambda s, ins, outs: _channel_shapes(_second(s), ins, outs),
    layout=along_channels(1),
    gradient=Backward(_second_backward),
    **_BATCH_RULES,
)
def _synced(s: Any, *arrays: Any) -> Any:
    return _by_statistics(_of_one_device(s), *arrays)


@operator(
    "InstanceNorm",
    settings=Settings(eps=(number, 1e-3)),
    inputs=("data", "gamma", "beta"),
    layout=along_channels(1),
    shapes=lambda s, ins, outs: _channel_shapes(_second(s), ins, outs),
)
def _instance_norm(s: Any, data: Any, gamma: Any, beta: Any) -> Any:
    axes = tuple(range(2, data.ndim))
    spread = (-1, *(1,) * (data.ndim - 2))
    centred = data - namespace.mean(data, axis=axes, keepdims=True)
    scale = (namespace.mean(namespace.square(centred), axis=axes, keepdims=True) + s.eps) ** -0.5
    return centred * scale * gamma.reshape(spread) + beta.reshape(spread)


class _second:  # noqa: N801 - a value, not a class to be told of
    """Settings of an op with channels on the second axis."""

    def __init__(self, settings: Any) -> None:
        self.settings = settings
        self.axis = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.settings, name)


def _layer_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    shape = ins[0]
    if shape is None:
        return
    at = _axis(s.axis, len(shape))
    for each in (1, 2):
        ins.learn(each, (shape[at],))
    for each in (1, 2):
        outs.learn(each, (*shape[:at], 1, *shape[at + 1 :]))


@operator(
    "LayerNorm",
    "_npx_layer_norm",
    settings=Settings(axis=(integer, -1), eps=(number, 1e-5), output_mean_std=(flag, False)),
    inputs=("data", "gamma", "beta"),
    outputs=3,
    visible=lambda s: 3 if s.output_mean_std else 1,
    output_names=("output", "mean", "std"),
    layout=as_written,
    shapes=_layer_shapes,
)
def _layer_norm(s: Any, data: Any, gamma: Any, beta: Any) -> Any:
    found = nn.layer_norm(data, gamma, beta, axis=s.axis, eps=s.eps)
    mean = namespace.mean(data, axis=s.axis, keepdims=True)
    return found, mean, namespace.sqrt(namespace.var(data, axis=s.axis, keepdims=True) + s.eps)


@operator(
    "LRN",
    settings=Settings(alpha=(number, 1e-4), beta=(number, 0.75), knorm=(number, 2.0), nsize=(integer, REQUIRED)),
    outputs=2,
    visible=1,
    output_names=("output", "tmp_norm"),
)
def _lrn(s: Any, data: Any) -> Any:
    found = nn.lrn(data, s.nsize, alpha=s.alpha, beta=s.beta, k=s.knorm)
    return found, found


def _unit_axes(mode: str, rank: int) -> tuple[int, ...]:
    if mode == "channel":
        return (1,)
    return tuple(range(1 if mode == "instance" else 2, rank))


def _unit_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [0], [0])
    shape = ins[0]
    if shape is not None:
        gone = _unit_axes(s.mode, len(shape))
        outs.learn(1, tuple(each for at, each in enumerate(shape) if at not in gone))


@operator(
    "L2Normalization",
    settings=Settings(eps=(number, 1e-10), mode=(choice("instance", "channel", "spatial"), "instance")),
    outputs=2,
    visible=1,
    output_names=("output", "norm"),
    shapes=_unit_shapes,
)
def _unit(s: Any, data: Any) -> Any:
    axes = _unit_axes(s.mode, data.ndim)
    norm = namespace.sqrt(namespace.sum(namespace.square(data), axis=axes, keepdims=True) + s.eps)
    return data / norm, norm.reshape(tuple(n for at, n in enumerate(data.shape) if at not in axes))
