"""SINGA's operators on shapes: moves of elements, and sums along axes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._numpy import namespace
from weft._singa.elementwise import chosen
from weft.errors import ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from weft._core import NDArray


def reshape(x: NDArray, shape: Sequence[int]) -> NDArray:
    """Return the elements in another shape; -1 is the length that is left over, and 0 the length that the axis has.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.reshape(weft.zeros((2, 3, 4)), (0, -1)).shape
    (2, 12)
    """
    known = [x.shape[at] if length == 0 and at < x.ndim else length for at, length in enumerate(shape)]
    return namespace.reshape(x, tuple(known))


def flatten(x: NDArray, axis: int = 1) -> NDArray:
    """Return a matrix: the axes before `axis` as rows, the others as columns.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.flatten(weft.zeros((2, 3, 4))).shape
    (2, 12)
    """
    if not -x.ndim <= axis <= x.ndim:
        raise ShapeError(f"flatten: an array of shape {x.shape} has no axis {axis}")
    at = axis + x.ndim if axis < 0 else axis
    return namespace.reshape(x, (math.prod(x.shape[:at]), math.prod(x.shape[at:])))


def transpose(x: NDArray, shape: Sequence[int] | None = None) -> NDArray:
    """Return the axes in another order, by default backwards."""
    return namespace.transpose(x, shape)


def squeeze(x: NDArray, axis: int | Sequence[int] = ()) -> NDArray:
    """Return the array without axes of length 1: those that are named, or all."""
    named = (axis,) if isinstance(axis, int) else tuple(axis)
    return namespace.squeeze(x, named or tuple(at for at, length in enumerate(x.shape) if length == 1))


def unsqueeze(x: NDArray, axis: int | Sequence[int] = -1) -> NDArray:
    """Return the array with new axes of length 1 at places of the result."""
    return namespace.expand_dims(x, axis if isinstance(axis, int) else tuple(axis))


def shape_of(x: NDArray) -> NDArray:
    """Return the shape as an array."""
    return namespace.asarray(np.array(x.shape, np.int64), device=x.device)


def constant_of_shape(x: Any, value: float = 0) -> NDArray:
    """Return an array of equal elements, of float32, in the given shape; an array's elements are waited for.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.constant_of_shape([2], 3)
    NDArray([3., 3.], dtype=float32)
    """
    shape = [int(length) for length in namespace.asarray(x).tolist()]
    return namespace.full(shape, value, np.float32)


def cat(xs: Sequence[NDArray], axis: int = 0) -> NDArray:
    """Return arrays one behind the other along an axis."""
    return namespace.concatenate(list(xs), axis=axis)


def split(x: NDArray, axis: int, parts: Sequence[int] | None, num_output: int | None = None) -> tuple[NDArray, ...]:
    """Return pieces along an axis: of given lengths, or a number of equal ones.

    Examples
    --------
    >>> import weft
    >>> [part.shape for part in weft.autograd.split(weft.zeros((4, 3)), 0, [1, 3])]
    [(1, 3), (3, 3)]
    """
    length = x.shape[axis]
    if parts is None:
        if not num_output or length % num_output:
            raise ArgumentValueError(f"split: {length} elements do not make {num_output} equal parts")
        parts = [length // num_output] * num_output
    if sum(parts) != length:
        raise ShapeError(f"split: parts of {list(parts)} make {sum(parts)}, and axis {axis} of {x.shape} has {length}")
    ends = np.cumsum(parts)
    at = axis + x.ndim if axis < 0 else axis
    return tuple(
        x[(slice(None),) * at + (slice(int(end - part), int(end)),)] for part, end in zip(parts, ends, strict=True)
    )


def slice_of(
    x: NDArray,
    starts: Sequence[int],
    ends: Sequence[int],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> NDArray:
    """Return the part between starts and ends along axes, by default the first ones.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.slice(weft.arange(6.0), [1], [5], steps=[2])
    NDArray([1., 3.])
    """
    key = [slice(None)] * x.ndim
    named = range(len(starts)) if axes is None else axes
    for start, end, axis, step in zip(starts, ends, named, steps or [1] * len(starts), strict=True):
        key[axis] = slice(int(start), int(end), int(step))
    return x[tuple(key)]


def gather(x: NDArray, axis: int, indices: npt.ArrayLike | NDArray) -> NDArray:
    """Return the elements at indices along an axis; negative ones count from the end."""
    return namespace.take(x, _indices(indices), axis=axis)


def scatter_elements(x: NDArray, indices: Any, updates: Any, axis: int = 0) -> NDArray:
    """Return `x` with updates at indices along an axis, one for each place of `indices`, as ONNX has it.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.scatter_elements(weft.zeros((1, 4)), [[1, 3]], [[5.0, 7.0]], axis=1)
    NDArray([[0., 5., 0., 7.]])
    """
    at, values = _indices(indices), namespace.asarray(updates, dtype=x.dtype)
    if at.ndim != x.ndim or at.shape != values.shape:
        raise ShapeError(f"scatter_elements: x {x.shape}, indices {at.shape} and updates {values.shape} do not fit")
    along = axis + x.ndim if axis < 0 else axis
    key = tuple(
        at if each == along else namespace.arange(length).reshape((-1,) + (1,) * (x.ndim - each - 1))
        for each, length in enumerate(at.shape)
    )
    result = x.copy()
    result[key] = values
    return result


def _whole(depth: Any) -> Any:
    """Return a number of elements; ONNX has it as an array of one number, of any dtype."""
    number: Any = depth if np.ndim(depth) == 0 else np.asarray(depth).item()
    return int(number) if int(number) == number else number


def onehot(axis: int, indices: NDArray, depth: Any, values: Sequence[float]) -> NDArray:
    """Return, for each index, `depth` elements along a new axis: ``values[1]`` at the index and ``values[0]`` elsewhere.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.onehot(-1, weft.asarray([0, 2]), 3, [0, 1])
    NDArray([[1., 0., 0.],
             [0., 0., 1.]], dtype=float32)
    """
    count = _whole(depth)
    at = axis + indices.ndim + 1 if axis < 0 else axis
    places = namespace.arange(count, dtype=indices.dtype).reshape((1,) * at + (count,) + (1,) * (indices.ndim - at))
    hit: Any = places == namespace.expand_dims(indices, at) % count
    off, on = (np.float32(value) for value in values)
    return chosen(hit, on, off)


def tile(x: NDArray, repeats: int | Sequence[int]) -> NDArray:
    """Return the array repeated along its first axes, as SINGA counts them; more numbers than axes make new ones in front.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.tile(weft.asarray([[1.0], [2.0]]), 2).tolist()
    [[1.0], [2.0], [1.0], [2.0]]
    """
    times = (repeats,) if isinstance(repeats, int) else tuple(repeats)
    return namespace.tile(x, times + (1,) * (x.ndim - len(times)))


def expand(x: NDArray, shape: Sequence[int]) -> NDArray:
    """Return the array repeated to a shape, by broadcasting."""
    return namespace.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(length) for length in shape)))


def pad(x: NDArray, mode: str, pads: Sequence[int], constant: float = 0.0) -> NDArray:
    """Return the array with elements put before and behind along each axis.

    Parameters
    ----------
    x : NDArray
        The array.
    mode : {"constant", "reflect", "edge"}
        The source of the new elements.
    pads : sequence of int
        How many before each axis, and then how many behind each, as ONNX has it.
    constant : float, default: 0
        The number for "constant".

    Examples
    --------
    >>> import weft
    >>> weft.autograd.pad(weft.ones(2), "constant", [1, 0])
    NDArray([0., 1., 1.])
    """
    if mode not in {"constant", "reflect", "edge"}:
        raise ArgumentValueError(f"pad: mode is 'constant', 'reflect' or 'edge', not {mode!r}")
    half = len(pads) // 2
    if len(pads) != 2 * x.ndim:
        raise ShapeError(f"pad: an array of shape {x.shape} has {2 * x.ndim} sides, and {len(pads)} numbers were given")
    widths = [(int(pads[at]), int(pads[at + half])) for at in range(half)]
    if mode == "constant":
        return namespace.pad(x, widths, mode="constant", constant_values=constant)
    return namespace.pad(x, widths, mode="reflect" if mode == "reflect" else "edge")


def upsample(x: NDArray, mode: str, scales: Sequence[float]) -> NDArray:
    """Return each element repeated along each axis, `scales` times; `mode` is "nearest"."""
    if mode.lower() != "nearest":
        raise ArgumentValueError(f"upsample: mode is 'nearest', not {mode!r}")
    for axis, scale in enumerate(scales):
        if int(scale) != 1:
            x = namespace.repeat(x, int(scale), axis=axis)
    return x


def depth_to_space(x: NDArray, blocksize: int, mode: str = "DCR") -> NDArray:
    """Return channels as blocks of pixels: ``(N, C, H, W)`` becomes ``(N, C / b**2, H * b, W * b)``.

    Parameters
    ----------
    x : NDArray
        Images.
    blocksize : int
        The side of a block.
    mode : {"DCR", "CRD"}, default: "DCR"
        Whether the channels of a block lie far from each other, or side by side.
    """
    n, c, h, w = _images("depth_to_space", x, mode)
    inner = c // blocksize**2
    if mode.upper() == "DCR":
        x = namespace.transpose(namespace.reshape(x, (n, blocksize, blocksize, inner, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = namespace.transpose(namespace.reshape(x, (n, inner, blocksize, blocksize, h, w)), (0, 1, 4, 2, 5, 3))
    return namespace.reshape(x, (n, inner, h * blocksize, w * blocksize))


def space_to_depth(x: NDArray, blocksize: int, mode: str = "DCR") -> NDArray:
    """Return blocks of pixels as channels: the inverse of `depth_to_space`."""
    n, c, h, w = _images("space_to_depth", x, mode)
    x = namespace.reshape(x, (n, c, h // blocksize, blocksize, w // blocksize, blocksize))
    x = namespace.transpose(x, (0, 3, 5, 1, 2, 4) if mode.upper() == "DCR" else (0, 1, 3, 5, 2, 4))
    return namespace.reshape(x, (n, c * blocksize**2, h // blocksize, w // blocksize))


def reduce_sum(x: NDArray, axes: Sequence[int] | None = None, keepdims: int = 1) -> NDArray:
    """Return sums along axes, by default along all."""
    return namespace.sum(x, axis=None if axes is None else tuple(axes), keepdims=bool(keepdims))


def reduce_mean(x: NDArray, axes: Sequence[int] | None = None, keepdims: int = 1) -> NDArray:
    """Return means along axes, by default along all."""
    return namespace.mean(x, axis=None if axes is None else tuple(axes), keepdims=bool(keepdims))


def globalaveragepool(x: NDArray, data_format: str = "channels_first") -> NDArray:
    """Return the mean of each channel of images; axes of pixels become of length 1.

    Parameters
    ----------
    x : NDArray
        Images, ``(N, C, H, W)``; or ``(N, H, W, C)`` for "channels_last".
    data_format : {"channels_first", "channels_last", "channel_last"}, default: "channels_first"
        Where the channels are; SINGA's tests have the third.
    """
    if data_format not in {"channels_first", "channels_last", "channel_last"}:
        raise ArgumentValueError(
            f"globalaveragepool: data_format is 'channels_first' or 'channels_last', not {data_format!r}"
        )
    axes = range(2, x.ndim) if data_format == "channels_first" else range(1, x.ndim - 1)
    return namespace.mean(x, axis=tuple(axes), keepdims=True)


def _indices(given: Any) -> NDArray:
    found = namespace.asarray(given)
    return found if found.dtype.kind in "iu" else found.astype(np.int64)


def _images(name: str, x: NDArray, mode: str) -> tuple[int, int, int, int]:
    if mode.upper() not in {"DCR", "CRD"}:
        raise ArgumentValueError(f"{name}: mode is 'DCR' or 'CRD', not {mode!r}")
    if x.ndim != 4:  # images, channels, rows, columns
        raise ShapeError(f"{name} takes images (N, C, H, W), and was given the shape {x.shape}")
    n, c, h, w = x.shape
    return n, c, h, w
