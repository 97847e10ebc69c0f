"""Windows that slide over the spatial axes of data: their numbers, lengths and offsets. Arithmetic and slices."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft._call.calls import Elements
    from weft._registry.shapes import Shape


def numbers(op: str, name: str, value: Any, count: int, *, least: int = 1) -> Shape:
    """Return one whole number for each of `count` axes, of one for all or as many as there are axes.

    Examples
    --------
    >>> from weft._nn.windows import numbers
    >>> numbers("nn.conv", "stride", 2, 3)
    (2, 2, 2)
    """
    found: Any = (value,) * count if isinstance(value, int) else value
    if found.__class__ is not tuple or not all(isinstance(each, int) for each in found):
        raise ArgumentTypeError(f"{op}: {name} is a whole number, or one for each axis, not {brief(value)}")
    if len(found) != count:
        raise ArgumentValueError(f"{op}: {name}={brief(value)} has {len(found)} numbers for {count} spatial axes")
    if any(each < least for each in found):
        raise ArgumentValueError(f"{op}: {name} is at least {least} along each axis, not {brief(value)}")
    lengths: Shape = found
    return lengths


def pads(op: str, value: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Return the numbers of elements to put before and after each of `count` axes.

    Examples
    --------
    >>> from weft._nn.windows import pads
    >>> pads("nn.conv", (1, 2), 2), pads("nn.conv", ((0, 1), (2, 3)), 2)
    (((1, 1), (2, 2)), ((0, 1), (2, 3)))
    """
    if value.__class__ is tuple and value and all(isinstance(each, tuple) for each in value):
        if len(value) != count:
            raise ArgumentValueError(f"{op}: padding={brief(value)} has {len(value)} pairs for {count} spatial axes")
        found = [numbers(op, "padding", each, 2, least=0) for each in value]
        return tuple((before, after) for before, after in found)
    return tuple((each, each) for each in numbers(op, "padding", value, count, least=0))


def three(values: Shape, fill: int) -> tuple[int, int, int]:
    """Return a number for each of three axes; the first ones may be missing."""
    first, second, third = (*(fill,) * (3 - len(values)), *values)
    return first, second, third


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows over the spatial axes of data.

    Attributes
    ----------
    lengths : tuple of int
        The lengths of the data's axes.
    kernel, stride, dilation : tuple of int
        Of the windows.
    padding : tuple of (int, int)
        The padding before and after each axis.
    counts : tuple of int
        How many windows there are along each axis.
    """

    lengths: Shape
    kernel: Shape
    stride: Shape
    padding: tuple[tuple[int, int], ...]
    dilation: Shape
    counts: Shape

    @property
    def padded(self) -> Shape:
        """The lengths of the padded axes, as far as windows reach."""
        return tuple(
            max(before + length + after, (count - 1) * stride + (kernel - 1) * dilation + 1)
            for length, (before, after), count, stride, kernel, dilation in zip(
                self.lengths, self.padding, self.counts, self.stride, self.kernel, self.dilation, strict=True
            )
        )

    @property
    def inner(self) -> Any:
        """Where the data lie in the padded arrays."""
        spatial = zip(self.lengths, self.padding, strict=True)
        return (Ellipsis, *(slice(before, before + length) for length, (before, _) in spatial))

    def around(self, x: Elements, value: float = 0) -> Elements:
        """Return data with this number around them, as far as windows reach."""
        if self.padded == self.lengths:
            return x
        found: Elements = np.full_like(x, value, shape=(*x.shape[:2], *self.padded))
        found[self.inner] = x
        return found

    def places(self) -> Iterator[tuple[Any, Any]]:
        """Yield each place in a window, as an index, and where in padded arrays the elements at that place lie."""
        for place in itertools.product(*map(range, self.kernel)):
            spatial = zip(place, self.dilation, self.counts, self.stride, strict=True)
            slices = [
                slice(at * apart, at * apart + (count - 1) * step + 1, step) for at, apart, count, step in spatial
            ]
            yield (Ellipsis, *place), (Ellipsis, *slices)

    @property
    def described(self) -> tuple[tuple[int, int, int], ...]:
        """Themselves as the core takes them."""
        return (
            three(self.lengths, 1),
            three(self.kernel, 1),
            three(self.stride, 1),
            three(tuple(before for before, _ in self.padding), 0),
            three(self.dilation, 1),
            three(self.counts, 1),
        )


@lru_cache(maxsize=1024)
def windows_of(
    op: str, lengths: Shape, kernel: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, *, up: bool = False
) -> Windows:
    """Return the windows that fit into axes of these lengths; for `up`, also one that begins inside and ends outside.

    Raises
    ------
    ShapeError
        If a window is longer than an axis with its padding.

    Examples
    --------
    >>> from weft._nn.windows import windows_of
    >>> windows_of("nn.max_pool", (5,), 2, 2).counts, windows_of("nn.max_pool", (5,), 2, 2, up=True).counts
    ((2,), (3,))
    """
    count = len(lengths)
    kernel = numbers(op, "kernel", kernel, count)
    stride = numbers(op, "stride", stride, count)
    dilation = numbers(op, "dilation", dilation, count)
    padding = pads(op, padding, count)
    found: list[int] = []
    for length, size, step, (before, after), apart in zip(lengths, kernel, stride, padding, dilation, strict=True):
        room = before + length + after - (size - 1) * apart - 1
        if room < 0:
            spread = f" with dilation {dilation}" if apart > 1 else ""
            raise ShapeError(
                f"{op}: a kernel of {kernel}{spread} is larger than the data of lengths {lengths} with padding {padding}"
            )
        windows = room // step + 1
        # A window beyond the last whole one counts if it begins in the data or before them.
        if up and room % step and windows * step < length + before:
            windows += 1
        found.append(windows)
    return Windows(lengths, kernel, stride, padding, dilation, tuple(found))
