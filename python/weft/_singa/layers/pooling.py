"""Pooling: the greatest element or the mean of each window."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weft._numpy import namespace
from weft._singa.layers.base import Own
from weft._singa.layers.windows import Pair, check_mode, padding_of, pair, same_padding
from weft._singa.networks import PoolingHandle, pooling_2d
from weft.errors import ShapeError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._core import NDArray

_IMAGES = 4  # axes: images, channels, rows, columns


class Pooling2d(Own):
    """The greatest element, or the mean, of each window of images ``(N, C, H, W)``.

    Parameters
    ----------
    kernel_size : int or pair of int
        Rows and columns of a window.
    stride : int or pair of int, optional
        How far windows move; by default their size.
    padding : int, pair, or (above, below, left, right), default: 0
        The padding around the images; neither the mean nor the maximum sees it.
    is_max : bool, default: True
        Whether the greatest element is taken, and not the mean.
    pad_mode : {"NOTSET", "SAME_UPPER", "SAME_LOWER"}, default: "NOTSET"
        Whether results have the size of the images, divided by the stride.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.Pooling2d(2)(weft.ones((1, 1, 4, 4), "float32")).shape
    (1, 1, 2, 2)
    """

    def __init__(
        self,
        kernel_size: Pair,
        stride: Pair | None = None,
        padding: Pair = 0,
        is_max: bool = True,
        pad_mode: str = "NOTSET",
    ) -> None:
        super().__init__()
        self.kernel_size = pair("kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else pair("stride", stride)
        self.padding, self.is_max, self.pad_mode = padding_of(padding), is_max, check_mode(pad_mode)

    def forward(self, x: NDArray) -> NDArray:
        """Return an element for each window."""
        padding = self.padding
        if x.ndim == _IMAGES and self.pad_mode != "NOTSET":
            padding = same_padding(self.pad_mode, x.shape[2:], self.kernel_size, self.stride)
        if x.ndim != _IMAGES or any(
            size + sum(around) < window
            for size, around, window in zip(x.shape[2:], padding, self.kernel_size, strict=True)
        ):
            raise ShapeError(
                f"{self._called()} takes images (N, C, H, W) of at least its windows {self.kernel_size}, and was given the "
                f"shape {x.shape}"
            )
        return pooling_2d(PoolingHandle(None, self.kernel_size, self.stride, padding, self.is_max), x)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


class MaxPool2d(Pooling2d):
    """The greatest element of each window; parameters as for `Pooling2d`.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.MaxPool2d(2, 2, padding=0)(weft.arange(4.0).reshape(1, 1, 2, 2)).tolist()
    [[[[3.0]]]]
    """

    def __init__(
        self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, pad_mode: str = "NOTSET"
    ) -> None:
        super().__init__(kernel_size, stride, padding, True, pad_mode)


class AvgPool2d(Pooling2d):
    """The mean of each window; parameters as for `Pooling2d`.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.AvgPool2d(2)(weft.arange(4.0).reshape(1, 1, 2, 2)).tolist()
    [[[[1.5]]]]
    """

    def __init__(
        self, kernel_size: Pair, stride: Pair | None = None, padding: Pair = 0, pad_mode: str = "NOTSET"
    ) -> None:
        super().__init__(kernel_size, stride, padding, False, pad_mode)


class MaxPool1d(Pooling2d):
    """The greatest element of each window along the rows of ``(N, C, 1, W)``.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.MaxPool1d(2)(weft.arange(4.0).reshape(1, 1, 1, 4)).tolist()
    [[[[1.0, 3.0]]]]
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0, pad_mode: str = "NOTSET") -> None:
        super().__init__((1, kernel_size), (1, stride or kernel_size), (0, padding), True, pad_mode)


class AvgPool1d(Pooling2d):
    """The mean of each window along the rows of ``(N, C, 1, W)``.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.AvgPool1d(2)(weft.arange(4.0).reshape(1, 1, 1, 4)).tolist()
    [[[[0.5, 2.5]]]]
    """

    def __init__(self, kernel_size: int, stride: int | None = None, padding: int = 0, pad_mode: str = "NOTSET") -> None:
        super().__init__((1, kernel_size), (1, stride or kernel_size), (0, padding), False, pad_mode)


class AdaptiveAvgPool2d(Own):
    """Images ``(N, C, H, W)`` as images of a given size: each pixel is the mean of a window; sizes of windows differ by one at most.

    Pixel i of n, of a length L, is the mean of those from ``floor(i * L / n)`` to ``ceil((i + 1) * L / n)``.

    Parameters
    ----------
    output_size : int or pair of int
        Rows and columns of the results.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> layer.AdaptiveAvgPool2d(1)(weft.arange(4.0).reshape(1, 1, 2, 2)).tolist()
    [[[[1.5]]]]
    """

    def __init__(self, output_size: Pair) -> None:
        super().__init__()
        self.output_size = pair("output_size", output_size)

    def forward(self, x: NDArray) -> NDArray:
        """Return a mean for each window."""
        if x.ndim != _IMAGES or 0 in x.shape[2:]:
            raise ShapeError(f"{self._called()} takes images (N, C, H, W), and was given the shape {x.shape}")
        if self.output_size == (1, 1):
            return namespace.mean(x, axis=(2, 3), keepdims=True)
        if not any(size % to for size, to in zip(x.shape[2:], self.output_size, strict=True)):
            window = tuple(size // to for size, to in zip(x.shape[2:], self.output_size, strict=True))
            return pooling_2d(PoolingHandle(None, window, window, 0, False), x)
        rows, columns = (
            namespace.asarray(_means(size, to).astype(x.dtype), device=x.device)
            for size, to in zip(x.shape[2:], self.output_size, strict=True)
        )
        return namespace.matmul(namespace.matmul(rows, x), columns.T)

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, x: NDArray) -> NDArray: ...


def _means(size: int, to: int) -> npt.NDArray[np.float64]:
    """Return the matrix that turns so many elements into the means of so many windows."""
    at, element = np.arange(to)[:, None], np.arange(size)
    inside = (element >= at * size // to) & (element < -(-(at + 1) * size // to))
    found: npt.NDArray[np.float64] = inside / inside.sum(axis=1, keepdims=True)
    return found
