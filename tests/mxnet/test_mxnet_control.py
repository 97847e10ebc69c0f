"""Loops and branches of scripts: ``contrib.foreach``, ``while_loop`` and ``cond``, of symbols and of arrays alike."""

# ruff: noqa: ARG005 - functions of scripts take all that they are given

from typing import Any

import numpy as np
import pytest

import weft
import weft.mxnet as mx
from weft.errors import ArgumentTypeError, ArgumentValueError

sym, nd = mx.sym, mx.nd


def _run(net: Any, **given: Any) -> list[Any]:
    """Return results, and gradients, of an executor; ``eval`` gives the same results."""
    arrays = {name: weft.asarray(np.asarray(each, "float64")) for name, each in given.items()}
    grads = {name: weft.zeros(each.shape, dtype=each.dtype) for name, each in arrays.items()}
    executor = net.bind(mx.cpu(), arrays, grads)
    for _ in range(2):  # recorded, and replayed
        found = executor.forward(is_train=True)
        executor.backward()
    for one, other in zip(found, net.eval(**given), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy())
    return [*(each.numpy() for each in found), *(grads[name].numpy() for name in net.list_arguments())]


def test_foreach() -> None:
    x, w, free = sym.Variable("x"), sym.Variable("w"), sym.Variable("free")

    def body(row: Any, states: Any) -> Any:
        [state] = states
        out = row * state + free
        return [out, [out * 2]], [state + row]

    (out, [twice]), [last] = sym.contrib.foreach(body, x, [w])
    net = sym.Group([out, twice, last])
    assert net.list_arguments() == ["x", "w", "free"]
    rows, start, more = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0]), np.array([0.5, 0.25])
    found = _run(net, x=rows, w=start, free=more)
    state, wanted = start, []
    for row in rows:
        wanted.append(row * state + more)
        state = state + row
    np.testing.assert_allclose(found[0], wanted)
    np.testing.assert_allclose(found[1], np.multiply(wanted, 2))
    np.testing.assert_allclose(found[2], state)

    def total(x: Any, w: Any, free: Any) -> Any:
        outs, [end] = nd.contrib.foreach(lambda row, s: (row * s[0] + free, [s[0] + row]), x, [w])
        return weft.sum(outs) * 3 + weft.sum(end)

    grads = weft.grad(total, argnums=(0, 1, 2))(*map(weft.asarray, (rows, start, more)))
    for one, other in zip(found[3:], grads, strict=True):
        np.testing.assert_allclose(one, other.numpy())


def test_foreach_of_several_arrays_in_lists() -> None:
    def body(rows: Any, state: Any) -> Any:
        first, [second] = rows
        return first + second, state + first * second

    values = np.arange(3.0), np.ones((3, 2)), np.zeros(2)
    outs, last = sym.contrib.foreach(
        lambda rows, state: (
            sym.broadcast_add(rows[0], rows[1][0]),
            sym.broadcast_add(state, sym.broadcast_mul(rows[0], rows[1][0])),
        ),
        [sym.Variable("a"), [sym.Variable("b")]],
        sym.Variable("s"),
    )
    made = sym.Group([outs, last]).eval(a=values[0], b=values[1], s=values[2])
    arrays = [weft.asarray(each) for each in values]
    by_hand = nd.contrib.foreach(body, [arrays[0], [arrays[1]]], arrays[2])
    for one, other, wanted in zip(made, by_hand, ([[1, 1], [2, 2], [3, 3]], [3, 3]), strict=True):
        assert one.tolist() == other.tolist() == wanted


def test_a_row_of_one_axis_is_no_scalar() -> None:
    def shape_of(row: Any) -> Any:
        return row.infer_shape(**dict.fromkeys(row.list_arguments(), (3,)))[1]

    seen: list[Any] = []

    def body(row: Any, states: Any) -> Any:
        seen.append(row.shape)
        return row * 2, states

    assert nd.contrib.foreach(body, nd.arange(3), [])[0].shape == (3, 1)
    x = sym.Variable("x")
    outs, _ = sym.contrib.foreach(lambda row, states: (row * 2, states), x, [])
    assert shape_of(outs) == [(3, 1)]
    assert _run(outs, x=[1.0, 2.0])[1].tolist() == [2.0, 2.0]
    with mx.np_shape():
        assert nd.contrib.foreach(body, nd.arange(3), [])[0].shape == (3,)
        outs, _ = sym.contrib.foreach(lambda row, states: (row * 2, states), x, [])
        assert shape_of(outs) == [(3,)]
    assert set(seen) == {(1,), ()}


