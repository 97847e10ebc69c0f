"""Mistakes that who follows the pages on symbols, passes and ops makes: each is named, with what to write."""

# ruff: noqa: ARG005 - rules have the parameters that they are called with

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import graph_ops  # noqa: F401 - ops of the tests
import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, GraphError, ShapeError, WeftError
from weft.graph import Graph
from weft.symbol import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.ops import Op


def _product() -> Any:
    return weft.tanh(weft.symbol.matmul(Variable("x"), Variable("w"), name="product"))


@pytest.mark.parametrize("shape", ["2,3", np.ones((2, 3)), 2.5, (2.0, 3), object()])
@pytest.mark.parametrize(
    "given",
    [
        lambda shape: _product().infer_shape(x=shape),
        lambda shape: _product().simple_bind(x=shape, w=(3, 4)),
        lambda shape: weft.graph.infer_shape(Graph(_product()), {"x": shape}),
        lambda shape: Variable("x", shape=shape),
    ],
    ids=["infer_shape", "simple_bind", "pass", "Variable"],
)
def test_what_is_no_shape(given: Callable[[Any], Any], shape: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"the shape of 'x' is a tuple of lengths"):
        given(shape)


def test_an_unknown_length_is_none() -> None:
    makers: list[Callable[[], Any]] = [
        lambda: _product().infer_shape(x=(-1, 3)),
        lambda: _product().simple_bind(x=(-1, 3), w=(3, 4)),
        lambda: Variable("x", shape=(-1, 3)),
    ]
    for make in makers:
        with pytest.raises(ValueError, match=r"the shape of 'x' .* with None for an unknown one, and \(-1, 3\)"):
            make()
    with pytest.raises(GraphError, match=r"variable 'x': '__shape__' is \(-1, 3\), .* negative: .* is None"):
        weft.exp(Variable("x", __shape__="(-1, 3)")).infer_shape()
    op = weft.register_op("test_negative_rule", infer=weft.ops.like_first)(np.copyto)
    op.set_attribute("infer_shape", lambda attributes, ins, outs: (ins, [(-1, 3)]))
    with pytest.raises(ShapeError, match=r"'n'.*a length of a shape is -1: write None"):
        weft.symbol.test_negative_rule(Variable("x"), name="n").infer_shape(x=(2, 3))


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("NCCW", "'C' is said twice"),
        ("NC?W", "'[?]' is no axis"),
        ("nchw", "before 'n' no length of its blocks is said"),
        ("NHW4c", "blocks along 'C' and no such axis"),
        ("NCHW4", "behind 4 there is no axis"),
        ("", "it has no axes"),
        ("NCW", r"layout 'NCW' has other axes than its shape \(1, 2, 3, 3\)"),
    ],
)
def test_what_is_no_layout(layout: str, said: str) -> None:
    net = weft.exp(Variable("x", shape=(1, 2, 3, 3)))
    for graph in (Graph(net), weft.graph.infer_shape(Graph(net))):
        with pytest.raises(GraphError, match=f"variable 'x': .*{said}"):
            weft.graph.correct_layout(graph, {"x": layout})
        assert weft.graph.correct_layout(graph, {"x": "NCHW2c"}).attrs["layout"][0] == "NCHW2c"


def test_what_is_changed_in_place_is_not_transformed() -> None:
    op = weft.register_op("test_changes_laid", infer=lambda x, state: x, mutates=[1])(lambda out, x, state: None)
    layouts = {"x": "NC", "s": "NC"}
    op.set_attribute("layout", lambda attributes, ins, last, outs: (["NC", "NC"], ["NC"]))
    net = weft.symbol.test_changes_laid(Variable("x"), Variable("s"), name="n")
    assert weft.graph.correct_layout(Graph(net), layouts).attrs["layout"] == ["NC", "NC", "NC"]
    with pytest.raises(GraphError, match=r"'n'.*input 1, which it changes in place, lies as CN, and NC is wanted"):
        weft.graph.correct_layout(Graph(net), layouts | {"s": "CN"})


def test_a_rule_for_layouts_answers_attributes() -> None:
    op = weft.register_op("test_laid_so", infer=lambda x, **_: x)(np.copyto)
    op.set_attribute("layout", lambda attributes, ins, last, outs: (ins, ins, {**attributes, "layout": ins[0]}))
    net = weft.symbol.test_laid_so(Variable("x"), name="n")
    found = weft.graph.correct_layout(Graph(net), {"x": "NHWC"})
    assert [node.attributes for node in found.indexed_graph().nodes if node.op] == [{"layout": "NHWC"}]
    op.set_attribute("layout", lambda attributes, ins, last, outs: (ins, ins, ["layout"]), level=11)
    with pytest.raises((GraphError, TypeError), match=r"the rule returns attributes as a dict, not \['layout'\]"):
        weft.graph.correct_layout(Graph(net), {"x": "NHWC"})


