"""SINGA's losses: means over a batch, as arrays of one element."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._nn import namespace as nn
from weft._numpy import namespace
from weft._registry.symbol_hook import UnknownFactError
from weft._singa.models.labels import check_classes
from weft._singa.models.scalars import plain
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._core import NDArray

#: Keeps logarithms of probabilities from those of 0.
_LEAST = 1e-4


def softmax_cross_entropy(x: NDArray, t: NDArray) -> NDArray:
    """Return the mean cross entropy of rows of logits with their labels.

    Parameters
    ----------
    x : NDArray
        Logits, ``(N, classes)``.
    t : NDArray
        Integer classes, ``(N,)`` or ``(N, 1)``, or rows of probabilities, such as one-hot ones.

    Returns
    -------
    NDArray
        Of shape ``(1,)``.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.softmax_cross_entropy(weft.zeros((2, 4)), weft.asarray([0, 3])).round(4)
    NDArray([1.3863])
    """
    return namespace.mean(nn.cross_entropy(x, _labels("softmax_cross_entropy", x, t)), keepdims=True)


def cross_entropy(x: NDArray, t: NDArray) -> NDArray:
    """Return the mean cross entropy of rows of probabilities, the results of a softmax, with rows of labels."""
    t = _same("cross_entropy", x, t)
    none = (t == 0) & (x == 0)  # a class without a share that a softmax has rounded to 0 counts nothing
    return namespace.sum(t * namespace.log(namespace.where(none, 1.0, x))).reshape(1) / -len(x)


def binary_cross_entropy(x: NDArray, t: NDArray) -> NDArray:
    """Return the cross entropy of probabilities with labels between 0 and 1, summed over rows, the mean over the batch."""
    t = _same("binary_cross_entropy", x, t)
    found = t * namespace.log(x + _LEAST) + (1 - t) * namespace.log((1 - x) + _LEAST)
    return namespace.sum(found).reshape(1) / -len(x)


def mse_loss(x: NDArray, t: NDArray) -> NDArray:
    """Return the mean of the squares of differences.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.mse_loss(weft.asarray([1.0, 3.0]), weft.asarray([1.0, 1.0]))
    NDArray([2.])
    """
    t = _same("mse_loss", x, t)
    error = x - t
    return namespace.mean(error * error).reshape(1)


def ranking_loss(pos: NDArray, neg: NDArray, M: float = 0.2) -> NDArray:
    """Return the mean of how far scores that should be lower come within a margin `M` of those that should be higher."""
    _same("ranking_loss", pos, neg)
    return namespace.sum(namespace.maximum(neg - pos + plain(M), 0)).reshape(1) / len(pos)


def _labels(name: str, x: NDArray, t: NDArray) -> NDArray:
    """Return labels as classes ``(N,)`` or as rows of the logits' shape."""
    given = t
    if x.ndim == 2 and t.shape == (len(x), 1) != x.shape:  # rows of logits
        t = t.reshape(len(x))
    if x.ndim != 2 or t.shape not in {x.shape, x.shape[:1]}:
        raise ShapeError(
            f"{name} takes logits (N, classes) with N classes or N rows of probabilities, and was given {x.shape} and "
            f"{t.shape}"
        )
    if t.ndim == 1 and t.dtype.kind in "iu" and x.shape[1]:
        check_classes(given, x.shape[1])
    if t.ndim == 1 and t.dtype.kind == "f":
        raise ShapeError(f"{name}: classes are integers, and the labels of shape {t.shape} are of dtype {t.dtype}")
    return t


def _same(name: str, x: NDArray, t: NDArray) -> NDArray:
    """Return labels, integers in the dtype of the other operand; ShapeError if they are of another shape."""
    if x.shape != t.shape or not x.shape:
        raise ShapeError(f"{name} takes two arrays of one shape, and was given {x.shape} and {t.shape}")
    try:
        whole = t.dtype.kind in "biu" and x.dtype.kind == "f"
    except UnknownFactError:  # of symbols, before dtypes are inferred
        return t
    return t.astype(x.dtype) if whole else t
