"""The tape: leaves, walks, memory that is written to, and what it refuses."""

from __future__ import annotations

import asyncio
import copy
import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd
from weft.errors import GradientError


def _leaf(*values: float) -> weft.NDArray:
    x = weft.asarray(list(values))
    x.requires_grad = True
    return x


def test_what_is_computed_from_a_leaf_requires_a_gradient() -> None:
    w, x = _leaf(1.0, 2.0), weft.ones(2)
    assert w.requires_grad
    assert (w + x).requires_grad
    assert weft.tanh(w)[0].requires_grad
    assert not (x + x).requires_grad
    assert not (w > 0).requires_grad
    w.requires_grad = False
    assert not w.requires_grad
    assert not (w * 2).requires_grad


def test_gradients_are_found_by_the_array_itself() -> None:
    w, v = _leaf(1.0, 2.0), _leaf(1.0, 2.0)
    found = autograd.gradients((w * v * 3).sum())
    assert found[w].tolist() == [3.0, 6.0]
    assert w in found
    assert len(found) == 2
    assert [x.tolist() for x in found.values()] == [[3.0, 6.0], [3.0, 6.0]]
    with pytest.raises(KeyError, match="no gradient"):
        found[weft.ones(2)]
    later = w - 0.1 * found[w]
    with pytest.raises(KeyError, match=r"computed itself, as by w = w - step: update w in place"):
        autograd.gradients((later * later).sum())[later]


def test_the_last_layers_come_first_and_before_the_others_are_computed() -> None:
    seen: list[str] = []
    weights = [_leaf(1.0 + at) for at in range(4)]

    class Step(autograd.Operator):
        def __init__(self, at: int) -> None:
            self.at = at

        def forward(self, x: Any, w: Any) -> Any:
            self.save(x, w)
            return x * w

        def backward(self, dy: Any) -> Any:
            seen.append(f"layer {self.at}")
            x, w = self.saved
            return dy * w, dy * x

    x = weft.ones(1)
    for at, w in enumerate(weights):
        x = Step(at)(x, w)
    order: list[int] = []
    for parameter, gradient in autograd.backward(x.sum()):
        order.append(next(at for at, w in enumerate(weights) if w is parameter))
        seen.append(f"gradient {order[-1]}")
        assert gradient.item() == pytest.approx(24.0 / weights[order[-1]].item())
    assert order == [3, 2, 1, 0]
    assert seen[:4] == ["layer 3", "gradient 3", "layer 2", "gradient 2"]


def test_gradients_of_one_array_by_several_ways_are_summed_into_memory_of_their_own() -> None:
    a = _leaf(1.0, 2.0)
    h = a * 1.0
    y = (a + h) + 5 * h
    dy = weft.ones(2)
    found = autograd.gradients(y, dy)
    assert found[a].tolist() == [7.0, 7.0]
    assert dy.tolist() == [1.0, 1.0]


def test_a_result_named_twice_counts_twice() -> None:
    w = _leaf(3.0)
    y = (w * w).sum()
    assert autograd.gradients([y, y])[w].tolist() == [12.0]