def test_a_rule_for_layouts_answers_layouts() -> None:
    op = weft.register_op("test_no_layout", infer=weft.ops.like_first)(np.copyto)
    op.set_attribute("layout", lambda attributes, ins, last, outs: (["NCCW"], [None]))
    with pytest.raises(GraphError, match=r"'n' \(op 'test_no_layout'\): its layout rule answers 'NCCW' is no layout"):
        weft.graph.correct_layout(Graph(weft.symbol.test_no_layout(Variable("x"), name="n")), {"x": "NCHW"})


def test_lengths_may_be_of_numpy() -> None:
    assert Variable("x", shape=np.array([2, 3])).infer_shape()[0] == [(2, 3)]
    assert Variable("x", shape=np.int64(2).item()).infer_shape()[0] == [(2,)]


def test_values_of_an_executor_go_by_name() -> None:
    executor = _product().simple_bind(x=(2, 3), w=(3, 4), grad_req="null")
    with pytest.raises(ArgumentTypeError, match=r"values go by name, as in forward\(x=...\)"):
        executor.forward(np.ones((2, 3), np.float32))
    assert executor.forward(np.True_)[0].shape == (2, 4)


def test_mxnets_words_for_devices() -> None:
    with pytest.raises(GraphError, match=r"MXNet's ctx= is device= here; there are x, w"):
        _product().simple_bind(ctx=weft.cpu(), x=(2, 3), w=(3, 4))
    with pytest.raises(GraphError, match=r"MXNet's group2ctx= is group2device= here"):
        _product().simple_bind(group2ctx={}, x=(2, 3), w=(3, 4))


def test_ops_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError, match="did you mean 'matmul'"):
        _ = weft.symbol.matmull
    with pytest.raises(AttributeError, match=r"no op is named so$"):
        _ = weft.symbol.zzzzzzzzzzz
    monkeypatch.delitem(sys.modules, "weft.mxnet", raising=False)
    with pytest.raises(AttributeError, match=r"after import weft.mxnet"):
        _ = weft.symbol.FullyConected


def test_an_error_of_eval_names_the_node() -> None:
    with pytest.raises(ValueError, match="matmul") as caught:
        _product().eval(x=np.ones((2, 3)), w=np.ones((4, 4)))
    assert caught.value.__notes__ == ["weft: node 'product' (op 'matmul')"]


def test_what_is_no_graph() -> None:
    with pytest.raises(ArgumentTypeError, match=r"made of a symbol.*not of int"):
        Graph(3)  # type: ignore[arg-type]


def test_one_name_is_one_name() -> None:
    graph = Graph(weft.exp(Variable("x", shape=(4,))))
    assert weft.graph.apply_passes(graph, "infer_shape").attrs["shape"] == [(4,), (4,)]

    @weft.graph.register_pass("test_one_name", requires="shape", provides="answer")
    def answer(graph: Graph) -> Graph:
        graph.attrs["answer"] = 42
        return graph

    assert weft.graph.get_pass("test_one_name").requires == ("shape",)
    with pytest.raises(GraphError, match=r"requires the attribute 'shape'.*InferShape"):
        weft.graph.apply_pass(graph, "test_one_name")


def test_names_that_no_value_has() -> None:
    graph = weft.graph.infer_type(weft.graph.infer_shape(Graph(_product()), {"x": (2, 3), "w": (3, 4)}))
    with pytest.raises(GraphError, match="no variable is named 'data': there are x, w"):
        weft.graph.correct_layout(graph, {"data": "NC"})


def _one_list(_attributes: Any, ins: list[Any], *_others: Any) -> list[Any]:
    return ins


@pytest.fixture(scope="module")
def badly_ruled() -> Op:
    """An op whose rules return what rules do not."""
    op = weft.register_op("test_badly_ruled", infer=lambda x: x.shape)(np.copyto)
    op.set_attribute("layout", _one_list)
    return op


