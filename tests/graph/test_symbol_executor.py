"""Executors: forwards, backwards, requests, shapes, groups of devices."""

from __future__ import annotations

from typing import Any

import graph_ops  # noqa: F401 - ops of the tests
import numpy as np
import pytest

import weft
from weft.errors import GraphError, ShapeError
from weft.symbol import AttrScope, Variable


def product(a: Any, b: Any) -> Any:
    return weft.symbol.test_product(a, b)


@pytest.mark.parametrize("request_", ["write", "add", "null"])
def test_gradients_go_where_they_are_asked_for(request_: str) -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.random((3, 4)).astype(np.float32) for _ in range(2))
    symbol = product(Variable("a"), Variable("b"))
    grads = {name: weft.ones((3, 4), dtype="float32") for name in "ab"}
    executor = symbol.bind({"a": weft.asarray(a), "b": weft.asarray(b)}, grads, request_)
    out = executor.forward(is_train=True)[0]
    assert np.array_equal(out.numpy(), a * b)
    head = rng.random((3, 4)).astype(np.float32)
    executor.backward(weft.asarray(head))
    before = {"write": 0, "add": 1, "null": 0}[request_]
    for name, other in (("a", b), ("b", a)):
        expected = np.ones((3, 4)) if request_ == "null" else before + head * other
        assert np.allclose(executor.grad_dict[name].numpy(), expected)


def test_arguments_are_read_where_they_lie() -> None:
    executor = (Variable("x") * 2).simple_bind(x=(3,), grad_req="null")
    assert executor.forward()[0].numpy().tolist() == [0, 0, 0]
    executor.arg_dict["x"][:] = 2
    assert executor.forward()[0].numpy().tolist() == [4, 4, 4]
    assert executor.forward(x=[1, 2, 3])[0].numpy().tolist() == [2, 4, 6]
    assert executor.arg_dict["x"].numpy().tolist() == [1, 2, 3]
    assert [each.shape for each in executor.output_dict.values()] == [(3,)]


def test_states_change_in_place() -> None:
    executor = weft.symbol.test_norm(Variable("x"), name="n").simple_bind(x=(2, 2))
    executor.arg_dict["n_gamma"][:] = 1
    executor.forward(x=np.ones((2, 2), np.float32))
    executor.forward()
    assert executor.aux_dict["n_moving"].numpy().tolist() == [2, 2]
    assert len(executor.aux_arrays) == 1


def test_dead_inputs_have_no_gradient() -> None:
    x, y = Variable("x"), Variable("y")
    executor = weft.symbol.Group([product(x, x)]).simple_bind(x=(2,))
    assert executor.forward(is_train=True, x=[3.0, 4.0])[0].numpy().tolist() == [9, 16]
    executor.backward()
    assert executor.grad_dict["x"].numpy().tolist() == [6, 8]
    del y


def test_the_monitor_sees_every_result() -> None:
    seen: list[str] = []
    executor = weft.symbol.exp(weft.symbol.exp(Variable("x"), name="a"), name="b").simple_bind(x=(2,), grad_req="null")
    executor.set_monitor_callback(lambda name, array: seen.append(f"{name} {array.shape}"))
    executor.forward()
    assert seen == ["a_output (2,)", "b_output (2,)"]
    seen.clear()
    executor.set_monitor_callback(lambda name, _: seen.append(name), monitor_all=True)
    executor.forward()
    assert seen == ["x", "a_output", "b_output"]


def test_other_shapes_share_what_stays() -> None:
    layer = weft.symbol.test_dense(Variable("x"), units=4, name="fc")
    executor = layer.simple_bind(x=(5, 4))
    executor.arg_dict["x"][:] = 1
    executor.arg_dict["fc_weight"][:] = 1
    executor.arg_dict["fc_bias"][:] = 0
    smaller = executor.reshape(x=(3, 4))
    assert smaller.forward()[0].numpy().tolist() == [[4] * 4] * 3
    assert smaller.arg_dict["fc_weight"] is executor.arg_dict["fc_weight"]
    smaller.arg_dict["x"][:] = 2  # shares the memory
    assert executor.arg_dict["x"].numpy()[0, 0] == 2
    with pytest.raises(ValueError, match="allow_up_sizing"):
        executor.reshape(x=(6, 4))
    assert executor.reshape(x=(6, 4), allow_up_sizing=True).forward()[0].shape == (6, 4)
    with pytest.raises(ValueError, match="partial_shaping"):
        executor.reshape(x=(3, 2))


def test_groups_of_devices() -> None:
    with AttrScope(ctx_group="first"):
        x, y = Variable("x"), Variable("y")
        first = weft.symbol.test_product(x, y, name="first")
    with AttrScope(ctx_group="second"):
        last = weft.symbol.test_square(first, name="last")
    devices = {"first": weft.cpu(0), "second": weft.cpu(1)}
    executor = last.simple_bind(group2device=devices, x=(2,), y=(2,))
    out = executor.forward(is_train=True, x=[1.0, 2.0], y=[3.0, 4.0])[0]
    assert str(out.device) == "cpu:1"
    assert out.numpy().tolist() == [9, 64]
    executor.backward()
    assert executor.grad_dict["x"].numpy().tolist() == [2 * 3 * 3, 2 * 8 * 4]
    with pytest.raises(GraphError, match="group 'second' has no device"):
        last.simple_bind(group2device={"first": "cpu:0"}, x=(2,), y=(2,))


def test_bindings_that_are_wrong() -> None:
    symbol = product(Variable("a"), Variable("b"))
    one = weft.ones(2)
    with pytest.raises(GraphError, match="no array is given for arguments: b"):
        symbol.bind({"a": one})
    with pytest.raises(GraphError, match=r"2 arguments \(a, b\), and 1"):
        symbol.bind([one])
    with pytest.raises(ShapeError):
        symbol.bind({"a": one, "b": weft.ones(3)})
    with pytest.raises(ValueError, match="grad_req of 'a'"):
        symbol.bind([one, one], [one, one], grad_req="maybe")
    with pytest.raises(ShapeError, match="gradient of 'a'"):
        symbol.bind([one, one], {"a": weft.ones(3)})
    with pytest.raises(ShapeError, match="'a' does not follow"):
        symbol.simple_bind()
    with pytest.raises(GraphError, match="no variable is named c"):
        symbol.simple_bind(c=(2,))
    executor = symbol.bind([one, one], [one.copy(), one.copy()])
    with pytest.raises(GraphError, match="forward"):
        _ = executor.outputs
    with pytest.raises(GraphError, match=r"forward\(is_train=True\)"):
        executor.backward()
    with pytest.raises(GraphError, match="no argument 'c'"):
        executor.forward(c=one)
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        executor.forward(a=weft.ones(3))
    executor.forward(is_train=True)
    with pytest.raises(GraphError, match="1 outputs, and 2"):
        executor.backward([one, one])


def test_eval_ignores_other_names_and_wants_all_of_its_own() -> None:
    symbol = Variable("a") + 1
    assert symbol.eval(a=[1], b=[2])[0].numpy().tolist() == [2]
    with pytest.raises(GraphError, match="no array is given for a"):
        symbol.eval()
    with pytest.raises(GraphError, match="two variables are named 'a'"):
        (Variable("a") + Variable("a")).eval(a=[1])
