"""SINGA's operators of networks: convolution, pooling, normalisation, dropout, embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._ops.random import Generator
from weft._program.unrecorded import outside
from weft._singa.models.generators import generator_of
from weft._tape.modes import AGAIN, TRAINING, no_grad
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft._core import Engine, NDArray

_NO_PADDING = (0, 0, 0, 0)
#: Generators of dropouts that were given seeds of their own.
_seeded: dict[tuple[str, int], tuple[Engine, Generator]] = {}


@dataclass(frozen=True, slots=True)
class ConvHandle:
    """How a convolution goes, as `conv2d` takes it.

    Parameters
    ----------
    x : object
        Ignored: nothing is chosen by it.
    kernel_size, stride, padding : int or pair
        As for `weft.layer.Conv2d`; the size is that of the weights.
    in_channels, nb_kernels : int, optional
        Ignored: the weights tell.
    bias : bool, default: True
        Whether there is one.
    groups : int, default: 1
        Into how many groups channels fall.
    dilation : int or pair, default: 1
        How far apart the elements are that a kernel looks at.
    """

    x: object = None
    kernel_size: Any = None
    stride: Any = 1
    padding: Any = 0
    in_channels: int | None = None
    nb_kernels: int | None = None
    bias: bool = True
    groups: int = 1
    dilation: Any = 1


@dataclass(frozen=True, slots=True)
class PoolingHandle:
    """How pooling goes, as `pooling_2d` takes it.

    Parameters
    ----------
    x : object
        Ignored: nothing is chosen by it.
    kernel_size, stride, padding : int or pair
        As for `weft.layer.Pooling2d`.
    is_max : bool, default: True
        Whether the greatest element is taken, and not the mean.
    """

    x: object = None
    kernel_size: Any = 2
    stride: Any = None
    padding: Any = 0
    is_max: bool = True


@dataclass(frozen=True, slots=True)
class BatchNormHandle:
    """How batches are normalised, as `batchnorm_2d` takes it.

    Parameters
    ----------
    momentum : float, default: 0.9
        The share of the batch in the running averages at each step, as SINGA's: the rest of them is kept.
    x : object
        Ignored: nothing is chosen by it.
    eps : float, default: 1e-5
        Added to variances.
    """

    momentum: float = 0.9
    x: object = None
    eps: float = 1e-5


def conv2d(
    handle: ConvHandle,
    x: NDArray,
    W: NDArray,
    b: NDArray | None = None,
    odd_padding: Sequence[int] = _NO_PADDING,
) -> NDArray:
    """Return the convolution of images ``(N, C, H, W)`` with kernels ``(O, C / groups, h, w)``.

    `odd_padding` is added to that of the handle: above, below, left, right.

    Examples
    --------
    >>> import weft
    >>> from weft import autograd
    >>> x, w = weft.ones((1, 1, 3, 3)), weft.ones((1, 1, 2, 2))
    >>> autograd.conv2d(autograd.ConvHandle(), x, w)
    NDArray([[[[4., 4.],
               [4., 4.]]]])
    """
    padding = sides(handle.padding, odd_padding)
    return nn.conv(x, W, b, stride=handle.stride, padding=padding, dilation=handle.dilation, groups=handle.groups)


def pooling_2d(handle: PoolingHandle, x: NDArray, odd_padding: Sequence[int] = _NO_PADDING) -> NDArray:
    """Return the greatest element, or the mean, of each window of images ``(N, C, H, W)``; padding counts in neither.

    Examples
    --------
    >>> import weft
    >>> from weft import autograd
    >>> autograd.pooling_2d(autograd.PoolingHandle(), weft.arange(4.0).reshape(1, 1, 2, 2))
    NDArray([[[[3.]]]])
    """
    padding = sides(handle.padding, odd_padding)
    if handle.is_max:
        return nn.max_pool(x, handle.kernel_size, stride=handle.stride, padding=padding)
    return nn.avg_pool(x, handle.kernel_size, stride=handle.stride, padding=padding, count_include_pad=False)


def batchnorm_2d(
    handle: BatchNormHandle,
    x: NDArray,
    scale: NDArray,
    bias: NDArray,
    running_mean: NDArray,
    running_var: NDArray,
) -> NDArray:
    """Return each channel normalised, scaled and shifted: by the batch where layers train, else by the running averages.

    Where layers train the running averages change in place; the variance enters as the unbiased one, as cuDNN's does.

    Examples
    --------
    >>> import weft
    >>> from weft import autograd
    >>> x, zeros, ones = weft.arange(4.0).reshape(4, 1), weft.zeros(1), weft.ones(1)
    >>> autograd.batchnorm_2d(autograd.BatchNormHandle(), x, ones, zeros, zeros.copy(), ones.copy()).round(3).tolist()
    [[0.0], [1.0], [2.0], [3.0]]
    """
    if not TRAINING.get():
        return nn.batch_norm(x, scale, bias, running_mean, running_var, eps=handle.eps)
    y, mean, variance = nn.batch_norm_train(x, scale, bias, eps=handle.eps)
    if AGAIN.get():
        return y
    count = x.size // max(x.shape[1], 1)
    share, kept = handle.momentum, 1 - handle.momentum
    with no_grad():  # each by one op, which a batch that has failed fails: see `weft.model.Model.recover`
        namespace.add(running_mean * kept, share * mean, out=running_mean)
        namespace.add(running_var * kept, (share * count / max(count - 1, 1)) * variance, out=running_var)
    return y


def dropout(x: NDArray, seed: int = 0, ratio: float = 0.5) -> NDArray:
    """Return the elements, a share of them set to 0 and the others scaled by ``1 / (1 - ratio)``, where layers train.

    Parameters
    ----------
    x : NDArray
        The elements.
    seed : int, default: 0
        0 for the generator of the device; another number for one of its own, which goes on from call to call.
    ratio : float, default: 0.5
        The probability of each element to become 0.
    """
    if not 0 <= ratio < 1:
        raise ArgumentValueError(f"dropout: ratio is a probability from 0 to less than 1, not {ratio}")
    if not TRAINING.get() or ratio == 0:
        return x
    return nn.dropout(x, ratio, _generator(x, seed))


def _generator(x: NDArray, seed: int) -> Generator:
    if not seed:
        return generator_of(x.device)
    key = str(x.device), int(seed)
    found = _seeded.get(key)
    if found is None or found[0] is not x.engine:
        found = _seeded[key] = x.engine, outside(lambda: Generator(int(seed), engine=x.engine))
    return found[1]


def embedding(x: NDArray, w: NDArray) -> NDArray:
    """Return the rows of a matrix that indices name; indices that are floating-point numbers are cast.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.embedding(weft.asarray([1, 0]), weft.asarray([[1.0], [2.0]])).tolist()
    [[2.0], [1.0]]
    """
    return nn.embedding(x if x.dtype.kind in "iu" else x.astype(np.int64), w)


def sides(padding: Any, odd: Sequence[int] = _NO_PADDING) -> Any:
    """Return padding as `weft.nn` takes it: a number, one for each axis, or pairs of (before, behind).

    Examples
    --------
    >>> from weft._singa.networks import sides
    >>> sides((1, 2, 0, 0)), sides(2, (0, 1, 0, 1))
    (((1, 2), (0, 0)), ((2, 3), (2, 3)))
    """
    if isinstance(padding, int) and not any(odd):
        return padding
    both: Any = (padding, padding) if isinstance(padding, int) else padding
    if len(both) == 4:  # above, below, left, right
        both = (both[0], both[1]), (both[2], both[3])
    several = cast("Iterable[int | tuple[int, int]]", both)
    pairs = tuple(each if isinstance(each, tuple) else (each, each) for each in several)
    added = ((odd[0], odd[1]), (odd[2], odd[3]))
    return tuple((one + more, other + less) for (one, other), (more, less) in zip(pairs, added, strict=True))
