"""A program under a tape is one node, whose gradient is a program: bit for bit what the function gives."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd
from weft.errors import GradientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

Array = weft.NDArray


def leaf(values: Any, engine: weft.Engine | None = None) -> Array:
    x = weft.asarray(np.asarray(values, np.float64), engine=engine)
    x.requires_grad = True
    return x


def assert_same(ours: Array, theirs: Array) -> None:
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[int]]:
    """Return a function that counts the calls of its Python."""
    calls: list[int] = []

    def counting(*args: Any) -> Any:
        calls.append(1)
        return function(*args)

    return counting, calls


def net(x: Array, w: Array, b: Array) -> Array:
    h = weft.tanh(x @ w + b)
    return weft.sum(weft.exp(h * 0.3) * h, axis=0)


def arrays(seed: int = 5) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape) for shape in ((6, 4), (4, 5), (5,))]


@pytest.mark.parametrize("workers", [0, 2])
def test_python_runs_once_and_bits_are_those_of_the_function(workers: int, make_engine: MakeEngine) -> None:
    engine = make_engine(1, "serial") if workers == 0 else make_engine(workers)
    function, calls = counted(net)
    program = weft.program(function)
    for seed in range(4):
        x, w, b = (leaf(values, engine) for values in arrays(seed))
        found = autograd.gradients(weft.sum(program(x, w, b)).reshape(()))
        wanted = autograd.gradients(weft.sum(net(x, w, b)).reshape(()))
        for each in (x, w, b):
            assert_same(found[each], wanted[each])
    # Once for the program, and once more as the gradient of a sum has no memory of its own for each element.
    assert len(calls) <= 2
    (made,) = program.programs
    assert made._taped is not None


def test_it_is_one_node_of_the_tape() -> None:
    from weft._core import tape_entry, tape_walk

    x, w, b = (leaf(values) for values in arrays())
    y = weft.program(net)(x, w, b)
    found = tape_entry(y)
    assert found is not None
    nodes, leaves, _ = tape_walk([found[0]])
    assert (len(nodes), len(leaves)) == (1, 3)


def test_results_that_are_not_differentiable_and_several_others() -> None:
    def function(x: Array, w: Array) -> tuple[Array, ...]:
        y = x * w
        return y, weft.argmax(y), y > 0, weft.sin(y), 1.5  # type: ignore[return-value]

    program = weft.program(function)
    masks: list[tuple[float, float]] = [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)]
    for first, second in masks:
        x, w = leaf([1.0, -2.0, 3.0]), leaf([0.5, 0.25, -1.0])
        answers = []
        for called in (program, function):
            y, place, signs, z, number = called(x, w)  # type: ignore[misc]
            assert (place.requires_grad, signs.requires_grad, number) == (False, False, 1.5)
            assert (y.requires_grad, z.requires_grad) == (True, True)
            heads = [(each, weft.ones(3) * scale) for each, scale in ((y, first), (z, second)) if scale]
            answers.append(autograd.gradients([each for each, _ in heads], [dy for _, dy in heads]))
        for each in (x, w):
            assert_same(answers[0][each], answers[1][each])


def test_an_argument_that_it_writes_to() -> None:
    def accumulate(total: Array, x: Array) -> Array:
        y = weft.sin(x) + total
        total += y * x
        return y

    program = weft.program(accumulate)
    for _ in range(2):
        answers = []
        for called in (program, accumulate):
            x = leaf([0.5, 1.5, 2.5])
            total = x * 2
            y = called(total, x)
            y2 = called(total, x * x)
            loss = weft.sum(total * total) + weft.sum(y * y2)
            answers.append((loss, autograd.gradients(loss)[x], total))
        for ours, theirs in zip(*answers, strict=True):
            assert_same(ours, theirs)
    assert all(made._taped is not None for made in program.programs)


def test_a_saved_argument_that_is_overwritten_names_both_lines() -> None:
    program = weft.program(lambda x, w: weft.sum(x * w))
    w, x = leaf([1.0, 2.0]), weft.asarray([3.0, 4.0])
    loss = program(x, w)
    x += 1.0
    with pytest.raises(
        GradientError, match=r"saved at .*test_programs_on_the_tape.py:\d+ and overwritten at .*tape.py:\d+"
    ):
        autograd.gradients(loss)
    twin = program(x, w)
    assert autograd.gradients(twin)[w].tolist() == [4.0, 5.0]


def test_a_program_that_writes_tells_whoever_saved_the_value_where() -> None:
    @weft.program
    def double(x: Array) -> None:
        x *= 2

    w, x = leaf([1.0, 2.0]), weft.asarray([3.0, 4.0])
    loss = weft.sum(x * w)
    double(x)
    with pytest.raises(GradientError, match=r"overwritten at .*test_programs_on_the_tape.py"):
        autograd.gradients(loss)


def test_a_state_that_is_read_and_overwritten_since() -> None:
    scale, w = weft.asarray([3.0, 4.0]), leaf([1.0, 2.0])
    program = weft.program(lambda x: weft.sum(x * scale * w))
    x = leaf([5.0, 6.0])
    loss = program(x)
    scale += 1.0
    with pytest.raises(GradientError, match=r"overwritten at .*test_programs_on_the_tape.py"):
        autograd.gradients(loss)
    found = autograd.gradients(program(x))
    assert found[w].tolist() == [20.0, 30.0]
    assert found[x].tolist() == [4.0, 10.0]


def test_gradients_of_gradients() -> None:
    program = weft.program(lambda x: weft.sum(weft.sin(x) * x))
    plain = program.__wrapped__
    x = weft.asarray([0.25, 0.5, 2.0])
    second = weft.grad(lambda x: weft.sum(weft.grad(program)(x) ** 2))(x)
    wanted = weft.grad(lambda x: weft.sum(weft.grad(plain)(x) ** 2))(x)
    np.testing.assert_allclose(second.numpy(), wanted.numpy(), rtol=1e-13)
    for ours, theirs in zip(weft.jvp(program, (x,), (x,)), weft.jvp(plain, (x,), (x,)), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-13)
    w = leaf([1.0, 2.0])
    (first,) = autograd.gradients(program(w), create_graph=True).values()
    np.testing.assert_allclose(
        autograd.gradients(weft.sum(first))[w].numpy(),
        2 * np.cos(w.numpy()) - w.numpy() * np.sin(w.numpy()),
        rtol=1e-13,
    )


def test_gradients_of_gradients_of_what_is_written_to_are_refused() -> None:
    def shift(x: Array, counter: Array) -> Array:
        counter += 1
        return weft.sin(x)

    x = weft.asarray([0.5])
    program = weft.program(shift)
    outer = weft.grad(lambda x: weft.sum(weft.grad(lambda x: weft.sum(program(x, weft.zeros(1))))(x)))
    with pytest.raises(GradientError, match=r"weft\.eager"):
        outer(x)
    with weft.eager():
        assert outer(x).item() == pytest.approx(-np.sin(0.5))


def test_gradients_of_gradients_of_what_calls_python_say_so() -> None:
    program = weft.program(lambda x: weft.sum(weft.sort(x) ** 3))
    with pytest.raises(GradientError, match=r"calls Python, .* or sort"):
        weft.grad(lambda x: weft.sum(weft.grad(program)(x)))(weft.asarray([2.0, 1.0]))


@pytest.mark.parametrize("attribute", [False, True])
def test_a_gradient_of_another_layout_is_that_of_the_call(attribute: bool) -> None:
    rate, settings = 2.0, SimpleNamespace(rate=2.0)
    program = weft.program((lambda x: x * x * settings.rate) if attribute else (lambda x: x * x * rate))
    values = np.arange(6.0).reshape(2, 3)
    dy = weft.asarray(values.T.copy()).T
    assert dy.strides == (8, 16)
    for _ in range(2):
        x = leaf(values)
        y = program(x)
        rate = settings.rate = 5.0
        assert autograd.gradients(y, dy)[x].tolist() == (4.0 * values * values).tolist()
        rate = settings.rate = 2.0


def test_a_gradient_of_a_gradient_is_that_of_the_call() -> None:
    rate, settings = 2.0, SimpleNamespace(rate=1.0)
    program = weft.program(lambda x: x**3 * rate * settings.rate)

    def inner(x: Array) -> Array:
        nonlocal rate
        y, pull = weft.vjp(program, x)
        rate, settings.rate = 5.0, after
        return pull(weft.ones_like(y))[0].sum()

    after = 1.0
    assert weft.grad(inner)(weft.asarray([1.0, 2.0])).tolist() == [12.0, 24.0]
    rate, after = 2.0, 3.0
    with pytest.raises(GradientError, match=r"settings\.rate was bound anew since the call"):
        weft.grad(inner)(weft.asarray([1.0, 2.0]))


def test_a_failure_fails_the_gradient() -> None:
    @weft.program
    def function(x: Array, w: Array) -> Array:
        return weft.sum(weft.linalg.inv(x) @ w)

    w = leaf(np.eye(2))
    with pytest.raises(np.linalg.LinAlgError):
        autograd.gradients(function(weft.zeros((2, 2)), w))[w].numpy()
    assert autograd.gradients(function(weft.eye(2), w))[w].tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_value_and_grad_inside_and_a_program_inside() -> None:
    inner = weft.program(lambda x: weft.tanh(x) * x)

    def function(x: Array, w: Array) -> tuple[Array, Array]:
        value, gradient = weft.value_and_grad(lambda w: weft.sum(inner(x * w)))(w)
        return value, gradient * x

    program = weft.program(function)
    answers = []
    for called in (program, function):
        x, w = leaf([1.0, 2.0]), leaf([0.5, -0.5])
        value, gradient = called(x, w)
        found = autograd.gradients(value + weft.sum(gradient))
        answers.append((value, gradient, found[x], found[w]))
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-13)
    (made,) = program.programs
    assert made._taped is not None


def test_training_is_part_of_the_signature() -> None:
    @weft.program
    def half(x: Array) -> Array:
        return x * (0.5 if autograd.training else 2.0)

    before = autograd.training
    x = leaf([1.0, 2.0])
    try:
        autograd.training = True
        assert autograd.gradients(weft.sum(half(x)))[x].tolist() == [0.5, 0.5]
        autograd.training = False
        autograd.modes.LISTENING.set(True)
        assert autograd.gradients(weft.sum(half(x)))[x].tolist() == [2.0, 2.0]
    finally:
        autograd.training = before
        autograd.modes.LISTENING.set(None)


def test_what_it_keeps_goes_with_the_gradient() -> None:
    program = weft.program(lambda x: weft.sum(weft.exp(x)))
    x = leaf([1.0, 2.0])
    loss = program(x)
    found = autograd.gradients(loss, retain=True)[x]
    assert_same(autograd.gradients(loss)[x], found)
    with pytest.raises(GradientError, match="computed before"):
        autograd.gradients(loss)


def test_draws_are_those_of_the_call() -> None:
    def run(*, recorded: bool) -> list[Array]:
        generator = weft.random.default_rng(3)

        def dropped(x: Array) -> Array:
            return weft.nn.dropout(x, 0.5, generator) * x

        called = weft.program(dropped) if recorded else dropped
        x = leaf(np.arange(1.0, 33.0))
        return [autograd.gradients(weft.sum(called(x)))[x] for _ in range(3)]

    for ours, theirs in zip(run(recorded=True), run(recorded=False), strict=True):
        assert_same(ours, theirs)


def test_a_leaf_that_is_another_one_by_now() -> None:
    params = [leaf([2.0])]

    @weft.program
    def scaled(x: Array) -> Array:
        return weft.sum(x * params[0])

    x = weft.asarray([3.0])
    assert autograd.gradients(scaled(x))[params[0]].tolist() == [3.0]
    params[0].requires_grad = False
    assert not scaled(x).requires_grad


def test_a_checkpoint_inside_keeps_less() -> None:
    def block(x: Array) -> Array:
        for _ in range(8):
            x = weft.tanh(weft.sin(x))
        return x

    def deep(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
        return lambda x: weft.sum(run(run(x)))

    plain, again = weft.program(deep(block)), weft.program(deep(weft.checkpoint(block)))
    x = leaf(np.linspace(-1, 1, 64))
    one, other = (autograd.gradients(called(x))[x] for called in (plain, again))
    assert_same(one, other)
    kept = [len(program.programs[0]._taped.kept) for program in (plain, again)]  # type: ignore[union-attr]
    assert kept[1] < kept[0] / 4


@pytest.mark.parametrize("on_the_tape", [True, False])
def test_results_of_a_checkpoint_that_are_overwritten_are_computed_again(on_the_tape: bool) -> None:
    def block(x: Array) -> Array:
        return weft.tanh(x @ x)

    def deep(run: Callable[[Array], Array]) -> Callable[[Array], Array]:
        def function(x: Array) -> Array:
            y = run(x * 1.0)
            y += 1.0
            z = run(y)
            z[0] = 0.25
            return weft.sum(z * z)

        return function

    x = weft.asarray(np.linspace(-1, 1, 16).reshape(4, 4))
    if on_the_tape:
        x.requires_grad = True
    found = []
    for function in (deep(lambda x: block(x).copy()), deep(weft.checkpoint(block))):
        if on_the_tape:
            eager, program = (autograd.gradients(called(x))[x] for called in (function, weft.program(function)))
        else:
            eager, program = (called(x) for called in (weft.grad(function), weft.program(weft.grad(function))))
        assert_same(eager, program)
        found.append(eager)
    assert_same(*found)


# Random programs.

UNARY = (weft.sin, weft.tanh, weft.exp, lambda x: x.T, lambda x: x * x, lambda x: weft.maximum(x, 0.1), weft.abs)
BINARY = (
    weft.add,
    weft.multiply,
    weft.subtract,
    weft.minimum,
    lambda a, b: a @ b,
    lambda a, b: weft.where(a > b, a, b),
)


def random_function(random: np.random.Generator) -> Callable[..., Any]:
    steps = [
        (
            int(random.integers(0, 5)),
            int(random.integers(0, 1 << 20)),
            int(random.integers(0, 1 << 20)),
            int(random.integers(0, 1 << 20)),
        )
        for _ in range(int(random.integers(3, 10)))
    ]
    results = int(random.integers(1, 4))

    def function(*given: Array) -> Any:
        values = list(given)
        for kind, which, one, other in steps:
            a, b = values[one % len(values)], values[other % len(values)]
            if kind <= 1:
                values.append(weft.clip(UNARY[which % len(UNARY)](a), -3.0, 3.0))
            elif kind <= 3:
                values.append(weft.clip(BINARY[which % len(BINARY)](a, b), -3.0, 3.0))
            elif one % len(values) >= len(given) and a is not b:  # in place, on what is the function's own
                c = a.copy()
                c[1:] += weft.sin(b[:-1])
                values.append(c)
        return tuple(values[-results:])

    return function


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    random = np.random.default_rng([7, seed])
    function = random_function(random)
    program = weft.program(function)
    count = int(random.integers(1, 4))
    for _ in range(2):
        values = [random.standard_normal((3, 3)) for _ in range(count)]
        graded = [bool(random.integers(0, 3)) for _ in range(count)]
        graded[0] = True
        further, dropped = int(random.integers(0, 3)), int(random.integers(0, 3))
        answers = []
        for called in (program, function):
            given = [weft.asarray(each) for each in values]
            for x, known in zip(given, graded, strict=True):
                x.requires_grad = known
            passed = [x * 1.5 if at == further else x for at, x in enumerate(given)]
            results = [y for at, y in enumerate(called(*passed)) if at != dropped or at == 0]
            # Outer uses before and after, whose gradients are summed up with those of the program.
            loss = sum((weft.sum(weft.sin(y)) for y in results if y.requires_grad), weft.sum(given[0] * 2.0))
            loss = loss + weft.sum(weft.cos(passed[0]) * given[0])
            found = autograd.gradients(loss)
            answers.append([found.get(x) for x, known in zip(given, graded, strict=True) if known])
        for ours, theirs in zip(*answers, strict=True):
            # A node of several results has a gradient, of zeros, for what those that were used do not depend on.
            assert_same(weft.zeros_like(ours) if theirs is None else theirs, ours) if ours is not None else None
            assert (ours is None) <= (theirs is None)
