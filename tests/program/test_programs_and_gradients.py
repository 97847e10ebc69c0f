"""Programs and the tape together: gradients inside of programs, and programs inside of gradients."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd
from weft.errors import CaptureError, GradientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

SIZES = (5, 7, 6, 3)


def leaf(values: Any, engine: weft.Engine | None = None) -> weft.NDArray:
    x = weft.asarray(np.asarray(values, np.float64), engine=engine)
    x.requires_grad = True
    return x


def weights(engine: weft.Engine | None = None, *, graded: bool = True) -> list[weft.NDArray]:
    random = np.random.default_rng(11)
    made = []
    for rows, columns in itertools.pairwise(SIZES):
        for shape in ((rows, columns), (columns,)):
            made.append(weft.asarray(random.standard_normal(shape) * 0.3, engine=engine))
            made[-1].requires_grad = graded
    return made


def batches(count: int, engine: weft.Engine | None = None) -> list[tuple[weft.NDArray, weft.NDArray]]:
    random = np.random.default_rng(12)
    shapes = (8, SIZES[0]), (8, SIZES[-1])
    return [
        tuple(weft.asarray(random.standard_normal(shape), engine=engine) for shape in shapes)  # type: ignore[misc]
        for _ in range(count)
    ]


def loss_of(params: list[weft.NDArray], x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
    h = weft.tanh(x @ params[0] + params[1])
    h = weft.maximum(h @ params[2] + params[3], 0.0)
    rest = h @ params[4] + params[5] - y
    return weft.mean(rest * rest)


def descend(parameter: weft.NDArray, gradient: weft.NDArray, rate: float) -> None:
    parameter -= rate * gradient


def by_backward(params: list[weft.NDArray], x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
    loss = loss_of(params, x, y)
    for parameter, gradient in autograd.backward(loss):
        with autograd.no_grad():
            descend(parameter, gradient, 0.1)
    return loss


def by_gradients(params: list[weft.NDArray], x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
    loss = loss_of(params, x, y)
    found = autograd.gradients(loss)
    with autograd.no_grad():
        for parameter in params:
            descend(parameter, found[parameter], 0.1)
    return loss


def by_value_and_grad(params: list[weft.NDArray], x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
    loss, found = autograd.value_and_grad(loss_of)(params, x, y)
    with autograd.no_grad():
        for parameter, gradient in zip(params, found, strict=True):
            descend(parameter, gradient, 0.1)
    return loss  # type: ignore[no-any-return]


#: With whether their parameters say requires_grad.
STEPS = ((by_backward, True), (by_gradients, True), (by_value_and_grad, False))


def trained(
    step: Callable[..., weft.NDArray], engine: weft.Engine | None = None, *, graded: bool = True
) -> list[np.ndarray[Any, Any]]:
    params = weights(engine, graded=graded)
    losses = [step(params, x, y) for x, y in batches(5, engine)]
    return [np.array(each.numpy()) for each in (*params, *losses)]


def assert_same(ours: list[np.ndarray[Any, Any]], theirs: list[np.ndarray[Any, Any]]) -> None:
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize(("step", "graded"), STEPS)
def test_a_training_step_is_what_it_is_eagerly(
    step: Callable[..., weft.NDArray], graded: bool, workers: int, make_engine: MakeEngine
) -> None:
    engine = make_engine(1, "serial") if workers == 0 else make_engine(workers)
    program = weft.program(step)
    assert_same(trained(program, engine, graded=graded), trained(step, engine, graded=graded))
    assert len(program.programs) == 1
    assert not program.programs[0]._heard
    assert program.programs[0].ops > 10


def test_a_loss_that_has_gradients_still_is_on_the_tape() -> None:
    program = weft.program(by_value_and_grad)
    assert_same(trained(program), trained(by_value_and_grad))
    assert program.programs[0]._heard
    with autograd.no_grad():
        assert_same(trained(program), trained(by_value_and_grad))
    assert not program.programs[-1]._heard


def test_parameters_that_the_function_closes_over_are_trained() -> None:
    def run(*, recorded: bool) -> tuple[list[np.ndarray[Any, Any]], int]:
        w, b = leaf(np.linspace(-1, 1, 15).reshape(5, 3)), leaf([0.1, 0.2, 0.3])
        calls: list[int] = []

        def step(x: weft.NDArray, y: weft.NDArray) -> weft.NDArray:
            calls.append(1)
            loss = weft.mean((weft.tanh(x @ w + b) - y) ** 2)
            for parameter, gradient in autograd.backward(loss):
                with autograd.no_grad():
                    descend(parameter, gradient, 0.1)
            return loss

        called = weft.program(step) if recorded else step
        losses = [called(x, y) for x, y in batches(5)]
        assert w.requires_grad
        assert b.requires_grad
        return [np.array(each.numpy()) for each in (w, b, *losses)], len(calls)

    ours, calls = run(recorded=True)
    theirs, eagerly = run(recorded=False)
    assert_same(ours, theirs)
    assert (calls, eagerly) == (1, 5)


def test_the_same_step_is_checked_call_by_call() -> None:
    program = weft.program(by_backward, verify=1)
    assert_same(trained(program), trained(by_backward))


def test_a_program_under_a_tape_has_the_gradients_of_its_function() -> None:
    program = weft.program(loss_of)
    for x, y in batches(3):
        ours, theirs = weights(), weights()
        found, wanted = autograd.gradients(program(ours, x, y)), autograd.gradients(loss_of(theirs, x, y))
        assert_same([found[w].numpy() for w in ours], [wanted[w].numpy() for w in theirs])
        plain = weights(graded=False)
        assert_same(
            [each.numpy() for each in autograd.grad(program)(plain, x, y)],
            [each.numpy() for each in autograd.grad(loss_of)(plain, x, y)],
        )
        assert program(plain, x, y).item() == loss_of(plain, x, y).item()
        assert not program(plain, x, y).requires_grad


def test_a_program_between_heard_ops_passes_gradients_through() -> None:
    @weft.program
    def inner(x: weft.NDArray, scale: weft.NDArray) -> weft.NDArray:
        return weft.sin(x) * scale

    w, scale = leaf([0.5, 1.5]), weft.asarray([2.0, 3.0])
    for _ in range(2):
        found = autograd.gradients(weft.sum(inner(w * w, scale) * w))[w].numpy()
        x = w.numpy()
        np.testing.assert_allclose(found, scale.numpy() * (np.sin(x * x) + 2 * x * x * np.cos(x * x)), rtol=1e-13)
    assert len(inner.programs) == 1
    assert inner(scale, scale).tolist() == (np.sin(scale.numpy()) * scale.numpy()).tolist()
    assert len(inner.programs) == 2


def test_a_state_that_requires_a_gradient_is_on_the_tape() -> None:
    w = leaf([2.0, 3.0])

    @weft.program
    def scaled(x: weft.NDArray) -> weft.NDArray:
        return weft.sum(x * w)

    x = weft.asarray([5.0, 7.0])
    for _ in range(3):
        assert autograd.gradients(scaled(x))[w].tolist() == [5.0, 7.0]
    w.requires_grad = False
    assert not scaled(x).requires_grad
    w.requires_grad = True
    assert autograd.gradients(scaled(x))[w].tolist() == [5.0, 7.0]


@pytest.mark.parametrize("holder", ["list", "dict", "object"])
def test_a_state_behind_an_item_that_requires_a_gradient_later_is_noticed(holder: str) -> None:
    w, x = weft.asarray([2.0, 3.0]), weft.asarray([5.0, 7.0])
    params: Any = {"list": [w], "dict": {0: w}, "object": [[SimpleNamespace(w=w)]]}[holder]

    @weft.program
    def scaled(x: weft.NDArray) -> weft.NDArray:
        return weft.sum(x * (params[0][0].w if holder == "object" else params[0]))

    for _ in range(2):
        assert not scaled(x).requires_grad
    w.requires_grad = True
    for _ in range(2):
        assert autograd.gradients(scaled(x))[w].tolist() == [5.0, 7.0]
    assert "states without a name" in scaled.why() or "params" in scaled.why()
    w.requires_grad = False
    assert not scaled(x).requires_grad
    assert len(scaled.programs) == 2


def test_a_state_behind_an_item_that_a_heard_op_has_written_is_noticed() -> None:
    total, w, x = weft.asarray([2.0, 3.0]), leaf([1.0, 2.0]), weft.asarray([5.0, 7.0])
    held = [total[:]]

    @weft.program
    def scaled(x: weft.NDArray) -> weft.NDArray:
        return weft.sum(x * held[0])

    assert not scaled(x).requires_grad
    total += w * w
    assert autograd.gradients(scaled(x))[w].tolist() == [10.0, 28.0]


def test_an_argument_changed_by_what_is_heard_is_on_the_tape() -> None:
    @weft.program
    def add(total: weft.NDArray, w: weft.NDArray) -> None:
        total += w * w

    w = leaf([2.0, 3.0])
    for _ in range(2):
        total = weft.zeros(2)
        add(total, w)
        assert autograd.gradients(total.sum())[w].tolist() == [4.0, 6.0]


def test_a_state_changed_by_what_is_heard_is_refused_and_stays() -> None:
    w, total = leaf([2.0, 3.0]), weft.zeros(2)

    @weft.program
    def add(w: weft.NDArray) -> None:
        total[...] = total + w * w

    with pytest.raises(CaptureError, match="no_grad"):
        add(w)
    assert not total.requires_grad
    assert total.tolist() == [0.0, 0.0]
    with autograd.no_grad():
        add(w)
    assert total.tolist() == [4.0, 9.0]


def test_a_gradient_that_was_computed_inside_is_refused_as_eagerly() -> None:
    def step(w: weft.NDArray) -> weft.NDArray:
        loss = (w * w).sum()
        list(autograd.backward(loss))
        return loss

    program = weft.program(step)
    assert program(leaf([1.0, 2.0])).item() == 5.0
    for function in (step, program, program):
        with pytest.raises(GradientError, match="computed before"):
            autograd.grad(function)(weft.ones(2))


def test_one_leaf_given_twice_has_one_gradient() -> None:
    @weft.program
    def step(a: weft.NDArray, b: weft.NDArray) -> weft.NDArray:
        loss = (a * b).sum()
        for parameter, gradient in autograd.backward(loss):
            with autograd.no_grad():
                descend(parameter, gradient, 0.25)
        return loss

    w = leaf([2.0, 4.0])
    assert [step(w, w).item() for _ in range(2)] == [20.0, 5.0]
    assert w.tolist() == [0.5, 1.0]


def test_requires_grad_is_part_of_a_signature() -> None:
    @weft.program
    def double(x: weft.NDArray) -> weft.NDArray:
        return x * 2

    x = weft.ones(3)
    assert not double(x).requires_grad
    x.requires_grad = True
    assert double(x).requires_grad
    assert "requires_grad" in double.why()
    assert len(double.programs) == 2
    assert autograd.gradients(double(x).sum())[x].tolist() == [2.0] * 3
    x.requires_grad = False
    assert not double(x).requires_grad
    assert len(double.programs) == 2


def test_where_the_tape_does_not_listen_a_program_is_replayed() -> None:
    calls: list[int] = []

    @weft.program
    def double(x: weft.NDArray) -> weft.NDArray:
        calls.append(1)
        return x * 2

    x = leaf([1.0, 2.0])
    with autograd.no_grad():
        for _ in range(3):
            assert not double(x).requires_grad
    assert len(calls) == 1
    assert double(x).requires_grad
    with autograd.no_grad():
        assert not double(x).requires_grad


def test_training_or_not_are_two_programs() -> None:
    @weft.program
    def half(x: weft.NDArray) -> weft.NDArray:
        return x * 0.5 if autograd.training else x * 1.0

    x = weft.asarray([2.0])
    before = autograd.training
    try:
        for _ in range(2):
            autograd.training = True
            assert half(x).item() == 1.0
            autograd.training = False
            assert half(x).item() == 2.0
        assert len(half.programs) == 2
        assert "autograd.training" in half.why()
    finally:
        autograd.training = before
        autograd.modes.LISTENING.set(None)


def test_a_leaf_twin_written_while_nothing_is_saved_is_no_error() -> None:
    @weft.program
    def step(w: weft.NDArray) -> weft.NDArray:
        with autograd.no_grad():
            w += 1.0
        loss = (w * w).sum()
        (pair,) = autograd.backward(loss)
        return pair[1]

    assert [step(leaf([1.0, 2.0])).tolist() for _ in range(2)] == [[4.0, 6.0]] * 2


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
@pytest.mark.parametrize("number", [1.0, float("nan")])
def test_extremes_of_numbers_stay_on_the_arrays_engine(name: str, number: float, make_engine: MakeEngine) -> None:
    values = [0.5, 1.0, 2.0, float("nan")]
    function = getattr(weft, name)
    x = leaf(values, make_engine(1))
    found = autograd.gradients(function(x, number).sum())[x]
    both = leaf(values)
    assert found.engine is x.engine
    np.testing.assert_array_equal(found.numpy(), autograd.gradients(function(both, weft.full(4, number)).sum())[both])


def test_gradients_of_gradients_are_recorded() -> None:
    def second(x: weft.NDArray) -> weft.NDArray:
        return autograd.grad(lambda x: autograd.grad(lambda x: weft.sum(weft.sin(x) * x))(x).sum())(x)  # type: ignore[no-any-return]

    x = weft.asarray([0.25, 0.5, 2.0])
    program = weft.program(second)
    for _ in range(3):
        assert program(x).numpy().tobytes() == second(x).numpy().tobytes()
    assert len(program.programs) == 1


@pytest.mark.parametrize("closed", [False, True])
def test_a_saved_value_that_is_overwritten_is_refused_while_recording_too(closed: bool) -> None:
    outer = leaf([1.0, 2.0])

    def step(w: weft.NDArray) -> None:
        w = outer if closed else w
        loss = (w * w).sum()
        with autograd.no_grad():
            w += 1.0
        list(autograd.backward(loss))

    with pytest.raises(GradientError, match="overwritten"):
        step(leaf([1.0, 2.0]))
    with pytest.raises(GradientError, match="overwritten"):
        weft.program(step)(leaf([1.0, 2.0]))
