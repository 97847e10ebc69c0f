"""Parts of arrays, and borders around them: splits, slices, crops, padding."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import REQUIRED, Settings, axes, choice, flag, integer, number, optional, shape
from weft._numpy import namespace
from weft.errors import GraphError, ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Lengths, Shapes


def _split_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        at = place(s.axis, len(known))
        length = known[at]
        if length is not None and length % s.num_outputs:
            raise ShapeError(f"axis {s.axis} of data of shape {known} does not divide into {s.num_outputs} parts")
        if s.squeeze_axis and length not in (s.num_outputs, None):
            raise ShapeError(
                f"squeeze_axis asks for parts of length 1, and axis {s.axis} has {length} for {s.num_outputs}"
            )
        each = () if s.squeeze_axis else (None if length is None else length // s.num_outputs,)
        for part in range(len(outs)):
            outs.learn(part, (*known[:at], *each, *known[at + 1 :]))
    outs.alike(outs)
    made = outs[0]
    if made is None:
        return
    if s.squeeze_axis:
        at = place(s.axis, len(made) + 1)
        ins.learn(0, (*made[:at], s.num_outputs, *made[at:]))
    else:
        at = place(s.axis, len(made))
        length = made[at]
        ins.learn(0, (*made[:at], None if length is None else length * s.num_outputs, *made[at + 1 :]))


@operator(
    "SliceChannel",
    "split",
    settings=Settings(num_outputs=(integer, REQUIRED), axis=(integer, 1), squeeze_axis=(flag, False)),
    outputs=lambda s: s.num_outputs,
    shapes=_split_shapes,
    gradient=LINEAR,
)
def _split(s: Any, data: Any) -> Any:
    at = s.axis % data.ndim
    each = data.shape[at] // s.num_outputs
    lead = (slice(None),) * at
    if s.squeeze_axis:
        return tuple(data[(*lead, part)] for part in range(s.num_outputs))
    return tuple(data[(*lead, slice(part * each, (part + 1) * each))] for part in range(s.num_outputs))


def _bounds(s: Any, at: int) -> slice:
    """Return one axis's part, as Python reads it."""
    step = s.step[at] if at < len(s.step) and s.step[at] is not None else 1
    return slice(s.begin[at], s.end[at] if at < len(s.end) else None, step or 1)


def _cut(length: int | None, part: slice) -> int | None:
    return None if length is None else len(range(*part.indices(length)))


def _slice_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if len(s.begin) > len(known):
        raise ShapeError(f"begin={s.begin} is for more axes than data of shape {known} has")
    found = [_cut(each, _bounds(s, at)) if at < len(s.begin) else each for at, each in enumerate(known)]
    outs.learn(0, found)


@operator(
    "slice",
    "crop",
    "_npx_slice",
    "_npi_slice",
    "_sparse_slice",
    settings=Settings(begin=(axes, REQUIRED), end=(axes, REQUIRED), step=(axes, ())),
    shapes=_slice_shapes,
    gradient=LINEAR,
)
def _slice(s: Any, data: Any) -> Any:
    return data[tuple(_bounds(s, at) for at in range(len(s.begin)))]


def _axis_part(s: Any) -> slice:
    return slice(s.begin, s.end)


def _slice_axis_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    at = place(s.axis, len(known))
    outs.learn(0, (*known[:at], _cut(known[at], _axis_part(s)), *known[at + 1 :]))
    made = outs[0]
    if made is not None:
        ins.learn(0, (*made[:at], None, *made[at + 1 :]))


@operator(
    "slice_axis",
    settings=Settings(axis=(integer, REQUIRED), begin=(integer, REQUIRED), end=(optional(integer), None)),
    shapes=_slice_axis_shapes,
    gradient=LINEAR,
)
def _slice_axis(s: Any, data: Any) -> Any:
    return data[(*(slice(None),) * (s.axis % data.ndim), _axis_part(s))]


def _like_lengths(s: Any, known: Lengths, like: Lengths) -> list[int | None]:
    if not s.axes:
        if len(known) != len(like):
            raise ShapeError(f"slice_like without axes takes shapes of one rank, and got {known} and {like}")
        return list(like)
    gone = {place(at, len(known)) for at in s.axes}
    return [like[at] if at in gone else each for at, each in enumerate(known)]


def _slice_like_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known, like = ins[0], ins[1]
    if known is not None and like is not None:
        outs.learn(0, _like_lengths(s, known, like))


@operator(
    "slice_like",
    settings=Settings(axes=(shape, ())),
    inputs=("data", "shape_like"),
    shapes=_slice_like_shapes,
    gradient=LINEAR,
)
def _slice_like(s: Any, data: Any, like: Any) -> Any:
    return data[tuple(slice(0, each) for each in _like_lengths(s, data.shape, like.shape))]


def _crop_inputs(s: Any) -> tuple[str, ...]:
    return ("data",) if s.num_args == 1 else ("data", "crop_like")


def _crop_size(s: Any, like: Lengths | None) -> Lengths:
    return like[2:] if like is not None else s.h_w


def _crop_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    like = ins[1] if len(ins) > 1 else None
    if known is None or (len(ins) > 1 and like is None):
        return
    size = _crop_size(s, like)
    if any(a is not None and b is not None and a > b for a, b in zip(size, known[2:], strict=True)):
        raise ShapeError(f"Crop: {size} is larger than data of shape {known}")
    outs.learn(0, (*known[:2], *size))


@operator(
    "Crop",
    settings=Settings(num_args=(integer, 1), offset=(shape, (0, 0)), h_w=(shape, (0, 0)), center_crop=(flag, False)),
    inputs=_crop_inputs,
    shapes=_crop_shapes,
    gradient=LINEAR,
)
def _crop(s: Any, data: Any, like: Any = None) -> Any:
    height, width = _crop_size(s, None if like is None else like.shape)
    top, left = s.offset
    if s.center_crop:
        top, left = (data.shape[2] - (height or 0)) // 2, (data.shape[3] - (width or 0)) // 2
    return data[:, :, top : top + height, left : left + width]


def _pad_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if any(each < 0 for each in s.pad_width):
        raise GraphError(f"Pad: pad_width={s.pad_width} has lengths of borders, and no length is negative")
    if known is not None:
        if len(s.pad_width) != 2 * len(known):
            raise ShapeError(f"pad_width={s.pad_width} has not two numbers for each axis of data of shape {known}")
        sums = [s.pad_width[2 * at] + s.pad_width[2 * at + 1] for at in range(len(known))]
        outs.learn(0, tuple(None if each is None else each + more for each, more in zip(known, sums, strict=True)))


@operator(
    "Pad",
    "pad",
    settings=Settings(
        mode=(choice("constant", "edge", "reflect"), REQUIRED),
        pad_width=(shape, REQUIRED),
        constant_value=(number, 0.0),
    ),
    shapes=_pad_shapes,
    gradient=LINEAR,
)
def _pad(s: Any, data: Any) -> Any:
    widths = [(s.pad_width[2 * at], s.pad_width[2 * at + 1]) for at in range(data.ndim)]
    options: dict[str, Any] = {"constant_values": s.constant_value} if s.mode == "constant" else {}
    return namespace.pad(data, widths, mode=s.mode, **options)
