"""Parts of arrays, and arrays of parts: slices, joins, repetitions, padding."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import weft
from weft._mxnet.gradients import LINEAR, NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, axes, choice, dtype, flag, integer, number, optional, shape
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.known import Dtypes, Lengths, Shapes

__all__: list[str] = []


def _place(axis: int, rank: int) -> int:
    if not -rank <= axis < rank:
        raise ShapeError(f"there is no axis {axis} in data of {rank} axes")
    return axis % rank


def _several(s: Any) -> tuple[str, ...] | None:
    return None if s.num_args is None else tuple(f"arg{at}" for at in range(s.num_args))


def _join_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = [each for each in (*ins, outs[0]) if each is not None]
    if not known:
        return
    rank = len(known[0])
    at = _place(s.dim, rank)
    for each in range(len(ins)):
        ins.learn_rank(each, rank)
    outs.learn_rank(0, rank)

    def others(shape_: Lengths | None) -> Lengths:
        return tuple(None if axis == at else each for axis, each in enumerate(shape_ or ()))

    for _ in range(2):
        for each in range(len(ins)):
            outs.learn(0, others(ins[each]))
        for each in range(len(ins)):
            ins.learn(each, others(outs[0]))
    lengths = [ins.length(each, at) for each in range(len(ins))]
    total = outs.length(0, at)
    unknown = [each for each, length in enumerate(lengths) if length is None]
    known_sum = sum(each or 0 for each in lengths)
    if not unknown:
        outs.learn(0, tuple(known_sum if axis == at else None for axis in range(rank)))
    elif len(unknown) == 1 and total is not None:
        ins.learn(unknown[0], tuple(total - known_sum if axis == at else None for axis in range(rank)))


@operator(
    "Concat",
    "concat",
    "_sparse_concat",
    settings=Settings(num_args=(integer, None), dim=(integer, 1)),
    inputs=_several,
    shapes=_join_shapes,
    gradient=LINEAR,
)
def _concat(s: Any, *arrays: Any) -> Any:
    return weft.concat(arrays, axis=s.dim)


@operator(
    "_npi_concatenate",
    settings=Settings(num_args=(integer, None), axis=(integer, 0)),
    inputs=_several,
    shapes=lambda s, ins, outs: _join_shapes(_Along(s.axis), ins, outs),
    gradient=LINEAR,
)
def _concatenate(s: Any, *arrays: Any) -> Any:
    return weft.concat(arrays, axis=s.axis)


@operator(
    "_rnn_param_concat",
    "_npi_rnn_param_concat",
    settings=Settings(num_args=(integer, None), dim=(integer, 0)),
    inputs=_several,
    shapes=_join_shapes,
    gradient=LINEAR,
)
def _parameters(s: Any, *arrays: Any) -> Any:
    return weft.concat(arrays, axis=s.dim)


class _Along:
    """Settings of a join whose axis has another name."""

    def __init__(self, axis: int) -> None:
        self.dim = axis


def _stack_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, None, [])
    known = ins[0]
    if known is not None:
        at = _place(s.axis, len(known) + 1)
        outs.learn(0, (*known[:at], len(ins), *known[at:]))


@operator(
    "stack",
    "_npi_stack",
    settings=Settings(axis=(integer, 0), num_args=(integer, None)),
    inputs=_several,
    shapes=_stack_shapes,
    gradient=LINEAR,
)
def _stack(s: Any, *arrays: Any) -> Any:
    return weft.stack(arrays, axis=s.axis)


def _split_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        at = _place(s.axis, len(known))
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
    if made is not None and not s.squeeze_axis:
        at = _place(s.axis, len(made))
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
    at = _place(s.axis, len(known))
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
    gone = {_place(at, len(known)) for at in s.axes}
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
    return weft.pad(data, widths, mode=s.mode, **options)


def _tile_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        rank = max(len(known), len(s.reps))
        lengths = (1,) * (rank - len(known)) + known
        times = (1,) * (rank - len(s.reps)) + s.reps
        outs.learn(0, tuple(None if each is None else each * by for each, by in zip(lengths, times, strict=True)))


@operator("tile", "_npi_tile", settings=Settings(reps=(shape, REQUIRED)), shapes=_tile_shapes, gradient=LINEAR)
def _tile(s: Any, data: Any) -> Any:
    return weft.tile(data, s.reps)


def _repeat_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if s.axis is None:
        total: int | None = s.repeats
        for each in known:
            total = None if total is None or each is None else total * each
        outs.learn(0, (total,))
        return
    at = _place(s.axis, len(known))
    length = known[at]
    outs.learn(0, (*known[:at], None if length is None else length * s.repeats, *known[at + 1 :]))


@operator(
    "repeat",
    "_np_repeat",
    settings=Settings(repeats=(integer, REQUIRED), axis=(optional(integer), None)),
    shapes=_repeat_shapes,
    gradient=LINEAR,
)
def _repeat(s: Any, data: Any) -> Any:
    return weft.repeat(data, s.repeats, axis=s.axis)


@operator("reverse", "flip", "_npi_flip", settings=Settings(axis=(shape, REQUIRED)), gradient=LINEAR)
def _reverse(s: Any, data: Any) -> Any:
    return weft.flip(data, axis=s.axis)


def _to_lengths(s: Any, known: Lengths) -> list[Any]:
    if len(known) != len(s.shape):
        raise ShapeError(f"broadcast_to shape={s.shape} takes as many axes as data of shape {known} has")
    return [each or own for own, each in zip(known, s.shape, strict=True)]


def _to_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, _to_lengths(s, known))


@operator("broadcast_to", settings=Settings(shape=(shape, ())), shapes=_to_shapes, gradient=LINEAR)
def _broadcast_to(s: Any, data: Any) -> Any:
    return weft.broadcast_to(data, tuple(_to_lengths(s, data.shape)))


def _along_lengths(s: Any, known: Lengths) -> list[Any]:
    found: list[Any] = list(known)
    for axis, size in zip(s.axis, s.size, strict=True):
        at = _place(axis, len(known))
        if known[at] not in (1, None):
            raise ShapeError(f"broadcast_axis: axis {axis} of data of shape {known} is not of length 1")
        found[at] = size
    return found


def _along_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, _along_lengths(s, known))


@operator(
    "broadcast_axis",
    "broadcast_axes",
    settings=Settings(axis=(shape, ()), size=(shape, ())),
    shapes=_along_shapes,
    gradient=LINEAR,
)
def _broadcast_axis(s: Any, data: Any) -> Any:
    return weft.broadcast_to(data, tuple(_along_lengths(s, data.shape)))


def _second_shape(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs, [1], [0])


@operator(
    "broadcast_like",
    settings=Settings(("lhs_axes", "rhs_axes")),
    inputs=("lhs", "rhs"),
    shapes=_second_shape,
    gradient=LINEAR,
)
def _broadcast_like(s: Any, data: Any, like: Any) -> Any:
    del s
    return weft.broadcast_to(data, like.shape)


def _take_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known, at = ins[0], ins[1]
    if known is not None and at is not None:
        axis = _place(s.axis, len(known))
        outs.learn(0, (*known[:axis], *at, *known[axis + 1 :]))


def _numbers_apart(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s
    ins.alike(outs, [0], [0])
    ins.alike(outs, [0, 1], [])


@operator(
    "take",
    "_npi_take",
    settings=Settings(axis=(integer, 0), mode=(choice("clip", "wrap", "raise"), "clip")),
    inputs=("a", "indices"),
    shapes=_take_shapes,
    dtypes=_numbers_apart,
)
def _take(s: Any, data: Any, indices: Any) -> Any:
    length = data.shape[s.axis]
    rows = weft.astype(indices, "int64")
    rows = rows % length if s.mode == "wrap" else weft.clip(rows, 0, length - 1)
    return weft.take(data, rows, axis=s.axis)


def _pick_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    at = _place(s.axis, len(known))
    rest = (*known[:at], *known[at + 1 :])
    kept = (*known[:at], 1, *known[at + 1 :])
    outs.learn(0, kept if s.keepdims else rest)
    index = ins[1]
    if index is None or len(index) == len(rest):
        ins.learn(1, rest)
    else:
        ins.learn(1, kept)


@operator(
    "pick",
    "_npx_pick",
    settings=Settings(("mode",), axis=(integer, -1), keepdims=(flag, False)),
    inputs=("data", "index"),
    shapes=_pick_shapes,
    dtypes=_numbers_apart,
)
def _pick(s: Any, data: Any, index: Any) -> Any:
    at = s.axis % data.ndim
    shape_ = (*data.shape[:at], 1, *data.shape[at + 1 :])
    rows = weft.clip(weft.astype(index, "int64"), 0, data.shape[at] - 1).reshape(shape_)
    found = weft.take_along_axis(data, rows, axis=at)
    return found if s.keepdims else found.reshape((*data.shape[:at], *data.shape[at + 1 :]))


def _hot_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is not None:
        outs.learn(0, (*known, s.depth))


def _own_dtype(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del ins
    outs.learn(0, s.dtype)


@operator(
    "one_hot",
    "_npx_one_hot",
    settings=Settings(
        depth=(integer, REQUIRED), on_value=(number, 1.0), off_value=(number, 0.0), dtype=(dtype, "float32")
    ),
    inputs=("indices",),
    shapes=_hot_shapes,
    dtypes=_own_dtype,
    gradient=NONE,
)
def _one_hot(s: Any, data: Any) -> Any:
    hit = weft.expand_dims(weft.astype(data, "int64"), -1) == weft.arange(s.depth, engine=data.engine)
    kind = weft.ops.as_dtype(s.dtype)
    return weft.astype(weft.astype(hit, kind) * (s.on_value - s.off_value) + s.off_value, kind)


def _given_shape(s: Any, ins: Shapes, outs: Shapes) -> None:
    del ins
    outs.learn(0, tuple(each or None for each in s.shape) if s.shape else None)


_MADE = {"shape": (shape, ()), "dtype": (dtype, "float32")}


def _register_made() -> None:
    for name, value in (("_zeros", 0), ("_ones", 1)):
        operator(
            name,
            f"_npi{name}",
            settings=Settings(("ctx",), **_MADE),
            inputs=(),
            shapes=_given_shape,
            dtypes=_own_dtype,
            gradient=NONE,
        )(lambda s, value=value: weft.full(s.shape, value, dtype=s.dtype))
    operator(
        "_full",
        "_npi_full",
        settings=Settings(("ctx",), **_MADE, value=(number, REQUIRED)),
        inputs=(),
        shapes=_given_shape,
        dtypes=_own_dtype,
        gradient=NONE,
    )(lambda s: weft.full(s.shape, s.value, dtype=s.dtype))


_register_made()


def _count(s: Any) -> int:
    start, stop = (0.0, s.start) if s.stop is None else (s.start, s.stop)
    count: int = max(0, math.ceil((stop - start) / s.step)) * s.repeat
    return count


@operator(
    "_arange",
    "_npi_arange",
    settings=Settings(
        ("ctx", "infer_range"),
        start=(number, 0.0),
        stop=(optional(number), None),
        step=(number, 1.0),
        repeat=(integer, 1),
        dtype=(dtype, "float32"),
    ),
    inputs=(),
    shapes=lambda s, ins, outs: outs.learn(0, (_count(s),)),
    dtypes=_own_dtype,
    gradient=NONE,
)
def _arange(s: Any) -> Any:
    start = 0.0 if s.stop is None else s.start
    found = start + weft.arange(_count(s) // s.repeat, dtype="float64") * s.step
    return weft.astype(weft.repeat(found, s.repeat) if s.repeat > 1 else found, s.dtype)