def test_writes_through_views_have_gradients() -> None:
    def f(x: Any, y: Any) -> Any:
        z = weft.zeros(6)
        early = z[2:]
        z[1:3] = x
        z[::2] *= y
        view = z[1:][::2]
        view += y
        view[0] = 7.0
        z -= 0.5 * z[::-1]
        return (z * weft.arange(6.0)).sum() + (early**2).sum()

    def plain(x: Any, y: Any) -> Any:
        z = np.zeros(6)
        early = z[2:]
        z[1:3] = x
        z[::2] *= y
        view = z[1:][::2]
        view += y
        view[0] = 7.0
        z -= 0.5 * z[::-1]
        return (z * np.arange(6.0)).sum() + (early**2).sum()

    x, y = np.array([0.3, -0.7]), np.array([1.1, 0.4, -0.6])
    value, (dx, dy) = weft.value_and_grad(f, argnums=(0, 1))(x, y)
    assert value.item() == pytest.approx(plain(x, y))
    for found, at, into in ((dx, 0, x), (dy, 1, y)):
        for index in range(into.size):
            moved = [[x.copy(), y.copy()] for _ in range(2)]
            moved[0][at][index] += 1e-6
            moved[1][at][index] -= 1e-6
            assert found[index].item() == pytest.approx((plain(*moved[0]) - plain(*moved[1])) / 2e-6, abs=1e-6)


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y.view(),
        lambda y: y.view("complex128").real,
        lambda y: y.view("complex128").view("float64"),
        lambda y: weft.array(y, ndmin=3),
        lambda y: weft.array(y, ndmin=3, copy=False),
        lambda y: weft.from_dlpack(y),
    ],
)
def test_views_of_results_have_their_gradients(view: Any) -> None:
    x = np.array([0.3, -0.7, 1.1, 0.4])

    def f(x: Any) -> Any:
        y = view(x * x)
        return (y * weft.arange(1.0, y.size + 1)).sum()

    gradient = weft.grad(f)
    slopes = [(f(weft.asarray(x + h)) - f(weft.asarray(x - h))).item() / 2e-6 for h in np.eye(4) * 1e-6]
    assert gradient(x).numpy() == pytest.approx(slopes)
    second = weft.grad(lambda x: gradient(x).sum())(x)
    assert second.numpy() == pytest.approx(slopes / x)


def test_pairs_of_numbers_are_complex_ones_to_gradients_also_where_they_are_written() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        z = y.view("complex128")
        z *= 1j  # turns (a, b) to (-b, a)
        y[0] *= 5
        return (y * weft.asarray([1.0, 2.0, 3.0, 4.0])).sum()

    assert weft.grad(f)(weft.ones(4)).tolist() == [2.0, -5.0, 4.0, -3.0]


@pytest.mark.parametrize("made", [lambda x: x.view("float32"), lambda x: (x * 2).view("float32")])
def test_bytes_that_are_read_as_other_numbers_have_no_gradient(made: Any) -> None:
    with pytest.raises(GradientError, match="view"):
        weft.grad(lambda x: made(x).sum())(weft.ones(2))


def test_memory_that_was_written_as_other_numbers_has_no_gradient() -> None:
    def f(x: Any) -> Any:
        z = weft.zeros(2)
        z.view("float32")[:2] = x
        return z.sum()

    with pytest.raises(GradientError, match="float64 shows memory that was written as elements of float32"):
        weft.grad(f)(weft.ones(2, "float32"))