def test_answers_of_rules(badly_ruled: Op) -> None:
    said = r"rule infer of op 'test_badly_ruled' returns an Aval, or a tuple of them, not \(2,\)"
    with pytest.raises(ArgumentTypeError, match=said):
        badly_ruled(weft.ones(2))
    net = weft.symbol.test_badly_ruled(Variable("x"), name="n")
    with pytest.raises(ShapeError, match=f"'n'.*{said}"):
        net.infer_shape(x=(2,))
    with pytest.raises(GraphError, match=r"'n'.*a pair of lists.*not \['NCHW'\]"):
        weft.graph.correct_layout(Graph(net), {"x": "NCHW"})
    badly_ruled.set_attribute("infer_shape", _one_list)
    with pytest.raises(ShapeError, match=r"'n'.*a pair of lists.*not \[\(2,\)\]"):
        net.infer_shape(x=(2,))


@pytest.mark.parametrize(
    "use",
    [
        lambda atom: atom.infer_shape(),
        lambda atom: atom.infer_type(),
        lambda atom: atom.eval(),
        lambda atom: atom.tojson(),
        lambda atom: atom + 1,
        lambda atom: weft.graph.print_ir(Graph(atom)),
    ],
    ids=["infer_shape", "infer_type", "eval", "tojson", "operator", "print_ir"],
)
def test_an_atom_without_inputs_is_named(use: Callable[[Any], Any]) -> None:
    atom = weft.symbol.create("matmul", name="m")
    with pytest.raises(GraphError, match=r"node 'm' \(op 'matmul'\): its inputs are still to come: call the symbol"):
        use(atom)
    assert atom(Variable("x"), Variable("w")).infer_shape(x=(2, 3), w=(3, 4))[1] == [(2, 4)]


def test_what_functions_of_a_gradient_return() -> None:
    x = Variable("x")
    with pytest.raises(GraphError, match="hint= returns a symbol, and 3 was returned"):
        weft.graph.gradient(None, weft.exp(x), x, hint=lambda *_: 3)
    with pytest.raises(GraphError, match="aggregate= returns a symbol, and None was returned"):
        weft.graph.gradient(None, weft.exp(x) * x, x, aggregate=lambda _: None)
    assert (x * x).gradient(x).eval(x=[3.0])[0].tolist() == [6.0]
    with pytest.raises(GraphError, match="takes variables or their names, and <Symbol exp"):
        weft.exp(x).gradient([weft.exp(x)])  # type: ignore[list-item]


def test_numbers_that_no_node_has() -> None:
    indexed = Graph(weft.exp(Variable("x"))).indexed_graph()
    for ask in (indexed.entry_id, indexed.inputs, indexed.control_deps):
        for number in (-1, 2, 1 << 40):
            with pytest.raises(GraphError, match=f"there is no node {number}: the graph has 2"):
                ask(number)
    with pytest.raises(GraphError, match="node 0 has 1 outputs, and output -1 was asked for"):
        indexed.entry_id(0, -1)


def test_what_is_no_device_no_copy_no_monitor_no_dtype() -> None:
    with weft.symbol.AttrScope(ctx_group="first"):
        y = weft.exp(Variable("x"))
    with pytest.raises(GraphError, match="group 'first' has no device: devices are assigned to no group"):
        weft.graph.place_device(Graph(y))
    with pytest.raises(GraphError, match="no op is named 'nope', which is to copy"):
        weft.graph.place_device(Graph(y), assign={"first": "cpu:0"}, copy_op="nope")
    with pytest.raises(ArgumentTypeError, match=r"callback\(name, array\), and 3 was given"):
        y.simple_bind(x=(2,)).set_monitor_callback(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="the dtype of 'x': data type 'nonsense' not understood"):
        y.infer_type(x="nonsense")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: weft.Aval((2,), "foo"), "'foo' names no dtype"),
        (lambda: weft.Aval((2,), None), "has a dtype"),
        (lambda: weft.Aval(3, "f4"), "tuple of integers, not 3"),
        (lambda: weft.Aval(("a",), "f4"), "tuple of integers"),
        (lambda: weft.Aval((-1,), "f4"), "length of at least 0"),
        (lambda: weft.symbol.Prefix(3), "Prefix takes the text"),
        (lambda: weft.symbol.AttrScope(group=3), r"AttrScope\(group=...\) takes a text"),
    ],
)
def test_what_is_no_aval_no_prefix_no_scope(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(WeftError, match=said):
        make()
    assert weft.Aval([2], "float32") == weft.Aval((2,), weft.float32)  # type: ignore[arg-type]


def test_one_attribute_is_printed_by_its_name() -> None:
    graph = weft.graph.infer_shape(Graph(weft.exp(Variable("x"))), {"x": (2,)})
    assert weft.graph.print_ir(graph, "shape") == weft.graph.print_ir(graph, ["shape"])
