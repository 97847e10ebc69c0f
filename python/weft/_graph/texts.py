"""Graphs as texts and pictures: NNVM's JSON, a listing for people, a drawing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weft._core import graph_draw, graph_load_json, graph_print_ir, graph_save_json
from weft._graph.graphs import Graph, core_of
from weft._graph.passes import own_pass
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence


def load_json(text: str) -> Graph:
    """Return the graph that a text in NNVM's format describes (LoadJSON).

    Raises
    ------
    GraphError
        If the text is damaged; the message names the node.
    """
    return Graph._of(graph_load_json(text))


@own_pass("load_json", "LoadJSON", change_graph=True, requires=["json"], text="json")
def _load_json(graph: Graph, text: str) -> Graph:
    del graph
    return load_json(text)


def save_json(graph: Graph) -> str:
    """Return the graph as a text in NNVM's format (SaveJSON)."""
    return graph_save_json(core_of(graph))


def print_ir(graph: Graph, entry_attrs: str | Sequence[str] = (), node_attrs: str | Sequence[str] = ()) -> str:
    """Return the graph as text, a line for each node, with these attributes of entries and of nodes (PrintGraphIR).

    A text is the name of one attribute. `parse_ir` reads the text back.

    Examples
    --------
    >>> import weft
    >>> e = weft.symbol.exp(weft.symbol.Variable("x"), name="e")
    >>> print(weft.graph.print_ir(weft.graph.infer_shape(weft.graph.Graph(e), {"x": (2,)}), ["shape"]))
    Graph(%x) {
      %x, shape=(2,)
      %1 = exp(%x), shape=(2,)  # e
      ret %1
    }
    <BLANKLINE>
    """
    entries, nodes = ([names] if isinstance(names, str) else list(names) for names in (entry_attrs, node_attrs))
    return graph_print_ir(core_of(graph), entries, nodes)


@own_pass(
    "print_ir", "PrintGraphIR", provides=["graphir"], entry_attrs="join_entry_attrs", node_attrs="join_node_attrs"
)
def _print_ir(graph: Graph, **attributes: str | Sequence[str]) -> Graph:
    graph.attrs["graphir"] = print_ir(graph, **attributes)
    return graph


def draw(graph: Graph, path: str | Path) -> None:
    """Write a picture of the graph: Graphviz' text to a file ``.dot``, SVG to ``.svg``; by Graphviz, ``.png`` and ``.pdf``.

    Raises
    ------
    ArgumentValueError
        If the file's name ends otherwise, or Graphviz' program ``dot`` is needed and not installed.
    """
    kind = Path(path).suffix
    if kind in {".png", ".pdf"}:
        from weft._trace.graph import laid_out  # noqa: PLC0415 - with NumPy's and a trace's parts, for a picture alone

        if not laid_out(graph_draw(core_of(graph), False), Path(path)):
            raise ArgumentValueError(f"{str(path)!r} is drawn by Graphviz, whose dot is not installed: draw a .svg")
        return
    if kind not in {".dot", ".svg"}:
        raise ArgumentValueError(f"a graph is drawn to a file .dot, .svg, .png or .pdf, not {str(path)!r}")
    Path(path).write_text(graph_draw(core_of(graph), kind == ".svg"), encoding="utf-8")
