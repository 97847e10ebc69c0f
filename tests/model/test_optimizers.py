"""Optimizers: what their formulas say, in float64 by NumPy; schedules; states that are taken over; eager and recorded the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd, opt, tensor
from weft.errors import ArgumentValueError


def sgd(
    p: Any, gs: Any, lr: float, momentum: float = 0.0, damp: float = 0.0, decay: float = 0.0, *, nesterov: bool = False
) -> Any:
    v = np.zeros_like(p)
    for g in gs:
        d = g + decay * p
        v = momentum * v + (1 - damp) * d
        p = p - lr * ((d + momentum * v if nesterov else v) if momentum else d)
    return p


def rmsprop(p: Any, gs: Any, lr: float, rho: float, eps: float, decay: float) -> Any:
    a = np.zeros_like(p)
    for g in gs:
        d = g + decay * p
        a = rho * a + (1 - rho) * d * d
        p = p - lr * d / np.sqrt(a + eps)
    return p


def adagrad(p: Any, gs: Any, lr: float, eps: float, decay: float) -> Any:
    h = np.zeros_like(p)
    for g in gs:
        d = g + decay * p
        h = h + d * d
        p = p - lr * d / np.sqrt(h + eps)
    return p


def adam(p: Any, gs: Any, lr: float, b1: float, b2: float, eps: float, decay: float) -> Any:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        d = g + decay * p
        m, v = b1 * m + (1 - b1) * d, b2 * v + (1 - b2) * d * d
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


def adamw(p: Any, gs: Any, lr: float, b1: float, b2: float, eps: float, decay: float) -> Any:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gs, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        p = p - lr * decay * p
        p = p - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return p


CASES = {
    "sgd": (lambda: opt.SGD(0.1), lambda p, gs: sgd(p, gs, 0.1)),
    "momentum": (lambda: opt.SGD(0.1, 0.9, weight_decay=0.01), lambda p, gs: sgd(p, gs, 0.1, 0.9, decay=0.01)),
    "dampening": (lambda: opt.SGD(0.1, 0.9, 0.25), lambda p, gs: sgd(p, gs, 0.1, 0.9, 0.25)),
    "nesterov": (lambda: opt.SGD(0.1, 0.9, nesterov=True), lambda p, gs: sgd(p, gs, 0.1, 0.9, nesterov=True)),
    "rmsprop": (lambda: opt.RMSProp(0.1, 0.8, 1e-6, 0.01), lambda p, gs: rmsprop(p, gs, 0.1, 0.8, 1e-6, 0.01)),
    "adagrad": (lambda: opt.AdaGrad(0.1, 1e-6, 0.01), lambda p, gs: adagrad(p, gs, 0.1, 1e-6, 0.01)),
    "adamw": (lambda: opt.AdamW(0.1, 0.9, 0.99, 1e-6, 0.2), lambda p, gs: adamw(p, gs, 0.1, 0.9, 0.99, 1e-6, 0.2)),
    "adam": (lambda: opt.Adam(0.1, 0.9, 0.99, 1e-6, 0.01), lambda p, gs: adam(p, gs, 0.1, 0.9, 0.99, 1e-6, 0.01)),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "program"])
def test_does_what_its_formula_says(case: str, recorded: bool) -> None:
    make, formula = CASES[case]
    rng = np.random.default_rng(3)
    start = rng.normal(size=(3, 2)).astype(np.float32)
    factors = rng.normal(size=(5, 3, 2)).astype(np.float32)
    w, optimizer = weft.asarray(start), make()
    w.requires_grad = True

    def step(x: weft.NDArray) -> weft.NDArray:
        loss = weft.sum(x * w)
        optimizer(loss)
        return loss

    run = weft.program(step) if recorded else step
    for factor in factors:
        run(weft.asarray(factor))
    np.testing.assert_allclose(w.numpy(), formula(start.astype(np.float64), factors), rtol=2e-5, atol=2e-6)
    assert optimizer.step_counter.item() == len(factors)
    if recorded:
        assert len(run.programs) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", CASES)
def test_eager_and_recorded_are_the_same_bit_for_bit(case: str) -> None:
    factors = np.random.default_rng(4).normal(size=(4, 7)).astype(np.float32)
    found = []
    for recorded in (False, True):
        optimizer, w = CASES[case][0](), weft.ones(7, np.float32)
        w.requires_grad = True
        optimizer.lr = opt.ExponentialDecay(0.1, 2, 0.5)

        def step(x: weft.NDArray, w: weft.NDArray = w, optimizer: opt.Optimizer = optimizer) -> None:
            optimizer(weft.sum(weft.tanh(x * w)))

        run = weft.program(step, static_argnames=("optimizer",)) if recorded else step
        for factor in factors:
            run(weft.asarray(factor))
        found.append(w.numpy())
    np.testing.assert_array_equal(*found)


def test_numbers_that_are_assigned_reach_recorded_steps() -> None:
    w, descent = weft.zeros(2), opt.SGD(1.0)
    w.requires_grad = True
    step = weft.program(lambda: descent(weft.sum(w)))
    step()
    descent.lr = 0.5
    step()
    assert w.tolist() == [-1.5, -1.5]
    assert len(step.programs) == 1
    assert descent.lr.init_value == 0.5


def test_a_number_that_steps_leave_out_is_not_set_in_vain() -> None:
    w, descent = weft.zeros(2), opt.SGD(1.0)
    w.requires_grad = True
    descent.schedule("weight_decay", 0.0)
    weft.program(lambda: descent(weft.sum(w)))()
    for name in ("weight_decay", "momentum"):
        with pytest.raises(ArgumentValueError, match=f"{name} was 0, and steps leave it out"):
            descent.schedule(name, 0.5)
    descent.schedule("weight_decay", 0.0)
    eager = opt.SGD(1.0)
    eager(weft.sum(w))
    eager.schedule("weight_decay", 0.5)  # no step was recorded


def test_corrections_follow_their_numbers() -> None:
    w, descent = weft.asarray([1.0]), opt.Adam(0.1, beta_1=0.9, beta_2=0.9)
    w.requires_grad = True
    descent.schedule("beta_1", 0.5)
    descent(weft.sum(w))
    assert w.item() == pytest.approx(0.9)


@pytest.mark.parametrize("make", [lambda: opt.Adam(0.1), lambda: opt.RMSProp(0.1), lambda: opt.AdaGrad(0.1)])
def test_complex_parameters_go_along_their_gradients(make: Any) -> None:
    z, descent = weft.asarray([3.0 + 4.0j]), make()
    z.requires_grad = True
    before = z.item()
    descent(weft.sum(weft.abs(z) ** 2))
    assert np.angle(before - z.item()) == pytest.approx(np.angle(before))
    gradients, norm = opt.clip_grad_norm(autograd.gradients(weft.sum(weft.abs(z))), 0.5)
    assert norm.item() == pytest.approx(1.0)
    assert abs(gradients[z].item()) == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize(
    "make", [lambda: opt.Adam(0.01), lambda: opt.AdamW(0.01), lambda: opt.RMSProp(0.01), lambda: opt.AdaGrad(0.01)]
)
def test_small_gradients_count_in_half_precision(make: Any) -> None:
    found = []
    for dtype in (np.float16, np.float32):
        w, descent = weft.asarray(np.ones(3, dtype)), make()
        w.requires_grad = True
        for _ in range(3):
            descent(weft.sum(w * weft.asarray(np.array([0.0, 1e-5, 1.0], dtype))))
        assert w.dtype == dtype
        found.append(w.numpy())
    np.testing.assert_allclose(found[0], found[1], atol=2e-3)


def test_schedules() -> None:
    rate = opt.ExponentialDecay(1.0, 2, 0.5, staircase=True)
    assert [rate(weft.asarray([float(at)])).item() for at in range(5)] == [1.0, 1.0, 0.5, 0.5, 0.25]
    w, descent = weft.zeros(1), opt.SGD(rate)
    w.requires_grad = True
    for _ in range(4):
        descent(weft.sum(w))
    assert w.item() == -3.0


def test_states_go_to_another_optimizer() -> None:
    def trained(optimizer: opt.Optimizer, w: weft.NDArray, steps: int) -> None:
        w.requires_grad = True
        optimizer.prepare({"w": w})
        for _ in range(steps):
            optimizer(weft.sum(w * w))

    w, first = weft.ones(3), opt.Adam(0.1)
    trained(first, w, 2)
    v, second = weft.asarray(w.numpy()), opt.Adam(0.1)
    states = first.get_states()
    assert set(states) == {"step_counter", "m", "v"}
    assert list(states["m"]) == ["w"]
    second.prepare({"w": v})
    second.set_states(
        {
            name: state if name == "step_counter" else {k: a.numpy() for k, a in state.items()}
            for name, state in states.items()
        }
    )
    trained(first, w, 2)
    trained(second, v, 2)
    np.testing.assert_array_equal(w.numpy(), v.numpy())
    with pytest.raises(weft.errors.ArgumentValueError, match=r"AdaGrad keeps .*'m', 'v'.*another optimizer"):
        opt.AdaGrad().set_states(states)
    third = opt.Adam()
    third.prepare({"w": weft.ones(2)})
    with pytest.raises(weft.errors.ShapeError, match=r"m of 'w' has the shape \(2,\), and was given \(3,\)"):
        third.set_states(states)
    assert third.step_counter.item() == 0


class Answering(opt.DecayScheduler):
    """A schedule that answers what it was given."""

    def __init__(self, answer: Any) -> None:
        super().__init__(1.0)
        self.answer = answer

    def call(self, step: weft.NDArray) -> Any:
        del step
        return self.answer


def test_numbers_may_be_numpys_and_keep_their_range() -> None:
    w, descent = weft.ones(2), opt.SGD(np.float32(0.5), momentum=np.int64(0))
    w.requires_grad = True
    descent(weft.sum(w))
    assert w.tolist() == [0.5, 0.5]
    adam = opt.Adam()
    with pytest.raises(ValueError, match="beta_1 is at least 0 and below 1, not 2"):
        adam.schedule("beta_1", 2.0)
    with pytest.raises(ValueError, match="lr is at least 0, not -1"):
        adam.lr = -1.0
    assert adam.lr_value.tolist() == [np.float32(0.001)]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: opt.SGD("fast"), TypeError, "lr is a number or an opt.DecayScheduler, not str"),
        (lambda: opt.SGD(None), TypeError, "SGD: lr is a number or an opt.DecayScheduler, not NoneType"),
        (lambda: opt.SGD(-0.1), ValueError, "SGD: lr is at least 0, not -0.1"),
        (lambda: opt.SGD(float("nan")), ValueError, "SGD: lr is at least 0, not nan"),
        (lambda: opt.SGD(0.1, dampening=float("inf")), ValueError, "SGD: dampening is a finite number, not inf"),
        (lambda: opt.SGD(0.1, momentum=-1), ValueError, "SGD: momentum is at least 0 and below 1, not -1"),
        (lambda: opt.SGD(0.1, momentum=1.0), ValueError, "SGD: momentum is at least 0 and below 1, not 1.0"),
        (lambda: opt.RMSProp(0.1, rho=1.5), ValueError, "RMSProp: rho is at least 0 and below 1, not 1.5"),
        (lambda: opt.AdaGrad(0.1, epsilon=-1e-8), ValueError, "AdaGrad: epsilon is at least 0, not -1e-08"),
        (lambda: opt.Adam(beta_1=1.5), ValueError, "Adam: beta_1 is at least 0 and below 1, not 1.5"),
        (lambda: opt.Adam(beta_2=np.float32(1)), ValueError, "Adam: beta_2 is at least 0 and below 1, not 1.0"),
        (
            lambda: opt.Adam(opt.Constant(-1.0)),
            ValueError,
            "Adam: lr, which begins with init_value, is at least 0, not -1",
        ),
        (lambda: opt.ExponentialDecay("a", 1, 0.5), TypeError, "init_value is a number, not str"),
        (lambda: opt.ExponentialDecay(1.0, None, 0.5), TypeError, "decay_steps is a number, not NoneType"),
        (lambda: opt.ExponentialDecay(1.0, 1, -0.5), ValueError, "decay_rate is at least 0, not -0.5"),
        (lambda: opt.ExponentialDecay(float("nan"), 1, 0.5), ValueError, "init_value is a finite number, not nan"),
        (lambda: opt.SGD(Answering(0.1)), TypeError, r"Answering.call\(\) returns an array.*not float"),
        (
            lambda: opt.SGD(Answering(weft.ones(2))),
            ValueError,
            r"Answering.call\(\) .* one element, not of shape \(2,\)",
        ),
        (lambda: opt.SGD(0.1, nesterov=True), ValueError, "nesterov=True needs a momentum"),
        (lambda: opt.Adam(0.1, weight_decay=-1), ValueError, "weight_decay is at least 0"),
        (lambda: opt.ExponentialDecay(1.0, 0, 0.5), ValueError, "decay_steps is a positive"),
        (lambda: opt.SGD(0.1, dtype="int32"), TypeError, "floating-point"),
        (
            lambda: opt.SGD(0.1).apply("w", weft.ones(2), weft.ones(3)),
            ValueError,
            r"gradient of 'w' has the shape \(3,\)",
        ),
    ],
)
def test_mistakes(make: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said) as caught:
        make()
    assert isinstance(caught.value, weft.errors.WeftError)


def test_two_parameters_of_one_name_are_not_mixed_up() -> None:
    optimizer = opt.SGD(0.1, momentum=0.9)
    optimizer.apply("w", weft.ones(2), weft.ones(2))
    with pytest.raises(weft.errors.ShapeError, match="use one optimizer for each model"):
        optimizer.apply("w", weft.ones(3), weft.ones(3))
    optimizer.apply("v", weft.ones(3), weft.ones(3))


class Singas(opt.Optimizer):
    """Momentum, written as SINGA's optimizers are: what a parameter's state is made of asks its device."""

    def __init__(self, lr: float) -> None:
        super().__init__(lr)
        self.moments: dict[str, weft.NDArray] = {}

    def apply(self, param_name: str, param_value: weft.NDArray, param_grad: weft.NDArray) -> None:
        dev: Any = param_value.device
        if param_name not in self.moments:
            flag = dev.graph_enabled()
            dev.EnableGraph(False)
            self.moments[param_name] = tensor.zeros_like(param_value)
            dev.EnableGraph(flag)
        with weft.autograd.no_grad():
            self.moments[param_name] *= 0.5
            self.moments[param_name] += param_grad
            param_value -= self.lr_value * self.moments[param_name]


def test_optimizers_written_for_singa_ask_the_devices_of_parameters() -> None:
    w, descent = tensor.ones((2,)), Singas(0.25)
    w.stores_grad = True
    for _ in range(2):
        descent(weft.sum(w))
    assert w.tolist() == [0.375, 0.375]