def test_while_loop() -> None:
    i, s, w = sym.Variable("i"), sym.Variable("s"), sym.Variable("w")
    outs, (count, total) = sym.contrib.while_loop(
        lambda i, s: i < 3, lambda i, s: (s * w, (i + 1, s * w + i)), (i, s), max_iterations=5
    )
    net = sym.Group([outs, count, total])
    assert net.list_arguments() == ["i", "s", "w"]
    found = _run(net, i=[0.0], s=[2.0], w=[0.5])
    assert found[0].ravel().tolist() == [1.0, 0.5, 0.75, 0.0, 0.0]
    assert found[1].tolist() == [3.0]
    assert found[2].tolist() == [2.75]

    def by_hand(i: Any, s: Any, w: Any) -> Any:
        outs, (count, total) = nd.contrib.while_loop(
            lambda i, s: i < 3, lambda i, s: (s * w, (i + 1, s * w + i)), (i, s), max_iterations=5
        )
        assert outs.shape == (5, 1)
        return weft.sum(outs) + weft.sum(count) + weft.sum(total)

    grads = weft.grad(by_hand, argnums=(0, 1, 2))(*(weft.asarray([each]) for each in (0.0, 2.0, 0.5)))
    for one, other in zip(found[3:], grads, strict=True):
        np.testing.assert_allclose(one, other.numpy())


def test_a_loop_that_takes_no_turn() -> None:
    x = sym.Variable("x")
    outs, last = sym.contrib.while_loop(lambda x: x < 0, lambda x: ([x * 2], x + 1), x, 2)
    assert [each.tolist() for each in sym.Group([*outs, last]).eval(x=[5.0])] == [[[0.0], [0.0]], [5.0]]
    outs, last = nd.contrib.while_loop(lambda x: x < 0, lambda x: ([x * 2], x + 1), nd.array([5.0]), 2)
    assert (outs, last.tolist()) == ([], [5.0])


def test_turns_that_are_not_taken_compute_nothing() -> None:
    calls: list[int] = []

    def push(out: Any, x: Any) -> None:
        calls.append(1)
        out[...] = x

    counted = weft.ops.register_op("test_counted", infer=lambda x: x)(push)
    x = sym.Variable("x", shape=(1,), dtype="float32")
    outs, last = sym.contrib.while_loop(
        lambda x: x < 2, lambda x: (sym.Symbol(counted(x)._core), x + 1), x, max_iterations=50
    )
    with weft.eager():
        found = sym.Group([outs, last]).eval(x=weft.zeros(1, dtype="float32"))
        assert [each.numpy().ravel().tolist()[:3] for each in found] == [[0.0, 1.0, 0.0], [2.0]]
    assert len(calls) == 2


def test_loops_in_loops_see_what_is_around_them() -> None:
    x, y, s = sym.Variable("x"), sym.Variable("y"), sym.Variable("s")
    with sym.NameManager():

        def outer(row: Any, state: Any) -> Any:
            def inner(other: Any, total: Any) -> Any:
                return other * row + state, total + other * row

            outs, total = sym.contrib.foreach(inner, y, state)
            doubled, _ = sym.contrib.while_loop(lambda z: sym.sum(z) < 20, lambda z: (z * row, z * 2), total, 3)
            return [outs, doubled], total

        net = sym.Group([*sym.contrib.foreach(outer, x, s)[0], sym.contrib.foreach(outer, x, s)[1]])
    rows, others, state = np.array([[1.0], [2.0], [3.0]]), np.array([[1.0], [4.0]]), np.array([0.5])
    found = _run(net, x=rows, y=others, s=state)
    outs, loops = [], []
    for row in rows:
        outs.append([other * row + state for other in others])
        state = state + sum(other * row for other in others)
        turns, z = [], state
        while len(turns) < 3:
            turns.append(z * row if z.sum() < 20 else z * 0)
            z = z * 2 if z.sum() < 20 else z
        loops.append(turns)
    for one, other in zip(found, (outs, loops, state), strict=False):
        np.testing.assert_allclose(one, np.array(other).reshape(one.shape))
    names = [node.name for node in net.graph.indexed().nodes]
    assert len(names) == len(set(names))


def test_variables_of_a_body_are_made_once() -> None:
    with sym.NameManager():
        x = sym.Variable("x")
        outs, last = sym.contrib.while_loop(
            lambda x: sym.sum(x) < 2, lambda x: (x, sym.FullyConnected(x, num_hidden=2)), x, 3
        )
        net = sym.Group([outs, last])
    assert net.list_arguments() == ["x", "fullyconnected0_weight", "fullyconnected0_bias"]
    assert net.infer_shape(x=(1, 2))[1] == [(3, 1, 2), (1, 2)]
    assert net.name is None or net.name == "while_loop0"


