"""Rules of shapes exist once: arrays, symbols and passes ask the same ones, and NumPy agrees with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._core import ShapeRule
from weft._registry.op import list_ops
from weft._registry.shape_rules import shaped_by
from weft.errors import ArgumentTypeError, ArgumentValueError, AxisError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

    Call = tuple[list[tuple[int, ...]], dict[str, Any]]

Variable = weft.symbol.Variable
SEED = 20270


def lengths(rng: np.random.Generator, most: int = 3) -> tuple[int, ...]:
    return tuple(rng.integers(0, 4, rng.integers(0, most + 1)).tolist())


def an_axis(rng: np.random.Generator, ndim: int) -> int:
    """An axis, sometimes one that is not there."""
    return int(rng.integers(-ndim - 1, ndim + 1))


def of_one(rng: np.random.Generator, *, several: bool = True, keepdims: bool = True) -> Call:
    shape = lengths(rng)
    axis: Any = an_axis(rng, len(shape)) if shape and rng.random() < 0.7 else None  # a scalar has an axis 0 for NumPy
    if several and rng.random() < 0.3:
        axis = tuple(an_axis(rng, len(shape)) for _ in range(rng.integers(0, 3)))
    given: dict[str, Any] = {"axis": axis}
    if keepdims:
        given["keepdims"] = bool(rng.integers(2))
    return [shape], given


def of_three(rng: np.random.Generator) -> Call:
    """Shapes that mostly broadcast."""
    whole = lengths(rng)
    shapes: list[tuple[int, ...]] = []
    for _ in range(3):
        cut = whole[int(rng.integers(0, len(whole) + 1)) :]
        shapes.append(tuple(1 if rng.random() < 0.3 else 2 if rng.random() < 0.1 else n for n in cut))
    return shapes, {}


def of_joins(rng: np.random.Generator) -> Call:
    shape = lengths(rng)
    axis = an_axis(rng, len(shape))
    shapes = [shape]
    for _ in range(int(rng.integers(0, 3))):
        other = list(shape)
        if other and rng.random() < 0.5:
            other[axis % len(shape)] = int(rng.integers(0, 4))
        shapes.append(tuple(other))
    return shapes, {"axis": axis}


def of_products(rng: np.random.Generator) -> Call:
    shared = int(rng.integers(0, 4))
    stack = lengths(rng, 1)
    left: tuple[int, ...] = (*stack, 2, shared) if rng.random() < 0.7 else (shared,)
    right: tuple[int, ...] = (shared, 3) if rng.random() < 0.7 else (shared,)
    if rng.random() < 0.2:
        right = (*stack, *right)
    if rng.random() < 0.1:
        left = lengths(rng)
    return [left, right], {}


def of_shapes(rng: np.random.Generator) -> Call:
    shape = lengths(rng)
    new = [*map(int, rng.permutation(shape)), *([1] * int(rng.integers(0, 2)))]
    if new and rng.random() < 0.5:
        new[int(rng.integers(len(new)))] = -1
    if rng.random() < 0.1:
        new.append(2)
    return [shape], {"shape": tuple(new)}


def of_targets(rng: np.random.Generator) -> Call:
    whole = lengths(rng)
    shape = tuple(1 if rng.random() < 0.4 else n for n in whole[int(rng.integers(0, len(whole) + 1)) :])
    return [shape], {"shape": tuple(n + 1 if rng.random() < 0.1 else n for n in whole)}


def of_places(rng: np.random.Generator) -> Call:
    shape, axis = lengths(rng), an_axis(rng, 3)
    return [shape, (0, *lengths(rng, 1))], {"axis": axis}


def of_new_axes(rng: np.random.Generator) -> Call:
    shape = lengths(rng)
    axes = tuple(an_axis(rng, len(shape) + 1) for _ in range(rng.integers(1, 3)))
    return [shape], {"axis": axes}


def of_orders(rng: np.random.Generator) -> Call:
    shape = lengths(rng)
    axes = [int(i) for i in rng.permutation(len(shape))]
    if axes and rng.random() < 0.2:
        axes[0] = an_axis(rng, len(shape))
    return [shape], {"axes": tuple(axes)}


def joined(function: Any) -> Callable[..., Any]:
    """A function of a list, as one of several arrays."""
    return lambda *arrays, **given: function(list(arrays), **given)


KINDS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Callable[..., Call]]] = {
    "sum": (weft.sum, np.sum, of_one),
    "max": (weft.max, np.max, of_one),
    "mean": (weft.mean, np.sum, of_one),
    "argmax": (weft.argmax, np.argmax, lambda rng: of_one(rng, several=False)),
    "count_nonzero": (weft.count_nonzero, np.count_nonzero, of_one),
    "where": (
        lambda x, y, z: weft.where(x != 0, y, z),
        lambda x, y, z: np.where(x != 0, y, z),
        of_three,
    ),
    "add": (lambda x, y, z: x + y + z, lambda x, y, z: x + y + z, of_three),
    "clip": (weft.clip, np.clip, of_three),
    "matmul": (weft.matmul, np.matmul, of_products),
    "concat": (joined(weft.concat), joined(np.concatenate), of_joins),
    "stack": (joined(weft.stack), joined(np.stack), of_joins),
    "reshape": (weft.reshape, lambda x, shape: x.reshape(shape), of_shapes),
    "broadcast_to": (weft.broadcast_to, np.broadcast_to, of_targets),
    "expand_dims": (weft.expand_dims, np.expand_dims, of_new_axes),
    "squeeze": (weft.squeeze, np.squeeze, lambda rng: of_one(rng, keepdims=False)),
    "permute_dims": (weft.permute_dims, np.transpose, of_orders),
    "flip": (weft.flip, np.flip, lambda rng: of_one(rng, keepdims=False)),
    "sort": (
        lambda x, axis: weft.sort(x, axis=-1 if axis is None else axis),
        lambda x, axis: np.sort(x, axis=-1 if axis is None else axis),
        lambda rng: of_one(rng, several=False, keepdims=False),
    ),
    "matrix_transpose": (weft.matrix_transpose, np.matrix_transpose, lambda rng: ([lengths(rng)], {})),
    "diagonal": (
        weft.diagonal,
        np.diagonal,
        lambda rng: ([lengths(rng)], {"offset": int(rng.integers(-2, 3)), "axis1": an_axis(rng, 2), "axis2": 1}),
    ),
    "take": (
        lambda x, i, axis: weft.take(x, weft.astype(i, weft.int64), axis),
        lambda x, i, axis: np.take(x, i.astype(np.int64), axis),
        of_places,
    ),
}


def asked(find: Callable[..., Any], function: Any, shapes: list[tuple[int, ...]], given: dict[str, Any]) -> Any:
    """A shape, or the exception that a user would catch."""
    try:
        return tuple(find(function, shapes, given))
    except (ValueError, TypeError, IndexError) as error:
        return error


def of_numpy(function: Any, shapes: list[tuple[int, ...]], given: dict[str, Any]) -> Any:
    return function(*map(np.zeros, shapes), **given).shape


def of_arrays(function: Any, shapes: list[tuple[int, ...]], given: dict[str, Any]) -> Any:
    return function(*map(weft.zeros, shapes), **given).shape


def of_symbols(function: Any, shapes: list[tuple[int, ...]], given: dict[str, Any]) -> Any:
    known: dict[str, Any] = {f"x{at}": shape for at, shape in enumerate(shapes)}
    return function(*map(Variable, known), **given).infer_shape(**known)[1][0]


@pytest.mark.parametrize("name", KINDS)
def test_arrays_and_symbols_have_the_shapes_of_numpy(name: str) -> None:
    ours, theirs, make = KINDS[name]
    rng = np.random.default_rng([SEED, *name.encode()])
    refused = 0
    for _ in range(150):
        shapes, given = make(rng)
        what = f"seed {SEED}: {name} of {shapes} with {given}"
        wanted = asked(of_numpy, theirs, shapes, given)
        eager, late = asked(of_arrays, ours, shapes, given), asked(of_symbols, ours, shapes, given)
        if isinstance(wanted, Exception):
            refused += 1
            assert isinstance(eager, Exception), what
            assert isinstance(late, Exception), what
        else:
            assert eager == wanted, (what, eager)
            assert late == wanted, (what, late)
    assert refused < 120, "most calls are right"


def test_each_op_states_the_rule_of_its_shapes_once() -> None:
    by_rule = 0
    for op in map(weft.ops.get_op, list_ops()):
        shapes, level = getattr(op.infer, "shapes", None), op._entry.level("infer_shape")
        if shapes is not None and level is not None and level < 0:  # others are those of tests
            by_rule += 1
            assert op.attribute("infer_shape") == shapes, op
    assert by_rule > 50


X = weft.zeros((2, 3))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: weft.sum(X, axis=5), AxisError, "axis 5 is out of bounds for array of dimension 2"),
        (lambda: weft.concat([X, X], axis=-3), AxisError, "axis -3 is out of bounds"),
        (lambda: weft.sort(X, axis=2), AxisError, "axis 2 is out of bounds"),
        (lambda: weft.sum(X, axis=(0, -2)), ArgumentValueError, "(0, 0)|(0, -2)|repeated|twice"),
        (lambda: X @ X, ArgumentValueError, r"^matmul of shapes \(2, 3\) and \(2, 3\)"),
        (
            lambda: weft.concat([X, weft.zeros((3, 4))]),
            ArgumentValueError,
            r"^concat: all shapes .*0.*\(2, 3\), \(3, 4\)",
        ),
        (lambda: weft.stack([X, weft.zeros(3)]), ArgumentValueError, r"^stack: .*\(2, 3\), \(3,\)|one shape"),
        (lambda: weft.concat([weft.zeros(()), weft.zeros(())]), ArgumentValueError, "^concat: arrays without axes"),
        (lambda: weft.where(X > 0, X, weft.zeros(5)), ArgumentValueError, r"^where: .* shapes \(2,3\) \(2,3\) \(5,\)"),
        (lambda: weft.reshape(X, (4, -1)), ArgumentValueError, r"\(2, 3\) \(6 elements\) into shape \(4, -1\)"),
        (lambda: weft.reshape(X, (-1, -1)), ArgumentValueError, r"one unknown dimension, got shape \(-1, -1\)"),
        (lambda: weft.reshape(X, (-2, 3)), ArgumentValueError, r"negative dimensions .* \(-2, 3\)"),
        (lambda: weft.broadcast_to(X, (3, 3)), ArgumentValueError, r"\(2, 3\) does not broadcast to \(3, 3\)"),
        (
            lambda: weft.squeeze(X, axis=0),
            ArgumentValueError,
            r"axes \(0,\) of shape \(2, 3\): their length is not one",
        ),
        (
            lambda: weft.max(weft.zeros((0, 3)), axis=0),
            ArgumentValueError,
            r"^max: no maximum .*\(0, 3\) along axes \(0,\)",
        ),
        (lambda: weft.argmax(weft.zeros((0, 3)), axis=0), ArgumentValueError, r"^argmax: no maximum .*\(0, 3\)"),
        (lambda: weft.sum(X, where=weft.ones((4, 3)) > 0), ArgumentValueError, r"^sum: where= of shape \(4, 3\)"),
        (
            lambda: weft.ops.get_op("argmax")(X, axis="a"),
            ArgumentTypeError,
            "argmax: an axis is an integer, not the str 'a'",
        ),
        (lambda: weft.ops.get_op("matmul")(X), ArgumentTypeError, "matmul takes two operands"),
        (lambda: weft.diagonal(weft.zeros(3)), ArgumentValueError, r"at least 2 axes, got shape \(3,\)"),
    ],
)
def test_refusals_keep_their_class_and_name_op_shapes_and_axis(
    call: Callable[[], object], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_shapes_follow_backwards_by_the_rules_of_arrays() -> None:
    x, y = Variable("x"), Variable("y")
    assert weft.concat([weft.ops.get_op("round")(x, decimals=1), y]).infer_shape_partial(y=(2, 3))[0] == [
        (None, 3),
        (2, 3),
    ]
    assert weft.take(x, y, axis=1).infer_shape(x=(2, 3), y=(4, 5))[1] == [(2, 4, 5)]
    assert weft.take(x, 1, axis=1).infer_shape(x=(2, 3))[1] == [(2,)]
    assert (weft.ops.get_op("matrix_transpose")(x) @ y).infer_shape(x=(None, 3), y=(5, 4))[0] == [(5, 3), (5, 4)]
    with pytest.raises(GraphError, match="negative dimensions"):
        weft.reshape(x, (-2, 3)).infer_shape(x=(2, 3))


def test_a_rule_that_is_set_later_counts_in_graphs_too() -> None:
    @weft.register_op("shape_rules_doubled", infer=weft.ops.like_first)
    def op(out: np.ndarray, x: np.ndarray) -> None:
        out[...] = np.concatenate([x, x])

    x = Variable("x")
    symbol = op(x)
    assert symbol.infer_shape(x=(3,))[1] == [(3,)]
    op.set_attribute("infer", lambda x: weft.ops.Aval((2 * x.shape[0],), x.dtype))
    assert op(weft.ones(3)).shape == (6,)
    assert op(x).infer_shape(x=(3,))[1] == [(6,)]
    op.set_attribute("infer", shaped_by("concat"), level=11)
    assert op.attribute("infer_shape") == "concat"


def test_a_rule_is_asked_by_name() -> None:
    rule = ShapeRule("reduce")
    assert rule.name == "reduce"
    assert rule(((2, 3, 4),), {"axis": (0, -1), "keepdims": True, "dtype": object()}) == (1, 3, 1)
    with pytest.raises(ArgumentValueError, match="there is no shape rule 'none'; there are broadcast"):
        ShapeRule("none")
