"""Buckets: gradients that travel together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._numpy import namespace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft._core import NDArray


class Buckets:
    """Gradients that wait until so many elements of a dtype are together; a larger one goes by itself.

    Parameters
    ----------
    threshold : float
        The number of elements.
    """

    def __init__(self, threshold: float) -> None:
        self._threshold = threshold
        self._waiting: dict[str, list[tuple[NDArray, NDArray]]] = {}

    def add(self, parameter: NDArray, gradient: NDArray) -> Iterator[list[tuple[NDArray, NDArray]]]:
        """Put a parameter's gradient in, and yield a bucket that is full then."""
        if gradient.size > self._threshold:
            yield [(parameter, gradient)]
            return
        kind = gradient.dtype.name
        waiting = self._waiting.setdefault(kind, [])
        waiting.append((parameter, gradient))
        if sum(each.size for _, each in waiting) > self._threshold:
            yield self._waiting.pop(kind)

    def rest(self) -> Iterator[list[tuple[NDArray, NDArray]]]:
        """Yield the buckets that are left."""
        while self._waiting:
            yield self._waiting.pop(next(iter(self._waiting)))


def flat(arrays: Sequence[NDArray]) -> NDArray:
    """Return the elements of arrays one after another, in memory of their own.

    Examples
    --------
    >>> import weft
    >>> from weft._singa.optimizers.buckets import flat
    >>> flat([weft.ones((2, 2)), weft.zeros(1)])
    NDArray([1., 1., 1., 1., 0.])
    """
    return namespace.concat([namespace.reshape(array, (-1,)) for array in arrays])


def pieces(joined: NDArray, like: Sequence[NDArray]) -> Iterator[NDArray]:
    """Yield views of the result of `flat`, in the shapes that the arrays had.

    Examples
    --------
    >>> import weft
    >>> from weft._singa.optimizers.buckets import pieces
    >>> [piece.shape for piece in pieces(weft.ones(5), [weft.ones((2, 2)), weft.zeros(1)])]
    [(2, 2), (1,)]
    """
    start = 0
    for array in like:
        yield namespace.reshape(joined[start : start + array.size], array.shape)
        start += array.size
