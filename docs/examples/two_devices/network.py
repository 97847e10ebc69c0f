"""A two-layer network in plain NumPy: it knows no engine, and no devices.

Every function takes first the arrays that it reads, then the arrays that it writes,
and allocates nothing as large as a layer.

Shapes: ``n`` rows, ``p`` inputs, ``h`` hidden units, ``c`` classes. The last input is
always one, so the last row of the first layer's weights is its bias.
"""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]


def initial_weights(p: int, h: int, c: int, seed: int) -> tuple[Array, Array]:
    """Return the weights, (p, h) and (h, c), that training starts from."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((p, h), np.float32)
    hidden *= 2 / p**0.5
    return hidden, np.zeros((h, c), np.float32)


def load_rows(rows: NDArray[np.intp], images: Array, labels: Array, x: Array, y: Array) -> None:
    """Copy the images and labels at `rows` to `x`, (n, p), and `y`, (n, c)."""
    # With mode="raise", take() would write to a buffer of its own first.
    np.take(images, rows, axis=0, out=x, mode="clip")
    np.take(labels, rows, axis=0, out=y, mode="clip")


def copy(source: Array, target: Array) -> None:
    """Copy `source` to `target`, an array of the same shape."""
    np.copyto(target, source)


def hidden_layer(x: Array, w1: Array, hidden: Array) -> None:
    """Write tanh(x @ w1), (n, h), to `hidden`."""
    np.matmul(x, w1, out=hidden)
    np.tanh(hidden, out=hidden)


def output_error(hidden: Array, w2: Array, y: Array, error: Array) -> None:
    """Write softmax(hidden @ w2) - y, (n, c), to `error`."""
    np.matmul(hidden, w2, out=error)
    error -= error.max(axis=1, keepdims=True)
    np.exp(error, out=error)
    error /= error.sum(axis=1, keepdims=True)
    error -= y


def hidden_slope(hidden: Array) -> None:
    """Replace the values of tanh, (n, h), by its slopes there."""
    np.multiply(hidden, hidden, out=hidden)
    np.subtract(1, hidden, out=hidden)


def hidden_error(error: Array, w2: Array, slope: Array, propagated: Array) -> None:
    """Write the error of the hidden units, (n, h), to `propagated`."""
    np.matmul(error, w2.T, out=propagated)
    propagated *= slope


def weight_gradient(inputs: Array, error: Array, gradient: Array) -> None:
    """Write the gradient of a layer's weights, summed over the rows, to `gradient`."""
    np.matmul(inputs.T, error, out=gradient)


def step_weights(rate: float, gradient: Array, weights: Array) -> None:
    """Move `weights` by `rate` against `gradient`, which is scaled in place."""
    gradient *= rate
    weights -= gradient


def accuracy(w1: Array, w2: Array, images: Array, labels: Array) -> float:
    """Return the share of `images` whose label the network finds."""
    found = np.tanh(images @ w1) @ w2
    return float(np.mean(found.argmax(axis=1) == labels.argmax(axis=1)))
