"""Two networks with their first calls timed: a training step of 24 layers, and ResNet-18 (He and others, 2015)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from weft.bench.settings import Settings

_SEED = 0x6E657473
_ROWS = 32
_RATE = 0.05
# Other libraries sum in other orders, and here one layer's results are the next one's.
_RELATIVE = 1e-2
_ABSOLUTE = 1e-3
_CLASSES = 10


class Functions(NamedTuple):
    """The functions of a library.

    Attributes
    ----------
    tanh, relu : callable
        Of one array.
    conv : callable
        Of data (N, C, H, W), weights (O, C, K, K), a stride and a padding.
    value_and_slopes : callable
        Makes of a function of a list of arrays, and of others, one that returns its value and the gradients of the list.
    """

    tanh: Callable[[Any], Any]
    relu: Callable[[Any], Any]
    conv: Callable[[Any, Any, int, int], Any]
    value_and_slopes: Callable[[Callable[..., Any]], Callable[..., tuple[Any, Sequence[Any]]]]


class Network(NamedTuple):
    """A function of a list of weights and of data, and its arguments.

    Attributes
    ----------
    make : callable
        Makes the function of a library's `Functions`; it returns a list of arrays.
    weights, data : list of ndarray
        The arguments, float32.
    differs : callable
        Tells how results differ from NumPy's; None where they do not.
    """

    make: Callable[[Functions], Callable[..., list[Any]]]
    weights: list[npt.NDArray[Any]]
    data: list[npt.NDArray[Any]]
    differs: Callable[[Sequence[npt.NDArray[Any]]], str | None]


def training_step(settings: Settings) -> Network:
    """Return a step of gradient descent: layers with tanh, and the mean of the squares of the rest."""
    layers, units = settings.network_layers
    rng = np.random.default_rng(_SEED)
    weights: list[npt.NDArray[Any]] = []
    for _ in range(layers):
        weights += [_normal(rng, units**-0.5, units, units), _normal(rng, 0.1, units)]

    x, y = _normal(rng, 1.0, _ROWS, units), _normal(rng, 1.0, _ROWS, units)

    def loss(tanh: Callable[[Any], Any], weights: Sequence[Any], x: Any, y: Any) -> Any:
        for weight, bias in zip(weights[::2], weights[1::2], strict=True):
            x = tanh(x @ weight + bias)
        off = x - y
        return (off * off).mean()

    def make(functions: Functions) -> Callable[..., list[Any]]:
        slopes_of = functions.value_and_slopes(partial(loss, functions.tanh))

        def step(weights: Sequence[Any], x: Any, y: Any) -> list[Any]:
            value, slopes = slopes_of(weights, x, y)
            return [value, *(weight - _RATE * slope for weight, slope in zip(weights, slopes, strict=True))]

        return step

    def differs(found: Sequence[npt.NDArray[Any]]) -> str | None:
        before = float(loss(np.tanh, [weight.astype(np.float64) for weight in weights], x, y))
        # How steep the loss is along the step, by the slopes that were found and by two values of the loss.
        steps = [weight - after for weight, after in zip(weights, found[1:], strict=True)]
        steep = sum(float((step.astype(np.float64) ** 2).sum()) for step in steps) / _RATE
        aside = [
            loss(np.tanh, [weight + sign * 0.5 * step for weight, step in zip(weights, steps, strict=True)], x, y)
            for sign in (1.0, -1.0)
        ]
        fell = float(aside[0] - aside[1])
        if not np.isclose(float(found[0]), before, _RELATIVE, _ABSOLUTE):
            return f"the loss is {float(found[0]):.6g}, not {before:.6g}"
        if not np.isclose(fell, steep, 0.1):
            return f"the loss falls by {fell:.3g}, not by {steep:.3g} as its gradients say"
        return None

    return Network(make, weights, [x, y], differs)


def resnet18(settings: Settings) -> Network:
    """Return ResNet-18 for one image, its normalisations with the figures that training has left."""
    channels, side = settings.network_image
    rng = np.random.default_rng(_SEED)
    weights: list[npt.NDArray[Any]] = []
    strides: list[tuple[int, int, bool]] = []  # of each block; the kernel's padding follows from its size

    def add(out: int, come: int, kernel: int) -> None:
        weights.append(_normal(rng, (come * kernel * kernel) ** -0.5, out, come, kernel, kernel))
        weights.append(1.0 + _normal(rng, 0.1, out, 1, 1))
        weights.append(_normal(rng, 0.1, out, 1, 1))

    add(channels, 3, 7)
    come = channels
    for block in range(8):
        out = channels << block // 2
        stride = 2 if block % 2 == 0 < block else 1
        add(out, come, 3)
        add(out, out, 3)
        if stride > 1:
            add(out, come, 1)
        strides.append((stride, 1, stride > 1))
        come = out
    weights.append(_normal(rng, come**-0.5, come, _CLASSES))

    def make(functions: Functions) -> Callable[..., list[Any]]:
        def forward(weights: Sequence[Any], x: Any) -> list[Any]:
            rest = iter(weights)

            def normalised(x: Any, stride: int, padding: int) -> Any:
                y = functions.conv(x, next(rest), stride, padding)
                return y * next(rest) + next(rest)

            # A stride of four in place of two and a pooling.
            x = functions.relu(normalised(x, 4, 3))
            for first, second, shortens in strides:
                y = functions.relu(normalised(x, first, 1))
                y = normalised(y, second, 1)
                x = functions.relu(y + (normalised(x, first, 0) if shortens else x))
            return [x.mean((2, 3)) @ next(rest)]

        return forward

    image = _normal(rng, 1.0, 1, 3, side, side)

    def differs(found: Sequence[npt.NDArray[Any]]) -> str | None:
        forward = make(Functions(np.tanh, _rectified, _convolved, _no_slopes))
        (expected,) = forward(weights, image)
        if not np.allclose(found[0], expected, _RELATIVE, _ABSOLUTE):
            return f"off by up to {np.abs(found[0] - expected).max():.3g}"
        return None

    return Network(make, weights, [image], differs)


def _convolved(x: npt.NDArray[Any], weight: npt.NDArray[Any], stride: int, padding: int) -> npt.NDArray[Any]:
    around = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    windows = np.lib.stride_tricks.sliding_window_view(around, weight.shape[2:], axis=(2, 3))[:, :, ::stride, ::stride]
    return np.moveaxis(np.tensordot(windows, weight, axes=((1, 4, 5), (1, 2, 3))), -1, 1)


def _rectified(x: Any) -> Any:
    return np.maximum(x, 0)


def _no_slopes(_function: Callable[..., Any]) -> Callable[..., tuple[Any, Sequence[Any]]]:
    raise NotImplementedError("NumPy has no gradients")


#: By the name of their column.
NETWORKS: dict[str, Callable[[Settings], Network]] = {
    "24 layers, a training step": training_step,
    "ResNet-18": resnet18,
}


def _normal(rng: np.random.Generator, scale: float, *shape: int) -> npt.NDArray[Any]:
    return (scale * rng.standard_normal(shape)).astype(np.float32)
