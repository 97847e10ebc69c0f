"""Normalisation of channels, by given statistics or by those of the batch.

Where the statistics are those of the data, the gradient is one op. Its own gradient is that of its formula, written in
functions of arrays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one, several
from weft._call.operands import as_array
from weft._nn.arguments import fixed, floating, gradients_of_norm, plain, refuse
from weft._nn.channels import across, channel_kernel, channel_sum, others_of, over
from weft._nn.composite import pull
from weft._nn.facts import along, first, join
from weft._ops.elementwise import sqrt
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of, needs
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_number

if TYPE_CHECKING:
    from weft._call.calls import Elements
    from weft._call.operands import ArrayLike
    from weft._core import NDArray
    from weft._nn.facts import Shapes
    from weft._registry.shapes import Shape


def _channels(op: str, x: Aval, axis: int, **vectors: Aval) -> Shape:
    """Return the shape of a vector with a number for each channel, which the others have."""
    if len(x.shape) < 2 or not -len(x.shape) <= axis < len(x.shape):  # a batch of channels
        raise refuse(op, f"data with a batch and channels along axis {axis} are taken", x=x)
    shape = (x.shape[axis],)
    for name, aval in vectors.items():
        fixed(op, name, aval, shape, x=x)
    return shape


def _shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op, axis = "nn.batch_norm", attributes.get("axis", 1)
    (x, *vectors), (out, *statistics) = ins, outs
    x = out = join(op, "the result", out, x)
    channels = first(along(x, axis), *(along(each, 0) for each in (*vectors, *statistics)))
    if x is not None and -len(x) <= axis < len(x):
        x = out = join(op, "x", x, tuple(channels if at == axis % len(x) else n for at, n in enumerate(x)))
    return (
        [x, *(join(op, "a vector of channels", each, (channels,)) for each in vectors)],
        [out, *(join(op, "a vector of channels", each, (channels,)) for each in statistics)],
    )


def _infer_batch_norm(
    x: Aval, gamma: Aval, beta: Aval, mean: Aval, variance: Aval, *, eps: float = 1e-5, axis: int = 1
) -> Aval:
    del eps
    vectors = {"gamma": gamma, "beta": beta, "mean": mean, "variance": variance}
    _channels("nn.batch_norm", x, axis, **vectors)
    floating("nn.batch_norm", x=x, **vectors)
    return Aval(x.shape, x.dtype)


@register_op("nn.batch_norm", infer=_infer_batch_norm, inplace=[(0, 0)])
def _batch_norm(*arrays: Elements, eps: float = 1e-5, axis: int = 1) -> None:
    out, x, gamma, beta, mean, variance = arrays
    scale = gamma / np.sqrt(variance + variance.dtype.type(eps))
    shift = beta - mean * scale
    np.copyto(out, x * across(scale, x.ndim, axis) + across(shift, x.ndim, axis), casting="same_kind")


state(_batch_norm, infer_shape=_shapes, infer_type="same")
_batch_norm._run_by(channel_kernel("nn.batch_norm", "normal", 0))


def _infer_train(x: Aval, gamma: Aval, beta: Aval, *, eps: float = 1e-5, axis: int = 1) -> tuple[Aval, Aval, Aval]:
    del eps
    op = "nn.batch_norm_train"
    shape = _channels(op, x, axis, gamma=gamma, beta=beta)
    floating(op, x=x, gamma=gamma, beta=beta)
    if 0 in x.shape[:axis] + x.shape[axis:][1:]:
        raise refuse(op, "there are no elements to take statistics of", x=x)
    return Aval(x.shape, x.dtype), Aval(shape, x.dtype), Aval(shape, x.dtype)


def _statistics(x: Elements, axis: int) -> tuple[Elements, Elements]:
    """Return mean and biased variance of each channel, summed in double precision."""
    others = others_of(x.ndim, axis)
    mean = x.mean(axis=others, dtype=np.float64)
    apart = x - across(mean, x.ndim, axis)
    return mean, np.square(apart).mean(axis=others)


@register_op("nn.batch_norm_train", infer=_infer_train, nout=3, inplace=[(0, 0)])
def _batch_norm_train(*arrays: Elements, eps: float = 1e-5, axis: int = 1) -> None:
    out, mean, variance, x, gamma, beta = arrays
    centre, spread = _statistics(x, axis)
    mean[...], variance[...] = centre, spread
    scale = gamma / np.sqrt(spread + eps)
    shift = beta - centre * scale
    np.copyto(out, x * across(scale, x.ndim, axis) + across(shift, x.ndim, axis), casting="same_kind")


state(_batch_norm_train, infer_shape=_shapes, infer_type="same")
_batch_norm_train._run_by(channel_kernel("nn.batch_norm_train", "train", 0))


def _infer_train_data(
    g: Aval, x: Aval, gamma: Aval, mean: Aval, variance: Aval, *, eps: float = 1e-5, axis: int = 1
) -> tuple[Aval, Aval, Aval]:
    del eps
    op = "nn.batch_norm_data"
    shape = _channels(op, x, axis, gamma=gamma, mean=mean, variance=variance)
    return gradients_of_norm(op, g, x, gamma, shape)


@register_op("nn.batch_norm_data", infer=_infer_train_data, nout=3, inplace=[(0, 0)])
def _batch_norm_data(*arrays: Elements, eps: float = 1e-5, axis: int = 1) -> None:
    dx, dgamma, dbeta, g, x, gamma, mean, variance = arrays
    """Gradients of data, gamma and beta, given that of the result."""
    others = others_of(x.ndim, axis)
    inverse = 1 / np.sqrt(variance.astype(np.float64) + eps)
    normal = (x - across(mean, x.ndim, axis)) * across(inverse, x.ndim, axis)
    total, moment = g.sum(axis=others, dtype=np.float64), (g * normal).sum(axis=others, dtype=np.float64)
    count = x.size // x.shape[axis]
    rest = g - across(total / count, x.ndim, axis) - normal * across(moment / count, x.ndim, axis)
    np.copyto(dx, rest * across(gamma * inverse, x.ndim, axis), casting="same_kind")
    dgamma[...], dbeta[...] = moment, total


state(_batch_norm_data, infer_type="same")
_batch_norm_data._run_by(channel_kernel("nn.batch_norm_data", "gradient", 1))


def _normal(x: Any, mean: Any, variance: Any, eps: float, axis: int) -> tuple[Any, Any]:
    """Return data less their mean over their deviation, and the reciprocal of that."""
    inverse = 1 / sqrt(variance + eps)
    return (x - over(mean, x, axis)) * over(inverse, x, axis), inverse


@gradient_of("nn.batch_norm", inputs=[0, 1, 3, 4])
def _batch_norm_rule(node: Any, grads: Any) -> Any:
    x, gamma, _, mean, variance = node.inputs
    g, eps, axis = grads[0], node.attributes.get("eps", 1e-5), node.attributes.get("axis", 1)
    normal, inverse = _normal(x, mean, variance, eps, axis)
    total = channel_sum(g, axis)
    moment = channel_sum(g * normal, axis) if any(needs(node, at) for at in (1, 4)) else None
    return (
        g * over(gamma * inverse, x, axis) if needs(node, 0) else None,
        moment if needs(node, 1) else None,
        total if needs(node, 2) else None,
        -total * gamma * inverse if needs(node, 3) else None,
        moment * gamma * inverse * inverse * -0.5 if needs(node, 4) else None,
    )


@gradient_of("nn.batch_norm_train", inputs=[0, 1], outputs=[1, 2], takes_none=True)
def _train_rule(node: Any, grads: Any) -> Any:
    x, gamma, _ = node.inputs
    _, mean, variance = node.outputs
    axis = node.attributes.get("axis", 1)
    dx, dgamma, dbeta = get_op("nn.batch_norm_data")(
        grads[0] if grads[0] is not None else x * 0, x, gamma, mean, variance, **node.attributes
    )
    if any(grads[at] is not None for at in (1, 2)) and needs(node, 0):
        each = 1 / channel_sum(x * 0 + 1, axis)  # of how many elements statistics are
        if grads[1] is not None:
            dx = dx + over(grads[1] * each, x, axis)
        if grads[2] is not None:
            dx = dx + (x - over(mean, x, axis)) * over(grads[2] * each * 2, x, axis)
    return dx, dgamma, dbeta


def _gradients_of_train(g: Any, x: Any, gamma: Any, *, eps: float, axis: int) -> tuple[Any, Any, Any]:
    """Return the same as ``nn.batch_norm_data`` in functions of arrays, from the data alone."""
    each = 1 / channel_sum(x * 0 + 1, axis)
    mean = channel_sum(x, axis) * each
    apart = x - over(mean, x, axis)
    inverse = 1 / sqrt(channel_sum(apart * apart, axis) * each + eps)
    normal = apart * over(inverse, x, axis)
    total, moment = channel_sum(g, axis), channel_sum(g * normal, axis)
    rest = g - over(total * each, x, axis) - normal * over(moment * each, x, axis)
    return rest * over(gamma * inverse, x, axis), moment, total


@gradient_of("nn.batch_norm_data", inputs=[0, 1, 2], takes_none=True)
def _batch_norm_data_rule(node: Any, grads: Any) -> Any:
    """Statistics are those of the data: through them the gradient of the data goes as well."""
    g, x, gamma = node.inputs[:3]
    eps, axis = node.attributes.get("eps", 1e-5), node.attributes.get("axis", 1)
    # dbeta is the sum of g: it is left out where nothing rests on it.
    heads = [
        (g * 0 if at == 0 else channel_sum(g, axis) * 0) if grad is None else grad for at, grad in enumerate(grads)
    ]
    found = pull(lambda *given: _gradients_of_train(*given, eps=eps, axis=axis), [g, x, gamma], heads)
    return *found, None, None


def batch_norm(
    x: ArrayLike,
    gamma: ArrayLike,
    beta: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    *,
    eps: float = 1e-5,
    axis: int = 1,
) -> NDArray:
    """Normalise each channel by given statistics, then scale and shift it.

    Parameters
    ----------
    x : array_like
        Data of at least two axes.
    gamma, beta, mean, variance : array_like
        Vectors with a number for each channel.
    eps : float, default: 1e-5
        A number added to the variance.
    axis : int, default: 1
        The axis of the channels.

    Returns
    -------
    NDArray
        ``(x - mean) / sqrt(variance + eps) * gamma + beta``.

    Examples
    --------
    >>> import weft
    >>> one = weft.ones(1)
    >>> weft.nn.batch_norm([[1.0], [3.0]], one, one, one, one, eps=0.0).tolist()
    [[1.0], [3.0]]
    """
    x = as_array(x)
    vectors = [as_array(each, x) for each in (gamma, beta, mean, variance)]
    return one(_batch_norm, x, *vectors, eps=as_number(eps, "eps"), axis=plain(axis))


def batch_norm_train(
    x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, *, eps: float = 1e-5, axis: int = 1
) -> tuple[NDArray, NDArray, NDArray]:
    """Normalise each channel by the statistics of the batch, then scale and shift it.

    Running averages, where they are kept, are updated from these statistics.

    Parameters
    ----------
    x, gamma, beta, eps, axis
        See `batch_norm`.

    Returns
    -------
    y, mean, variance : NDArray
        The result, and mean and biased variance of each channel.

    Examples
    --------
    >>> import weft
    >>> y, mean, variance = weft.nn.batch_norm_train([[1.0], [3.0]], weft.ones(1), weft.zeros(1), eps=0.0)
    >>> y.tolist(), mean.tolist(), variance.tolist()
    ([[-1.0], [1.0]], [2.0], [1.0])
    """
    x = as_array(x)
    y, mean, variance = several(
        get_op("nn.batch_norm_train"),
        x,
        as_array(gamma, x),
        as_array(beta, x),
        eps=as_number(eps, "eps"),
        axis=plain(axis),
    )
    return y, mean, variance
