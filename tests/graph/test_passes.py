"""Passes: gradients, memory, devices, layouts, order, what is merged and dropped."""

# ruff: noqa: ARG001, ARG005, PLW0108 - rules and passes have the parameters that they are called with

# ruff: noqa: F811 - a fixture's name is a parameter
from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from graph_ops import mlp  # noqa: F401 - a fixture

import weft
from weft.errors import GradientError, GraphError
from weft.graph import Graph, Node, NodeEntry
from weft.symbol import AttrScope, Group, Variable

if TYPE_CHECKING:
    from pathlib import Path

    from weft.symbol import Symbol


def named(graph: Graph) -> list[str]:
    return [node.name for node in graph.indexed_graph().nodes]


def test_a_graph_in_numbers(mlp: Symbol) -> None:
    indexed = Graph(mlp).indexed_graph()
    nodes = indexed.nodes
    assert [nodes[at].name for at in indexed.input_nodes] == mlp.list_arguments()
    last = indexed.node_id("fc2")
    assert indexed.outputs == [(last, 0, 0)]
    assert [nodes[at].name for at, _, _ in indexed.inputs(last)][1:] == ["fc2_weight", "fc2_bias"]
    assert indexed.num_node_entries == indexed.num_nodes == len(indexed) == len(nodes)
    assert indexed.entry_id(nodes[last].outputs[0]) == last
    with pytest.raises(GraphError, match="no node 99"):
        indexed.inputs(99)
    with pytest.raises(GraphError, match="no node"):
        indexed.node_id("nothing")
    with pytest.raises(GraphError, match="1 outputs"):
        indexed.entry_id(0, 1)


def test_nodes_are_built_by_hand() -> None:
    x = Node(None, "x")
    assert x.is_variable
    assert x.op is None
    exp = Node(weft.ops.get_op("exp"), "e", None, [NodeEntry(x)])
    after = Node(weft.ops.get_op("exp"), "late", {"__note__": "a"}, [NodeEntry(x)], [exp])
    graph = Graph([NodeEntry(after)])
    assert named(graph) == ["x", "e", "late"]
    assert graph.indexed_graph().control_deps(2) == [1]
    assert [node.name for node in after.control_deps] == ["e"]
    assert after.attrs == {"__note__": "a"}
    assert graph.symbol.eval(x=[0.0])[0].numpy().tolist() == [1.0]
    assert after.inputs[0].node == x
    with pytest.raises(GraphError, match="takes 1 inputs, and 2"):
        Node("exp", "wrong", {}, [NodeEntry(x), NodeEntry(x)])
    with pytest.raises(GraphError, match="takes no inputs"):
        Node(None, "wrong", {}, [NodeEntry(x)])
    with pytest.raises(GraphError, match="1 outputs"):
        NodeEntry(x, 1)


def test_attributes_are_copied_when_they_are_written() -> None:
    graph = Graph(Variable("x"))
    graph.attrs["a"] = [1]
    other = graph.copy()
    other.attrs["a"] = [2]
    other.attrs["b"] = 3
    assert graph.attrs["a"] == [1]
    assert "b" not in graph.attrs
    del other.attrs["b"]
    assert list(other.attrs) == ["a"]
    with pytest.raises(KeyError):
        graph.attrs["c"]
    with pytest.raises(KeyError):
        del graph.attrs["c"]


