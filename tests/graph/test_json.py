"""Files: all variants that NNVM and MXNet have written, and damage of any kind."""

# ruff: noqa: ARG005, RUF043 - rules have the parameters that they are called with; patterns are short

from __future__ import annotations

import contextlib
import copy
import json
from typing import TYPE_CHECKING, Any

import graph_ops  # noqa: F401 - ops of the tests
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import weft
import weft.mxnet
from weft.errors import GraphError

if TYPE_CHECKING:
    from pathlib import Path


def net() -> dict[str, Any]:
    """A file of MXNet 1.x."""
    return {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {"op": "null", "name": "fc_weight", "attrs": {"__lr_mult__": "2"}, "inputs": []},
            {"op": "null", "name": "fc_bias", "inputs": []},
            {"op": "test_dense", "name": "fc", "attrs": {"units": "3"}, "inputs": [[0, 0, 0], [1, 0, 0], [2, 0, 0]]},
            {"op": "exp", "name": "e", "inputs": [[3, 0, 0]]},
        ],
        "arg_nodes": [0, 1, 2],
        "node_row_ptr": [0, 1, 2, 3, 4, 5],
        "heads": [[4, 0, 0]],
        "attrs": {"mxnet_version": ["int", 10500]},
    }


def load(file: Any) -> weft.symbol.Symbol:
    return weft.symbol.load_json(json.dumps(file))


def test_a_file_of_today() -> None:
    symbol = load(net())
    assert symbol.list_arguments() == ["data", "fc_weight", "fc_bias"]
    assert symbol.infer_shape(data=(2, 5))[1] == [(2, 3)]
    assert symbol.get_internals()["fc_weight"].attr("lr_mult") == "2"
    assert load(json.loads(symbol.tojson())).tojson() == symbol.tojson()


@pytest.mark.parametrize("key", ["attr", "param", "attrs"])
def test_older_spellings(key: str) -> None:
    file = net()
    del file["node_row_ptr"], file["attrs"]
    for node in file["nodes"]:
        node["inputs"] = [entry[:2] for entry in node["inputs"]]
        node["backward_source_id"] = -1
        if "attrs" in node:
            node[key] = node.pop("attrs")
    file["heads"] = [[4, 0]]
    assert load(file).infer_shape(data=(2, 5))[1] == [(2, 3)]


def test_hidden_keys_go_to_whom_they_mean() -> None:
    file = net()
    file["nodes"][3]["attrs"].update({"weight_lr_mult": "3", "ctx_group": "dev1"})
    file["nodes"][2]["attrs"] = {"wd_mult": "0"}
    internals = load(file).get_internals()
    assert internals["fc_weight"].attr("__lr_mult__") == "3"
    assert internals["fc_output"].attr("ctx_group") == "dev1"
    assert internals["fc_bias"].attr("__wd_mult__") == "0"


def test_zero_was_unknown_before_mxnet_2() -> None:
    file = net()
    file["nodes"][0]["attrs"] = {"__shape__": "(0, 5)"}
    assert load(file).get_internals()["data"].attr("__shape__") == "(None, 5)"
    file["nodes"][0]["attrs"] = {"__shape__": "()"}
    assert load(file).get_internals()["data"].attr("__shape__") is None
    file["attrs"]["mxnet_version"] = ["int", 20000]
    file["nodes"][0]["attrs"] = {"__shape__": "(0, 5)"}
    assert load(file).infer_shape()[1] == [(0, 3)]


def test_an_op_that_nobody_registered() -> None:
    file = net()
    file["nodes"][4] = {
        "op": "_foreach",
        "name": "c",
        "attrs": {"op_type": "x"},
        "inputs": [[3, 0, 0]],
        "subgraphs": [{"nodes": []}],
    }
    file["heads"] = [[4, 1, 0]]
    symbol = load(file)
    assert symbol.list_outputs() == ["c_output1"]
    assert symbol.attr("op_type") == "x"
    assert load(json.loads(symbol.tojson())).tojson() == symbol.tojson()
    assert json.loads(symbol.tojson())["nodes"][4]["subgraphs"] == [{"nodes": []}]
    assert "_foreach(" in weft.graph.print_ir(weft.graph.Graph(symbol))
    with pytest.raises(GraphError, match="no op '_foreach' is registered"):
        symbol.infer_shape(data=(2, 5))
    with pytest.raises(GraphError, match="no op '_foreach' is registered"):
        symbol.eval(data=[[1.0]], fc_weight=[[1.0]] * 3, fc_bias=[0.0] * 3)


