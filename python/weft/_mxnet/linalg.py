"""Linear algebra on the last two axes: products, factors of matrices, determinants, triangles packed into vectors."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# Rows of tables are functions of arrays and symbols alike.

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._mxnet.gradients import LINEAR
from weft._mxnet.operator import operator
from weft._mxnet.partial_shapes import place
from weft._mxnet.settings import Settings, flag, integer, number
from weft._numpy import namespace
from weft._ops import linalg
from weft._ops.manipulation import matrix_transpose
from weft._tape.leaves import stop_gradient
from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._mxnet.operator import Operator
    from weft._mxnet.partial_shapes import Lengths, Shapes

_MATRIX = ("A",)
_TWO = ("A", "B")


def _op(name: str, **rules: Any) -> Callable[[Callable[..., Any]], Operator]:
    """Register an op under both names that MXNet has for it."""
    return operator(f"_linalg_{name}", f"linalg_{name}", **rules)


def _turned(x: Any, is_turned: bool) -> Any:
    return matrix_transpose(x) if is_turned else x


def _half(x: Any, is_lower: bool) -> Any:
    """Return a triangle of matrices, zeros being elsewhere."""
    return namespace.tril(x) if is_lower else namespace.triu(x)


def _square(op: str, known: Lengths | None) -> Lengths | None:
    """Return the shape of square matrices.

    Raises
    ------
    ShapeError
        If it is that of none.
    """
    if known is None:
        return None
    if len(known) < 2 or (known[-1] is not None and known[-2] is not None and known[-1] != known[-2]):
        raise ShapeError(f"{op}: square matrices are taken, and their shape is {known}")
    return known


# Products


def _product_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    a, b = ins[0], ins[1]
    if a is not None and b is not None:
        if len(a) != len(b) or len(a) < 2:
            raise ShapeError(f"gemm: matrices of as many axes are taken, and their shapes are {a} and {b}")
        at = place(s.axis, len(a))
        if at == len(a) - 1:
            raise ShapeError(f"gemm: rows lie along another axis than the last, and axis={s.axis} was given")
        rows, inner = (a[-1], a[at]) if s.transpose_a else (a[at], a[-1])
        other, columns = (b[-1], b[at]) if s.transpose_b else (b[at], b[-1])
        if inner is not None and other is not None and inner != other:
            raise ShapeError(f"gemm: {a} and {b} do not fit: {inner} columns and {other} rows")
        rest = [
            (one, two) for place_, (one, two) in enumerate(zip(a, b, strict=True)) if place_ not in {at, len(a) - 1}
        ]
        if any(one is not None and two is not None and one != two for one, two in rest):
            raise ShapeError(f"gemm: all axes but those of rows and columns are alike, and the shapes are {a} and {b}")
        lead = [one if two is None else two for one, two in zip(a, b, strict=True)]
        lead[at], lead[-1] = rows, columns
        outs.learn(0, lead)
    if len(ins) == 3:
        ins.learn(2, outs[0])
        outs.learn(0, ins[2])


def _product(s: Any, a: Any, b: Any) -> Any:
    at = place(s.axis, a.ndim)
    a, b = (namespace.moveaxis(each, at, -2) for each in (a, b))
    found = _turned(a, s.transpose_a) @ _turned(b, s.transpose_b)
    return namespace.moveaxis(found if s.alpha == 1 else found * s.alpha, -2, at)


_TURNS: dict[str, Any] = {"transpose_a": (flag, False), "transpose_b": (flag, False), "alpha": (number, 1.0)}


@_op("gemm2", settings=Settings(**_TURNS, axis=(integer, -2)), inputs=_TWO, shapes=_product_shapes)
def _gemm2(s: Any, a: Any, b: Any) -> Any:
    return _product(s, a, b)


@_op(
    "gemm",
    settings=Settings(**_TURNS, beta=(number, 1.0), axis=(integer, -2)),
    inputs=("A", "B", "C"),
    shapes=_product_shapes,
)
def _gemm(s: Any, a: Any, b: Any, c: Any) -> Any:
    return _product(s, a, b) + (c if s.beta == 1 else c * s.beta)


def _own_product_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known is None:
        return
    if len(known) < 2:
        raise ShapeError(f"syrk: matrices are taken, and their shape is {known}")
    side = known[-1] if s.transpose else known[-2]
    outs.learn(0, (*known[:-2], side, side))


@_op(
    "syrk",
    settings=Settings(transpose=(flag, False), alpha=(number, 1.0)),
    inputs=_MATRIX,
    shapes=_own_product_shapes,
)
def _syrk(s: Any, a: Any) -> Any:
    return _turned(a, s.transpose) @ _turned(a, not s.transpose) * s.alpha


_TRIANGLE: dict[str, Any] = {
    "transpose": (flag, False),
    "rightside": (flag, False),
    "lower": (flag, True),
    "alpha": (number, 1.0),
}


def _triangle_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    ins.alike(outs, [1], [0])
    other = _square("trmm and trsm", ins[0])
    known = ins[1]
    if other is not None and known is not None:
        side = known[-1] if s.rightside else known[-2]
        ins.learn(0, (*known[:-2], side, side))


@_op("trmm", settings=Settings(**_TRIANGLE), inputs=_TWO, shapes=_triangle_shapes)
def _trmm(s: Any, a: Any, b: Any) -> Any:
    half = _turned(_half(a, s.lower), s.transpose)
    return (b @ half if s.rightside else half @ b) * s.alpha


@_op("trsm", settings=Settings(**_TRIANGLE), inputs=_TWO, shapes=_triangle_shapes)
def _trsm(s: Any, a: Any, b: Any) -> Any:
    half = _turned(_half(a, s.lower), s.transpose)
    if s.rightside:  # x a = b is a' x' = b'
        return _turned(linalg.solve(_turned(half, True), _turned(b, True)), True) * s.alpha
    return linalg.solve(half, b) * s.alpha


# Factors


def _square_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    ins.alike(outs)
    _square("a factor, or an inverse", ins[0])


_LOWER = Settings(lower=(flag, True))


@_op("potrf", settings=_LOWER, inputs=_MATRIX, shapes=_square_shapes)
def _potrf(s: Any, a: Any) -> Any:
    return linalg.cholesky(a) if s.lower else _turned(linalg.cholesky(_turned(a, True)), True)


@_op("potri", settings=_LOWER, inputs=_MATRIX, shapes=_square_shapes)
def _potri(s: Any, a: Any) -> Any:
    half = linalg.inv(_half(a, s.lower))
    return _turned(half, True) @ half if s.lower else half @ _turned(half, True)


def _wide_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = ins[0]
    if known is None:
        return
    if len(known) < 2 or (None not in known[-2:] and known[-2] > known[-1]):  # type: ignore[operator]
        raise ShapeError(f"gelqf: matrices of as many columns as rows, or more, are taken, and their shape is {known}")
    outs.learn(0, known)
    outs.learn(1, (*known[:-1], known[-2]))


@_op("gelqf", inputs=_MATRIX, outputs=2, shapes=_wide_shapes)
def _gelqf(s: Any, a: Any) -> Any:
    del s
    found = linalg.qr(_turned(a, True))
    return _turned(found.Q, True), _turned(found.R, True)


def _eigen_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = _square("syevd", ins[0])
    if known is not None:
        outs.learn(0, known)
        outs.learn(1, known[:-1])


@_op("syevd", inputs=_MATRIX, outputs=2, shapes=_eigen_shapes)
def _syevd(s: Any, a: Any) -> Any:
    """Return eigenvectors as rows, the largest component of each being positive, and eigenvalues."""
    del s
    found = linalg.eigh(a)
    rows = _turned(found.eigenvectors, True)
    largest = namespace.argmax(abs(rows), axis=-1)[..., None]
    signs = namespace.where(namespace.take_along_axis(rows, largest, axis=-1) < 0, -1.0, 1.0)
    return rows * stop_gradient(namespace.astype(signs, rows.dtype)), found.eigenvalues


@_op("inverse", inputs=_MATRIX, shapes=_square_shapes)
def _inverse(s: Any, a: Any) -> Any:
    del s
    return linalg.inv(a)


def _numbers_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    del s
    known = _square("det", ins[0])
    if known is not None:
        for at in range(len(outs)):
            outs.learn(at, known[:-2] or (1,))


def _of_one(found: Any) -> Any:
    """Return a number as MXNet has it: an array of one element."""
    return found if found.ndim else found.reshape((1,))


@_op("det", inputs=_MATRIX, shapes=_numbers_shapes)
def _det(s: Any, a: Any) -> Any:
    del s
    return _of_one(linalg.det(a))


@_op("slogdet", inputs=_MATRIX, outputs=2, shapes=_numbers_shapes)
def _slogdet(s: Any, a: Any) -> Any:
    del s
    found = linalg.slogdet(a)
    return _of_one(stop_gradient(found.sign)), _of_one(found.logabsdet)


@_op("sumlogdiag", inputs=_MATRIX, shapes=_numbers_shapes)
def _sumlogdiag(s: Any, a: Any) -> Any:
    del s
    return _of_one(namespace.sum(namespace.log(linalg.diagonal(a)), axis=-1))


# Diagonals and triangles


_OFFSET: dict[str, Any] = {"offset": (integer, 0)}


def _diagonal_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = _square("extractdiag", ins[0])
    if known is not None:
        outs.learn(0, (*known[:-2], None if known[-1] is None else max(known[-1] - abs(s.offset), 0)))


@_op("extractdiag", settings=Settings(**_OFFSET), inputs=_MATRIX, shapes=_diagonal_shapes, gradient=LINEAR)
def _extractdiag(s: Any, a: Any) -> Any:
    return linalg.diagonal(a, offset=s.offset)


def _spread_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known:
        side = None if known[-1] is None else known[-1] + abs(s.offset)
        outs.learn(0, (*known[:-1], side, side))


@_op("makediag", settings=Settings(**_OFFSET), inputs=_MATRIX, shapes=_spread_shapes, gradient=LINEAR)
def _makediag(s: Any, a: Any) -> Any:
    count = a.shape[-1]
    at = np.arange(count)
    return _placed(a, count + abs(s.offset), at + max(-s.offset, 0), at + max(s.offset, 0))


def _placed(a: Any, side: int, rows: Any, columns: Any) -> Any:
    """Return matrices of zeros but for these elements, which the last axis has."""
    source = np.full(side * side, a.shape[-1])
    source[rows * side + columns] = np.arange(a.shape[-1])
    padded = namespace.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, 1)])
    return namespace.take(padded, source, axis=-1).reshape((*a.shape[:-1], side, side))


_PACKED = Settings(**_OFFSET, lower=(flag, True))


def _is_lower(s: Any) -> bool:
    """Return which triangle an offset means: `lower` counts where there is none."""
    return bool(s.lower if s.offset == 0 else s.offset < 0)


def _triangle(s: Any, side: int) -> tuple[Any, Any]:
    """Return the rows and columns of a triangle's elements in order."""
    found: tuple[Any, Any] = np.tril_indices(side, s.offset) if _is_lower(s) else np.triu_indices(side, s.offset)
    return found