def test_passes_are_checked(mlp: Symbol) -> None:
    graph = Graph(mlp)
    with pytest.raises(
        GraphError, match=r"'PlanMemory' requires the attribute 'shape'.*not there.*(InferShape|infer_shape)"
    ):
        weft.graph.apply_pass(graph, "PlanMemory")
    graph.attrs["shape"] = "round"
    with pytest.raises(GraphError, match=r"of another kind.*(InferShape|infer_shape)"):
        weft.graph.apply_pass(graph, "PlanMemory")
    with pytest.raises(GraphError, match="no pass is named 'Nothing'"):
        weft.graph.get_pass("Nothing")
    with pytest.raises(GraphError, match="registered already"):
        weft.graph.register_pass("PlanMemory")(lambda graph: graph)
    graph = Graph(mlp)
    graph.attrs["shape_inputs"] = {"data": (10, 10)}
    done = weft.graph.apply_passes(graph, ["InferShape", "InferType", "PlanMemory", "SaveJSON"])
    assert done.attrs["shape_num_unknown_nodes"] == done.attrs["dtype_num_unknown_nodes"] == 0
    assert weft.symbol.load_json(done.attrs["json"]).list_arguments() == mlp.list_arguments()


def test_a_pass_of_ones_own_keeps_its_word() -> None:
    @weft.graph.register_pass("test_liar", provides=["truth"])
    def liar(graph: Graph) -> Graph:
        return graph

    @weft.graph.register_pass("test_changer")
    def changer(graph: Graph) -> Graph:
        return Graph(graph.symbol + 1)

    @weft.graph.register_pass("test_needs", op_attributes=["test_only_here"])
    def needs(graph: Graph) -> Graph:
        return graph

    @weft.graph.register_pass("test_raises")
    def raises(graph: Graph) -> Graph:
        raise RuntimeError("of the pass")

    graph = Graph(weft.exp(Variable("x")))
    with pytest.raises(GraphError, match="provides 'truth', and did not"):
        weft.graph.apply_pass(graph, "test_liar")
    with pytest.raises(GraphError, match="leaves the graph as it is"):
        weft.graph.apply_pass(graph, "test_changer")
    with pytest.raises(GraphError, match="requires ops to have 'test_only_here'"):
        weft.graph.apply_pass(graph, "test_needs")
    with pytest.raises(RuntimeError, match="of the pass"):
        weft.graph.apply_pass(graph, "test_raises")
    with pytest.raises(TypeError, match=r"weft.graph.Graph"):
        weft.graph.apply_pass(3, "test_liar")  # type: ignore[arg-type]


def test_gradients_add_up_and_count_twice() -> None:
    x = Variable("x")
    square = weft.symbol.test_square(x, name="s")
    assert square.gradient(["x"]).eval(x=[3.0])[0].numpy().tolist() == [6.0]
    twice = weft.graph.gradient(None, Group([square, square]), x).symbol
    assert twice.eval(x=[3.0])[0].numpy().tolist() == [12.0]
    product = weft.symbol.test_product(square, x)
    assert product.gradient("x").eval(x=[2.0])[0].numpy().tolist() == [12.0]
    through = weft.graph.gradient(Graph(product), product, ["s_output"]).symbol
    assert through.eval(x=[2.0])[0].numpy().tolist() == [2.0]


def test_gradients_of_gradients() -> None:
    x = Variable("x")
    cube = weft.symbol.test_product(weft.symbol.test_square(x), x)
    with_sum = weft.graph.gradient(None, cube, x, aggregate=lambda parts: weft.symbol.test_sum(*parts)).symbol
    again = weft.graph.gradient(None, with_sum, x, aggregate=lambda parts: weft.symbol.test_sum(*parts)).symbol
    assert again.eval(x=[2.0])[0].numpy().tolist() == [12.0]


def test_heads_hints_and_what_nothing_rests_on() -> None:
    x, y, g = Variable("x"), Variable("y"), Variable("g")
    square = weft.symbol.test_square(x)
    seen: list[str] = []

    def hint(grad: Symbol, of: Symbol) -> Symbol:
        seen.append(of.list_outputs()[0])
        return grad * 1

    graph = weft.graph.gradient(None, square, [x, y], ys_out_grad=[g], hint=hint)
    found = graph.symbol.eval(x=[3.0], y=[[1.0, 2.0]], g=[10.0])
    assert [each.numpy().tolist() for each in found] == [[60.0], [[0.0, 0.0]]]
    assert seen == ["x", "y"]


