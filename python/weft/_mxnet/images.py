"""Pictures before a network sees them: rows, columns and channels last become channels first; parts, sizes, mirrors."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import REQUIRED, Settings, integer, numbers
from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Lengths, Shapes

#: Axes of one picture; several have one more.
_ONE = 3
#: The largest value of a byte.
_WHITE = 255.0


def _pictures(op: str, known: Lengths | None) -> Lengths | None:
    if known is not None and len(known) not in {_ONE, _ONE + 1}:
        raise ShapeError(f"{op}: a picture has three axes, several have four, and the shape is {known}")
    return known


def _tensor_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = _pictures("to_tensor", ins[0])
    if known is not None:
        outs.learn(0, (*known[:-3], known[-1], known[-3], known[-2]))


def _single(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    del s, ins
    outs.learn(0, "float32")


@operator("_image_to_tensor", "_npx__image_to_tensor", shapes=_tensor_shapes, dtypes=_single)
def _to_tensor(s: Any, data: Any) -> Any:
    del s
    return namespace.moveaxis(namespace.astype(data, "float32") / _WHITE, -1, -3)


def _same_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs)
    _pictures("a function of pictures", ins[0])


def _by_channel(given: tuple[float, ...], data: Any) -> Any:
    channels = data.shape[-3]
    if len(given) not in {1, channels} and not (len(given) > channels and len(set(given)) == 1):
        raise ShapeError(f"normalize: {len(given)} numbers were given, and there are {channels} channels")
    found = np.broadcast_to(np.array(given[:channels], data.dtype), channels).reshape((channels, 1, 1))
    return namespace.asarray(found, engine=data.engine)


@operator(
    "_image_normalize",
    "_npx__image_normalize",
    settings=Settings(mean=(numbers, (0.0,) * 4), std=(numbers, (1.0,) * 4)),
    shapes=_same_shapes,
)
def _normalize(s: Any, data: Any) -> Any:
    return (data - _by_channel(s.mean, data)) / _by_channel(s.std, data)


def _crop_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = _pictures("crop", ins[0])
    if known is None:
        return
    for first, size, length in ((s.y, s.height, known[-3]), (s.x, s.width, known[-2])):
        if length is not None and not 0 <= first <= first + size <= length:
            raise ShapeError(f"crop: {size} from {first} on are not among {length}")
    outs.learn(0, (*known[:-3], s.height, s.width, known[-1]))


@operator(
    "_image_crop",
    "_npx__image_crop",
    settings=Settings(
        x=(integer, REQUIRED), y=(integer, REQUIRED), width=(integer, REQUIRED), height=(integer, REQUIRED)
    ),
    shapes=_crop_shapes,
)
def _crop(s: Any, data: Any) -> Any:
    return data[..., s.y : s.y + s.height, s.x : s.x + s.width, :]


for _name, _axis in (("left_right", -2), ("top_bottom", -3)):
    operator(f"_image_flip_{_name}", f"_npx__image_flip_{_name}", shapes=_same_shapes, gradient=NONE)(
        lambda s, data, axis=_axis: namespace.flip(data, axis=axis)
    )
