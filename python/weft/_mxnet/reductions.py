"""Reductions, and products of matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._mxnet import layouts
from weft._mxnet.gradients import LINEAR, NONE
from weft._mxnet.operator import operator
from weft._mxnet.settings import Settings, dtype, flag, integer, optional, shape
from weft._numpy import namespace
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._mxnet.partial_shapes import Dtypes, Lengths, Shapes

_AXES = Settings(("safe_accumulation",), axis=(optional(shape), None), keepdims=(flag, False), exclude=(flag, False))
_AXES_NEW = Settings(
    (),
    axis=(optional(shape), None),
    keepdims=(flag, False),
    dtype=(optional(dtype), None),
    initial=(optional(integer), None),
)


def _gone(s: Any, rank: int) -> tuple[int, ...]:
    """Return the axes that a reduction takes away."""
    given = tuple(sorted({each % rank if -rank <= each < rank else rank for each in s.axis or ()}))
    if rank in given:
        raise ShapeError(f"axis={s.axis} names an axis that data of {rank} axes has not")
    if not given:
        return tuple(range(rank))
    return tuple(at for at in range(rank) if at not in given) if getattr(s, "exclude", False) else given


def _reduced(known: Lengths, gone: tuple[int, ...], *, keepdims: bool, scalar: Lengths) -> Lengths:
    if keepdims:
        return tuple(1 if at in gone else each for at, each in enumerate(known))
    return tuple(each for at, each in enumerate(known) if at not in gone) or scalar


def _shapes(scalar: Lengths) -> Callable[[Any, Shapes, Shapes], None]:
    def rule(s: Any, ins: Shapes, outs: Shapes) -> None:
        known = ins[0]
        if known is not None:
            gone = _gone(s, len(known))
            outs.learn(0, _reduced(known, gone, keepdims=s.keepdims, scalar=scalar))
            made = outs[0]
            if s.keepdims and made is not None:
                ins.learn(0, tuple(None if at in gone else each for at, each in enumerate(made)))

    return rule


def _apply(function: Any, scalar: tuple[int, ...]) -> Any:
    def apply(s: Any, data: Any) -> Any:
        gone = _gone(s, data.ndim)
        found = function(data, axis=gone, keepdims=s.keepdims)
        found = found if found.dtype == data.dtype else namespace.astype(found, data.dtype)
        return found.reshape(scalar) if not found.ndim and scalar else found

    return apply


def _register() -> None:
    kinds: dict[str, tuple[Any, tuple[str, ...]]] = {
        "sum": (namespace.sum, ("sum_axis", "_sparse_sum")),
        "mean": (namespace.mean, ("_sparse_mean",)),
        "prod": (namespace.prod, ()),
        "max": (namespace.max, ("max_axis",)),
        "min": (namespace.min, ("min_axis",)),
        "nansum": (namespace.nansum, ()),
        "nanprod": (namespace.nanprod, ()),
    }
    for name, (function, aliases) in kinds.items():
        gradient = LINEAR if name in {"sum", "mean"} else None
        operator(name, *aliases, settings=_AXES, shapes=_shapes((1,)), gradient=gradient, layout="reduce")(
            _apply(function, (1,))
        )
        if name not in {"nansum", "nanprod"}:
            new = ("_npi_mean",) if name == "mean" else (f"_np_{name}", f"_npi_{name}")
            operator(new[0], *new[1:], settings=_AXES_NEW, shapes=_shapes(()), gradient=gradient, layout="reduce")(
                _apply(function, ())
            )


_register()


def _length(data: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    return namespace.sqrt(namespace.sum(namespace.square(data), axis=axis, keepdims=keepdims))


def _size(data: Any, *, axis: tuple[int, ...], keepdims: bool) -> Any:
    return namespace.sum(abs(data), axis=axis, keepdims=keepdims)


def _norm_dtypes(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    if s.out_dtype is None:
        ins.alike(outs)
    else:
        outs.learn(0, s.out_dtype)


@operator(
    "norm",
    settings=Settings(
        ord=(integer, 2), axis=(optional(shape), None), keepdims=(flag, False), out_dtype=(optional(dtype), None)
    ),
    shapes=_shapes((1,)),
    dtypes=_norm_dtypes,
)
def _norm(s: Any, data: Any) -> Any:
    data = data if s.out_dtype is None else namespace.astype(data, s.out_dtype)
    return _apply(_size if s.ord == 1 else _length, (1,))(s, data)


def _arg_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if s.axis is None:
        outs.learn(0, (1,))
        return
    if not -len(known) <= s.axis < len(known):
        raise ShapeError(f"there is no axis {s.axis} in data of shape {known}")
    outs.learn(0, _reduced(known, (s.axis % len(known),), keepdims=s.keepdims, scalar=(1,)))


def _register_arg() -> None:
    settings = Settings((), axis=(optional(integer), None), keepdims=(flag, False))
    for name, function in (("argmax", namespace.argmax), ("argmin", namespace.argmin)):

        def apply(s: Any, data: Any, *, function: Any = function) -> Any:
            found = namespace.astype(
                function(data, axis=s.axis, keepdims=s.keepdims and s.axis is not None), data.dtype
            )
            return found if found.ndim else found.reshape((1,))

        operator(name, settings=settings, shapes=_arg_shapes, gradient=NONE)(apply)


_register_arg()


def _channel_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    outs.learn(0, None if known is None else known[:1] + known[2:])


@operator(
    "argmax_channel",
    shapes=_channel_shapes,
    gradient=NONE,
)
def _argmax_channel(s: Any, data: Any) -> Any:
    del s
    return namespace.astype(namespace.argmax(data, axis=1), data.dtype)


_TRANSPOSED = Settings(("forward_stype",), transpose_a=(flag, False), transpose_b=(flag, False))


def _dot_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    one, other = ins[0], ins[1]
    if one is None or other is None:
        return
    left = one[1:] if s.transpose_a else one[:-1]
    right = other[:-1] if s.transpose_b else other[1:]
    a = one[0] if s.transpose_a else one[-1]
    b = other[-1] if s.transpose_b else other[0]
    if a is not None and b is not None and a != b:
        raise ShapeError(f"dot: {a} columns of data of shape {one} do not fit {b} rows of one of shape {other}")
    outs.learn(0, (*left, *right) or (1,))


@operator(
    "dot", "_np_dot", "_sparse_dot", settings=_TRANSPOSED, inputs=("lhs", "rhs"), shapes=_dot_shapes, layout=layouts.dot
)
def _dot(s: Any, one: Any, other: Any) -> Any:
    if s.transpose_a:
        one = namespace.permute_dims(one, (*range(1, one.ndim), 0))
    if s.transpose_b:
        other = namespace.permute_dims(other, (other.ndim - 1, *range(other.ndim - 1)))
    found = namespace.tensordot(one, other, axes=1)
    return found if found.ndim else found.reshape((1,))


def _batch_dot_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    one, other = ins[0], ins[1]
    if one is None or other is None:
        return
    if len(one) < 2 or len(other) < 2:  # rows and columns
        raise ShapeError(f"batch_dot takes batches of matrices, and got data of shapes {one} and {other}")
    rows, inner = (one[-1], one[-2]) if s.transpose_a else (one[-2], one[-1])
    wide, columns = (other[-1], other[-2]) if s.transpose_b else (other[-2], other[-1])
    if inner is not None and wide is not None and inner != wide:
        raise ShapeError(f"batch_dot: shapes {one} and {other} do not fit")
    outs.learn(0, (*one[:-2], rows, columns))


@operator(
    "batch_dot",
    "_npx_batch_dot",
    settings=_TRANSPOSED,
    inputs=("lhs", "rhs"),
    shapes=_batch_dot_shapes,
    layout=layouts.batch_dot,
)
def _batch_dot(s: Any, one: Any, other: Any) -> Any:
    one = namespace.matrix_transpose(one) if s.transpose_a else one
    return one @ (namespace.matrix_transpose(other) if s.transpose_b else other)


def _matrices(s: Any) -> tuple[str, ...] | None:
    return None if s.num_args is None else tuple(f"arg{at}" for at in range(s.num_args))


def _column_products_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    rows: int | None = 1
    columns = outs.length(0, 1)
    for at in range(len(ins)):
        ins.learn_rank(at, 2)
        columns = ins.length(at, 1) if columns is None else columns
    for at in range(len(ins)):
        ins.learn(at, (None, columns))
        length = ins.length(at, 0)
        rows = None if rows is None or length is None else rows * length
    outs.learn(0, (rows, columns))


@operator("khatri_rao", settings=Settings(num_args=(integer, None)), inputs=_matrices, shapes=_column_products_shapes)
def _khatri_rao(s: Any, *arrays: Any) -> Any:
    """Return the products of all elements of a column, one of each matrix; the last matrix's rows go fastest."""
    del s
    found = arrays[0]
    for each in arrays[1:]:
        pairs = namespace.expand_dims(found, axis=1) * namespace.expand_dims(each, axis=0)
        found = pairs.reshape((-1, each.shape[1]))
    return found
