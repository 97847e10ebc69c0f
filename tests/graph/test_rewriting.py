"""Mutations as values, neighbours as one call: random graphs give the same bits before and after."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph as g
from weft.errors import GraphError
from weft.graph import Graph, Node, NodeEntry
from weft.symbol import AttrScope, Group, Symbol, Variable


@weft.register_op("test_advance", infer=lambda x, _state: x, mutates=[1])
def advance(out: Any, x: Any, state: Any) -> None:
    state *= 0.5
    state += x
    np.subtract(state, x, out=out)


@weft.register_op("test_advance_both", infer=lambda a, b: (a, b), nout=2, mutates=[0, 1])
def advance_both(first: Any, second: Any, a: Any, b: Any) -> None:
    a += 1
    b -= a
    np.copyto(first, a * b)
    np.copyto(second, b)


for _op in (advance, advance_both):
    _op.set_attribute("infer_shape", "same")
    _op.set_attribute("infer_type", "same")

_UNARY = ("sin", "exp", "negative", "square", "expand_dims_and_back")
_SHAPE = (3, 5)


def _random(seed: int, *, mutating: bool) -> tuple[Symbol, dict[str, Any]]:
    """Compose some outputs of a random graph over two arguments and three states; and the values of those."""
    rng = np.random.default_rng(seed)
    states = [Variable(f"s{at}") for at in range(3)]
    values: list[Symbol] = [Variable("x"), Variable("y")]

    def any_value() -> Symbol:
        pool = values + states if mutating else values
        return pool[int(rng.integers(len(pool)))]

    for _ in range(int(rng.integers(8, 20))):
        kind = rng.integers(8 if mutating else 5)
        if kind == 0:
            name = _UNARY[int(rng.integers(len(_UNARY)))]
            value = any_value()
            new = value.expand_dims(axis=0).squeeze(axis=0) if name.endswith("back") else getattr(weft, name)(value)
        elif kind <= 2:
            new = any_value() * any_value() + 0.25
        elif kind == 3:
            new = weft.maximum(any_value(), any_value())
        elif kind == 4:
            new = weft.sum(any_value(), axis=0, keepdims=True) - any_value()
        elif kind <= 6:
            target = (states + values[2:])[int(rng.integers(len(states) + len(values) - 2))]
            new = weft.symbol.test_advance(any_value(), target)
        else:
            a, b = rng.permutation(3)[:2]
            both = weft.symbol.test_advance_both(states[a], states[b])
            values.append(both[0])
            new = both[1]
        values.append(new)
    chosen = rng.permutation(len(values) - 2)[:3] + 2
    names = ["x", "y", *(f"s{at}" for at in range(3))]
    return Group([values[at] for at in chosen]), {name: rng.normal(size=_SHAPE) for name in names}


def _evaluated(symbol: Symbol, values: dict[str, Any]) -> tuple[list[bytes], dict[str, weft.NDArray]]:
    arrays = {name: weft.asarray(each.copy()) for name, each in values.items()}
    with np.errstate(all="ignore"):
        found = [
            each.numpy().tobytes() for each in symbol.eval(**{name: arrays[name] for name in symbol.list_inputs()})
        ]
    return found, arrays


@pytest.mark.parametrize("seed", range(40))
def test_mutations_are_values_bit_for_bit(seed: int) -> None:
    symbol, values = _random(seed, mutating=True)
    expected, states = _evaluated(symbol, values)
    pure = g.functionalise(Graph(symbol), states=True)
    assert not any(node.mutates for node in pure.indexed_graph().nodes)
    for graph in (pure, g.eliminate_common(pure), g.fuse(g.eliminate_dead(g.eliminate_common(pure)))):
        found, untouched = _evaluated(graph.symbol, values)
        assert found[: len(expected)] == expected
        names = pure.attrs["mutated_inputs"]
        assert found[len(expected) :] == [states[name].numpy().tobytes() for name in names]
        assert all(np.array_equal(untouched[name].numpy(), values[name]) for name in values)
    again = g.load_json(g.save_json(pure)).symbol
    assert _evaluated(again, values)[0][: len(expected)] == expected
    assert again.infer_shape(**dict.fromkeys(again.list_inputs(), _SHAPE))[1] == [_SHAPE] * len(again)


@pytest.mark.parametrize("seed", range(20))
def test_fused_neighbours_give_the_same_bits(seed: int) -> None:
    symbol, values = _random(seed, mutating=False)
    fused = g.fuse(Graph(symbol))
    assert len(fused.indexed_graph()) <= len(Graph(symbol).indexed_graph())
    expected = _evaluated(symbol, values)[0]
    again = g.load_json(g.save_json(fused)).symbol
    used = {name: values[name] for name in symbol.list_arguments()}
    for each in (fused.symbol, again):
        assert _evaluated(each, used)[0] == expected
        executor = each.bind({name: weft.asarray(used[name]) for name in each.list_arguments()}, grad_req="null")
        for _ in range(2):  # recorded, and replayed
            assert [out.numpy().tobytes() for out in executor.forward()] == expected
    shapes = dict.fromkeys(used, _SHAPE)
    assert fused.symbol.infer_shape(**shapes)[1] == symbol.infer_shape(**shapes)[1]
    assert fused.symbol.infer_type(**dict.fromkeys(used, "float64"))[1] == [np.dtype("float64")] * 3


def _ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.indexed_graph().nodes if node.op]


def test_a_group_has_one_result_and_one_device() -> None:
    x = Variable("x")
    inner = weft.sin(x)
    assert _ops(g.fuse(Graph(weft.exp(inner)))) == ["fused"]
    assert _ops(g.fuse(Graph(Group([weft.exp(inner), inner])))) == ["sin", "exp"]
    assert _ops(g.fuse(Graph(weft.exp(inner) + weft.log(inner)))) == ["fused"]
    assert _ops(g.fuse(Graph(weft.exp(inner) @ weft.log(inner)))) == ["sin", "exp", "log", "matmul"]
    with AttrScope(ctx_group="b"):
        other = weft.exp(inner)
    assert _ops(g.fuse(Graph(other))) == ["sin", "exp"]
    before = Node("cos", "before", {}, inner.get_node().inputs)
    late = Node("exp", "late", {}, [NodeEntry(inner.get_node())], [before])
    assert _ops(g.fuse(Graph([NodeEntry(late)]))) == ["cos", "fused"]


def test_fused_calls_have_shapes_both_ways_and_gradients() -> None:
    x, y = Variable("x"), Variable("y")
    z = weft.symbol.tanh(weft.sin(x) * y, name="z")
    fused = g.fuse(Graph(z)).symbol
    assert fused.list_outputs() == ["z_output"]
    joined = weft.symbol.test_advance(fused, Variable("s"))
    assert joined.infer_shape(s=(2, 3), x=(2, 3), y=(2, 3))[1] == [(2, 3)]
    values = {"x": np.linspace(0, 1, 4), "y": np.linspace(2, 3, 4)}
    for ours, theirs in zip(
        fused.gradient(["x", "y"]).eval(**values), z.gradient(["x", "y"]).eval(**values), strict=True
    ):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    with pytest.raises(GraphError, match=r"eval\(\) or bind\(\)"):
        weft.ops.get_op("fused")(weft.ones(2), subgraph=fused.get_node().attrs["subgraph"])
    planned = g.plan_memory(g.infer_type(g.infer_shape(Graph(fused), {"x": (16,), "y": (16,)})))
    assert planned.attrs["storage_allocated_bytes"] == 64


def test_what_is_no_subgraph_is_refused() -> None:
    x = Variable("x")
    with pytest.raises(GraphError, match=r"subgraph.*missing"):
        weft.symbol.fused(x)
    with pytest.raises(GraphError, match="no graph"):
        weft.symbol.fused(x, subgraph="{")
    with pytest.raises(GraphError, match="x0, x1"):
        weft.symbol.fused(x, subgraph=weft.exp(Variable("y")).tojson())
    with pytest.raises(GraphError, match="takes 1 inputs, and 2"):
        weft.symbol.fused(x, x, subgraph=weft.exp(Variable("x0")).tojson())


def test_mutated_results_and_their_views_are_read_in_order() -> None:
    x = Variable("x")
    inner = weft.exp(x)
    before = inner * 2
    row = weft.expand_dims(inner, axis=0)
    changed = weft.symbol.test_advance(x, inner)
    after = inner * 2
    symbol = Group([before, changed, after, row])
    values = {"x": np.array([1.0, 2.0])}
    start = np.exp(values["x"])
    expected = [start * 2, start * 0.5, (start * 0.5 + values["x"]) * 2, start[None]]
    for graph in (Graph(symbol), g.order_mutation(Graph(symbol)), g.functionalise(Graph(symbol))):
        for ours, theirs in zip(graph.symbol.eval(**values), expected, strict=True):
            np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-14)


def test_functional_calls_say_what_their_ops_say() -> None:
    x, state = Variable("x"), Variable("state")
    first = weft.symbol.test_advance(x, state, name="first")
    second = weft.symbol.test_advance(first, state, name="second")
    graph = g.functionalise(Graph(second))
    assert _ops(graph) == ["functional", "functional"]
    assert graph.symbol.list_auxiliary_states() == []
    assert graph.symbol.get_internals().list_outputs()[2:] == [
        "first_output",
        "first_state",
        "second_output",
        "second_state",
    ]
    assert graph.symbol.infer_shape(state=(2, 3))[0] == [(2, 3), (2, 3)]
    sized = g.infer_type(g.infer_shape(graph, {"x": (64,)}))
    assert g.plan_memory(sized).attrs["storage_allocated_bytes"] <= 3 * 256
    with pytest.raises(GraphError, match="no gradient"):
        graph.symbol.gradient("x")
    with pytest.raises(GraphError, match="call 'test_advance' itself"):
        weft.ops.get_op("functional")(weft.ones(2), weft.ones(2), functional_of="test_advance")
    applied = g.apply_passes(Graph(second), ["Functionalise", "Fuse"])
    assert _ops(applied) == _ops(graph)


def test_a_file_goes_on_from_its_last_version() -> None:
    state = Variable("state")
    first = weft.symbol.test_advance(Variable("x"), state, name="first")
    again = weft.symbol.load_json(first.tojson())
    internals = again.get_internals()
    later = Group([again, internals["state"] * 1])
    for symbol in (later, g.functionalise(Graph(later)).symbol):
        assert symbol.eval(x=np.array([2.0]), state=np.array([4.0]))[1].numpy().tolist() == [4.0]
