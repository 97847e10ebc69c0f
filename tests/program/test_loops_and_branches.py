"""`weft.scan` and `weft.cond` as ops of a program: bit for bit what Python's loops and branches give, with gradients."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, ArgumentValueError, CaptureError, GradientError, GraphError


def bits(value: Any) -> Any:
    """Return arrays in a structure as shape, dtype and bytes."""
    if isinstance(value, (tuple, list)):
        return [bits(each) for each in value]
    if isinstance(value, dict):
        return {key: bits(each) for key, each in value.items()}
    if isinstance(value, (weft.NDArray, np.ndarray)):
        return value.shape, str(value.dtype), np.asarray(value).tobytes()
    return value


ROWS = weft.random.default_rng(7).random((6, 3)) - 0.4


def mutates_state(w: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        nonlocal w
        w += x.sum()
        return c + w, w * 2

    return weft.scan(body, weft.zeros(3), xs)


def returns_state(w: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        nonlocal w
        w += x.sum()
        return c + w, w

    return weft.scan(body, weft.zeros(3), xs)


def mutates_carry(c: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        c += x
        return c, c

    return weft.scan(body, c, xs)


def draws(generator: Any) -> Any:
    return lambda c, xs: weft.scan(lambda c, x: (c + generator.random(3) * x, generator.random(2)), c, xs)


def constants(c: Any, xs: Any) -> Any:
    return weft.scan(lambda c, x: (c * weft.asarray([1.0, 2.0, 3.0]) + x, (weft.asarray([1, 2]), 3, None)), c, xs)


def changed_constants(c: Any, xs: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        k = weft.asarray([1.0, 2.0, 3.0])
        k += x
        return c + k, weft.sort(k)

    return weft.scan(body, c, xs)


def nested(inner: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        return weft.scan(lambda d, e: (inner(d * e + 1), d - e), c, weft.stack([x, x * 2]))

    return lambda c, xs: weft.scan(body, c, xs)


ONE, TWO = np.float64(1.0), np.float64(2.0)
LOOPS: dict[str, tuple[Any, int]] = {
    # name: (function of a carry and rows, ops of its program)
    "plain": (lambda c, xs: weft.scan(lambda c, x: (c * 0.5 + x, c), c, xs), 1),
    "backwards": (lambda c, xs: weft.scan(lambda c, x: (c * 0.5 + x, c), c, xs, reverse=True), 1),
    "handed on": (lambda c, xs: weft.scan(lambda c, x: ((c[1], c[0] + x), c[0]), (c, c * 2), xs), 2),
    "handed on, too few rows": (lambda c, xs: weft.scan(lambda c, x: ((c[1], c[0] + x), c[0]), (c, c * 2), xs[:1]), 3),
    "swapped": (lambda c, xs: weft.scan(lambda c, _: ((c[1], c[0]), c[0]), (c, c * 2), xs), 7),
    "kept": (lambda c, xs: weft.scan(lambda c, x: ((c[0], c[0] + c[1] * x), None), (c, c * 2), xs), 2),
    "one twice": (lambda c, xs: weft.scan(lambda c, x: ((c[0] + x,) * 2, None), (c, c), xs), 1),
    "a state": (mutates_state, 2),
    "a state as the row": (returns_state, 25),
    "the carry changed": (mutates_carry, 12),
    "ops of Python": (lambda c, xs: weft.scan(lambda c, x: (weft.sort(c + x), weft.where(x > 0, c, x)), c, xs), 1),
    "constants": (constants, 1),
    "constants changed": (changed_constants, 1),
    "loops in loops": (nested(weft.tanh), 1),
    "ops of Python in loops in loops": (nested(weft.sort), 1),
    "other strides at first": (lambda c, xs: weft.scan(lambda c, x: (c * x.sum(), c[::-1]), c[::-1], xs[::-1, ::2]), 6),
    "a number counted": (lambda c, xs: weft.scan(lambda c, x: ((c[0] + 1, c[1] * c[0]), x), (0, c), xs), 12),
    "no rows": (lambda c, xs: weft.scan(lambda c, x: (c + x, c * 2), c, xs[:0]), 0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_loops_of_python(name: str) -> None:
    f, ops = LOOPS[name]
    given = [weft.ones(3), ROWS.copy()]
    ours, theirs, alone = ([x.copy() for x in given] for _ in range(3))
    step = weft.program(f)
    for _ in range(3):
        with weft.eager():
            wanted = f(*ours)
        assert bits(step(*theirs)) == bits(wanted)
        assert bits(f(*alone)) == bits(wanted), "outside of programs"
        assert bits(theirs) == bits(ours) == bits(alone)
    assert step.programs[0].ops == ops


def test_draws_go_on_from_row_to_row() -> None:
    one, two = (draws(weft.random.default_rng(4)) for _ in range(2))
    step = weft.program(one)
    for _ in range(3):
        with weft.eager():
            wanted = two(weft.ones(3), ROWS)
        assert bits(step(weft.ones(3), ROWS)) == bits(wanted)
    assert step.programs[0].ops == 1


def dropped(wrap: Any, generator: Any) -> Any:
    """Return a step whose gradient reads what was drawn, in a loop with gradients and in one without."""

    def body(c: Any, x: Any) -> Any:
        return c + weft.nn.dropout(x, 0.5, generator) * x, c * 1.0

    def block(xs: Any) -> Any:
        noise, _ = weft.scan(lambda c, _: (c + generator.random(3), None), weft.zeros(3), None, length=2)
        carry, rows = weft.scan(body, weft.zeros(3), xs)
        return weft.sin(xs) * carry * noise + rows

    block = wrap(block)
    return weft.grad(lambda xs: weft.sum(block(block(xs)) ** 2))


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    "wrap", [lambda fn: fn, weft.checkpoint, weft.program, lambda fn: weft.checkpoint(weft.program(fn))]
)
def test_gradients_of_loops_that_draw_are_those_of_what_was_drawn(wrap: Any, recorded: bool) -> None:
    ours, theirs = weft.random.default_rng(4), weft.random.default_rng(4)
    step, plain = dropped(wrap, ours), dropped(lambda fn: fn, theirs)
    step = weft.program(step) if recorded else step
    for _ in range(3):
        with weft.eager():
            wanted = plain(ROWS)
        np.testing.assert_allclose(step(ROWS).numpy(), wanted.numpy(), rtol=1e-12)
    assert ours.random(2).tolist() == theirs.random(2).tolist()


def test_a_body_is_recorded_once() -> None:
    calls = []

    def body(c: Any, x: Any) -> Any:
        calls.append(1)
        return weft.tanh(c + x), c

    step = weft.program(lambda c, xs: weft.scan(body, c, xs))
    step(weft.ones(3), weft.ones((1000, 3)))
    assert len(calls) == 1
    assert "scan" in str(step.programs[0].summary())


def test_what_a_body_refers_to_is_noticed() -> None:
    factor = [2.0]
    scale = 2.0

    def body(c: Any, x: Any) -> Any:
        return c * scale + x * factor[0], None

    assert weft.scan(body, weft.asarray(1.0), weft.ones(2))[0].item() == 1 * 4 + 2 * 2 + 2
    scale = 1.0
    assert weft.scan(body, weft.asarray(1.0), weft.ones(2))[0].item() == 1 + 2 + 2


def returned_beside(kind: str) -> Any:
    """Return a function that returns an array that a branch, a body or a program in it refers to, too."""

    def step(x: Any) -> Any:
        y = x * 2
        if kind == "cond":
            return y, weft.cond(x.sum() > 1, lambda: y + 1, lambda: y - 1)
        if kind == "scan":
            return y, weft.scan(lambda c, row: (c + row * y, y * c), x, weft.ones((3, 2)))
        return y, weft.program(lambda z: z + y)(x)

    return step


@pytest.mark.parametrize("kind", ["cond", "scan", "program"])
def test_what_a_body_refers_to_may_be_returned_too(kind: str) -> None:
    step = returned_beside(kind)
    program = weft.program(step)
    for start in (1.0, -1.0):
        x = weft.full(2, start)
        assert bits(program(x)) == bits(step(x))
    assert len(program.programs) == 1


def in_branches(x: Any) -> Any:
    for number in range(3):
        x = weft.cond(x.sum() > number, lambda: x * (number + 1), lambda: x - number)  # noqa: B023 - called here
    return x


def in_bodies(x: Any) -> Any:
    factor = 1.0
    for _ in range(3):
        x, _ = weft.scan(lambda c, row: (c * factor + row, None), x, weft.ones((2, 2)))  # noqa: B023 - called here
        factor += 1.0
    return x


def in_programs(x: Any) -> Any:
    factor = 1.0
    scaled = weft.program(lambda x: x * factor)
    first = scaled(x)
    factor = 2.0
    return first + scaled(x)


@pytest.mark.parametrize("step", [in_branches, in_bodies, in_programs])
def test_variables_of_the_function_that_bodies_refer_to_may_change(step: Any) -> None:
    program = weft.program(step)
    for _ in range(3):
        assert bits(program(weft.ones(2))) == bits(step(weft.ones(2)))
    assert len(program.programs) == 1, program.why()


def test_attributes_that_bodies_read_of_variables_are_noticed() -> None:
    layers = [SimpleNamespace(rate=2.0), SimpleNamespace(rate=3.0)]

    @weft.program
    def step(x: Any) -> Any:
        for layer in layers:
            x = weft.cond(x.sum() > 0, lambda: x * layer.rate, lambda: x)  # noqa: B023 - called here
        return x

    assert [step(weft.ones(1)).item() for _ in range(2)] == [6.0, 6.0]
    assert len(step.programs) == 1
    for layer in layers:
        layer.rate += 1.0
        step(weft.ones(1))
    assert step(weft.ones(1)).item() == 12.0
    assert len(step.programs) == 3


def test_what_a_body_stored_is_gone() -> None:
    kept: list[Any] = []

    def body(c: Any, x: Any) -> Any:
        kept.append(c * 2)
        return c + x, None

    step = weft.program(lambda c, xs: (weft.scan(body, c, xs), kept[-1] + 1))
    with pytest.raises(CaptureError, match="scan"):
        step(weft.ones(3), ROWS)
    assert weft.scan(lambda c, x: (c + x, None), weft.ones(3), ROWS)[0].shape == (3,)


def test_values_are_not_known_in_a_body() -> None:
    for ask in (float, bool):
        with pytest.raises(CaptureError, match=r"test_loops_and_branches.*py"):
            weft.scan(lambda c, x, ask=ask: (c + ask(x), None), weft.asarray(1.0), weft.ones(3))


def test_a_failing_row_fails_the_loop_with_its_line() -> None:
    def fail(out: Any, x: Any) -> None:
        if x[0] > 2:
            raise ZeroDivisionError("on purpose")
        out[...] = x

    op = weft.register_op("test_loops_fail", infer=weft.ops.like_first)(fail)
    step = weft.program(lambda c, xs: weft.scan(lambda c, x: (op(c + x), x), c, xs))
    carry, rows = step(weft.zeros(1), weft.ones((4, 1)))
    for array in (carry, rows):
        with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
            array.wait_to_read()
        assert "test_loops_and_branches.py" in "".join(caught.value.__notes__)
    again, _ = step(weft.zeros(1), weft.ones((4, 1)) * 0.5)
    assert again.item() == 2.0


def lstm(p: Any, xs: Any, carry: Any) -> Any:
    def body(state: Any, x: Any) -> Any:
        h, c = state
        gates = x @ p["x"] + h @ p["h"] + p["b"]
        i, f, g, o = (gates[..., at * 3 : at * 3 + 3] for at in range(4))
        c = weft.tanh(f) * c + weft.tanh(i) * weft.tanh(g)
        h = weft.tanh(o) * weft.tanh(c)
        return (h, c), h

    return weft.scan(body, carry, xs)


def unrolled_lstm(p: Any, xs: Any, carry: Any) -> Any:
    with weft.eager():
        return lstm(p, xs, carry)


@pytest.fixture(name="network")
def _network() -> Any:
    rng = weft.random.default_rng(11)
    p = {"x": rng.random((4, 12)) - 0.5, "h": rng.random((3, 12)) - 0.5, "b": rng.random(12) - 0.5}
    return p, rng.random((5, 2, 4)), (weft.zeros((2, 3)), weft.ones((2, 3)))


def of_rows(carry: Any, ys: Any) -> Any:
    del carry
    return ys.sum()


def of_carries(carry: Any, ys: Any) -> Any:
    del ys
    return (carry[0] * carry[1]).sum()


def of_both(carry: Any, ys: Any) -> Any:
    return (ys * carry[1]).sum()


@pytest.mark.parametrize("loss", [of_rows, of_carries, of_both])
def test_gradients_of_loops_are_those_of_python_loops(network: Any, loss: Any) -> None:
    by_op = weft.grad(lambda *args: loss(*lstm(*args)), (0, 1, 2))
    unrolled = weft.grad(lambda *args: loss(*unrolled_lstm(*args)), (0, 1, 2))
    wanted = bits(unrolled(*network))
    assert bits(by_op(*network)) == wanted
    step = weft.program(by_op)
    for _ in range(2):
        assert bits(step(*network)) == wanted
    assert step.programs[0].ops < 80


def test_gradients_of_gradients_of_loops(network: Any) -> None:
    def second(f: Any) -> Any:
        def inner(p: Any) -> Any:
            found = weft.grad(lambda p: f(p, *network[1:])[1].sum())(p)
            return sum((each * each).sum() for each in found.values())

        return weft.grad(inner)

    wanted = second(unrolled_lstm)(network[0])
    for found in (second(lstm)(network[0]), weft.program(second(lstm))(network[0])):
        for name, each in wanted.items():
            np.testing.assert_allclose(found[name].numpy(), each.numpy(), rtol=1e-12, atol=1e-13)


def again(kind: str, f: Any, w: Any) -> Any:
    """Return a pair that a checkpoint, a branch or a body computes of `w`, which is computed again for its gradient."""
    if kind == "checkpoint":
        return weft.checkpoint(f)(w)
    if kind == "cond":
        return weft.cond(w.sum() > 0, f, lambda w: (w, w), w)
    _, rows = weft.scan(lambda c, row: (c, f(row)), w * 2.0, w.reshape((1, -1)))
    return rows


def assert_is_the_gradient(f: Any, plain: Any) -> None:
    """Check the gradient of `f`, eager, of a program and in one, against that of a function without parts."""
    start = np.array([0.5, 0.7, 0.9])
    wanted = weft.grad(plain)(weft.asarray(start)).numpy()
    for gradient in (weft.grad(f), weft.grad(weft.program(f)), weft.program(weft.grad(f))):
        for _ in range(2):
            np.testing.assert_allclose(gradient(weft.asarray(start)).numpy(), wanted, rtol=1e-12)


PARTS = pytest.mark.parametrize("kind", ["checkpoint", "cond", "scan"])


@PARTS
def test_gradients_of_parts_that_return_what_they_refer_to(kind: str) -> None:
    def returned(w: Any) -> Any:
        y = w * w
        first, second = again(kind, lambda _: (y, w), w)
        return (first * second * y).sum()

    assert_is_the_gradient(returned, lambda w: (w**5).sum())


@PARTS
def test_gradients_of_parts_that_refer_to_an_array_and_to_what_it_was_computed_from(kind: str) -> None:
    def referring(w: Any) -> Any:
        y = weft.sin(w * w)
        first, second = again(kind, lambda v: (v * y, y * w), w)
        return (first * second * y).sum()

    assert_is_the_gradient(referring, lambda w: (w**2 * weft.sin(w * w) ** 3).sum())


@PARTS
def test_gradients_of_parts_whose_variables_are_bound_anew(kind: str) -> None:
    def looped(w: Any) -> Any:
        first = second = w
        for factor in (2.0, 3.0):

            def scaled(v: Any) -> Any:
                return v * factor  # noqa: B023 - called here

            first, second = again(kind, lambda v: (scaled(v) * first, scaled(second)), w)  # noqa: B023 - called here
        factor = 7.0
        return (first * second).sum()

    assert_is_the_gradient(looped, lambda w: (36.0 * w**4).sum())


def test_gradients_by_arrays_on_the_tape(network: Any) -> None:
    p, xs, carry = network
    for each in p.values():
        each.requires_grad = True
    found = []
    for f in (unrolled_lstm, lstm):
        (_, c), ys = f(p, xs, carry)
        found.append({id(w): g.tolist() for w, g in weft.autograd.backward(ys.sum() + c.sum())})
    assert found[0] == found[1]
    assert len(found[0]) == 3


def test_kept_carries_have_gradients() -> None:
    def f(w: Any, xs: Any) -> Any:
        (_, total), _ = weft.scan(lambda c, x: ((c[0], weft.tanh(c[1] * c[0] + x)), None), (w, weft.zeros(3)), xs)
        return total.sum()

    def unrolled(w: Any, xs: Any) -> Any:
        with weft.eager():
            return f(w, xs)

    assert bits(weft.grad(f, (0, 1))(weft.ones(3), ROWS)) == bits(weft.grad(unrolled, (0, 1))(weft.ones(3), ROWS))


def test_a_gradient_needs_what_the_body_read() -> None:
    w = weft.ones(3)

    def body(c: Any, x: Any) -> Any:
        return c * w + x, None

    def loss(x: Any) -> Any:
        total = weft.scan(body, x, ROWS)[0].sum()
        w.fill(2.0)
        return total

    with pytest.raises(GradientError, match="overwritten at"):
        weft.grad(loss)(weft.ones(3))
    assert weft.grad(lambda x: weft.scan(body, x, ROWS)[0].sum())(weft.ones(3)).tolist() == [64.0] * 3


# Branches.

BRANCHES: dict[str, Any] = {
    "arguments": lambda x: weft.cond(x.sum() > 0, lambda x: (x * 2, weft.sort(x)), lambda x: (x - 1, x), x),
    "closures": lambda x: weft.cond(x.sum() > 0, lambda: x.T * 2, lambda: (x @ x.T @ x).T + 1),
    "a number": lambda x: weft.cond(x.sum() > 0, lambda: weft.sum(x), lambda: x[0, 0] * 0 + 2.5),
    "a choice of numbers": lambda x: weft.cond(x.sum(), lambda: x * 2, lambda: x),
    "in a loop": lambda x: weft.scan(
        lambda c, r: weft.cond(r.sum() > 0.2, lambda: (c + r, c), lambda: (c * 2, r)), x[0], x
    ),
    "a loop in it": lambda x: weft.cond(
        x.sum() > 0, lambda: weft.scan(lambda c, r: (c * r, c), x[0], x), lambda: (x[0] * 1, x - 1)
    ),
    "gradient": weft.grad(
        lambda x: weft.cond(x.sum() > 0, lambda x: weft.tanh(x * x).sum(), lambda y: (y * x).sum() * 2, x)
    ),
    "gradient in a loop": weft.grad(
        lambda x: weft.scan(
            lambda c, r: weft.cond(r.sum() > 0.2, lambda: (c * r, c), lambda: (weft.tanh(c), r)), x[0], x
        )[1].sum()
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches_are_those_of_python(name: str) -> None:
    f = BRANCHES[name]
    step = weft.program(f)
    for sign in (1, -1, 1):
        with weft.eager():
            wanted = f(ROWS * sign)
        assert bits(step(ROWS * sign)) == bits(wanted)
        assert bits(f(ROWS * sign)) == bits(wanted)
    assert len(step.programs) == 1


def test_one_branch_runs() -> None:
    seen: list[Any] = []

    @weft.task
    def look(x: weft.Read[weft.NDArray]) -> None:
        seen.append(x.tolist())

    def taken(x: Any) -> Any:
        look(x)
        return x * 2

    step = weft.program(lambda x: weft.cond(x.sum() > 0, taken, lambda x: x - 1, x))
    results = [step(weft.full(2, float(k))) for k in (1, -1, 2, -2)]
    assert [result.tolist() for result in results] == [[2.0] * 2, [-2.0] * 2, [4.0] * 2, [-3.0] * 2]
    weft.get_engine().wait_for_all()
    assert seen == [[1.0] * 2, [2.0] * 2]


def test_branches_of_other_dtypes_are_refused() -> None:
    step = weft.program(lambda x: weft.cond(x.sum() > 0, lambda: 1.5, lambda: x.sum().astype(int)))
    with pytest.raises(ArgumentValueError, match=r"float64\[\].*int64\[\]"):
        step(weft.ones(3))
    twin = weft.program(lambda x: weft.cond(x.sum() > 0, lambda: 1, lambda: x.sum().astype(int)))
    assert twin(-weft.ones(3)).item() == -3


# Symbols.


def symbols() -> Any:
    x, h, wx, wh = map(weft.symbol.Variable, ("x", "h", "wx", "wh"))
    doubled = wh * 2

    def body(carry: Any, row: Any) -> Any:
        carry = weft.tanh(row @ wx + carry @ doubled)
        return carry, carry * 2

    return weft.symbol.Group(weft.scan(body, h, x))


def arrays() -> Any:
    rng = weft.random.default_rng(3)
    return {
        "x": rng.random((5, 2, 4)),
        "h": weft.zeros((2, 4)),
        "wx": rng.random((4, 4)) - 0.5,
        "wh": rng.random((4, 4)) - 0.5,
    }


def reference(x: Any, h: Any, wx: Any, wh: Any) -> Any:
    def body(carry: Any, row: Any) -> Any:
        carry = weft.tanh(row @ wx + carry @ (wh * 2))
        return carry, carry * 2

    return weft.scan(body, h, x)


def test_loops_of_symbols() -> None:
    symbol, given = symbols(), arrays()
    assert symbol.list_arguments() == ["h", "x", "wx", "wh"]
    shapes = {name: array.shape for name, array in given.items()}
    assert symbol.infer_shape(**shapes)[1] == [(2, 4), (5, 2, 4)]
    wanted = bits(list(reference(**given)))
    for each in (symbol, weft.symbol.load_json(symbol.tojson())):
        assert bits(each.eval(**given)) == wanted
    step = weft.program(symbol.eval)
    assert bits(step(**given)) == wanted
    assert step.programs[0].ops == 2, "what the body does not change is computed once, outside"
    executor = symbol.simple_bind(**shapes)
    for name, array in given.items():
        executor.arg_dict[name][...] = array
    np.testing.assert_allclose(executor.forward()[1].numpy(), reference(**given)[1].numpy(), rtol=1e-5)
    assert executor.program.ops == 2


def test_gradients_of_loops_of_symbols() -> None:
    given = arrays()
    names = list(given)
    found = symbols().gradient(names).eval(**given)

    def loss(*args: Any) -> Any:
        carry, ys = reference(*args)
        return carry.sum() + ys.sum()

    for ours, theirs in zip(found, weft.grad(loss, tuple(range(4)))(*given.values()), strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12, atol=1e-14)


def test_branches_of_symbols() -> None:
    p, w = weft.symbol.Variable("p"), weft.symbol.Variable("w")
    symbol = weft.cond(p.sum() > 0, lambda q: weft.tanh(q) * w, lambda q: q - 1, p)
    x, by = weft.asarray([1.0, 2.0]), weft.asarray([2.0, 3.0])
    assert symbol.infer_shape(p=(2,), w=(2,))[1] == [(2,)]
    for each in (symbol, weft.symbol.load_json(symbol.tojson())):
        assert bits(each.eval(p=x, w=by)) == bits([weft.tanh(x) * by])
        assert bits(each.eval(p=-x, w=by)) == bits([-x - 1])
    assert [g.tolist() for g in symbol.gradient(["p", "w"]).eval(p=-x, w=by)] == [[1.0, 1.0], [0.0, 0.0]]
    taken = weft.grad(lambda p, w: (weft.tanh(p) * w).sum(), (0, 1))(x, by)
    assert bits(symbol.gradient(["p", "w"]).eval(p=x, w=by)) == bits(list(taken))


def test_programs_of_symbols_compose() -> None:
    step = weft.program(lambda x, w: weft.tanh(x @ w))
    x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
    symbol = step(x, w=w)
    assert symbol.list_arguments() == ["x", "w"]
    given = {"x": weft.ones((2, 3)), "w": weft.ones((3, 2))}
    assert bits(symbol.eval(**given)[0]) == bits(step(**given))
    assert len(step.programs) == 1


def test_symbols_and_arrays_do_not_mix_in_bodies() -> None:
    x = weft.symbol.Variable("x")
    with pytest.raises(GraphError, match="variable stand for"):
        weft.scan(lambda c, r: (c + r, None), weft.zeros(3), x)
    with pytest.raises(ArgumentTypeError, match="pair"):
        weft.scan(lambda c, r: c + r, weft.symbol.Variable("c"), x)
    with pytest.raises(ArgumentValueError, match="length"):
        weft.scan(lambda c, _: (c, None), x, None)
    assert weft.scan(lambda c, _: (c * 2, None), x, None, length=3)[0].eval(x=1.0)[0].item() == 8.0


def test_kernels_of_networks_in_loops() -> None:
    rng = weft.random.default_rng(2)
    weight, images = rng.random((3, 3, 3, 3)) - 0.5, rng.random((4, 2, 3, 6, 6))

    def body(state: Any, image: Any) -> Any:
        state = weft.nn.relu(weft.nn.conv(image + state, weight, padding=1))
        return state, weft.nn.softmax(weft.nn.max_pool(state, 2), axis=1)

    def function(images: Any) -> Any:
        return weft.scan(body, weft.zeros((2, 3, 6, 6)), images)

    def chosen(images: Any) -> Any:
        return weft.cond(images.sum() > 0, lambda: weft.nn.conv(images[0], weight), lambda: weft.zeros((2, 3, 4, 4)))

    for each in (function, chosen):
        with weft.eager():
            wanted = bits(each(images))
        step = weft.program(each)
        assert bits(step(images)) == wanted
        assert bits(step(images)) == wanted
