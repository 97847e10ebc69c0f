"""`grad` and its like, operators of one's own, and functions that are computed again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
from weft import autograd
from weft.errors import ArgumentTypeError, GradientError


class Pair(NamedTuple):
    w: Any
    b: Any


@dataclass(frozen=True)
class Layer:
    w: Any
    b: Any


def test_gradients_have_the_structure_of_the_arguments() -> None:
    def loss(p: Any, x: Any) -> Any:
        first, (second, third) = p["layers"]
        return weft.sum(first.w * x + first.b) + weft.sum(second.w * x) * third[0] + second.b

    p = {"layers": [Layer(weft.ones(2), weft.zeros(2)), (Pair(weft.ones(2), 3.0), [2.0])], "rest": None}
    found = weft.grad(loss)(p, weft.asarray([1.0, 2.0]))
    assert isinstance(found["layers"][0], Layer)
    assert found["layers"][0].w.tolist() == [1.0, 2.0]
    assert found["layers"][0].b.tolist() == [1.0, 1.0]
    second, third = found["layers"][1]
    assert isinstance(second, Pair)
    assert second.w.tolist() == [2.0, 4.0]
    assert second.b.item() == 1.0
    assert third[0].item() == 3.0
    assert found["rest"] is None


def test_several_arguments_and_aux() -> None:
    def f(x: Any, y: Any, scale: float = 1.0) -> Any:
        return weft.sum(x * y) * scale, {"sum": x + y}

    (value, aux), (dx, dy) = weft.value_and_grad(f, argnums=(0, -1), has_aux=True)(
        weft.ones(2), weft.asarray([2.0, 3.0]), scale=2.0
    )
    assert (value.item(), dx.tolist(), dy.tolist()) == (10.0, [4.0, 6.0], [2.0, 2.0])
    assert aux["sum"].tolist() == [3.0, 4.0]
    assert not aux["sum"].requires_grad
    assert not value.requires_grad


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "vjp", "jvp", "checkpoint"])
def test_what_is_no_function_is_refused_where_it_is_given(name: str) -> None:
    arguments = {"vjp": (weft.ones(2),), "jvp": ((weft.ones(2),), (weft.ones(2),))}.get(name, ())
    with pytest.raises(ArgumentTypeError, match=rf"{name}\(\) takes a function, not NDArray: write weft\.{name}\(fn"):
        getattr(weft, name)(weft.ones(2), *arguments)


def test_what_does_not_depend_on_an_argument_has_zeros() -> None:
    dx, dy = weft.grad(lambda x, y: weft.sum(x), argnums=(0, 1))(weft.ones(2), weft.ones(3))
    assert (dx.tolist(), dy.tolist()) == ([1.0, 1.0], [0.0, 0.0, 0.0])
    assert weft.grad(lambda x: weft.sum(weft.floor(x)))(weft.ones(2)).tolist() == [0.0, 0.0]
    assert weft.grad(lambda x: weft.asarray(3.0))(weft.ones(2)).tolist() == [0.0, 0.0]


def values(x: Any) -> dict[str, Any]:
    total = weft.sum(x * x)
    return {
        "item": total.item(),
        "float": float(total),
        "constant": 3.0,
        "number": np.float64(3.0),
        "numpy": total.numpy(),
        "int": 3,
        "integers": weft.astype(total, weft.int32),
        "bool": total > 1,
    }


@pytest.mark.parametrize("name", list(values(weft.ones(1))))
def test_a_value_that_nothing_is_known_of_is_refused(name: str) -> None:
    def loss(x: Any) -> Any:
        return values(x)[name]

    hint = r"without item\(\)|returned int$|dtype (int32|bool), through which no gradient goes"
    for transform in (weft.grad, weft.value_and_grad, lambda fn: weft.grad(weft.checkpoint(fn))):
        with pytest.raises(GradientError, match=hint):
            transform(loss)(weft.ones(2))
    if name in {"integers", "bool"}:
        return
    with pytest.raises(GradientError, match=r"vjp\(\) takes functions that return arrays, and loss returned"):
        weft.vjp(loss, weft.ones(2))
    with pytest.raises(GradientError, match=r"jvp\(\) takes functions that return arrays, and loss returned"):
        weft.jvp(loss, (weft.ones(2),), (weft.ones(2),))


def test_an_argument_that_is_named_twice_is_refused() -> None:
    for twice in ((0, 0), (0, -2)):
        with pytest.raises(GradientError, match="names an argument twice"):
            weft.grad(lambda x, y: weft.sum(x * y), argnums=twice)(weft.ones(2), weft.ones(2))


def test_a_rule_that_is_no_function_is_refused_by_name() -> None:
    op = weft.register_op("test_rule_no_function", infer=weft.ops.like_first)(lambda out, x: np.copyto(out, x))
    op.set_attribute("gradient", "exp")
    with pytest.raises(GradientError, match="'gradient' of the op 'test_rule_no_function' is 'exp', and no function"):
        weft.grad(lambda x: weft.sum(op(x)))(weft.ones(2))


def test_gradients_do_not_confuse_one_call_with_another() -> None:
    found = weft.grad(lambda x: x * weft.grad(lambda y: x + y)(1.0))(2.0)
    assert found.item() == 1.0
    third = weft.grad(weft.grad(weft.grad(lambda x: x**4)))(2.0)
    assert third.item() == pytest.approx(48.0)
    assert weft.grad(lambda w: weft.grad(lambda x: w * x**2)(3.0))(5.0).item() == 6.0


def test_closed_over_leaves_keep_their_gradients() -> None:
    w = weft.asarray(5.0)
    w.requires_grad = True
    slope = weft.grad(lambda x: w * x**2)(3.0)
    assert slope.requires_grad
    assert autograd.gradients(slope)[w].item() == 6.0


def test_vjp_may_be_pulled_again_and_jvp_agrees() -> None:
    rng = np.random.default_rng(5)
    x, v = rng.standard_normal(3), rng.standard_normal(3)

    def f(x: Any) -> Any:
        return {"y": weft.sin(x) * x[::-1], "z": weft.sum(x**2)}

    y, pull = weft.vjp(f, x)
    one, two = (pull({"y": weft.asarray(rng.standard_normal(3)), "z": 1.0})[0] for _ in range(2))
    assert one.shape == two.shape == (3,)
    value, moved = weft.jvp(f, (x,), (v,))
    np.testing.assert_allclose(value["y"].numpy(), y["y"].numpy())
    step = 1e-6
    for name in ("y", "z"):
        wanted = (f(weft.asarray(x + step * v))[name].numpy() - f(weft.asarray(x - step * v))[name].numpy()) / (
            2 * step
        )
        np.testing.assert_allclose(moved[name].numpy(), wanted, atol=1e-8)
    assert weft.jvp(lambda x: 2.0 * weft.ones(2), (x,), (v,))[1].tolist() == [0.0, 0.0]


def test_stop_gradient() -> None:
    found = weft.grad(lambda x: weft.sum(x * autograd.stop_gradient(x * x)))(weft.asarray([3.0]))
    assert found.tolist() == [9.0]


@pytest.mark.parametrize("stop", [autograd.stop_gradient, weft.ops.get_op("stop_gradient")])
def test_stop_gradient_everywhere(stop: Any) -> None:
    def loss(x: Any) -> Any:
        return weft.sum(x * stop(x * x))

    given = weft.asarray([3.0, 2.0])
    program = weft.program(loss)
    assert program(given).item() == 35.0
    assert weft.grad(program)(given).tolist() == weft.grad(loss)(given).tolist() == [9.0, 4.0]
    net = loss(weft.symbol.Variable("x"))
    for symbol in (net, weft.symbol.load_json(net.tojson())):
        assert symbol.infer_shape(x=(2,))[1] == [()]
        assert symbol.gradient("x").eval(x=given)[0].tolist() == [9.0, 4.0]
    executor = net.simple_bind(x=(2,), type_dict={"x": "float64"})
    assert executor.forward(is_train=True, x=given)[0].item() == 35.0
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [9.0, 4.0]


class Cube(autograd.Operation):
    """Of which what is saved is watched."""

    def forward(self, x: Any) -> Any:
        self.save(x)
        return x**3

    def backward(self, dy: Any) -> Any:
        (x,) = self.saved
        return 3 * x**2 * dy


class Split(autograd.Operator):
    def forward(self, x: Any, at: int) -> Any:
        self.at = at
        return x[:at] * 1, x[at:]

    def backward(self, first: Any, second: Any) -> Any:
        return weft.concat([first, second * 10]), None


def test_operators_have_their_own_gradients_and_second_ones() -> None:
    assert autograd.Operation is autograd.Operator
    assert Cube()(weft.asarray([2.0])).tolist() == [8.0]
    assert weft.grad(lambda x: weft.sum(Cube()(x)))(weft.asarray([2.0])).tolist() == [12.0]
    assert weft.grad(weft.grad(lambda x: Cube()(x)))(2.0).item() == 12.0

    def split(x: Any) -> Any:
        first, second = Split()(x, 1)
        return weft.sum(first) + weft.sum(second)

    assert weft.grad(split)(weft.ones(3)).tolist() == [1.0, 10.0, 10.0]


def test_what_an_operator_saved_is_watched() -> None:
    w = weft.asarray([2.0])
    w.requires_grad = True
    h = w * 1
    y = Cube()(h)
    h += 1
    with pytest.raises(GradientError, match=r"Cube\(\) needs its operand 0 .*overwritten at"):
        autograd.gradients(y)


def test_an_operator_that_is_called_twice_finds_what_each_call_saved() -> None:
    class Product(autograd.Operator):
        def forward(self, x: Any, y: Any) -> Any:
            self.save(x, y)
            return x * y

        def backward(self, dy: Any) -> Any:
            x, y = self.saved
            return dy * y, dy * x

    def cube(x: Any) -> Any:
        product = Product()
        return weft.sum(product(product(x, x), x))

    x = weft.asarray([1.0, -2.0, 3.0])
    for gradient in (weft.grad(cube), weft.program(weft.grad(cube)), weft.grad(weft.checkpoint(cube))):
        assert gradient(x).tolist() == [3.0, 12.0, 27.0]
    assert weft.grad(lambda x: weft.sum(weft.grad(cube)(x)))(x).tolist() == [6.0, -12.0, 18.0]


def test_checkpoints_compute_again_and_give_the_same() -> None:
    calls: list[int] = []
    w = weft.asarray([0.5, -0.3])
    w.requires_grad = True

    def block(x: Any, scale: float = 1.0) -> Any:
        calls.append(1)
        return weft.tanh(x * w) * scale, weft.sum(x)

    def loss(x: Any, block: Any) -> Any:
        first, total = block(x, scale=2.0)
        second, _ = block(first)
        return weft.sum(second * second) + total

    x = weft.asarray([1.0, 2.0])
    plain = autograd.gradients(loss(x, block))[w].numpy()
    calls.clear()
    y = loss(x, weft.checkpoint(block))
    assert len(calls) == 2
    np.testing.assert_allclose(autograd.gradients(y)[w].numpy(), plain)
    assert len(calls) == 4
    wanted = weft.grad(lambda x: loss(x, block))(x).numpy()
    np.testing.assert_allclose(weft.grad(lambda x: loss(x, weft.checkpoint(block)))(x).numpy(), wanted)


def test_checkpoints_have_second_derivatives() -> None:
    f = weft.checkpoint(lambda x: weft.sin(x) * x)
    found = weft.grad(weft.grad(lambda x: f(f(x))))(0.7).item()

    def plain(x: Any) -> Any:
        y = weft.sin(x) * x
        return weft.sin(y) * y

    assert found == pytest.approx(weft.grad(weft.grad(plain))(0.7).item())


def test_checkpoints_in_programs_have_second_derivatives() -> None:
    f = weft.checkpoint(lambda x: weft.sin(x) * x)

    def plain(x: Any) -> Any:
        return weft.sin(x) * x

    def second(f: Any) -> Any:
        return weft.grad(lambda x: weft.sum(weft.grad(lambda x: weft.sum(f(f(x * x))))(x) ** 2))

    x = weft.asarray([0.5, 0.7, 0.9])
    wanted = second(plain)(x).numpy()
    for found in (second(f), weft.program(second(f)), second(weft.program(f))):
        np.testing.assert_allclose(found(x).numpy(), wanted, rtol=1e-12)


@pytest.mark.parametrize("recorded", [False, True])
def test_checkpoints_draw_the_same_again(recorded: bool) -> None:
    x = weft.asarray(np.linspace(-1.0, 1.0, 12).reshape(4, 3))

    def drawn(wrap: Any) -> list[Any]:
        rng, other = weft.random.default_rng(3), weft.random.Generator(5)

        def block(x: Any) -> Any:
            order = weft.arange(4)
            rng.shuffle(order)
            return (
                weft.nn.dropout(weft.sin(x), 0.5, rng) * other.normal(size=x.shape) + weft.take(x, order, axis=0) ** 2
            )

        inner = wrap(block)
        outer = wrap(lambda x: inner(weft.nn.dropout(x, 0.3, other)) * x)
        step: Any = weft.grad(lambda x: weft.sum(outer(outer(x))))
        step = weft.program(step) if recorded else step
        return [step(x).numpy(), step(x).numpy(), rng.random(2).numpy(), other.random(2).numpy()]

    for found, wanted in zip(drawn(weft.checkpoint), drawn(lambda fn: fn), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_complex_gradients_point_where_the_loss_grows() -> None:
    found = weft.grad(lambda z: weft.sum(weft.abs(z) ** 2))(weft.asarray([3 + 4j]))
    assert found.tolist() == [6 + 8j]


def test_a_network_learns() -> None:
    rng = np.random.default_rng(0)
    x = weft.asarray(rng.standard_normal((32, 3)))
    y = weft.sum(x, axis=1, keepdims=True)
    p = {"w1": weft.asarray(rng.standard_normal((3, 8)) * 0.5), "w2": weft.asarray(rng.standard_normal((8, 1)) * 0.5)}

    def loss(p: Any) -> Any:
        return weft.mean((weft.tanh(x @ p["w1"]) @ p["w2"] - y) ** 2)

    step = weft.value_and_grad(loss)
    first = step(p)[0].item()
    for _ in range(60):
        value, gradient = step(p)
        p = {name: p[name] - 0.1 * gradient[name] for name in p}
    assert value.item() < first / 10