def test_what_is_mirrored_is_computed_again() -> None:
    x = Variable("x")
    inner = weft.symbol.test_square(x, name="inner")
    outer = weft.symbol.test_square(inner, name="outer")
    graph = weft.graph.gradient(None, outer, x, mirror=lambda node: node.name == "inner")
    assert "inner_mirror" in named(graph)
    heads = weft.graph.gradient(None, outer, x, [Variable("g")], mirror=lambda node: node.name == "inner")
    assert "inner" not in named(heads)
    assert graph.symbol.eval(x=[2.0])[0].numpy().tolist() == [32.0]


def test_gradients_that_cannot_be() -> None:
    @weft.register_op("test_no_gradient", infer=weft.ops.like_first)
    def no_gradient(out: Any, x: Any) -> None:
        np.copyto(out, x)

    @weft.register_op("test_wrong_gradient", infer=weft.ops.like_first)
    def wrong_gradient(out: Any, x: Any) -> None:
        np.copyto(out, x)

    wrong_gradient.set_attribute("gradient", lambda node, grads: [None, None])
    x = Variable("x")
    with pytest.raises(GradientError, match=r"'n' \(op 'test_no_gradient'\).*set_attribute"):
        weft.symbol.test_no_gradient(x, name="n").gradient("x")
    with pytest.raises(GraphError, match="2 answers for 1"):
        weft.symbol.test_wrong_gradient(x).gradient("x")
    with pytest.raises(GraphError, match="no variable is named y"):
        weft.symbol.test_square(x).gradient("y")
    with pytest.raises(GradientError, match="1 outputs have 2 gradients"):
        weft.graph.gradient(None, x, x, [None, None])


def planned(symbol: Symbol, external: Any = (), **shapes: Any) -> Graph:
    graph = weft.graph.infer_type(weft.graph.infer_shape(Graph(symbol), shapes))
    return weft.graph.plan_memory(graph, external=external)


def test_memory_is_shared_by_what_is_not_alive_together() -> None:
    x = Variable("x")
    y = x
    for _ in range(10):
        y = weft.exp(y)
    attrs = planned(y, x=(100,)).attrs
    assert attrs["storage_allocated_bytes"] == 400
    assert attrs["storage_peak_live_bytes"] == 400
    assert attrs["storage_id"] == [-2] + [0] * 10
    assert attrs["storage_inplace_index"][1:] == [-1] + [0] * 9
    parallel = planned(weft.exp(x) @ weft.log(x), x=(8, 8)).attrs
    assert len(set(parallel["storage_id"][1:])) == 3


def test_sizes_are_those_of_dtypes_and_outputs_may_lie_outside() -> None:
    x = Variable("x", dtype="float64")
    assert planned(weft.exp(x), x=(16,)).attrs["storage_allocated_bytes"] == 128
    assert planned(weft.exp(x), external="outputs", x=(16,)).attrs["storage_id"] == [-2, -2]
    y = weft.symbol.exp(weft.symbol.log(x, name="l"), name="e")
    assert planned(y, external=["l"], x=(16,)).attrs["storage_id"] == [-2, -2, 0]
    assert planned(y, external=["x", "l_output"], x=(16,)).attrs["storage_id"] == [-2, -2, 0]
    for given in (["l", "nobody"], "nobody"):
        with pytest.raises(GraphError, match=r"no value is named 'nobody'.*there are l, e, and their outputs"):
            planned(y, external=given, x=(16,))
    sized = weft.graph.infer_type(weft.graph.infer_shape(Graph(y), {"x": (16,)}))
    with pytest.raises(GraphError, match="no value is named 'nobody'"):
        weft.graph.recompute(sized, y, external=["nobody"])
    with pytest.raises(GraphError, match="known sizes"):
        weft.graph.plan_memory(weft.graph.infer_type(weft.graph.infer_shape(Graph(y))))
    with pytest.raises(GraphError, match="infer_shape"):
        weft.graph.plan_memory(Graph(y))
    with pytest.raises(ValueError, match="'min', 'balanced' and 'speed'"):
        weft.graph.plan_memory(weft.graph.infer_type(weft.graph.infer_shape(Graph(y), {"x": (2,)})), memory="max")