@pytest.mark.parametrize("of", [np.float64, np.complex128])
def test_copies_by_numpy_have_gradients(of: Any) -> None:
    def f(x: Any) -> Any:
        z = weft.ones(4)
        np.copyto(z[1:], x.astype(of), casting="unsafe")
        return (z * weft.asarray([1.0, 2.0, 3.0, 4.0])).sum()

    assert weft.grad(f)(weft.ones(3)).tolist() == [2.0, 3.0, 4.0]
    w = _leaf(1.0, 2.0)
    with pytest.raises(GradientError, match="would overwrite"):
        np.copyto(w, 0.0)
    assert w.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_results_have_their_gradients(duplicate: Any) -> None:
    assert weft.grad(lambda x: (duplicate(x * x) * x).sum())(weft.asarray([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_a_deep_copy_of_an_array_that_requires_a_gradient_is_another_one() -> None:
    w = _leaf(1.0, 2.0)
    v = copy.deepcopy([w])[0]
    found = autograd.gradients((w * v * v).sum())
    assert found[v].tolist() == [2.0, 8.0]
    assert found[w].tolist() == [1.0, 4.0]
    assert not copy.deepcopy(weft.ones(2)).requires_grad


def test_writes_have_second_derivatives() -> None:
    def f(x: Any) -> Any:
        z = x * x
        z[1:] *= x[:-1]
        z[0] = x[2] ** 3
        return weft.sum(z * z)

    def hessian_row(x: Any) -> Any:
        return weft.grad(f)(x)[1]

    x = weft.asarray([0.5, -0.3, 0.8])
    found = weft.grad(hessian_row)(x).numpy()
    step = 1e-6
    for at in range(3):
        move = np.zeros(3)
        move[at] = step
        wanted = (hessian_row(x + move).item() - hessian_row(x - move).item()) / (2 * step)
        assert found[at] == pytest.approx(wanted, abs=1e-6)


def test_real_and_imaginary_parts_are_written_apart() -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * (1 + 0j)
        weft.imag(z)[...] = y
        return weft.sum(weft.abs(z) ** 2)

    dx, dy = weft.grad(f, argnums=(0, 1))(weft.asarray([3.0]), weft.asarray([4.0]))
    assert (dx.item(), dy.item()) == (6.0, 8.0)


@pytest.mark.parametrize("name", ["add", "multiply", "subtract", "divide", "power", "matmul"])
def test_in_place_operators_keep_what_they_need(name: str) -> None:
    def f(x: Any, y: Any) -> Any:
        z = x * 2
        if name == "add":
            z += y
        elif name == "multiply":
            z *= y
        elif name == "subtract":
            z -= y
        elif name == "divide":
            z /= y
        elif name == "power":
            z **= y
        else:
            z @= y
        return weft.sum(z * z)

    def g(x: Any, y: Any) -> Any:
        z = x * 2
        operations: dict[str, Any] = {
            "add": lambda: z + y,
            "multiply": lambda: z * y,
            "subtract": lambda: z - y,
            "divide": lambda: z / y,
            "power": lambda: z**y,
            "matmul": lambda: z @ y,
        }
        return weft.sum(weft.square(operations[name]()))

    x, y = weft.asarray([[0.5, 2.0], [1.0, 0.2]]), weft.asarray([[1.5, 0.7], [0.3, 1.1]])
    for found, wanted in zip(weft.grad(f, (0, 1))(x, y), weft.grad(g, (0, 1))(x, y), strict=True):
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)


def test_out_and_where_have_gradients() -> None:
    def f(x: Any) -> Any:
        out = x * 3
        weft.log(x, out=out, where=weft.asarray([True, False, True]))
        weft.multiply(out[:1], x[:1], out=out[:1])
        return weft.sum(out)

    found = weft.grad(f)(weft.asarray([2.0, -1.0, 4.0]))
    np.testing.assert_allclose(found.numpy(), [np.log(2) + 1, 3.0, 0.25])


def test_sorting_in_place_and_filling() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        y.sort()
        y[1:2].fill(0.0)
        return weft.sum(y * weft.asarray([1.0, 2.0, 3.0]))

    assert weft.grad(f)(weft.asarray([3.0, 1.0, 2.0])).tolist() == [3.0, 1.0, 0.0]


def test_copyto_of_numpys_has_a_gradient() -> None:
    def f(x: Any) -> Any:
        y = x * 3
        np.copyto(y[:2], x[1:] * 2)
        np.copyto(y[1:2], np.ones(1))
        return weft.sum(y * weft.asarray([1.0, 2.0, 4.0]))

    assert weft.grad(f)(weft.asarray([3.0, 1.0, 2.0])).tolist() == [0.0, 2.0, 12.0]


def test_overwriting_what_was_saved_names_both_lines() -> None:
    x = _leaf(1.0, 2.0)
    h = x * x
    y = weft.sin(h)
    h[:1] = 0.0
    with pytest.raises(
        GradientError,
        match=r"sin\(\) needs its operand 0 .* saved at .*test_tape.py:\d+ and overwritten at .*test_tape.py:\d+",
    ):
        autograd.gradients(y.sum())


def test_writing_beside_what_was_saved_is_no_error() -> None:
    x = _leaf(0.5)
    states = weft.zeros(5)
    states[0:1] = x
    for at in range(4):
        states[at + 1 : at + 2] = weft.sin(states[at : at + 1])
    found = autograd.gradients(states[4])[x].item()
    value, wanted = 0.5, 1.0
    for _ in range(4):
        wanted *= np.cos(value)
        value = np.sin(value)
    assert found == pytest.approx(wanted)


def test_untracked_data_that_was_saved_is_watched_too() -> None:
    w, x = _leaf(1.0, 2.0), weft.ones(2)
    y = (w * x).sum()
    x += 1
    with pytest.raises(GradientError, match=r"multiply\(\) needs its operand 1"):
        autograd.gradients(y)


def test_leaves_stay_as_they_are_but_in_no_grad() -> None:
    w = _leaf(1.0, 2.0)
    with pytest.raises(GradientError, match="no_grad"):
        w += 1
    with pytest.raises(GradientError, match="no_grad"):
        w[:1] = 0.0
    with pytest.raises(GradientError, match="no_grad"):
        np.copyto(w, 0.0)
    with autograd.no_grad():
        w += 1
    assert w.tolist() == [2.0, 3.0]
    assert autograd.gradients((w * w).sum())[w].tolist() == [4.0, 6.0]


def test_backward_twice_needs_to_be_said() -> None:
    w = _leaf(2.0)
    y = (w * w).sum()
    assert autograd.gradients(y, retain=True)[w].item() == 4.0
    assert autograd.gradients(y)[w].item() == 4.0
    with pytest.raises(GradientError, match="retain=True"):
        autograd.gradients(y)


def test_gradients_of_gradients_with_create_graph() -> None:
    w = _leaf(2.0)
    first = autograd.gradients((w**3).sum(), create_graph=True)[w]
    assert first.item() == 12.0
    assert autograd.gradients(first.sum())[w].item() == 12.0


class _Numpy(autograd.Operator):
    def forward(self, x: Any) -> Any:
        return x * 2

    def backward(self, dy: Any) -> Any:
        return dy.numpy()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: autograd.gradients(_leaf(1.0, 2.0) * 2), "no scalar"),
        (lambda: autograd.gradients(weft.ones(2).sum()), "no array that requires a gradient"),
        (lambda: autograd.gradients(_leaf(1.0, 2.0) * 2, weft.ones(3)), "dy has the shape"),
        (lambda: weft.grad(lambda x: x)(3), "write 2.0 for 2"),
        (lambda: weft.grad(lambda x: weft.sum(x))(weft.asarray([1, 2])), "int64"),
        (lambda: weft.grad(lambda x: x * 2)(weft.ones(3)), "scalar"),
        (lambda: weft.grad(lambda x: "loss")(weft.ones(3)), "str"),
        (lambda: weft.grad(lambda x: x, argnums=1)(1.0), "argnums"),
        (lambda: setattr(weft.asarray([1]), "requires_grad", True), "int64"),
        (lambda: weft.vjp(lambda x: x, 1.0)[1]((1.0, 2.0)), "structure"),
        (lambda: weft.grad(weft.sum, has_aux=True)(weft.ones(2)), "pair"),
        (lambda: weft.jvp(lambda x: x, (1.0,), ()), r"tangents: jvp\(fn, \(x, y\), \(dx, dy\)\)"),
        (
            lambda: weft.grad(lambda x: x["w"])({"w": 1.0, "n": 3}),
            r"what argument 0 holds is 3, .* an argument that argnums",
        ),
        (
            lambda: weft.grad(_Numpy())(1.0),
            r"the gradient rule of _Numpy\(\) at .* returned ndarray for input 0: it returns arrays",
        ),
    ],
)
def test_bad_input_is_refused(build: Any, message: str) -> None:
    with pytest.raises(GradientError, match=message):
        build()