def test_cond() -> None:
    a, b = sym.Variable("a"), sym.Variable("b")
    net = sym.contrib.cond(a * b < 5, lambda: [(a + 5) * (b + 5), a], lambda: [(a - 5) * (b - 5), b])
    net = sym.Group(net)
    assert [each.tolist() for each in _run(net, a=[1.0], b=[2.0])] == [[42.0], [1.0], [8.0], [6.0]]
    assert [each.tolist() for each in _run(net, a=[6.0], b=[7.0])] == [[2.0], [7.0], [2.0], [2.0]]
    assert nd.contrib.cond(nd.array([0]), lambda: 1, lambda: 2) == 2


def test_nodes_bear_mxnets_names() -> None:
    x = sym.Variable("x")
    with sym.NameManager(), mx.AttrScope(ctx_group="g"):
        loop = sym.contrib.foreach(lambda row, s: (row + 1, []), x, [])[0]
        choice = sym.contrib.cond(x, lambda: x + 1, lambda: x, name="choice")
    assert (loop.name, choice.name) == ("foreach0", "choice0")
    assert loop.attr("ctx_group") == choice.attr("ctx_group") == "g"
    with sym.Prefix("p_"):
        assert sym.contrib.foreach(lambda row, s: (row + 1, []), x, [])[0].name == "p_foreach0"


def test_the_room_lists_its_functions() -> None:
    for module in (sym, nd):
        assert {"foreach", "while_loop", "cond", "box_nms"} <= set(dir(module.contrib))
        assert all(getattr(module.contrib, name).__doc__ for name in ("foreach", "while_loop", "cond"))


def test_a_loop_in_a_file() -> None:
    x, s = sym.Variable("x"), sym.Variable("s")
    outs, last = sym.contrib.foreach(lambda row, s: (row + s, s * 2), x, s)
    net = sym.Group([outs, last])
    again = sym.load_json(net.tojson())
    assert again.tojson() == net.tojson()
    assert [each.tolist() for each in again.eval(x=[[1.0], [2.0]], s=[1.0])] == [[[2.0], [4.0]], [4.0]]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            lambda: sym.contrib.foreach(lambda row, s: (row, [s]), sym.Variable("x"), sym.Variable("s")),
            ArgumentValueError,
        ),
        (lambda: sym.contrib.foreach(lambda row, s: (1, s), sym.Variable("x"), [sym.Variable("s")]), ArgumentTypeError),
        (lambda: sym.contrib.foreach(lambda row, s: (row, s), nd.ones(2), []), ArgumentTypeError),
        (lambda: nd.contrib.foreach(lambda row, s: (row, s), [], nd.ones(2)), ArgumentValueError),
        (lambda: nd.contrib.foreach(lambda row, s: (row, []), nd.ones(2), nd.ones(2)), ArgumentValueError),
        (lambda: nd.contrib.while_loop(lambda x: x, lambda x: (x, x), nd.ones(1)), ArgumentValueError),
        (lambda: nd.contrib.while_loop(lambda: 1, lambda: ([], []), [], 3), ArgumentValueError),
        (lambda: sym.contrib.while_loop(lambda x: x, lambda x: (x, [x, x]), sym.Variable("x"), 3), ArgumentValueError),
        (lambda: sym.contrib.while_loop(lambda x: 1, lambda x: (x, x), sym.Variable("x"), 3), ArgumentTypeError),
        (lambda: sym.contrib.cond(1, lambda: 1, lambda: 2), ArgumentTypeError),
    ],
)
def test_mistakes_are_named(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("p", [0.0, 0.5])
def test_dropout_in_a_loop_has_no_gradient_of_other_numbers(p: float) -> None:
    x, s = sym.Variable("x"), sym.Variable("s")
    _, last = sym.contrib.foreach(lambda row, state: (row, sym.Dropout(row * row, p=p) + state), x, s)
    executor = last.simple_bind(x=(4, 3), s=(3,))
    data = np.ones((4, 3), np.float32)
    assert executor.forward(x=data)[0].tolist() == [4.0] * 3
    if p:
        with pytest.raises(weft.errors.GraphError, match=r"Dropout.* draws numbers in the body of"):
            executor.forward(is_train=True, x=data)
        return
    executor.forward(is_train=True, x=data)
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [[2.0] * 3] * 4
