"""Calls made again instead of kept: less memory by the plan, the same bits, and errors that name the bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as g
from weft.bench.plan.networks import NETWORKS
from weft.bench.plan.training import plan_network, sized as _sized
from weft.errors import GraphError, PlanError
from weft.graph import Graph
from weft.symbol import Group, Symbol, Variable


def _chain(depth: int, width: int = 32) -> tuple[Symbol, list[str]]:
    y: Any = Variable("x", shape=(width, width))
    for at in range(depth):
        y = weft.tanh(y @ Variable(f"w{at}", shape=(width, width)))
    return y, [f"w{at}" for at in range(depth)]


def _bytes(graph: Graph, external: Any = ()) -> int:
    found: int = g.plan_memory(graph, external=external).attrs["storage_allocated_bytes"]
    return found


def _products(graph: Graph) -> int:
    return sum(node.op is not None and node.op.name.startswith("matmul") for node in graph.indexed_graph().nodes)


def test_a_deep_chain_takes_a_third_of_the_memory_at_1_33_of_the_time() -> None:
    y, names = _chain(100)
    grads = y.gradient(names)
    outside = grads.list_outputs()
    plain = _sized(Group([y, grads]))
    small = g.recompute(plain, y, memory_limit=_bytes(plain, outside) // 3, external=outside)
    assert _bytes(small, outside) <= _bytes(plain, outside) / 3
    assert _products(small) <= 1.33 * _products(plain)
    least = g.recompute(plain, y, external=outside)
    assert _bytes(least, outside) < _bytes(small, outside)


@pytest.mark.parametrize("depth", [28, 32, 64])
def test_segments_that_taper_take_a_third_at_most_from_some_thirty_layers_on(depth: int) -> None:
    y, names = _chain(depth, 512)
    grads = y.gradient(names)
    outside = grads.list_outputs()
    plain = _sized(Group([y, grads]))
    least = g.recompute(plain, y, external=outside)
    assert _bytes(least, outside) <= _bytes(plain, outside) / 3
    assert _products(least) <= 1.28 * _products(plain)
    limit = _bytes(plain, outside) * 3 // 8
    within = g.recompute(plain, y, memory_limit=limit, external=outside)
    assert _bytes(within, outside) <= limit
    assert _products(within) <= _products(least)
    # About sqrt(2 n) layers at a time, and three for the gradient.
    assert _bytes(least, outside) <= ((2 * depth) ** 0.5 + 3) * 512 * 512 * 4
    assert _in_a_program(least).nbytes <= _in_a_program(plain).nbytes / 3


def test_what_is_made_again_gives_the_same_bits() -> None:
    y, names = _chain(12, 8)
    plain = _sized(Group([y, y.gradient(names)]))
    small = g.recompute(plain, y, external="outputs")
    assert any(node.name.endswith("_mirror") for node in small.indexed_graph().nodes)
    rng = np.random.default_rng(2)
    values = {name: rng.normal(size=(8, 8)).astype(np.float32) for name in y.list_inputs()}
    for ours, theirs in zip(small.symbol.eval(**values), plain.symbol.eval(**values), strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    chosen = g.gradient(Graph(y), y, names, mirror=True)
    assert any(node.name.endswith("_mirror") for node in chosen.indexed_graph().nodes)
    known = g.infer_type(g.infer_shape(Graph(y(x=Variable("z"))), {"z": (8, 8)}))
    assert g.gradient(known, known.outputs, ["w3"], mirror=True).attrs["shape"]


def test_an_executor_keeps_less_and_gives_the_same_bits() -> None:
    y, names = _chain(16, 16)
    rng = np.random.default_rng(4)
    values = {name: rng.normal(size=(16, 16)).astype(np.float32) / 3 for name in y.list_inputs()}

    def trained(**options: Any) -> tuple[list[bytes], int]:
        requests = {name: "write" if name in names else "null" for name in y.list_arguments()}
        executor = y.simple_bind(x=(16, 16), grad_req=requests, **options)
        found = []
        for _ in range(2):
            found += [out.numpy().tobytes() for out in executor.forward(is_train=True, **values)]
            executor.backward()
            found += [executor.grad_dict[name].numpy().tobytes() for name in names]
        return found, sum(each is not None for each in executor._values)

    plain, kept = trained()
    for options in ({"mirror": True}, {"memory_limit": 9 * 1024}):
        again, fewer = trained(**options)
        assert again == plain
        assert fewer < kept
    with pytest.raises(PlanError, match=r"memory_limit is 2048 bytes.*no plan takes less than \d+ bytes: op"):
        trained(memory_limit=2048)


def test_draws_and_states_are_not_made_again() -> None:
    @weft.register_op("test_again_state", infer=lambda x, _state: x, mutates=[1])
    def advance(out: Any, x: Any, state: Any) -> None:
        state += 1
        np.multiply(x, state, out=out)

    advance.set_attribute("infer_shape", "same")
    advance.set_attribute("infer_type", "same")
    advance.set_attribute("gradient", lambda _node, grads: (grads[0], None))
    y: Any = Variable("x", shape=(1000,))
    for at in range(10):
        y = weft.sin(weft.symbol.test_again_state(y, name=f"state{at}") * 2)
    both = _sized(Group([y, y.gradient("x")]))
    again = [node.name for node in g.recompute(both, y).indexed_graph().nodes if node.name.endswith("_mirror")]
    assert not [name for name in again if name.startswith("state")]


def test_limits_that_are_wrong() -> None:
    y, names = _chain(3, 8)
    plain = _sized(Group([y, y.gradient(names)]))
    with pytest.raises(TypeError, match="number of bytes, not str"):
        g.recompute(plain, y, memory_limit="1 MB")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 0"):
        g.recompute(plain, y, memory_limit=-1)
    with pytest.raises(PlanError, match="no plan takes less than"):
        g.gradient(Graph(y), y, names, memory_limit=1)
    unknown = weft.sin(Variable("z"))
    with pytest.raises(GraphError, match=r"sizes|shapes"):
        g.gradient(Graph(unknown), unknown, ["z"], mirror=True)


@pytest.mark.parametrize("name", ["MLP-100", "VGG-16", "AlexNet", "GoogLeNet", "ResNet-50"])
def test_networks_are_planned_near_the_peak_and_never_above_mxnet(name: str) -> None:
    net = next(each for each in NETWORKS if each.name == name)
    plans = plan_network(net)
    assert plans.inference.to_peak <= (1.12 if name == "ResNet-50" else 1.05)
    assert plans.inference.megabytes <= net.inference + 0.5  # MXNet's figures are rounded
    assert plans.training.megabytes <= net.training + 0.5
    assert plans.again.nbytes <= plans.training.nbytes


def _in_a_program(graph: Graph, **options: Any) -> Any:
    """Return the program that computes a graph, of arrays of its shapes."""
    symbol = graph.symbol
    sizes = zip(symbol.list_arguments(), symbol.infer_shape()[0], symbol.infer_type()[0], strict=True)
    arrays = {argument: weft.Aval(shape, np.dtype(dtype)) for argument, shape, dtype in sizes}

    @weft.program(**options)
    def step(arrays: dict[str, Any]) -> list[Any]:
        return symbol.eval(**arrays)

    return step.lower(arrays)


@pytest.mark.parametrize("name", [each.name for each in NETWORKS])
def test_a_network_that_trains_as_a_program_takes_no_more_than_mxnet(name: str) -> None:
    net = next(each for each in NETWORKS if each.name == name)
    loss, both, grads = net.trained()
    plain = _sized(both)
    made = _in_a_program(plain)
    assert made.nbytes / 2**20 <= net.training + 0.5
    assert made.nbytes <= made.eager_nbytes
    again = _in_a_program(g.recompute(plain, loss, external=grads))
    assert again.nbytes <= (0.6 if name == "GoogLeNet" else 0.85 if name == "VGG-16" else 1) * made.nbytes


def _residual(depth: int) -> tuple[Symbol, list[str]]:
    y: Any = Variable("x", shape=(2, 8, 12, 12))
    for at in range(depth):
        made = weft.nn.conv(y, Variable(f"w{at}", shape=(8, 8, 3, 3)), padding=1)
        made = weft.nn.batch_norm_train(made, Variable(f"g{at}", shape=(8,)), Variable(f"b{at}", shape=(8,)))[0]
        y = weft.nn.relu(made) + y
    return y, [f"{kind}{at}" for at in range(depth) for kind in "wgb"]


def _recurrent(depth: int) -> tuple[Symbol, list[str]]:
    names = ["wx", "wh"]
    h: Any = Variable("h", shape=(8, 32))
    c: Any = Variable("c", shape=(8, 32))
    weights = [Variable(name, shape=(128, 32)) for name in names]
    for at in range(depth):
        h, c = weft.nn.lstm_cell(Variable(f"x{at}", shape=(8, 32)), h, c, *weights)
    return h, names


@pytest.mark.parametrize("memory", ["balanced", "speed", "min"])
@pytest.mark.parametrize(("network", "share"), [(_chain, 0.5), (_residual, 0.3), (_recurrent, 1)])
def test_what_is_made_again_is_not_kept_in_a_program(network: Any, share: float, memory: str) -> None:
    y, names = network(40)
    grads = y.gradient(names)
    plain = _sized(Group([y, grads]))
    small = g.recompute(plain, y, external=grads.list_outputs())
    again, kept = _in_a_program(small, memory=memory), _in_a_program(plain, memory=memory)
    assert again.nbytes <= share * kept.nbytes
    assert kept.nbytes <= 0.2 * kept.eager_nbytes