def test_nodes_in_any_order() -> None:
    file = net()
    file["nodes"] = [file["nodes"][at] for at in (4, 0, 1, 2, 3)]
    file["nodes"][0]["inputs"] = [[4, 0, 0]]
    file["nodes"][4]["inputs"] = [[1, 0, 0], [2, 0, 0], [3, 0, 0]]
    file["heads"], file["arg_nodes"] = [[0, 0, 0]], [1, 2, 3]
    assert load(file).list_arguments() == ["data", "fc_weight", "fc_bias"]


def damaged(change: Any) -> str:
    file = net()
    change(file)
    return json.dumps(file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda f: f.pop("nodes"), "no 'nodes'"),
        (lambda f: f.pop("heads"), "no 'heads'"),
        (lambda f: f["nodes"][3].pop("name"), "node 3 has no 'name'"),
        (lambda f: f["nodes"][3].pop("op"), "node 3 has no 'op'"),
        (lambda f: f["nodes"][3].pop("inputs"), r"node 3 \('fc'\) has no 'inputs'"),
        (lambda f: f["nodes"][3].update(name=7), "'name' is no text"),
        (lambda f: f["nodes"][3].update(inputs=[[9, 0, 0]]), "'fc'.*names node 9"),
        (lambda f: f["nodes"][3].update(inputs=[[-1, 0, 0]]), "names node -1"),
        (lambda f: f["nodes"][3].update(inputs=[[0, -1, 0]]), "-1 where the number of a result"),
        (lambda f: f["nodes"][3].update(inputs=[[0]]), r"where \[node, result, version\] belongs"),
        (lambda f: f["nodes"][3].update(inputs=[[1e99, 0, 0]]), "names node"),
        (lambda f: f["nodes"][3].update(inputs=[[0, 0, 0]]), "takes 3 inputs, and 1"),
        (lambda f: f["nodes"][4].update(inputs=[[3, 5, 0]]), "result 5 is used"),
        (lambda f: f["nodes"][4].update(inputs=[[3, 4294967295, 0]]), "no op has so many"),
        (lambda f: f["nodes"][3].update(inputs=[[4, 0, 0]] * 3), "cycle"),
        (lambda f: f["nodes"][4].update(inputs=[[4, 0, 0]]), "cycle.*'e'"),
        (lambda f: f["nodes"][0].update(inputs=[[1, 0, 0]]), "variable and has inputs"),
        (lambda f: f["nodes"][3].update(attrs=[1]), "'attrs' is no object"),
        (lambda f: f.update(heads=[[4, 3, 0]]), "result 3 is used"),
        (lambda f: f.update(heads={}), "'heads' is no list"),
        (lambda f: f.update(arg_nodes=[17]), "arguments names node 17"),
        (lambda f: f.update(node_row_ptr=[0, 1]), "node_row_ptr"),
        (lambda f: f.update(nodes=[3]), "node 0 is no object"),
        (lambda f: f.update(nodes={}), "'nodes' is no list"),
        (lambda f: f["nodes"][3].update(op=None), "node 3: 'op' is no text"),
        (lambda f: f["nodes"][3].update(inputs={}), r"\('fc'\): 'inputs' is no list"),
        (lambda f: f["nodes"][3].update(inputs=[[0, 0, 2**32], [1, 0, 0], [2, 0, 0]]), "4294967296 where the number"),
        (lambda f: f["nodes"][3].update(inputs=[[0, "a"]]), '"a" where the number of a result'),
        (lambda f: f["nodes"][3].update(inputs=[{"node": 0}]), r'has {"node":0} where \[node'),
        (lambda f: f["nodes"][3].update(inputs=[[2**40, 0, 0]]), "names node 1099511627776"),
        (lambda f: f["nodes"][4].update(control_deps=[5]), "'e'.*names node 5: the graph has nodes 0 to 4"),
        (lambda f: f["nodes"][4].update(control_deps=["a"]), "'e'.*names node \"a\""),
        (lambda f: f["nodes"][4].update(control_deps=3), "'control_deps' is no list"),
        (lambda f: f["nodes"][4].update(subgraphs={}), "'subgraphs' is no list"),
        (lambda f: f.update(arg_nodes=[[0]]), r"arguments names node \[0\]"),
        (lambda f: f.update(arg_nodes=0), "'arg_nodes' is no list"),
        (lambda f: f.update(node_row_ptr=[0, 1, 2, 3, 4, -5]), "node_row_ptr"),
        (lambda f: f.update(attrs=[]), "'attrs' is no object"),
    ],
)
def test_damage_is_named(change: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        weft.symbol.load_json(damaged(change))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000, '{"nodes": [', "\x00", "{} {}", "\ud800"])
def test_no_graph_at_all(text: str) -> None:
    with pytest.raises(GraphError, match="no graph"):
        weft.symbol.load_json(text)


