"""Networks of scripts as executors compute them: equal calls once, as in MXNet."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from weft._core import Node, NodeEntry, graph_apply_pass

if TYPE_CHECKING:
    from weft._graph.symbols import Symbol

#: MXNet's switch: 0 leaves networks as they are.
_VARIABLE = "MXNET_ELIMINATE_COMMON_EXPR"


def simplified(symbol: Symbol) -> Symbol:
    """Return a symbol that computes the same, with one call in the place of equal ones.

    Outputs keep calls of their own, and so their names, and memory that they share with no other output. The
    environment variable `MXNET_ELIMINATE_COMMON_EXPR` of 0 switches it off.

    Examples
    --------
    >>> import weft.mxnet.symbol as S
    >>> from weft._mxnet.script_binding import simplified
    >>> x = S.Variable("x")
    >>> y = S.exp(x) * S.exp(x)
    >>> len(y.get_internals()), len(simplified(y).get_internals())
    (4, 3)
    """
    if os.environ.get(_VARIABLE) == "0":
        return symbol
    before = symbol.entries
    after = graph_apply_pass(symbol.graph, "eliminate_common").symbol().entries()
    owners: dict[Node, Node] = {}
    made: dict[Node, Node] = {}
    found: list[NodeEntry] = []
    for old, new in zip(before, after, strict=True):
        node = new.node
        if owners.setdefault(node, old.node) != old.node or node.name != old.node.name:
            if old.node not in made:
                made[old.node] = Node(node.op, old.node.name, node.attrs, node.inputs, node.control_deps)
            node = made[old.node]
        found.append(NodeEntry(node, new.index, new.version))
    return symbol.of_entries(found)
