"""Numbers in eight bits: into them by a range of real ones, and back."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet.gradients import NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, choice, number, optional
from weft._numpy import namespace
from weft.errors import GraphError

if TYPE_CHECKING:
    from weft._mxnet.partial_shapes import Dtypes, Shapes

_SIGNED, _UNSIGNED = 127.0, 255.0  # the largest numbers: -128 stands for nothing
_RANGES = ("output", "min_output", "max_output")


def _quantised_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs, [0], [0])
    for shapes in (ins, outs):
        for at in range(1, len(shapes)):
            shapes.learn(at, (1,))


def _quantised_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    outs.learn(0, _kind(s))
    for dtypes in (ins, outs):
        for at in range(1, len(dtypes)):
            dtypes.learn(at, "float32")


def _kind(s: Any) -> str:
    """Return the dtype in eight bits: signed numbers by themselves where a range has negative ones."""
    if s.out_type != "auto":
        return str(s.out_type)
    if s.min_calib_range is None:
        raise GraphError("_contrib_quantize_v2: out_type='auto' looks at min_calib_range, and there is none")
    return "uint8" if s.min_calib_range >= 0 else "int8"


def _widest(low: Any, high: Any) -> Any:
    return namespace.maximum(abs(low), abs(high))


def _quantised(kind: str, data: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Return data in eight bits, and the range that these stand for; what lies outside is the nearest end."""
    if kind == "uint8":
        scaled = namespace.clip((data - low) * (_UNSIGNED / (high - low)) + 0.5, 0.0, _UNSIGNED)
        return namespace.astype(scaled, kind), low, high
    wide = _widest(low, high)
    scaled = namespace.minimum(abs(data) * (_SIGNED / wide) + 0.5, _SIGNED)
    return namespace.astype(namespace.sign(data) * namespace.floor(scaled), kind), -wide, wide


@operator(
    "_contrib_quantize",
    settings=Settings(out_type=(choice("int8", "uint8"), "uint8")),
    inputs=("data", "min_range", "max_range"),
    outputs=3,
    output_names=_RANGES,
    shapes=_quantised_shapes,
    dtypes=_quantised_dtypes,
    gradient=NONE,
)
def _quantize(s: Any, data: Any, low: Any, high: Any) -> Any:
    return _quantised(s.out_type, data, low, high)


@operator(
    "_contrib_quantize_v2",
    settings=Settings(
        out_type=(choice("auto", "int8", "uint8"), "int8"),
        min_calib_range=(optional(number), None),
        max_calib_range=(optional(number), None),
    ),
    outputs=3,
    output_names=_RANGES,
    shapes=_quantised_shapes,
    dtypes=_quantised_dtypes,
    gradient=NONE,
)
def _quantize_v2(s: Any, data: Any) -> Any:
    if s.min_calib_range is None or s.max_calib_range is None:  # the data's own range
        low, high = (reduce(data).reshape((1,)) for reduce in (namespace.min, namespace.max))
    else:
        ends = s.min_calib_range, s.max_calib_range
        low, high = (namespace.full((1,), each, dtype="float32", engine=data.engine) for each in ends)
    return _quantised(_kind(s), data, low, high)


def _real_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    for at in range(1, len(ins)):
        ins.learn(at, "float32")
    outs.learn(0, s.out_type)


@operator(
    "_contrib_dequantize",
    settings=Settings(out_type=(choice("float32"), "float32")),
    inputs=("data", "min_range", "max_range"),
    shapes=_quantised_shapes,
    dtypes=_real_dtypes,
    gradient=NONE,
)
def _dequantize(s: Any, data: Any, low: Any, high: Any) -> Any:
    if data.dtype not in ("int8", "uint8"):
        raise GraphError(f"_contrib_dequantize takes int8 and uint8, not {data.dtype}")
    real = namespace.astype(data, s.out_type)
    if data.dtype == "uint8":
        return real * ((high - low) / _UNSIGNED) + low
    return real * (_widest(low, high) / _SIGNED)