def _packed_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = _square("extracttrian", ins[0])
    if known is None:
        return
    left = None if known[-1] is None else max(known[-1] - abs(s.offset), 0)
    outs.learn(0, (*known[:-2], None if left is None else left * (left + 1) // 2))


@_op("extracttrian", settings=_PACKED, inputs=_MATRIX, shapes=_packed_shapes, gradient=LINEAR)
def _extracttrian(s: Any, a: Any) -> Any:
    side = a.shape[-1]
    rows, columns = _triangle(s, side)
    return namespace.take(a.reshape((*a.shape[:-2], side * side)), rows * side + columns, axis=-1)


def _side_of(s: Any, count: int) -> int:
    left = (math.isqrt(8 * count + 1) - 1) // 2
    if left * (left + 1) // 2 != count:
        raise ShapeError(f"maketrian: {count} elements make up no triangle")
    return left + abs(int(s.offset))


def _unpacked_shapes(s: Any, ins: Shapes, outs: Shapes) -> None:
    known = ins[0]
    if known:
        side = None if known[-1] is None else _side_of(s, known[-1])
        outs.learn(0, (*known[:-1], side, side))


@_op("maketrian", settings=_PACKED, inputs=_MATRIX, shapes=_unpacked_shapes, gradient=LINEAR)
def _maketrian(s: Any, a: Any) -> Any:
    side = _side_of(s, a.shape[-1])
    return _placed(a, side, *_triangle(s, side))
