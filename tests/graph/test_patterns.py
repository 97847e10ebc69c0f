"""Rewriting by patterns and replacing nodes: values stay the same, names stay, and what does not match is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, GraphError
from weft.graph import Graph, replace_node, rewrite
from weft.symbol import Group, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

X, W, B, P = (Variable(name) for name in "xwbp")
RNG = np.random.default_rng(9)
GIVEN = {name: RNG.normal(size=(3, 3)) for name in ("data", "one", "two", "bias")}
DATA, ONE, TWO, BIAS = (Variable(name) for name in GIVEN)


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.indexed_graph().nodes if node.op]


def values(symbol: Symbol) -> list[np.ndarray[Any, Any]]:
    given = {name: GIVEN[name] for name in symbol.list_arguments()}
    return [each.numpy() for each in symbol.eval(**given)]


@pytest.mark.parametrize(
    ("net", "pattern", "by", "expected"),
    [
        (lambda: weft.tanh(DATA * DATA + 1), P * P, weft.square, ["square", "add", "tanh"]),
        (lambda: DATA * ONE, P * P, weft.square, ["multiply"]),
        (lambda: BIAS + DATA @ ONE, X @ W + B, lambda x, w, b: (x @ w) - (-b), ["matmul", "negative", "subtract"]),
        (lambda: (DATA @ ONE + BIAS) @ TWO + BIAS, X @ W + B, lambda x, w, b: b - (-(x @ w)), ["matmul", "negative", "subtract"] * 2),
        (lambda: weft.exp(DATA * 2), P * 2, lambda p: p + p, ["add", "exp"]),
        (lambda: weft.exp(DATA * 3), P * 2, lambda p: p + p, ["multiply", "exp"]),
        (lambda: weft.exp(weft.log(DATA * DATA)), weft.exp(weft.log(P)), lambda p: p, ["multiply"]),
        (lambda: weft.exp(DATA), weft.exp(P), lambda _: None, ["exp"]),
        (lambda: weft.sum(DATA, axis=0), weft.sum(P, axis=1), lambda p: weft.mean(p, axis=1) * 3, ["sum"]),
    ],
    ids=["square", "two", "sum in either order", "twice", "number", "other number", "gone", "declined", "attribute"],
)  # fmt: skip
def test_what_is_found_is_replaced(
    net: Callable[[], Symbol], pattern: Symbol, by: Callable[..., Symbol | None], expected: list[str]
) -> None:
    symbol = net()

    def named(**bound: Symbol) -> Symbol | None:
        return by(*(bound[name] for name in sorted(bound, key="xwbp".index)))

    found = rewrite(Graph(symbol), pattern, named)
    assert sorted(ops(found)) == sorted(expected)
    for one, other in zip(values(symbol), values(found.symbol), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_results_keep_their_names_and_shared_parts_stay() -> None:
    inner = weft.symbol.multiply(DATA, ONE, name="inner")
    net = Group([weft.symbol.exp(inner, name="left"), weft.symbol.add(inner, 1, name="right")])
    found = rewrite(Graph(net), weft.exp(X * W), lambda x, w: weft.exp(x) ** w)
    assert found.symbol.list_outputs() == net.list_outputs()
    assert sorted(ops(found)) == ["add", "exp", "multiply", "pow"]


def test_a_pass_of_five_lines() -> None:
    @weft.graph.register_pass("test_patterns_dense", change_graph=True)
    def dense(graph: Graph) -> Graph:
        return rewrite(graph, X @ W + B, lambda x, w, b: weft.nn.dense(x, weft.permute_dims(w, (1, 0)), b))

    bias = Variable("v")
    net = weft.tanh(DATA @ ONE + bias)
    found = weft.graph.apply_pass(Graph(net), "test_patterns_dense")
    assert ops(found) == ["permute_dims", "nn.dense", "tanh"]
    given = {**{name: GIVEN[name] for name in ("data", "one")}, "v": RNG.normal(size=3)}
    np.testing.assert_allclose(found.symbol.eval(**given)[0].numpy(), net.eval(**given)[0].numpy(), rtol=1e-12)


def test_a_node_is_replaced_by_a_symbol() -> None:
    graph = Graph(weft.exp(DATA) * ONE)
    node = next(node for node in graph.indexed_graph().nodes if node.op and node.op.name == "exp")
    found = replace_node(graph, node, weft.tanh(TWO))
    assert sorted(ops(found)) == ["multiply", "tanh"]
    np.testing.assert_allclose(values(found.symbol)[0], np.tanh(GIVEN["two"]) * GIVEN["one"])
    with pytest.raises(GraphError, match="no node"):
        replace_node(Graph(DATA + 1), node, weft.tanh(TWO))
    with pytest.raises(ArgumentTypeError, match="has 1 results"):
        replace_node(graph, node, Group([DATA, ONE]))


@pytest.mark.parametrize(
    ("pattern", "by", "said"),
    [
        (X, lambda x: x, "a pattern is a symbol of one result"),
        (3, lambda x: x, "a pattern is a symbol of one result"),
        (Group([weft.exp(X), weft.sin(X)]), lambda x: x, "a pattern is a symbol of one result"),
        (weft.exp(X), 3, "the replacement is a function"),
        (weft.exp(X), lambda **_: 3, "returns a symbol of one result, or None, not 3"),
    ],
    ids=["variable", "number", "two results", "no function", "no symbol"],
)
def test_mistakes(pattern: Any, by: Any, said: str) -> None:
    with pytest.raises(ArgumentTypeError, match=said):
        rewrite(Graph(weft.exp(DATA)), pattern, by)


def test_long_graphs_are_no_deeper_for_it() -> None:
    net = DATA
    for _ in range(3_000):
        net = net * 1.0
    assert len(ops(rewrite(Graph(net), P * 1.0, lambda p: p))) == 0
