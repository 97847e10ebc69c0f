"""`weft.vmap`: axes, structures, nesting, gradients, programs, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, ArgumentValueError, GradientError

SEED = 20261127


def array(*shape: int, seed: int = SEED) -> Any:
    return weft.asarray(np.random.default_rng(seed).standard_normal(shape))


def same(found: Any, wanted: Any) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12, atol=1e-12)


# Axes


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_the_axis_of_the_examples(axis: int) -> None:
    x = array(3, 4, 5)
    wanted = weft.stack([weft.cumulative_sum(part, axis=0) for part in weft.unstack(x, axis=axis)])
    same(weft.vmap(lambda x: weft.cumulative_sum(x, axis=0), in_axes=axis)(x), wanted)


@pytest.mark.parametrize("place", [0, 1, 2, -1, -2])
def test_the_place_of_the_examples_in_results(place: int) -> None:
    x = array(3, 4, 5)
    same(weft.vmap(lambda x: 2 * x, out_axes=place)(x), weft.moveaxis(2 * x, 0, place))


def test_arguments_that_all_share() -> None:
    w, x = array(4, 2), array(3, 4)
    same(weft.vmap(lambda w, x: x @ w, in_axes=(None, 0))(w, x), x @ w)
    same(weft.vmap(lambda x: x @ w)(x), x @ w)
    assert weft.vmap(lambda name, x: x if name == "same" else -x, in_axes=(None, 0))("same", x) is not None


def test_several_results_and_their_places() -> None:
    x = array(3, 4)
    total, (largest, shared) = weft.vmap(lambda x: (x.sum(), [x, weft.ones(2)]), out_axes=(0, [1, None]))(x)
    same(total, x.sum(axis=1))
    same(largest, x.T)
    same(shared, weft.ones(2))


def test_what_does_not_depend_on_the_example_is_repeated() -> None:
    same(weft.vmap(lambda _: weft.arange(2.0))(array(3, 1)), weft.broadcast_to(weft.arange(2.0), (3, 2)))
    same(weft.vmap(lambda _: 1.5)(array(3, 1)), weft.full(3, 1.5))


@dataclass
class Point:
    x: Any
    y: Any


def test_structures() -> None:
    p = {"w": array(3, 4), "b": [array(3), array(4, 3, seed=1)]}
    found = weft.vmap(lambda p: p["w"].sum() + p["b"][0] + p["b"][1].sum(), in_axes=({"b": [0, 1], "w": 0},))(p)
    same(found, p["w"].sum(axis=1) + p["b"][0] + p["b"][1].sum(axis=0))
    point = weft.vmap(lambda p: Point(p.y, p.x + p.y))(Point(array(3), array(3, seed=1)))
    assert isinstance(point, Point)
    same(point.x, array(3, seed=1))


def test_arguments_by_name_have_their_examples_first() -> None:
    x = array(3, 4)
    same(weft.vmap(lambda x, *, by: x * by)(x, by=weft.arange(3.0)), x * weft.arange(3.0)[:, None])


def test_arrays_of_numpy() -> None:
    same(weft.vmap(lambda x: x + np.ones(2))(np.zeros((3, 2))), weft.ones((3, 2)))
    same(weft.vmap(lambda x: np.ones(2) + x)(np.zeros((3, 2))), weft.ones((3, 2)))
    same(weft.vmap(lambda x: np.cos(x) * np.sum(x + 1))(np.zeros((3, 2))), weft.full((3, 2), 2.0))


def test_arrays_of_examples() -> None:
    x = array(3, 4)
    same(weft.vmap(lambda x: weft.asarray(x, dtype="float64"))(x), x)
    same(weft.vmap(lambda x: weft.asarray([x[0], [x[1], 2.0][0]]))(x), x[:, :2])


def test_it_keeps_the_name_and_the_text_of_the_function() -> None:
    def double(x: Any) -> Any:
        """Return it twice."""
        return 2 * x

    assert weft.vmap(double).__name__ == "double"
    assert weft.vmap(double).__doc__ == "Return it twice."


# Nests


def test_nested() -> None:
    x, y = array(3, 4), array(5, 4, seed=1)
    pairs = weft.vmap(lambda x: weft.vmap(lambda y: (x * y).sum())(y))(x)
    same(pairs, x @ y.T)
    outer = weft.vmap(weft.vmap(weft.vdot, in_axes=(None, 0)), in_axes=(0, None))
    same(outer(x, y), x @ y.T)
    same(weft.vmap(weft.vmap(weft.sum, in_axes=1), in_axes=2)(array(3, 4, 5)), array(3, 4, 5).sum(axis=0).T)


def test_nested_one_by_one() -> None:
    x = array(2, 3, 5)
    found = weft.vmap(weft.vmap(lambda x: weft.quantile(x, 0.25)))(x)
    same(found, weft.quantile(x, 0.25, axis=2))


def test_nested_indices() -> None:
    table, places = array(2, 6), weft.asarray(np.arange(24).reshape(2, 3, 4) % 6)
    found = weft.vmap(lambda row, p: weft.vmap(lambda p: row[p])(p))(table, places)
    same(found, weft.stack([table[0][places[0]], table[1][places[1]]]))


def test_a_loop_inside() -> None:
    x = array(3, 6)
    carry, rows = weft.vmap(lambda x: weft.scan(lambda c, row: (c * row, c + row), 1.0, x))(x)
    same(carry, weft.prod(x, axis=1))
    before = weft.cumulative_prod(x, axis=1)
    same(rows, x + weft.concat([weft.ones((3, 1)), before[:, :-1]], axis=1))
    _, back = weft.vmap(lambda x: weft.scan(lambda c, row: (c + row, c), 0.0 * x[0], x, reverse=True))(x)
    same(back[:, -1], weft.zeros(3))


def test_a_choice_inside() -> None:
    x = array(6)
    found = weft.vmap(lambda x: weft.cond(x > 0, lambda x: x, lambda x: x * 0, x))(x)
    same(found, weft.maximum(x, 0.0))


def test_a_loop_that_only_its_body_makes_one_of_examples() -> None:
    x, rows = array(3, 4), array(5, 4)

    def loop(x: Any) -> Any:
        return weft.scan(lambda c, row: (c * x + row, c), weft.ones(4), rows)

    wanted = [loop(each) for each in x]
    for found in (weft.vmap(loop), weft.program(weft.vmap(loop)), weft.vmap(weft.program(loop))):
        carry, ys = found(x)
        same(carry, weft.stack([each[0] for each in wanted]))
        same(ys, weft.stack([each[1] for each in wanted]))


def test_a_choice_that_only_its_branches_make_one_of_examples() -> None:
    x = array(3, 4)

    def choice(x: Any, p: Any) -> Any:
        first = weft.cond(p > 0, lambda: x * 2, lambda: x + 1)
        return first + weft.cond(p > 0, lambda: weft.ones(4), lambda: x) + weft.cond(p > 0, lambda: x, lambda: 0.0)

    step = weft.vmap(choice, in_axes=(0, None))
    for p in (1.0, -1.0):
        same(weft.program(step)(x, weft.asarray(p)), step(x, weft.asarray(p)))


class Straight(weft.autograd.Operator):
    """A step with the gradient of the identity."""

    def forward(self, x: Any) -> Any:
        return weft.sign(x)

    def backward(self, dy: Any) -> Any:
        return dy


def test_an_operator_of_ones_own_inside() -> None:
    x = array(3, 4)
    same(weft.vmap(lambda x: Straight()(x).sum())(x), weft.sign(x).sum(axis=1))
    same(weft.grad(lambda x: weft.vmap(lambda x: Straight()(x).sum())(x).sum())(x), weft.ones((3, 4)))


# Gradients


def loss(w: Any, x: Any, y: Any) -> Any:
    return ((weft.tanh(x @ w) - y) ** 2).sum()


def test_the_gradient_of_each_example() -> None:
    w, x, y = array(4, 2), array(3, 4, seed=1), array(3, 2, seed=2)
    found = weft.vmap(weft.grad(loss), in_axes=(None, 0, 0))(w, x, y)
    same(found, weft.stack([weft.grad(loss)(w, x[at], y[at]) for at in range(3)]))
    value, found = weft.vmap(weft.value_and_grad(loss, argnums=(0, 1)), in_axes=(None, 0, 0))(w, x, y)
    same(value, weft.stack([loss(w, x[at], y[at]) for at in range(3)]))
    same(found[1], weft.stack([weft.grad(loss, 1)(w, x[at], y[at]) for at in range(3)]))


def test_the_gradient_through_all_examples() -> None:
    w, x, y = array(4, 2), array(3, 4, seed=1), array(3, 2, seed=2)

    def total(w: Any, x: Any) -> Any:
        return weft.vmap(loss, in_axes=(None, 0, 0))(w, x, y).sum()

    dw, dx = weft.grad(total, argnums=(0, 1))(w, x)
    same(dw, weft.grad(loss)(w, x, y))
    same(dx, weft.grad(loss, 1)(w, x, y))
    x.requires_grad = True
    ((leaf, gradient),) = weft.autograd.backward(weft.vmap(lambda x: (x**3).sum())(x).sum())
    assert leaf is x
    with weft.autograd.no_grad():
        same(gradient, 3 * x**2)


def test_gradients_of_gradients() -> None:
    x = array(5)
    same(weft.vmap(weft.grad(weft.grad(lambda x: x**3)))(x), 6 * x)
    jacobian = weft.vmap(weft.grad(lambda x, at: weft.sin(x)[at] * x.sum()), in_axes=(None, 0))(x, weft.arange(5))
    eye = weft.eye(5)
    same(jacobian, eye * weft.cos(x)[:, None] * x.sum() + weft.sin(x)[:, None])
    hessian = weft.vmap(lambda v: weft.jvp(weft.grad(lambda x: (x**3).sum()), (x,), (v,))[1])(eye)
    same(hessian, weft.diag(6 * x))


def test_rows_of_a_jacobian_by_vjp() -> None:
    x = array(4)
    fn = lambda x: weft.sin(x) * x[0]  # noqa: E731 - as it is written
    _, pull = weft.vjp(fn, x)
    rows = weft.vmap(lambda v: weft.vjp(fn, x)[1](v)[0])(weft.eye(4))
    same(rows, weft.stack([pull(v)[0] for v in weft.eye(4)]))
    with pytest.raises(GradientError, match=r"call vjp\(\) inside"):
        weft.vmap(pull)(weft.eye(4))
    inside = weft.vmap(lambda x: weft.vjp(lambda x: x**2, x)[1](weft.ones(()))[0])(x)
    same(inside, 2 * x)


def test_gradients_of_layers() -> None:
    w, b, x = array(3, 4), array(3, seed=1), array(5, 4, seed=2)
    labels = weft.asarray([0, 1, 2, 1, 0])

    def each(p: Any, x: Any, label: Any) -> Any:
        return weft.nn.cross_entropy(weft.nn.relu(weft.nn.dense(x, p["w"], p["b"])), label)

    p = {"w": w, "b": b}
    found = weft.vmap(weft.grad(each), in_axes=(None, 0, 0))(p, x, labels)
    wanted = [weft.grad(each)(p, x[at], labels[at]) for at in range(5)]
    same(found["w"], weft.stack([g["w"] for g in wanted]))
    same(found["b"], weft.stack([g["b"] for g in wanted]))


def test_a_gradient_that_is_zero() -> None:
    same(weft.vmap(weft.grad(lambda x, y: (y * 2).sum()), in_axes=(0, 0))(array(3, 2), array(3)), weft.zeros((3, 2)))


def test_messages_of_gradients_inside() -> None:
    with pytest.raises(GradientError, match="return a scalar"):
        weft.vmap(weft.grad(lambda x: x * 2))(array(3, 2))
    with pytest.raises(GradientError, match="int64"):
        weft.vmap(weft.grad(lambda x: x.sum()))(weft.asarray([[1, 2]]))


def test_checkpoints_inside() -> None:
    x = array(3, 4)
    block = weft.checkpoint(lambda x: weft.tanh(x) * x)
    found = weft.vmap(weft.grad(lambda x: block(x).sum()))(x)
    same(found, weft.grad(lambda x: (weft.tanh(x) * x).sum())(x))


# Programs


def test_inside_of_a_program_and_around_one() -> None:
    w, x = array(4, 2), array(3, 4, seed=1)
    each = weft.vmap(lambda x: weft.nn.softmax(x @ w)[0] + weft.quantile(x, 0.5))
    wanted = each(x)
    recorded = weft.program(each)
    for _ in range(3):
        same(recorded(x), wanted)
    inner = weft.program(lambda x: weft.nn.softmax(x @ w)[0] + weft.quantile(x, 0.5))
    same(weft.vmap(inner)(x), wanted)


def test_gradients_of_each_example_in_a_program() -> None:
    w, x, y = array(4, 2), array(3, 4, seed=1), array(3, 2, seed=2)
    step = weft.program(weft.vmap(weft.grad(loss), in_axes=(None, 0, 0)))
    for _ in range(2):
        same(step(w, x, y), weft.vmap(weft.grad(loss), in_axes=(None, 0, 0))(w, x, y))


# Refusals


def test_numbers_of_examples_that_differ() -> None:
    with pytest.raises(
        ArgumentValueError, match=r"differ in their numbers of examples: 3 along axis 0 of shape \(3, 4\), 4 along"
    ):
        weft.vmap(lambda x, y: x * y)(array(3, 4), array(4))


def test_axes_that_are_not_there() -> None:
    with pytest.raises(ArgumentValueError, match=r"an argument is 2.0, which has no axis 0"):
        weft.vmap(lambda x, y: x * y)(array(3), 2.0)
    with pytest.raises(ArgumentValueError, match=r"an array of shape \(3,\), which has no axis 1"):
        weft.vmap(lambda x: x, in_axes=1)(array(3))
    with pytest.raises(ArgumentValueError, match="no argument has examples"):
        weft.vmap(lambda x: x, in_axes=None)(array(3))
    with pytest.raises(ArgumentValueError, match="names 1 arguments, and 2 were given"):
        weft.vmap(lambda x, y: x * y, in_axes=(0,))(array(3), array(3))
    with pytest.raises(ArgumentValueError, match=r"no place 2 for the examples: out_axes is from -1 to 0"):
        weft.vmap(lambda x: x.sum(), out_axes=2)(array(3, 2))
    with pytest.raises(ArgumentValueError, match="out_axes names None for a result"):
        weft.vmap(lambda x: x, out_axes=None)(array(3, 2))
    with pytest.raises(ArgumentTypeError, match="does not suit argument 0"):
        weft.vmap(lambda x: x, in_axes=({"w": 0},))(array(3))
    with pytest.raises(ArgumentTypeError, match="other keys than argument 0"):
        weft.vmap(lambda x: x["w"], in_axes=({"v": 0},))({"w": array(3)})
    with pytest.raises(ArgumentTypeError, match="takes a function, not NDArray"):
        weft.vmap(array(3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="an argument is 'a'"):
        weft.vmap(lambda x, y: x)(array(3), "a")
    with pytest.raises(ArgumentTypeError, match="the function returned 'a'"):
        weft.vmap(lambda x: "a")(array(3))
    with pytest.raises(ArgumentTypeError, match="a symbol has no examples"):
        weft.vmap(lambda x: x)(weft.symbol.Variable("x"))


@pytest.mark.parametrize(
    "asks",
    [
        lambda x: x if x > 0 else -x,
        float,
        lambda x: np.asarray(x),
        lambda x: range(x),
        lambda x: x.item(),
        lambda x: x.numpy(),
        lambda x: np.add.reduce(x),
    ],
)
def test_values_are_not_to_be_had(asks: Any) -> None:
    with pytest.raises((TypeError, AttributeError)) as caught:
        weft.vmap(asks)(array(3))
    assert "vmap" in str(caught.value)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.array_equal(x, x),
        lambda x: np.sort(x),
        lambda x: np.linalg.norm(x),
        lambda x: np.where(x > 0, x, 0.0),
        lambda x: np.concatenate([np.ones(2), x]),
        lambda x: np.stack([weft.ones(3), x]),
        lambda x: np.einsum("i,i", x, x),
        lambda x: np.sum(x, 0) + np.ndim(x) + np.size(x) + len(np.shape(x)),
    ],
)
def test_functions_of_numpys_are_wefts(function: Any) -> None:
    x = array(4, 3)
    wanted = weft.stack([weft.asarray(function(row)) for row in x.numpy()])
    same(weft.vmap(function)(x), wanted)


def test_functions_that_numpy_alone_has_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"vmap\(<lambda>\) .* has no values for unwrap\(\) of NumPy's"):
        weft.vmap(lambda x: np.unwrap(x))(array(4, 3))


def test_writes_are_refused() -> None:
    def writes(x: Any) -> Any:
        x[0] = 1.0
        return x

    with pytest.raises(ArgumentTypeError, match=r"no element of it is written to: make another, by weft\.where"):
        weft.vmap(writes)(array(3, 2))
    target = weft.zeros(2)

    def leaks(x: Any) -> Any:
        target[...] = x
        return x

    with pytest.raises((TypeError, ValueError), match="vmap"):
        weft.vmap(leaks)(array(3, 2))
    with pytest.raises((TypeError, ValueError), match="vmap"):
        weft.vmap(lambda x: weft.add(x, 1.0, out=target))(array(3, 2))


@pytest.mark.parametrize("name", ["sort", "partition"])
def test_methods_that_work_in_place_are_refused(name: str) -> None:
    arguments = () if name == "sort" else (1,)

    def first(x: Any) -> Any:
        x = x * 1.0
        getattr(x, name)(*arguments)
        return x[0]

    with pytest.raises(
        AttributeError, match=rf"vmap\(first\).* no memory of its own to do so in: write weft\.{name}\(x\)"
    ):
        weft.vmap(first)(array(3, 4))


def test_an_array_that_is_kept_beyond_the_call() -> None:
    kept: list[Any] = []
    weft.vmap(lambda x: kept.append(x) or x)(array(3, 2))
    with pytest.raises(ArgumentValueError, match="kept beyond the call"):
        kept[0] + 1


def test_what_it_says_of_itself() -> None:
    seen: list[str] = []
    weft.vmap(lambda x: seen.append(repr(x)) or x)(array(3, 2))
    assert seen == ["<one of 3 examples under weft.vmap(<lambda>): shape (2,), dtype float64>"]


def test_a_function_that_fails_leaves_nothing_behind() -> None:
    def fails(_: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        weft.vmap(fails)(array(3))
    same(weft.grad(lambda x: (x * x).sum())(array(3)), 2 * array(3))


def test_random_numbers_are_the_same_for_all_examples() -> None:
    found = weft.vmap(lambda x: x * 0 + weft.random.default_rng(1).normal(size=2))(array(3, 2)).numpy()
    assert (found == found[0]).all()


def test_what_an_example_lacks_is_not_told_of_a_symbol() -> None:
    with pytest.raises(
        AttributeError, match=r"inside of weft\.vmap.* stands for 2 examples at once, and has no attribute 'view'"
    ):
        weft.vmap(lambda x: x.view("float32"))(weft.ones((2, 3)))
