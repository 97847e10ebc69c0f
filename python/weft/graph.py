"""Graphs: the input and output of passes.

A `Graph` is the outputs of a symbol with attributes that passes leave on it. A pass is a function from graph to graph;
`register_pass` adds one's own.

>>> import weft
>>> x = weft.symbol.Variable("x")
>>> graph = weft.graph.infer_shape(weft.graph.Graph(x + 1), {"x": (2, 3)})
>>> graph.attrs["shape"]
[(2, 3), (2, 3)]
"""

from weft._core import IndexedGraph, Node, NodeEntry
from weft._graph.differentiating import gradient
from weft._graph.graphs import Graph
from weft._graph.inferring import infer_shape, infer_type
from weft._graph.passes import Pass, apply_pass, apply_passes, get_pass, list_passes, register_pass
from weft._graph.patterns import replace_node, rewrite
from weft._graph.placing import place_device
from weft._graph.planning import plan_memory, plan_offsets
from weft._graph.reading import parse_ir
from weft._graph.recomputing import recompute
from weft._graph.rewriting import (
    correct_layout,
    eliminate_common,
    eliminate_dead,
    eliminate_identity,
    fold_constants,
    functionalise,
    fuse,
    order_mutation,
)
from weft._graph.texts import draw, load_json, print_ir, save_json

__all__ = [
    "Graph", "IndexedGraph", "Node", "NodeEntry", "Pass", "apply_pass", "apply_passes", "correct_layout", "draw",
    "eliminate_common", "eliminate_dead", "eliminate_identity", "fold_constants", "functionalise", "fuse",
    "get_pass", "gradient", "infer_shape", "infer_type", "list_passes", "load_json", "order_mutation",
    "parse_ir", "place_device", "plan_memory", "plan_offsets", "print_ir", "recompute", "register_pass", "replace_node", "rewrite",
    "save_json",
]  # fmt: skip
