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
    for _ in range(2):  # each time: the arguments' values change between
        seen.clear()
        executor.forward()
        assert seen == ["x", "a_output", "b_output"]
    executor.set_monitor_callback(lambda name, _: seen.append(name))
    seen.clear()
    executor.forward()
    assert seen == ["a_output", "b_output"]


def test_the_monitor_of_all_sees_states_forwards_and_gradients_backwards() -> None:
    net = weft.mxnet.symbol.BatchNorm(weft.mxnet.symbol.Variable("x"), name="bn")
    executor = net.simple_bind(x=(4, 2))
    seen: list[str] = []
    executor.set_monitor_callback(lambda name, _: seen.append(name), monitor_all=True)
    for _ in range(2):
        seen.clear()
        executor.forward(is_train=True)
        given = ["x", "bn_gamma", "bn_beta", "bn_moving_mean", "bn_moving_var"]
        assert seen[: len(given)] == given
        forwards = len(seen)
        executor.backward(weft.ones((4, 2), dtype="float32"))
        assert len(seen) > forwards
        assert not {*given} & {*seen[forwards:]}


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


def _layers(depth: int) -> Any:
    h: Any = Variable("x")
    for at in range(depth):
        h = weft.tanh(h @ Variable(f"w{at}"))
    return h


def _bound(symbol: Any, **options: Any) -> Any:
    names = symbol.list_arguments()
    shapes = {name: (16, 32) if name == "x" else (32, 32) for name in names}
    executor = symbol.simple_bind(**shapes, **options)
    rng = np.random.default_rng(11)
    for array in executor.arg_dict.values():
        array[...] = rng.normal(size=array.shape) / 4
    return executor


def _results(executor: Any) -> list[bytes]:
    """Return the bits of all that two rounds of training, and one of evaluation, give."""
    found = []
    head = weft.asarray(np.random.default_rng(3).random((16, 32)), dtype="float32")
    for heads in (None, [head, None]):
        found += [out.numpy().tobytes() for out in executor.forward(is_train=True)]
        executor.backward(heads)
        found += [grad.numpy().tobytes() for grad in executor.grad_dict.values()]
    return found + [out.numpy().tobytes() for out in executor.forward()]


@pytest.mark.parametrize("request_", ["write", "add", "null"])
def test_programs_give_the_bits_of_ops_one_by_one(request_: str) -> None:
    deep = _layers(8)
    symbol = weft.symbol.Group([deep, weft.sum(deep)])
    replayed = _results(_bound(symbol, grad_req=request_))
    with weft.eager():
        pushed = _results(_bound(symbol, grad_req=request_))
    assert replayed == pushed


def test_an_executor_is_a_program() -> None:
    executor = _bound(_layers(12), grad_req="null")
    planned = executor.program  # before anything has run
    first = executor.forward()[0]
    program, before = executor.program, first.numpy().copy()
    assert program is planned
    assert isinstance(program, type(weft.program(weft.exp).lower(weft.ones(1))))
    assert program.nbytes < program.eager_nbytes / 4  # 24 results, of which two or three live together
    executor.arg_dict["x"][:] = 0
    assert not executor.forward()[0].numpy().any()
    assert executor.program is program
    assert np.array_equal(first.numpy(), before)  # results are new arrays
    (again,) = program.replay()
    assert not again.numpy().any()


def test_a_program_that_is_asked_for_first_runs_nothing() -> None:
    executor = weft.symbol.test_norm(Variable("x"), name="n").simple_bind(x=(2, 2))
    program = executor.program
    assert program.ops == 1
    assert executor.aux_dict["n_moving"].numpy().tolist() == [0, 0]
    assert executor.outputs[0].numpy().tolist() == [[0, 0], [0, 0]]  # before the first forward()
    executor.arg_dict["n_gamma"][:] = 1
    assert executor.forward(x=np.ones((2, 2), np.float32))[0].numpy().tolist() == [[1, 1], [1, 1]]
    assert executor.aux_dict["n_moving"].numpy().tolist() == [1, 1]
    assert executor.program is program
    other = executor.reshape(x=(1, 2), partial_shaping=True)
    with weft.eager(), pytest.raises(GraphError, match="one by one"):
        _ = other.program
    assert other.program.ops == 1
    executor.arg_dict["x"] = weft.ones((2, 2), dtype="float32")
    executor.forward()
    assert executor.program is not program


def test_other_shapes_and_other_arrays_are_other_programs() -> None:
    executor = _bound(_layers(2), grad_req="null")
    executor.forward()
    program = executor.program
    smaller = executor.reshape(x=(4, 32), w0=(32, 32), w1=(32, 32))
    assert smaller.forward()[0].shape == (4, 32)
    assert smaller.program is not program
    executor.arg_dict["x"] = weft.zeros((16, 32), dtype="float32")
    assert not executor.forward()[0].numpy().any()
    assert executor.program is not program