def test_of_keys_that_come_twice_the_last_counts() -> None:
    text = json.dumps(net())
    twice = text.replace('"name": "e"', '"inputs": [[99, 7, 0]], "name": 3, "name": "e"', 1)
    assert twice != text
    assert weft.symbol.load_json(twice).tojson() == weft.symbol.load_json(text).tojson()
    twice = text.replace('{"nodes"', '{"nodes": 3, "heads": [[4, 5, 6]], "nodes"', 1)
    assert weft.symbol.load_json(twice).tojson() == weft.symbol.load_json(text).tojson()
    assert weft.symbol.load_json(text.replace('"e"', '"e\\u00e9"')).list_outputs() == ["eé_output"]


@pytest.mark.parametrize("load_file", [weft.symbol.load, weft.mxnet.load])
def test_a_file_that_is_no_text(tmp_path: Path, load_file: Any) -> None:
    path = tmp_path / "net.json"
    path.write_bytes(b"{\xff}")
    with pytest.raises(GraphError, match="byte 1 of it is no UTF-8"):
        load_file(path)


paths = st.lists(st.integers(0, 6), min_size=1, max_size=5)
junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=4),
    st.lists(st.integers(-2, 7), max_size=4),
    st.dictionaries(st.sampled_from(["op", "name", "inputs", "attrs"]), st.text(max_size=3), max_size=3),
)


def put(value: Any, path: list[int], new: Any) -> Any:
    """Replace what lies at a path through lists and dicts, whatever its steps are."""
    if not path or not isinstance(value, (list, dict)) or not value:
        return new
    keys: list[Any] = list(range(len(value))) if isinstance(value, list) else sorted(value)
    key = keys[path[0] % len(keys)]
    value[key] = put(value[key], path[1:], new)
    return value


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(paths, junk), min_size=1, max_size=3))
def test_any_damage_is_a_graph_or_an_error(changes: list[tuple[list[int], Any]]) -> None:
    file: Any = copy.deepcopy(net())
    for path, new in changes:
        file = put(file, path, new)
    try:
        symbol = load(file)
    except GraphError:
        return
    assert symbol.tojson()


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10_000), st.text(max_size=3))
def test_any_cut_is_a_graph_or_an_error(at: int, end: str) -> None:
    text = json.dumps(net())
    with contextlib.suppress(GraphError):
        weft.symbol.load_json(text[: at % len(text)] + end)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False),
        st.text(max_size=8),
        st.sampled_from([np.dtype(weft.float32), np.dtype(weft.int8)]),
        st.complex_numbers(allow_nan=False),
    ),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(VALUES)
def test_attributes_are_read_as_they_were_written(value: Any) -> None:
    from weft._registry.defaults import format_attributes, parse_attributes

    assert parse_attributes(format_attributes({"a": value})) == {"a": value}


def test_what_no_file_can_hold() -> None:
    op = weft.register_op("test_opaque", infer=lambda x, *, what: x)(lambda out, x, *, what: None)
    assert op is not None
    with pytest.raises(GraphError, match="'what'.*no file can hold"):
        weft.symbol.test_opaque(weft.symbol.Variable("x"), what=object()).tojson()
    with pytest.raises(TypeError, match="hashable"):
        weft.symbol.test_opaque(weft.symbol.Variable("x"), what={})
