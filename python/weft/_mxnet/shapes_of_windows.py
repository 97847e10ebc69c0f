"""Shapes of windowed ops: convolutions and pooling, forwards and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.any_layout import shapes_in_plain, windows_lie
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Shapes


def spread(given: tuple[int, ...] | None, count: int, default: int, name: str) -> tuple[int, ...]:
    """Return one number for each axis.

    Examples
    --------
    >>> from weft._mxnet.shapes_of_windows import spread
    >>> spread((), 2, 1, "stride"), spread((2, 3), 2, 1, "stride")
    ((1, 1), (2, 3))
    """
    if not given:
        return (default,) * count
    if len(given) != count:
        raise GraphError(f"attribute {name!r} is {given}, and there are {count} axes for it")
    return given


def _windows(length: int, kernel: int, stride: int, pads: tuple[int, int], dilate: int, *, full: bool = False) -> int:
    if stride < 1 or kernel < 1 or dilate < 1:
        raise ShapeError(f"kernel {kernel}, stride {stride} and dilation {dilate} are to be at least 1")
    reach = dilate * (kernel - 1) + 1
    room = length + sum(pads) - reach
    if room < 0:
        raise ShapeError(
            f"a window of {reach} elements does not fit into {length} with {pads[0]} and {pads[1]} elements of padding"
        )
    return (-(-room // stride) if full else room // stride) + 1


@shapes_in_plain(windows_lie)
def convolution(s: Any, ins: Shapes, outs: Shapes) -> None:
    """Spread shapes of data (n, c, ...), weight (filters, c / groups, ...), bias (filters)."""
    count = len(s.kernel)
    rank = count + 2
    groups = s.num_group
    ins.learn_rank(0, rank)
    channels = ins.length(0, 1)
    if channels is None and ins.length(1, 1) is not None:
        channels = (ins.length(1, 1) or 0) * groups
        ins.learn(0, (None, channels, *(None,) * count))
    if channels is not None and channels % groups:
        raise ShapeError(f"{channels} channels do not divide into {groups} groups (num_group)")
    if s.num_filter % groups:
        raise ShapeError(f"{s.num_filter} filters do not divide into {groups} groups (num_group)")
    ins.learn(1, (s.num_filter, None if channels is None else channels // groups, *s.kernel))
    if len(ins) > 2:  # data, weight and bias
        ins.learn(2, (s.num_filter,))
    stride, pad = spread(s.stride, count, 1, "stride"), spread(s.pad, count, 0, "pad")
    dilate = spread(s.dilate, count, 1, "dilate")
    found: list[int | None] = []
    for at in range(count):
        length = ins.length(0, at + 2)
        found.append(
            None if length is None else _windows(length, s.kernel[at], stride[at], (pad[at], pad[at]), dilate[at])
        )
    outs.learn(0, (ins.length(0, 0), s.num_filter, *found))
    # Strides of 1 can be gone back; of others only the first axis.
    back: list[int | None] = [None] * count
    for at in range(count):
        length = outs.length(0, at + 2)
        if stride[at] == 1 and length is not None:
            back[at] = length - 1 + dilate[at] * (s.kernel[at] - 1) + 1 - 2 * pad[at]
    ins.learn(0, (outs.length(0, 0), None, *back))


def deconvolution_padding(s: Any, lengths: tuple[int | None, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return padding and the numbers of elements added at the results' ends: attributes, or those that `target_shape` asks for."""
    count = len(s.kernel)
    pad, more = spread(s.pad, count, 0, "pad"), spread(s.adj, count, 0, "adj")
    if not s.target_shape:
        return pad, more
    stride, dilate = spread(s.stride, count, 1, "stride"), spread(s.dilate, count, 1, "dilate")
    target = spread(s.target_shape, count, 1, "target_shape")
    pads: list[int] = []
    adds: list[int] = []
    for at in range(count):
        total = stride[at] * ((lengths[at] or 1) - 1) + dilate[at] * (s.kernel[at] - 1) + 1
        if total < target[at]:
            raise ShapeError(f"target_shape {target} is larger than what there is on axis {at + 2}: {total}")
        total -= target[at]
        adds.append(total % 2)
        pads.append((total + 1) // 2)
    return tuple(pads), tuple(adds)


@shapes_in_plain(windows_lie)
def deconvolution(s: Any, ins: Shapes, outs: Shapes) -> None:
    """Spread shapes of data (n, c, ...), weight (c, filters / groups, ...), bias (filters)."""
    count = len(s.kernel)
    ins.learn_rank(0, count + 2)
    channels = ins.length(0, 1)
    if channels is None:
        channels = ins.length(1, 0)
        ins.learn(0, (None, channels, *(None,) * count))
    if channels is not None and channels % s.num_group:
        raise ShapeError(f"{channels} channels do not divide into {s.num_group} groups (num_group)")
    if s.num_filter % s.num_group:
        raise ShapeError(f"{s.num_filter} filters do not divide into {s.num_group} groups (num_group)")
    ins.learn(1, (channels, s.num_filter // s.num_group, *s.kernel))
    if len(ins) > 2:  # data, weight and bias
        ins.learn(2, (s.num_filter,))
    stride, dilate = spread(s.stride, count, 1, "stride"), spread(s.dilate, count, 1, "dilate")
    lengths = tuple(ins.length(0, at + 2) for at in range(count))
    found: list[int | None] = list(spread(s.target_shape, count, 1, "target_shape")) if s.target_shape else []
    if not found:
        pad, more = deconvolution_padding(s, lengths)
        for at, length in enumerate(lengths):
            reach = dilate[at] * (s.kernel[at] - 1) + 1
            found.append(None if length is None else stride[at] * (length - 1) + reach - 2 * pad[at] + more[at])
    if any(length is not None and length < 1 for length in found):
        raise ShapeError(f"kernel {s.kernel}, stride {stride} and padding leave nothing of data of shape {ins[0]}")
    outs.learn(0, (ins.length(0, 0), s.num_filter, *found))
    ins.learn(0, (outs.length(0, 0), None, *(None,) * count))


def padding_of(s: Any, count: int) -> tuple[int, ...]:
    """Return the padding of each axis that pooling is told; the convention ``same`` takes none, however many zeros are given.

    Raises
    ------
    ShapeError
        If there is padding beside that convention.
    """
    if s.pooling_convention != "same":
        return spread(s.pad, count, 0, "pad")
    if any(s.pad):
        raise ShapeError(f"pad={s.pad} contradicts pooling_convention 'same', which says what the padding is")
    return (0,) * count


def pooled(s: Any, lengths: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """Return the lengths that pooling leaves."""
    count = len(lengths)
    if s.global_pool:
        return (1,) * count
    kernel = spread(s.kernel, count, 1, "kernel")
    if not s.kernel:
        raise GraphError("op 'Pooling' needs the attribute kernel, or global_pool")
    stride, pad = spread(s.stride, count, 1, "stride"), padding_of(s, count)
    if s.pooling_convention == "same":
        return tuple(None if each is None else -(-each // step) for each, step in zip(lengths, stride, strict=True))
    full = s.pooling_convention == "full"
    for at in range(count):
        if pad[at] >= kernel[at]:
            raise ShapeError(f"padding {pad[at]} is not smaller than the kernel {kernel[at]}")
    return tuple(
        None if each is None else _windows(each, kernel[at], stride[at], (pad[at], pad[at]), 1, full=full)
        for at, each in enumerate(lengths)
    )


@shapes_in_plain(windows_lie)
def pooling(s: Any, ins: Shapes, outs: Shapes) -> None:
    """Spread shapes of data (n, c, ...)."""
    if not s.global_pool and s.kernel:
        ins.learn_rank(0, len(s.kernel) + 2)
    shape = ins[0]
    if shape is None:
        return
    if len(shape) < 3:  # batch, channels and one more
        raise ShapeError(f"pooling takes data (n, c, ...) with 1 to 3 axes more, and got {shape}")
    outs.learn(0, (*shape[:2], *pooled(s, shape[2:])))
    found = outs[0]
    assert found is not None
    ins.learn(0, (*found[:2], *(None,) * (len(shape) - 2)))