def test_ops_that_cannot_be_replayed_are_pushed_one_by_one() -> None:
    executor = _bound(_layers(2))
    expected = executor.forward(is_train=True)[0].numpy()
    executor.backward()
    grads = [grad.numpy().copy() for grad in executor.grad_dict.values()]
    seen: list[str] = []
    executor.set_monitor_callback(lambda name, _: seen.append(name))
    executor.backward()  # watched, on what the program has kept
    assert seen
    assert np.array_equal(executor.forward(is_train=True)[0].numpy(), expected)
    with pytest.raises(GraphError, match="one by one"):
        _ = executor.program
    executor.set_monitor_callback(None)
    executor.backward()
    assert all(np.array_equal(new.numpy(), old) for new, old in zip(executor.grad_dict.values(), grads, strict=True))
    recorded = weft.program(lambda: executor.forward()[0])
    assert np.array_equal(recorded().numpy(), expected)


def test_outputs_may_be_arguments_and_views_of_them() -> None:
    x = Variable("x")
    executor = weft.symbol.Group([x, x.T, weft.exp(x), weft.exp(x)]).simple_bind(x=(2, 3))
    for _ in range(2):
        same, turned, one, other = executor.forward(is_train=True)
        executor.arg_dict["x"][:] = 2
        assert same is executor.arg_dict["x"]
        assert turned.tolist() == [[2, 2]] * 3
        assert one.tolist() == other.tolist()
        executor.arg_dict["x"][:] = 0
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [[4] * 3] * 2


def test_ops_see_whether_they_train() -> None:
    seen: list[bool] = []

    def shown(x: Any) -> Any:
        seen.append(weft.autograd.training)
        return weft.exp(x)

    @weft.register_op("test_executor_seen", infer=weft.ops.like_first)
    def op(out: Any, x: Any) -> None:
        np.exp(x, out=out)

    op.set_attribute("infer_shape", "same")
    op.set_attribute("view", shown)
    executor = weft.symbol.test_executor_seen(Variable("x")).simple_bind(x=(2,), grad_req="null")
    executor.forward(is_train=True)
    executor.forward()
    assert seen == [True, False]
    assert not weft.autograd.training


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
    with pytest.raises(GraphError, match="no argument 'c'"):
        executor.forward(c=one)
    with pytest.raises(ShapeError, match=r"\(2,\).*\(3,\)"):
        executor.forward(a=weft.ones(3))
    executor.forward(is_train=True)
    with pytest.raises(GraphError, match="1 outputs, and 2"):
        executor.backward([one, one])
    for head in (weft.ones(()), weft.ones((5, 2)), [np.ones(1)], 1.0):
        with pytest.raises(ShapeError, match=r"has the shape \(2,\), and its gradient was given with"):
            executor.backward(head)
    with pytest.raises(TypeError, match="dtype float64, and its gradient is complex"):
        executor.backward(one * 1j)
    executor.backward(np.full(2, 3))
    assert executor.grad_dict["a"].tolist() == (3 * one).tolist()


def test_eval_warns_of_other_names_and_wants_all_of_its_own() -> None:
    symbol = Variable("a") + 1
    with pytest.warns(UserWarning, match="no variable is named b, c: its variables are a") as caught:
        assert symbol.eval(a=[1], b=[2], c=3)[0].numpy().tolist() == [2]
    assert caught[0].filename == __file__
    with pytest.raises(GraphError, match="no array is given for a"):
        symbol.eval()
    with pytest.raises(GraphError, match="two variables are named 'a'"):
        (Variable("a") + Variable("a")).eval(a=[1])


def test_a_device_may_stand_before_the_arrays() -> None:
    x = weft.symbol.Variable("x")
    gradient = weft.zeros(2)
    executor = (x * 3).bind(weft.cpu(0), {"x": weft.ones(2)}, {"x": gradient}, "add")
    for _ in range(2):
        executor.forward(is_train=True)
        executor.backward(weft.ones(2))
    assert gradient.tolist() == [6.0, 6.0]
    assert repr(executor).endswith(": x (2,)>")
    with pytest.raises(TypeError, match="device is given twice"):
        (x * 3).bind("cpu:0", [weft.ones(2)], device="cpu:0")
    with pytest.raises(TypeError, match="args is given twice"):
        (x * 3).bind([weft.ones(2)], args=[weft.ones(2)])
    with pytest.raises(TypeError, match="5 arguments by position"):
        (x * 3).bind([weft.ones(2)], None, "write", None, None)


def test_what_does_not_follow_keeps_its_shape() -> None:
    x, w = weft.symbol.Variable("x"), weft.symbol.Variable("w")
    executor = (x @ w).simple_bind(x=(2, 3), w=(3, 4))
    other = executor.reshape(x=(1, 3))
    assert other.forward()[0].shape == (1, 4)
    assert other.arg_dict["w"] is executor.arg_dict["w"]


def test_ops_of_rooms_are_composed_by_their_rooms() -> None:
    data = weft.symbol.Variable("data")
    symbol = weft.symbol.nn.conv(data, name="c", stride=2)
    assert symbol.list_arguments()[:2] == ["data", "c_weight"]
    assert weft.symbol.linalg.inv(data, name="i").list_outputs() == ["i_output"]
    assert "conv" in dir(weft.symbol.nn)
    with pytest.raises(AttributeError, match=r"weft.symbol has no 'nn.nothing'"):
        weft.symbol.nn.nothing  # noqa: B018 - the name is what is asked for