def test_values_are_copied_once_to_each_device() -> None:
    x = Variable("x")
    with AttrScope(ctx_group="a"):
        y = weft.symbol.exp(x, name="y")
    with AttrScope(ctx_group="b"):
        z = weft.symbol.add(weft.symbol.exp(y, name="p"), weft.symbol.log(y, name="q"), name="z")
    graph = weft.graph.place_device(Graph(z), assign={"a": "cpu:0", "b": "cpu:1"})
    assert named(graph).count("y_copy_0_cpu:1") == 1
    assert len(named(graph)) == 6
    assert dict(zip(named(graph), graph.attrs["device"], strict=True))["x"] == "cpu:0"
    with pytest.raises(GraphError, match="group 'b' has no device"):
        weft.graph.place_device(Graph(z), assign={"a": "cpu:0"})


def layouts() -> None:
    """Register ops that want their axes in an order."""
    for name, layout in (("test_first", "NCHW"), ("test_last", "NHWC")):
        op = weft.register_op(name, infer=weft.ops.like_first)(lambda out, x: np.copyto(out, x))
        op.set_attribute("layout", lambda attributes, ins, last, outs, own=layout: ([own], [own]))
    op = weft.register_op("test_any", infer=weft.ops.like_first)(lambda out, x: np.copyto(out, x))
    op.set_attribute("layout", lambda attributes, ins, last, outs: (ins, [ins[0]]))


layouts()


def test_layouts_are_brought_together() -> None:
    x = Variable("x")
    graph = weft.graph.correct_layout(Graph(weft.symbol.test_last(x, name="l")), {"x": "NCHW"})
    assert [node.op.name if node.op else None for node in graph.indexed_graph().nodes] == [
        None,
        "permute_dims",
        "test_last",
    ]
    assert graph.attrs["layout"] == ["NCHW", "NHWC", "NHWC"]


def test_transforms_that_meet_go() -> None:
    x = Variable("x")
    y = weft.symbol.test_any(weft.symbol.test_last(x), name="any")
    back = weft.symbol.test_first(y, name="back")
    graph = weft.graph.correct_layout(Graph(back), {"x": "NCHW"})
    ops = [node.op.name for node in graph.indexed_graph().nodes if node.op]
    assert ops == ["permute_dims", "test_last", "test_any", "permute_dims", "test_first"]
    twice = Group([weft.symbol.test_last(x, name="a"), weft.symbol.test_last(x, name="b")])
    found = weft.graph.correct_layout(Graph(twice), {"x": "NCHW"})
    assert sum(node.op is not None and node.op.name == "permute_dims" for node in found.indexed_graph().nodes) == 1


def test_blocked_layouts_are_transformed_and_back() -> None:
    x = Variable("x")
    blocked = weft.graph.correct_layout(Graph(weft.symbol.test_last(x)), {"x": "NCHW4c"})
    assert [node.op.name for node in blocked.indexed_graph().nodes if node.op] == ["layout_transform", "test_last"]
    data = np.arange(2 * 8 * 3 * 5.0).reshape(2, 8, 3, 5)
    inner = data.reshape(2, 2, 4, 3, 5).transpose(0, 1, 3, 4, 2)
    assert np.array_equal(blocked.symbol.eval(x=inner)[0].numpy(), data.transpose(0, 2, 3, 1))
    there = weft.symbol.layout_transform(x, src_layout="NCHW", dst_layout="NCHW4c")
    assert there.infer_shape(x=data.shape)[1] == [inner.shape]
    assert np.array_equal(there.eval(x=data)[0].numpy(), inner)
    weights = (there * Variable("w")).gradient("x").eval(x=data, w=inner)[0]
    assert np.array_equal(weights.numpy(), data)
    for layout, said in (
        ("NCHW3c", "do not divide"),
        ("NHW", "other axes"),
        ("NCHw", "no layout"),
        ("4cNHW", "no layout"),
    ):
        with pytest.raises(ValueError, match=said):
            weft.symbol.layout_transform(x, src_layout="NCHW", dst_layout=layout).infer_shape(x=data.shape)
    with pytest.raises(ValueError, match="has not the axes"):
        there.infer_shape(x=(2, 3))


