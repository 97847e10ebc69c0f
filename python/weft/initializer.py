"""First values of parameters, with SINGA's names: each function overwrites the tensor that it is given.

They draw from the generator of the tensor's device, which `Device.SetRandSeed` begins anew.

>>> from weft import initializer, tensor
>>> w = tensor.Tensor((100, 50))
>>> initializer.glorot_uniform(w)
>>> bool(abs(w).max() < (6 / 150) ** 0.5)
True
"""

from __future__ import annotations

import math
from typing import SupportsFloat

import weft
from weft._core import NDArray
from weft._registry.brief import brief
from weft._singa.models.generators import generator_of
from weft._singa.models.tensors import write
from weft.errors import ArgumentTypeError, ArgumentValueError

__all__ = [
    "eye", "gaussian", "glorot", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal",
    "lecun_uniform", "msra", "orthogonal", "xavier",
]  # fmt: skip


def eye(t: NDArray) -> None:
    """Write ones on the diagonal of a matrix, and zeros elsewhere."""
    rows, columns = _matrix("eye", t)
    write(t, weft.eye(rows, columns, dtype=t.dtype), 0)


def orthogonal(t: NDArray, gain: float = 1.0) -> None:
    """Write rows or columns, the fewer of both, that are orthogonal to each other and of length `gain`.

    A matrix of normal numbers is decomposed (Saxe, McClelland, Ganguli, "Exact solutions to the nonlinear dynamics of
    learning in deep linear neural networks", 2013).
    """
    rows, columns = _matrix("orthogonal", t)
    u, _, v = weft.linalg.svd(generator_of(t.device).normal(size=(rows, columns)), full_matrices=False)
    write(t, _number("gain", gain) * (u if rows >= columns else v), 0)


def lecun_uniform(t: NDArray) -> None:
    """Draw uniformly between plus and minus the root of 3 / inputs (LeCun and others, "Efficient BackProp", 1998)."""
    _uniform(t, 3 / _fans(t)[0])


def lecun_normal(t: NDArray) -> None:
    """Draw normal numbers, of variance 1 / inputs."""
    _normal(t, 1 / _fans(t)[0])


def glorot_uniform(t: NDArray) -> None:
    """Draw uniformly between plus and minus the root of 6 / (inputs + outputs) (Glorot and Bengio, 2010)."""
    _uniform(t, 6 / sum(_fans(t)))


def glorot_normal(t: NDArray) -> None:
    """Draw normal numbers, of variance 2 / (inputs + outputs) (Glorot and Bengio, "Understanding the difficulty of training", 2010)."""
    _normal(t, 2 / sum(_fans(t)))


def he_uniform(t: NDArray) -> None:
    """Draw uniformly between plus and minus the root of 6 / inputs (He and others, 2015)."""
    _uniform(t, 6 / _fans(t)[0])


def he_normal(t: NDArray) -> None:
    """Draw normal numbers, of variance 2 / inputs (He and others, "Delving deep into rectifiers", 2015)."""
    _normal(t, 2 / _fans(t)[0])


def gaussian(t: NDArray, fan_in: float = 0, fan_out: float = 0) -> None:
    """Draw normal numbers, of variance 4 / (inputs + outputs), or 2 / the one of them that is given."""
    fan_in, fan_out = _number("fan_in", fan_in), _number("fan_out", fan_out)
    if fan_in <= 0 and fan_out <= 0:
        raise ArgumentValueError("gaussian needs fan_in, fan_out, or both")
    _normal(t, (4 if fan_in * fan_out else 2) / (fan_in + fan_out))


def xavier(t: NDArray) -> None:
    """Draw uniformly, as `glorot_uniform`, for a matrix."""
    _matrix("xavier", t)
    glorot_uniform(t)


def glorot(t: NDArray) -> None:
    """Draw normal numbers, as `glorot_normal`, for a matrix."""
    _matrix("glorot", t)
    glorot_normal(t)


def msra(t: NDArray) -> None:
    """Draw normal numbers, of variance 2 / rows."""
    _normal(t, 2 / _matrix("msra", t)[0])


def _array(t: NDArray) -> NDArray:
    if not isinstance(t, NDArray):
        raise ArgumentTypeError(f"an initializer overwrites a tensor, and was given {brief(t)}")
    return t


def _number(name: str, value: float) -> float:
    if not isinstance(value, SupportsFloat):
        raise ArgumentTypeError(f"{name} is a number, not {brief(value)}")
    return float(value)


def _matrix(name: str, t: NDArray) -> tuple[int, int]:
    if _array(t).ndim != 2:  # rows and columns
        raise ArgumentValueError(f"{name} fills matrices, and the tensor has the shape {t.shape}")
    return t.shape[0], t.shape[1]


def _fans(t: NDArray) -> tuple[float, float]:
    """Return how many inputs and outputs a weight connects: (in, out), or (out, in, kernel ...)."""
    shape = _array(t).shape
    if len(shape) < 2:  # a vector connects what it has
        count = float(max(math.prod(shape), 1))
        return count, count
    if len(shape) == 2:
        return float(max(shape[0], 1)), float(max(shape[1], 1))
    field = math.prod(shape[2:])
    return float(max(shape[1] * field, 1)), float(max(shape[0] * field, 1))


def _normal(t: NDArray, variance: float) -> None:
    write(t, generator_of(_array(t).device).normal(0.0, math.sqrt(variance), t.shape), 0)


def _uniform(t: NDArray, square: float) -> None:
    limit = math.sqrt(square)
    write(t, generator_of(t.device).uniform(-limit, limit, t.shape), 0)
