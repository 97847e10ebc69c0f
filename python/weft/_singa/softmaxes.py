"""SINGA's softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._nn import namespace as nn

if TYPE_CHECKING:
    from weft._core import NDArray


def softmax(x: NDArray, axis: int = 1) -> NDArray:
    """Return exponentials divided by their sums along an axis.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.softmax(weft.zeros((1, 4)))
    NDArray([[0.25, 0.25, 0.25, 0.25]])
    """
    return nn.softmax(x, axis)
