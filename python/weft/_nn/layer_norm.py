"""Normalisation of elements along axes.

The gradient is one op. Its own gradient is that of its formula, written in functions of arrays.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import Native, beside, copy_elements, kernel_layer_norm
from weft._nn.arguments import fixed, floating, gradients_of_norm, plain, refuse
from weft._nn.channels import channel_sum, over
from weft._nn.composite import pull
from weft._nn.facts import join
from weft._nn.running import run
from weft._ops.elementwise import sqrt
from weft._ops.unbroadcast import apply, reshape_like, shape_of
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_number, as_shape, axis_tuple, is_index

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import Kernel, NDArray
    from weft._nn.facts import Shapes
    from weft._nn.running import Make
    from weft._registry.shapes import Shape


def _infer_layer_norm(x: Aval, gamma: Aval, beta: Aval, *, axis: Any = -1, eps: float = 1e-5) -> Aval:
    op = "nn.layer_norm"
    del eps
    shape = tuple(x.shape[at] for at in axis_tuple(axis, len(x.shape)))
    fixed(op, "gamma", gamma, shape, x=x)
    fixed(op, "beta", beta, shape, x=x)
    floating(op, x=x, gamma=gamma, beta=beta)
    if 0 in shape and 0 not in [n for at, n in enumerate(x.shape) if at not in axis_tuple(axis, len(x.shape))]:
        raise refuse(op, f"there are no elements along axis {axis}", x=x)
    return Aval(x.shape, x.dtype)


def _shapes(attributes: dict[str, Any], ins: Shapes, outs: Shapes) -> tuple[Shapes, Shapes]:
    op = "nn.layer_norm"
    (x, *vectors), (out,) = ins, outs
    x = out = join(op, "the result", out, x)
    if x is not None:
        shape = tuple(x[at] for at in axis_tuple(attributes.get("axis", -1), len(x)))
        vectors = [join(op, "gamma or beta", each, shape) for each in vectors]
    return [x, *vectors], [out]


def _along(v: Elements, x: Elements, axes: Shape) -> Elements:
    return v.reshape([n if at in axes else 1 for at, n in enumerate(x.shape)])


@register_op("nn.layer_norm", infer=_infer_layer_norm, inplace=[(0, 0)])
def _layer_norm(
    out: Elements, x: Elements, gamma: Elements, beta: Elements, *, axis: Any = -1, eps: float = 1e-5
) -> None:
    axes = axis_tuple(axis, x.ndim)
    apart = x - x.mean(axis=axes, keepdims=True, dtype=np.float64)
    normal = apart / np.sqrt(np.square(apart).mean(axis=axes, keepdims=True) + eps)
    np.copyto(out, normal * _along(gamma, x, axes) + _along(beta, x, axes), casting="same_kind")


@lru_cache(maxsize=1024)
def _kernel(name: str, dtype: DType, sizes: tuple[int, int], gradient: bool, eps: float) -> Kernel | None:
    return None if 0 in sizes else kernel_layer_norm(name, dtype, list(sizes), gradient, eps)


def _making(*, gradient: bool) -> Make:
    """Return the maker of the kernel of a normalisation along the last axes, or of its gradients."""
    name = "nn.layer_norm_data" if gradient else "nn.layer_norm"

    def make(
        results: tuple[Aval, ...], operands: tuple[Aval, ...], *, axis: Any = -1, eps: float = 1e-5
    ) -> Kernel | None:
        shape = operands[0].shape
        axes = axis_tuple(axis, len(shape))
        ahead = len(shape) - len(axes)
        if axes != tuple(range(ahead, len(shape))):
            return None
        return _kernel(name, results[0].dtype, (math.prod(shape[:ahead]), math.prod(shape[ahead:])), gradient, eps)

    return make


def _pushing(*, gradient: bool) -> Callable[..., bool]:
    """Return the function that pushes a normalisation along other axes, or its gradients, as one of turned arrays."""
    wide = 2 if gradient else 1  # so many operands have the shape of the data
    name = "nn.layer_norm_data" if gradient else "nn.layer_norm"

    def push(outputs: tuple[NDArray, ...], operands: tuple[Any, ...], *, axis: Any = -1, eps: float = 1e-5) -> bool:
        x, out = operands[0], outputs[0]
        axes = axis_tuple(axis, x.ndim)
        order = [*(at for at in range(x.ndim) if at not in axes), *axes]
        length = math.prod([x.shape[at] for at in axes])
        kernel = _kernel(name, out.dtype, (x.size // max(length, 1), length), gradient, eps)
        turned = tuple([each.transpose(*order) for each in operands[:wide]])
        between = beside(out, turned[0].shape, out.dtype)
        if not run(kernel, (between, *outputs[1:]), (*turned, *operands[wide:])):
            return False
        copy_elements(out.transpose(*order), between)
        return True

    return push


state(_layer_norm, infer_shape=_shapes, infer_type="same", batch="last", push=_pushing(gradient=False))
_layer_norm._run_by(Native.by(_making(gradient=False)))


def _infer_layer_data(g: Aval, x: Aval, gamma: Aval, *, axis: Any = -1, eps: float = 1e-5) -> tuple[Aval, Aval, Aval]:
    op = "nn.layer_norm_data"
    del eps
    shape = tuple(x.shape[at] for at in axis_tuple(axis, len(x.shape)))
    fixed(op, "gamma", gamma, shape, x=x)
    return gradients_of_norm(op, g, x, gamma, shape)


@register_op("nn.layer_norm_data", infer=_infer_layer_data, nout=3, inplace=[(0, 0)])
def _layer_norm_data(
    dx: Elements,
    dgamma: Elements,
    dbeta: Elements,
    g: Elements,
    x: Elements,
    gamma: Elements,
    *,
    axis: Any = -1,
    eps: float = 1e-5,
) -> None:
    axes = axis_tuple(axis, x.ndim)
    others = tuple(at for at in range(x.ndim) if at not in axes)
    apart = x - x.mean(axis=axes, keepdims=True, dtype=np.float64)
    inverse = 1 / np.sqrt(np.square(apart).mean(axis=axes, keepdims=True) + eps)
    normal = apart * inverse
    scaled = g * _along(gamma, x, axes)
    rest = scaled - scaled.mean(axis=axes, keepdims=True, dtype=np.float64)
    rest = rest - normal * (scaled * normal).mean(axis=axes, keepdims=True)
    dgamma[...], dbeta[...] = (g * normal).sum(axis=others), g.sum(axis=others, dtype=np.float64)
    np.copyto(dx, rest * inverse, casting="same_kind")


state(_layer_norm_data, infer_type="same", push=_pushing(gradient=True))
_layer_norm_data._run_by(Native.by(_making(gradient=True)))


def _spread(v: Any, x: Any, axes: Shape) -> Any:
    if len(axes) == 1:
        return over(v, x, axes[0])
    shape = shape_of(x)
    return apply(
        "reshape", v, shape=tuple(n if at in {i % len(shape) for i in axes} else 1 for at, n in enumerate(shape))
    )


@gradient_of("nn.layer_norm", inputs=[0, 1])
def _layer_norm_rule(node: Any, grads: Any) -> Any:
    x, gamma, _ = node.inputs
    return get_op("nn.layer_norm_data")(grads[0], x, gamma, **node.attributes)


@gradient_of("nn.layer_norm_data", inputs=[0, 1, 2], takes_none=True)
def _layer_norm_data_rule(node: Any, grads: Any) -> Any:
    given = {"axis": node.attributes.get("axis", -1), "eps": node.attributes.get("eps", 1e-5)}
    g, x, gamma = node.inputs
    axis: Any = given["axis"]
    axes: Shape = axis if axis.__class__ is tuple else (axis,)

    def gradients(g: Any, x: Any, gamma: Any) -> Any:
        scaled = g * _spread(gamma, x, axes)
        apart = x - apply("mean", x, axis=axes, keepdims=True)
        inverse = 1 / sqrt(apply("mean", apart * apart, axis=axes, keepdims=True) + given["eps"])
        normal = apart * inverse
        rest = scaled - apply("mean", scaled, axis=axes, keepdims=True)
        rest = rest - normal * apply("mean", scaled * normal, axis=axes, keepdims=True)
        return rest * inverse, _total(g * normal, gamma, axes), _total(g, gamma, axes)

    heads = [(x * 0 if at == 0 else gamma * 0) if grad is None else grad for at, grad in enumerate(grads)]
    return pull(gradients, [g, x, gamma], heads)


def _total(x: Any, like: Any, axes: Shape) -> Any:
    """Return the sums over all axes but these."""
    if len(axes) == 1:
        return channel_sum(x, axes[0])
    ndim = len(shape_of(x))
    kept = {at % ndim for at in axes}
    return reshape_like(apply("sum", x, axis=tuple(at for at in range(ndim) if at not in kept)), like)


def layer_norm(x: ArrayLike, gamma: ArrayLike, beta: ArrayLike, *, axis: Any = -1, eps: float = 1e-5) -> NDArray:
    """Normalise elements along an axis, or along several together, then scale and shift them.

    Parameters
    ----------
    x : array_like
        Data.
    gamma, beta : array_like
        Of the shape of the data along these axes.
    axis : int or sequence of int, default: -1
        Along which statistics are taken.
    eps : float, default: 1e-5
        A number added to the variance.

    Examples
    --------
    >>> import weft
    >>> weft.nn.layer_norm([[1.0, 3.0]], weft.ones(2), weft.zeros(2), eps=0.0).tolist()
    [[-1.0, 1.0]]
    """
    x = as_array(x)
    at = plain(axis) if is_index(axis) else tuple(sorted(as_shape(plain(axis))))
    return one(_layer_norm, x, as_array(gamma, x), as_array(beta, x), axis=at, eps=as_number(eps, "eps"))
