"""The text of a graph is read back: what `print_ir` writes, and what people write."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import ArgumentTypeError, GraphError
from weft.graph import Graph, parse_ir, print_ir
from weft.symbol import Group, Variable

x, y = Variable("x"), Variable("y")


def _with_texts() -> Any:
    named = Variable("odd name, with 'quotes' = and\nlines", attr={"note": "it's a \\ text, with='all' # of it"})
    return weft.sum(named + Variable("3"), axis=0)


def _after() -> Any:
    first = weft.symbol.exp(x, name="first").get_node()
    op = weft.ops.get_op("sin")
    return weft.symbol.Symbol.of_entries(
        [weft.graph.NodeEntry(weft.graph.Node(op, "second", {}, [x.entries[0]], [first]))]
    )


@weft.register_op("test_ir_settings", infer=lambda x, **_: weft.Aval(x.shape, x.dtype))
def _settings(out: Any, x: Any, **_: Any) -> None:
    out[...] = x


VALUES = {
    "none": None,
    "truth": True,
    "integer": -(1 << 40),
    "real": 0.1,
    "infinite": float("-inf"),
    "complex": 1 - 2j,
    "text": "it's",
    "looks_like_a_number": "12",
    "quotes": "'",
    "backslash": "\\",
    "lines": "a\nb\r",
    "commas": "a', axis='1",
    "empty": "",
    "nested": (1, ("a", (2.5, None)), ()),
    "texts": ("a, b", "c'd"),
    "dtype": np.dtype("float32"),
    "slice": slice(1, None, -1),
    "ellipsis": ...,
    "german": "Größe",
}

SYMBOLS = {
    "a variable": lambda: x,
    "numbers": lambda: 2 - weft.exp(x + 1.5) ** 0.5,
    "attributes": lambda: weft.sum(x.reshape(2, -1), axis=(0, 1), keepdims=True),
    "keys": lambda: x[1:, None, ..., ::-1],
    "several results": lambda: Group([weft.divmod(x, y)[1], x, weft.linalg.svd(y)[0]]),
    "one result twice": lambda: Group([x + y, x + y]),
    "texts": _with_texts,
    "control": _after,
    "a loop": lambda: weft.scan(lambda c, row: (c + row, c * 2), y, x)[1],
    "shapes and dtypes": lambda: weft.astype(Variable("z", shape=(2, None), dtype="float32"), weft.int8),
    "constants": lambda: x + weft.symbol.Variable("w") * [1.0, 2.0],
    "every kind of value": lambda: weft.symbol.create("test_ir_settings", name="settings", **VALUES)(x),
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_what_is_printed_is_read_back(name: str) -> None:
    graph = Graph(SYMBOLS[name]())
    found = parse_ir(print_ir(graph))
    assert print_ir(found) == print_ir(graph)
    assert found.symbol.tojson() == graph.symbol.tojson()


def test_every_kind_of_value_is_the_same_value() -> None:
    node = parse_ir(print_ir(Graph(SYMBOLS["every kind of value"]()))).symbol.get_node()
    assert node.attributes == SYMBOLS["every kind of value"]().get_node().attributes
    assert node.attributes["commas"] == VALUES["commas"]


def test_what_passes_made_is_read_back() -> None:
    loss = weft.sum(weft.tanh(x * y + 1) ** 2)
    fused = weft.graph.fuse(Graph(loss))
    assert "subgraph=Graph(" in print_ir(fused)
    found = parse_ir(print_ir(fused))
    assert print_ir(found) == print_ir(fused)
    assert found.symbol.eval(x=[1.0], y=[2.0])[0].item() == loss.eval(x=[1.0], y=[2.0])[0].item()


def test_what_passes_found_out_is_read_over() -> None:
    graph = weft.graph.infer_type(
        weft.graph.infer_shape(Graph(weft.divmod(x, 2.0)[0] * y), {"x": (2, 3), "y": (3,)}), {}
    )
    text = print_ir(graph, ["shape", "dtype"])
    assert "shape=[(2, 3), (2, 3)]" in text
    assert print_ir(parse_ir(text)) == print_ir(graph)


def test_what_changes_its_operands_is_read_back_in_its_versions() -> None:
    @weft.program
    def step(state: Any) -> Any:
        state += 1
        return weft.sin(state)

    graph = step.lower(weft.ones(2)).graph
    assert print_ir(parse_ir(print_ir(graph))) == print_ir(graph)


def test_people_number_as_they_like() -> None:
    graph = parse_ir("Graph(%x, %y) { %y\n %x\n %70 = add(%x, %y)\n %5 = exp(%70)  # last\n ret %5, %70 }")
    assert graph.symbol.list_outputs() == ["last_output", "add70_output"]


BROKEN = {
    "": "line 1 of the graph's text: 'Graph' is missing",
    "Graph(%x) {\n  %x\n  %1 = exp(%z)\n  ret %1\n}": r"line 3 .* no node above is %z: %1 = exp\(%z\)",
    "Graph(%x) {\n  %x\n  %1 = exp(%x)\n  %1 = sin(%x)\n  ret %1\n}": r"line 4 .* named twice",
    "Graph(%x) {\n  %x\n  %1 = exp(%x, axis=\n": "line 3 .* '%' is missing",
    "Graph(%x) {\n  %x\n  %1 = exp(%x), axis=(1\n": "line 3 .* the text ends here",
    "Graph(%x) {\n  %x\n  ret %x\n} %": "line 4 .* the graph ends here, and more follows",
    "Graph(%x) {\n  %x\n  %1 = \n}": "line 3|line 4",
    "Graph(%x) {\n  %x\n  %1 = exp(%x)\n  ret %1.\n}": "a number is missing behind '.'",
    "Graph(%x) {\n  %x\n  %1 = exp(%x)\n  ret %1.7\n}": "7",
    "Graph(%x) {\n  %x\n  %1 = exp(%x, %x)\n  ret %1\n}": "exp",
    "Graph(%x) {\n  %x, __shape__='(2\n  ret %x\n}": "line 2",
}


@pytest.mark.parametrize("text", BROKEN, ids=range(len(BROKEN)))
def test_damaged_texts_are_refused_with_the_line(text: str) -> None:
    with pytest.raises(GraphError, match=BROKEN[text]):
        parse_ir(text)


def test_every_cut_of_a_text_is_refused_or_read() -> None:
    text = print_ir(weft.graph.fuse(Graph(SYMBOLS["texts"]() + SYMBOLS["numbers"]())))
    for end in range(len(text.rstrip()) - 1):
        with pytest.raises(GraphError):
            parse_ir(text[:end])


def test_other_things_are_no_texts() -> None:
    with pytest.raises(ArgumentTypeError, match="and Graph was given"):
        parse_ir(Graph(x))  # type: ignore[arg-type]
