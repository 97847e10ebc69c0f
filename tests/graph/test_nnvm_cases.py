"""Cases that NNVM and MXNet look at in their own ways: devices by group, whole gradients, layouts found twice, plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
import weft.mxnet
from weft import nn
from weft.graph import Graph
from weft.symbol import AttrScope, Group, Variable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.symbol import Symbol


def test_parameters_lie_where_their_layer_is() -> None:
    with AttrScope(ctx_group="low"):
        low = weft.symbol.FullyConnected(Variable("data"), num_hidden=8, name="fc1")
    own = set(low.list_arguments())
    with AttrScope(ctx_group="high"):
        high = weft.symbol.FullyConnected(weft.symbol.Activation(low, act_type="relu"), num_hidden=4, name="fc2")
        net = weft.symbol.SoftmaxOutput(weft.symbol.BatchNorm(high, name="bn"), name="softmax")
    executor = net.simple_bind("cpu:0", group2device={"low": weft.cpu(1), "high": weft.cpu(2)}, data=(2, 5))
    for held in (executor.arg_dict, executor.grad_dict):
        assert {name: str(x.device) for name, x in held.items()} == {
            name: "cpu:1" if name in own else "cpu:2" for name in held
        }
    assert {str(x.device) for x in executor.aux_dict.values()} == {"cpu:2"}
    assert str(executor.forward(is_train=True)[0].device) == "cpu:2"
    executor.backward()
    assert {str(x.device) for x in executor.grad_arrays if x is not None} == {"cpu:1", "cpu:2"}


def _chain(devices: Sequence[str], groups: dict[str, str] | None) -> tuple[np.ndarray, list[np.ndarray]]:
    """Bind a sum over two devices to arrays that are there; return what it gives."""
    a, b, c = (Variable(f"data{at}") for at in range(3))
    with AttrScope(ctx_group="first"):
        net = (a + b) * 3
    with AttrScope(ctx_group="second"):
        net = net + c
    arrays = [weft.full((4, 5), at + 1.0, device=device) for at, device in enumerate(devices)]
    grads = [weft.zeros((4, 5), dtype=each.dtype, device=each.device) for each in arrays]
    executor = net.bind("cpu:0", arrays, args_grad=grads, group2device=groups)
    (out,) = executor.forward(is_train=True)
    executor.backward([weft.full((4, 5), 0.5)])
    assert [str(each.device) for each in grads] == list(devices)
    return out.numpy(), [each.numpy() for each in grads]


def test_a_chain_over_two_devices_is_the_chain_on_one() -> None:
    there, grads = _chain(["cpu:0", "cpu:0", "cpu:1"], {"first": "cpu:0", "second": "cpu:1"})
    here, expected = _chain(["cpu:0"] * 3, None)
    assert np.array_equal(there, here)
    assert all(np.array_equal(one, other) for one, other in zip(grads, expected, strict=True))


def test_every_gradient_of_a_network_has_its_arguments_shape_and_dtype() -> None:
    data = Variable("data", shape=(4, 3, 16, 16))
    weight, bias = Variable("conv_w", shape=(8, 3, 5, 5)), Variable("conv_b", shape=(8,))
    hidden = nn.max_pool(nn.relu(nn.conv(data, weight, bias)), 2)
    scores = nn.dense(weft.reshape(hidden, (4, -1)), Variable("w", shape=(10, None)), Variable("b"))
    loss = weft.sum(nn.log_softmax(scores) * weft.full_like(scores, 1.0), axis=1, keepdims=True)
    names = loss.list_arguments()
    grads = loss.gradient(names)
    arguments, found, _ = grads.infer_shape()
    by_name = dict(zip(grads.list_arguments(), arguments, strict=True))
    assert found == [by_name[name] for name in names]
    assert by_name["w"] == (10, 8 * 6 * 6)
    assert grads.infer_type()[1] == [np.dtype("float32")] * len(names)


def test_losses_add_up_and_what_is_blocked_gets_zeros() -> None:
    seen, blocked = Variable("seen", shape=(6, 4)), Variable("blocked", shape=(6,))
    squares = weft.sum(weft.symbol.elemwise_sub(seen, Variable("label")) ** 2, axis=1)
    total = weft.symbol.add_n(weft.symbol.BlockGrad(weft.sqrt(blocked)), squares)
    grads = Group([total, nn.relu(seen)]).gradient(["seen", "blocked"])
    graph = weft.graph.infer_type(weft.graph.infer_shape(Graph(grads)))
    assert graph.attrs["dtype_num_unknown_nodes"] == 0
    assert graph.attrs["shape_num_unknown_nodes"] == 0  # the label's follows from what it is taken from
    assert grads.infer_shape()[1] == [(6, 4), (6,)]
    x = np.random.default_rng(2).normal(size=(6, 4)).astype(np.float32)
    label = np.ones_like(x)
    first, second = grads.eval(seen=x, blocked=np.ones(6, np.float32), label=label)
    assert np.allclose(first.numpy(), 2 * (x - label) + (x > 0))
    assert not second.numpy().any()


def test_each_head_has_a_gradient_of_its_own() -> None:
    x, y = Variable("x"), Variable("y")
    heads = Group([x + weft.sqrt(y), weft.log(x)])
    graph = weft.graph.gradient(None, heads, [x, y], ys_out_grad=[Variable("g1"), Variable("g2")])
    assert {"g1", "g2"} <= set(graph.symbol.list_arguments())
    found = graph.symbol.eval(x=[2.0], y=[4.0], g1=[1.0], g2=[10.0])
    assert [each.numpy().tolist() for each in found] == [[6.0], [0.25]]


def test_shapes_may_be_there_in_part_before_the_pass() -> None:
    x = Variable("x")
    graph = Graph(weft.symbol.flatten(weft.symbol.add(x, x, name="sum"), name="flat"))
    graph.attrs["shape"] = [(2, 4, 2), None, None]
    assert weft.graph.infer_shape(graph).attrs["shape"] == [(2, 4, 2), (2, 4, 2), (2, 8)]


def test_a_place_is_taken_over_only_from_what_nobody_reads_again() -> None:
    x = Variable("x", shape=(4, 2))
    kept = weft.symbol.add(x, x, name="kept")
    flat = weft.symbol.exp(kept, name="flat")
    both = weft.symbol.add(flat, kept, name="both")
    graph = weft.graph.apply_passes(
        Graph(weft.symbol.exp(both, name="last")), ["InferShape", "InferType", "PlanMemory"]
    )
    names = [node.name for node in graph.indexed_graph().nodes]
    storage = dict(zip(names, graph.attrs["storage_id"], strict=True))
    assert storage["flat"] != storage["kept"]
    assert storage["both"] in {storage["flat"], storage["kept"]}
    assert storage["last"] == storage["both"]


def test_text_has_attributes_of_entries_that_are_asked_for() -> None:
    graph = weft.graph.infer_shape(Graph(nn.relu(nn.conv(Variable("x", shape=(1, 1, 10, 20)), Variable("w")))))
    assert " shape=" not in weft.graph.print_ir(graph)
    assert "shape=(1, 1, 10, 20)" in weft.graph.print_ir(graph, ["shape"])


def _ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.indexed_graph().nodes if node.op]


@pytest.mark.parametrize("layout", ["NHWC", "NCHW2c"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: weft.sum(x, axis=1),
        lambda x: weft.reshape(x, (2, -1)),
        lambda x: weft.concat([x, x], axis=1),
        lambda x: weft.permute_dims(x, (0, 2, 3, 1)),
        lambda x: nn.max_pool(nn.relu(x), 2),
        lambda x: weft.sum(nn.max_pool(x, 2), axis=1),
    ],
    ids=["sum", "reshape", "concat", "permute", "pool", "pool_sum"],
)
def test_a_second_layout_is_brought_to_that_of_the_first(function: Any, layout: str) -> None:
    net: Symbol = function(Variable("x"))
    first = weft.graph.correct_layout(Graph(net), {"x": "NCHW"})
    assert not {"permute_dims", "layout_transform"} & {*_ops(first)} - {*_ops(Graph(net))}
    second = weft.graph.correct_layout(first, {"x": layout})
    assert second.attrs["layout"][0] == layout
    x = np.random.default_rng(4).normal(size=(2, 4, 6, 6)).astype(np.float32)
    transformed = weft.symbol.layout_transform(Variable("x"), src_layout="NCHW", dst_layout=layout).eval(x=x)[0]
    expected = net.eval(x=x)[0].numpy()
    assert np.array_equal(second.symbol.eval(x=transformed)[0].numpy(), expected)
    third = weft.graph.correct_layout(second, {"x": "NCHW"})
    assert np.array_equal(third.symbol.eval(x=x)[0].numpy(), expected)
    assert weft.graph.correct_layout(first).attrs["layout"] == first.attrs["layout"]
