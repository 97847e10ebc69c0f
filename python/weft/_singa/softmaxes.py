"""SINGA's softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = ["softmax"]


def softmax(x: NDArray, axis: int = 1) -> NDArray:
    """Return exponentials divided by their sums along an axis.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.softmax(weft.zeros((1, 4)))
    NDArray([[0.25, 0.25, 0.25, 0.25]])
    """
    return weft.nn.softmax(x, axis)