def test_mutations_are_ordered() -> None:
    x, state = Variable("x"), Variable("moving")
    gamma = Variable("gamma")
    before = weft.symbol.exp(state, name="before")
    first = weft.symbol.test_norm(x, gamma, state, name="first")
    between = weft.symbol.exp(state, name="between")
    second = weft.symbol.test_norm(x, gamma, state, name="second")
    graph = weft.graph.order_mutation(Graph(Group([second, between, first, before])))
    after = {node.name: {each.name for each in node.control_deps} for node in graph.indexed_graph().nodes}
    assert after["first"] == {"before"}
    assert after["between"] == {"first"}
    assert after["second"] == {"first", "between"}
    names = named(graph)
    assert names.index("before") < names.index("first") < names.index("between") < names.index("second")


def test_equal_calls_are_merged_but_draws_are_not() -> None:
    x = Variable("x")
    both = weft.exp(x) + weft.exp(x)
    assert len(named(weft.graph.eliminate_common(Graph(both)))) == 3
    with_states = weft.symbol.test_norm(x, name="a") + weft.symbol.test_norm(x, name="b")
    assert len(named(weft.graph.eliminate_common(Graph(with_states)))) == len(named(Graph(with_states)))


def test_what_only_comes_before_is_dropped() -> None:
    x = Node(None, "x")
    idle = Node("exp", "idle", {}, [NodeEntry(x)])
    last = Node("log", "last", {}, [NodeEntry(x)], [idle])
    assert named(weft.graph.eliminate_dead(Graph([NodeEntry(last)]))) == ["x", "last"]


def test_constants_are_folded() -> None:
    two = weft.symbol.constant(shape=(2,), dtype="float32", values=(2.0, 3.0))
    graph = weft.graph.fold_constants(Graph(weft.symbol.square(two) + Variable("x")))
    ops = [node.op.name for node in graph.indexed_graph().nodes if node.op]
    assert ops == ["constant", "add"]
    again = weft.graph.load_json(weft.graph.save_json(graph))
    assert again.symbol.eval(x=[1.0, 1.0])[0].numpy().tolist() == [5.0, 10.0]


def test_text_and_pictures(mlp: Symbol, tmp_path: Path) -> None:
    graph = weft.graph.infer_shape(Graph(mlp), {"data": (10, 10)})
    graph.attrs["colour"] = [f"c{at}" for at in range(len(graph.indexed_graph()))]
    text = weft.graph.print_ir(graph, ["shape"], ["colour"])
    assert "test_dense(%data, %fc1_weight, %fc1_bias), units='1000', shape=(10, 1000), colour=c3" in text
    with pytest.raises(GraphError, match="no attribute 'nothing'"):
        weft.graph.print_ir(graph, ["nothing"])
    weft.graph.draw(graph, tmp_path / "net.dot")
    weft.graph.draw(graph, tmp_path / "net.svg")
    assert "fc1_weight" in (tmp_path / "net.dot").read_text()
    assert (tmp_path / "net.svg").read_text().startswith("<svg")
    with pytest.raises(ValueError, match=r"\.bmp"):
        weft.graph.draw(graph, tmp_path / "net.bmp")
    if shutil.which("dot") is None:
        with pytest.raises(ValueError, match=r"dot is not installed: draw a \.svg"):
            weft.graph.draw(graph, tmp_path / "net.png")
    else:
        weft.graph.draw(graph, tmp_path / "net.png")
        assert (tmp_path / "net.png").read_bytes().startswith(b"\x89PNG")
