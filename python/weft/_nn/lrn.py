"""Normalisation over neighbouring channels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import one
from weft._core import Native, kernel_neighbours
from weft._nn.arguments import floating, plain, refuse
from weft._nn.composite import through
from weft._nn.facts import takes_plain
from weft._nn.running import around
from weft._ops.elementwise import square
from weft._registry.avals import Aval
from weft._registry.brief import brief
from weft._registry.defaults import state
from weft._registry.gradients import gradient_of
from weft._registry.op import get_op, register_op
from weft._registry.shapes import as_number
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import Kernel, NDArray
    from weft._registry.shapes import Shape


def _infer_window_sum(x: Aval, *, size: int, reverse: bool = False) -> Aval:
    del reverse
    if len(x.shape) < 2:  # a batch of channels
        raise refuse("nn.lrn", "data (N, C, ...) are taken", x=x)
    if not isinstance(size, int):
        raise ArgumentTypeError(f"nn.lrn: size is a whole number of channels, not {brief(size)}")
    if size < 1:
        raise ArgumentValueError(f"nn.lrn: size is a number of channels of at least 1, not {brief(size)}")
    return Aval(x.shape, floating("nn.lrn", x=x))


@register_op("nn.window_sum", infer=_infer_window_sum)
def _window_sum(out: Elements, x: Elements, *, size: int, reverse: bool = False) -> None:
    """Add up `size` channels, half of them before; the other way for `reverse`."""
    before, after = (size // 2, (size - 1) // 2)[:: -1 if reverse else 1]
    out[...] = 0
    count = x.shape[1]
    for apart in range(-before, after + 1):
        first, last = max(-apart, 0), min(count - apart, count)
        if first < last:
            out[:, first:last] += x[:, first + apart : last + apart]


def _neighbours(
    name: str, dtype: DType, shape: Shape, reach: tuple[int, int], normal: tuple[float, float, float] | None
) -> Kernel | None:
    return None if 0 in shape else kernel_neighbours(name, dtype, around(shape, 1), reach, normal)


def _make_window_sum(
    results: tuple[Aval, ...], _: tuple[Aval, ...], *, size: int, reverse: bool = False
) -> Kernel | None:
    reach = ((size - 1) // 2, size // 2) if reverse else (size // 2, (size - 1) // 2)
    return _neighbours("nn.window_sum", results[0].dtype, results[0].shape, reach, None)


state(_window_sum, infer_shape="same", infer_type="same")
_window_sum._run_by(Native.by(_make_window_sum))


@gradient_of("nn.window_sum")
def _window_sum_rule(node: Any, grads: Any) -> Any:
    given = {**node.attributes, "reverse": not node.attributes.get("reverse", False)}
    return (get_op("nn.window_sum")(grads[0], **given),)


def _infer_lrn(x: Aval, *, size: int, alpha: float, beta: float, k: float) -> Aval:
    del alpha, beta, k
    return _infer_window_sum(x, size=size)


def _lrn_of(x: Any, *, size: int, alpha: float, beta: float, k: float) -> Any:
    """Compose the op of functions of arrays; their gradients are its own."""
    total: Any = get_op("nn.window_sum")(square(x), size=size)
    return x * (total * (alpha / size) + k) ** -beta


@register_op("nn.lrn", infer=_infer_lrn)
def _lrn(out: Elements, x: Elements, *, size: int, alpha: float, beta: float, k: float) -> None:
    total = np.empty_like(x)
    _window_sum.compute["cpu"](total, np.square(x), size=size)
    total *= x.dtype.type(alpha / size)
    total += x.dtype.type(k)
    np.multiply(x, total ** x.dtype.type(-beta), out=out)


def _make_lrn(
    results: tuple[Aval, ...], _: tuple[Aval, ...], *, size: int, alpha: float, beta: float, k: float
) -> Kernel | None:
    reach = (size // 2, (size - 1) // 2)
    return _neighbours("nn.lrn", results[0].dtype, results[0].shape, reach, (alpha / size, k, -beta))


state(_lrn, infer_shape="same", infer_type="same", layout=takes_plain)
_lrn._run_by(Native.by(_make_lrn))
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
    return one(_lrn, x, **given)