def _op(name: str, rule: Any) -> Any:
    @weft.ops.register_op(name, infer=weft.ops.like_first)
    def op(out: Any, x: Any) -> None:
        np.copyto(out, x)

    if rule is not None:
        op.set_attribute("gradient", rule)
    return op


_NO_RULE = _op("test_gradient_without", None)
_FEW = _op("test_gradient_few", lambda node, grads: ())
_ILL = _op("test_gradient_ill", lambda node, grads: (grads[0][:1],))
_DOUBLE = _op("test_gradient_double", lambda node, grads: (grads[0] * node.inputs[0] + node.outputs[0],))


@pytest.mark.parametrize(
    ("op", "message"),
    [
        (_NO_RULE, r"test_gradient_without\(\) at .* has no gradient"),
        (_FEW, r"test_gradient_few\(\) at .* returned 0 gradients for 1 inputs"),
        (_ILL, r"test_gradient_ill\(\) at .* of shape \(1,\) for input 0"),
    ],
)
def test_rules_that_are_wrong_are_named(op: Any, message: str) -> None:
    with pytest.raises(GradientError, match=message):
        autograd.gradients(op(_leaf(1.0, 2.0)).sum())


def test_a_users_op_with_a_rule() -> None:
    w = _leaf(1.0, 2.0)
    assert autograd.gradients(_DOUBLE(w).sum())[w].tolist() == [2.0, 4.0]


