"""Nodes that are built by hand: what they take, what is fixed, what may be noted on them."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, GraphError
from weft.graph import Node, NodeEntry
from weft.symbol import Symbol, Variable, create

if TYPE_CHECKING:
    from collections.abc import Callable

_X = [NodeEntry(Node(None, "x"))]


def test_unknown_attributes_are_refused_where_they_are_given() -> None:
    said = "node 'e': op 'sum' has no attribute 'axes': its attributes are axis, dtype, initial, keepdims, its inputs x"
    makers: list[Callable[[], Any]] = [
        lambda: Node("sum", "e", {"axes": 1}, _X),
        lambda: create("sum", "e", axes=1),
        lambda: weft.symbol.sum(Variable("x"), axes=1, name="e"),
    ]
    for make in makers:
        with pytest.raises(GraphError, match=said):
            make()
    with pytest.raises(GraphError, match=r"op 'permute_dims' has no attribute 'axis': its attributes are axes"):
        Node("permute_dims", "e", {"axis": 1}, _X)
    file = json.loads(weft.symbol.exp(Variable("x"), name="e").tojson())
    file["nodes"][1]["attrs"] = {"base": "2"}
    with pytest.raises(GraphError, match="node 'e': op 'exp' has no attribute 'base'"):
        weft.symbol.load_json(json.dumps(file))


def test_what_is_noted_is_no_attribute() -> None:
    given = {"axis": 0, "ctx_group": "first", "lr_mult": 2, "__shape__": "(3,)"}
    noted = {"axis": 0, "__ctx_group__": "first", "__lr_mult__": "2", "__shape__": "(3,)"}
    assert Node("sum", "e", given, _X).attrs == noted
    assert Node(None, "x", {"anything": "goes", "lr_mult": "2"}).attrs == {"anything": "goes", "lr_mult": "2"}
    made = create("sum", axis=0, ctx_group="first", attr={"note": "a"})
    assert made.attr("ctx_group") == "first"
    assert made.attr("note") == "a"


def test_an_op_that_nobody_registered_takes_anything() -> None:
    text = json.dumps(
        {
            "nodes": [
                {"op": "null", "name": "x", "inputs": []},
                {"op": "test_nobodys", "name": "e", "attrs": {"any": "thing"}, "inputs": [[0, 0, 0]]},
            ],
            "arg_nodes": [0],
            "heads": [[1, 0, 0]],
        }
    )
    node = weft.symbol.load_json(text).get_node()
    assert Node(node.op, "again", {"more": 1}, node.inputs).attrs == {"more": 1}


def test_notes_on_a_call_are_still_notes_when_it_is_loaded() -> None:
    node = Node("exp", "e", {}, _X)
    node.set_attr("ctx_group", "first")
    node.set_attr(remark="by hand")
    loaded = weft.symbol.load_json(Symbol.of_entries([NodeEntry(node)]).tojson()).get_node()
    assert loaded.attributes == {}
    assert (loaded.attr("ctx_group"), loaded.attr("remark")) == ("first", "by hand")


@pytest.mark.parametrize(
    "write",
    [
        lambda attrs: attrs.__setitem__("keepdims", 1),
        lambda attrs: attrs.__delitem__("axis"),
        lambda attrs: attrs.update(axis=1),
        lambda attrs: attrs.pop("axis"),
        lambda attrs: attrs.setdefault("keepdims", 1),
        lambda attrs: attrs.clear(),
        lambda attrs: attrs.popitem(),
        lambda attrs: attrs.__ior__({"axis": 1}),
    ],
)
def test_attributes_are_read_only(write: Callable[[Any], Any]) -> None:
    node = Node("sum", "e", {"axis": 0}, _X)
    for attrs in (node.attrs, node.attributes):
        with pytest.raises(ArgumentTypeError, match=r"weft.graph.Node\(node.op, node.name, {\*\*node.attrs.*set_attr"):
            write(attrs)
    assert node.attrs == {"axis": 0}


def test_copies_of_attributes_are_dicts() -> None:
    attrs = Node("sum", "e", {"axis": 0}, _X).attrs
    for made in (attrs.copy(), copy.copy(attrs), copy.deepcopy(attrs), pickle.loads(pickle.dumps(attrs)), attrs | {}):
        assert type(made) is dict
        assert made == {"axis": 0}


def test_what_makes_no_node() -> None:
    node = Node("exp", "e", {}, _X)
    for index in (-1, 1, 1 << 40):
        with pytest.raises(GraphError, match=f"1 outputs, and output {index} was asked for"):
            NodeEntry(node, index)
    with pytest.raises(GraphError, match="a version counts mutations, and -1 was given"):
        NodeEntry(node, 0, -1)
    with pytest.raises(GraphError, match="no op is named 'expp'"):
        Node("expp", "e", {}, _X)
    with pytest.raises(ArgumentTypeError, match="None for a variable, not 3"):
        Node(3, "e", {}, _X)
    with pytest.raises(ArgumentTypeError, match="go by names, not by 3"):
        Node("exp", "e", {3: 1}, _X)  # type: ignore[dict-item]


def test_an_atom_gets_no_inputs_and_nothing_of_a_variables() -> None:
    with pytest.raises(GraphError, match=r"create\('matmul', ...\)\(x1=...\)"):
        create("matmul", x1=Variable("x"))
    with pytest.raises(GraphError, match=r"x2=weft.symbol.Variable\('p_x2', lr_mult=2\)"):
        create("matmul", "p", x2_lr_mult=2)


def test_a_call_that_is_refused_mutates_nothing() -> None:
    state = Variable("state")
    with pytest.raises(GraphError, match="no attribute 'wrong'"):
        weft.symbol.setitem(state, Variable("x"), wrong=1)
    assert weft.exp(state).get_node().inputs[0].version == 0


@pytest.mark.filterwarnings("ignore:eval")  # of several symbols, each has some of the variables
def test_a_ufunc_in_another_dtype_or_in_places() -> None:
    x = np.ones(2, np.float32)
    y = weft.add(Variable("x"), 1, dtype="float64")
    assert y.infer_type(x="float32")[1] == [np.dtype("float64")]
    again = weft.symbol.load_json(y.tojson()).eval(x=x)[0]
    assert (again.dtype, again.tolist()) == (np.dtype("float64"), [2.0, 2.0])
    for mask in (Variable("m"), [True, False], np.array([True, False])):
        masked = weft.add(Variable("x"), 1, where=mask)
        assert masked.eval(x=x, m=[True, False])[0][0].item() == 2.0
    assert weft.add(Variable("x"), 1, where=True).list_attr() == {"operands": "(_, 1)"}