def test_training_is_each_threads_and_each_tasks_own() -> None:
    assert autograd.training is False
    seen: dict[str, bool] = {}

    def other() -> None:
        seen["before"] = autograd.training
        autograd.training = True
        seen["after"] = autograd.training

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert (seen, autograd.training) == ({"before": False, "after": True}, False)

    async def task(value: bool, turn: asyncio.Barrier) -> bool:
        autograd.training = value
        await turn.wait()
        return autograd.training

    async def both() -> list[bool]:
        turn = asyncio.Barrier(2)
        return list(await asyncio.gather(task(True, turn), task(False, turn)))

    assert asyncio.run(both()) == [True, False]


def test_nothing_is_heard_while_training_is_false() -> None:
    w = _leaf(1.0)

    def run() -> None:
        autograd.training = False
        assert not (w * 2).requires_grad
        assert weft.grad(lambda x: x * x)(3.0).item() == 6.0
        autograd.training = True
        assert (w * 2).requires_grad

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert (w * 2).requires_grad


def test_saved_values_go_with_the_walk() -> None:
    w = _leaf(1.0, 2.0, 3.0)
    node = weakref.ref(weft._core.tape_entry(weft.exp(w))[0])
    gc.collect()
    assert node() is None
    hidden = weft.exp(w)
    y = weft.sin(hidden).sum()
    seen = weakref.ref(hidden)
    del hidden
    assert seen() is None
    autograd.gradients(y)


def test_long_chains_are_walked_and_dropped_without_depth() -> None:
    w = _leaf(1.0)
    y = w
    for _ in range(30_000):
        y = y + 1.0
    assert autograd.gradients(y.sum())[w].item() == 1.0
    y = w
    for _ in range(30_000):
        y = y + 1.0
    del y


def test_loops_of_memory_and_nodes_are_found_by_the_collector() -> None:
    w = _leaf(0.5)
    states = weft.zeros(3)
    for at in range(2):
        states[at + 1] = weft.tanh(states[at] + w[0])
    node = weakref.ref(weft._core.tape_entry(states)[0])
    del states
    gc.collect()
    assert node() is None


def test_the_same_array_in_two_threads() -> None:
    x = weft.asarray([1.0, 2.0, 3.0])
    failed: list[BaseException] = []

    def run(power: int) -> None:
        try:
            for _ in range(50):
                found = weft.grad(lambda x: weft.sum(x**power))(x)
                np.testing.assert_allclose(found.numpy(), power * np.array([1.0, 2.0, 3.0]) ** (power - 1))
        except BaseException as error:  # noqa: BLE001 - told to the test
            failed.append(error)

    threads = [threading.Thread(target=run, args=(power,)) for power in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
