"""Rewriting by patterns: a symbol describes a computation, and another one takes its place in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import Node, NodeEntry
from weft._graph.graphs import Graph, core_of
from weft._graph.symbols import Symbol
from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: Ops that a pattern finds with their two operands in either order.
_COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "logical_and", "logical_or", "equal", "not_equal"})


def rewrite(graph: Graph, pattern: Symbol, replacement: Callable[..., Symbol | None]) -> Graph:
    """Return the graph with each match of a pattern replaced.

    Parameters
    ----------
    graph : Graph
        The graph. One that mutates is to be the result of `functionalise`: patterns know only values.
    pattern : Symbol
        One result, composed of variables. A variable stands for any value, the same at each of its places; ops,
        attributes and plain numbers are those of the pattern. Sums, products and their like are found in either order.
    replacement : callable
        Is given the variables' values, symbols, by their names, and returns the symbol to take the place of the
        pattern's result; or None to leave it as it is.

    Returns
    -------
    Graph
        Without attributes. Replacements are not searched again; results keep their names.

    Raises
    ------
    ArgumentTypeError
        If the pattern is no symbol of one call, or the replacement no function that returns a symbol of one result.

    Examples
    --------
    >>> import weft
    >>> x, w, b = (weft.symbol.Variable(name) for name in "xwb")
    >>> def dense(x, w, b):
    ...     return weft.nn.dense(x, weft.permute_dims(w, (1, 0)), b)
    >>> net = weft.tanh(weft.symbol.Variable("data") @ weft.symbol.Variable("W") + weft.symbol.Variable("bias"))
    >>> fused = weft.graph.rewrite(weft.graph.Graph(net), x @ w + b, dense)
    >>> [node.op.name for node in fused.indexed_graph().nodes if node.op]
    ['permute_dims', 'nn.dense', 'tanh']
    """
    said: object = pattern
    wanted = said.entries if isinstance(said, Symbol) else []
    if len(wanted) != 1 or wanted[0].node.is_variable:
        raise ArgumentTypeError("rewrite: a pattern is a symbol of one result that calls an op, such as x @ w + b")
    if not callable(replacement):
        raise ArgumentTypeError(
            f"rewrite: the replacement is a function of the pattern's variables, not {type(replacement).__name__}"
        )
    (end,) = wanted

    def replaced(node: Node, _: Node) -> Sequence[NodeEntry] | None:
        if node.is_variable or end.index >= node.num_outputs:
            return None
        bound = _matched(end, NodeEntry(node, end.index), {})
        if bound is None:
            return None
        made: Any = replacement(**{name: Symbol.of_entries([entry]) for name, entry in bound.items()})
        if made is None:
            return None
        if not isinstance(made, Symbol) or len(made.entries) != 1:
            raise ArgumentTypeError(
                f"rewrite: the replacement returns a symbol of one result, or None, not {brief(made)}"
            )
        outputs = list(node.outputs)
        outputs[end.index] = _renamed(made.entries[0], node.name, set(bound.values()))
        return outputs

    return _rebuilt(graph, replaced)


def replace_node(graph: Graph, node: Node, by: Symbol) -> Graph:
    """Return the graph with the results of a symbol in the place of those of a node.

    Parameters
    ----------
    graph : Graph
        The graph.
    node : Node
        One of its nodes, as from `IndexedGraph.nodes`.
    by : Symbol
        As many results as the node has.

    Raises
    ------
    GraphError
        If the graph has no such node.
    ArgumentTypeError
        If the symbol has another number of results.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> y = weft.exp(x) + 1
    >>> found = weft.graph.replace_node(weft.graph.Graph(y), weft.graph.Graph(y).indexed_graph().nodes[1], weft.tanh(x))
    >>> [node.op.name for node in found.indexed_graph().nodes if node.op]
    ['tanh', 'add']
    """
    if node not in core_of(graph).indexed().nodes:
        raise GraphError(f"replace_node: the graph has no node {getattr(node, 'name', node)!r} of this identity")
    said: object = by
    if not isinstance(said, Symbol) or len(said.entries) != node.num_outputs:
        raise ArgumentTypeError(f"replace_node: {node.name!r} has {node.num_outputs} results, and so has the symbol")
    entries = said.entries
    return _rebuilt(graph, lambda _, of: entries if of == node else None)


def _rebuilt(graph: Graph, replaced: Callable[[Node, Node], Sequence[NodeEntry] | None]) -> Graph:
    """Return a graph of new nodes: those that are replaced, and all that rest on them; the others as they are.

    `replaced` is given a node with its new inputs, and as it was.
    """
    nodes: dict[Node, Node] = {}
    results: dict[Node, list[NodeEntry]] = {}

    def now(entry: NodeEntry) -> NodeEntry:
        found = results[entry.node][entry.index]
        return NodeEntry(found.node, found.index, entry.version) if entry.version else found

    for node in core_of(graph).indexed().nodes:
        inputs = [now(entry) for entry in node.inputs]
        before = [nodes[each] for each in node.control_deps]
        same = inputs == node.inputs and before == node.control_deps
        made = node if same or node.is_variable else Node(node.op, node.name, node.attrs, inputs, before)
        found = replaced(made, node)
        results[node] = list(made.outputs if found is None else found)
        nodes[node] = made if found is None else results[node][0].node
    return Graph([now(entry) for entry in core_of(graph).symbol().entries()])


def _matched(pattern: NodeEntry, entry: NodeEntry, bound: dict[str, NodeEntry]) -> dict[str, NodeEntry] | None:
    """Return the values of a pattern's variables, beside those that are bound; None if it is not there."""
    wanted, node = pattern.node, entry.node
    if wanted.is_variable:
        known = bound.get(wanted.name)
        return {**bound, wanted.name: entry} if known is None else bound if known == entry else None
    if (
        node.is_variable
        or node.op.name != wanted.op.name
        or entry.index != pattern.index
        or len(node.inputs) != len(wanted.inputs)
        or node.control_deps
        or node.attributes != wanted.attributes
    ):
        return None
    either = node.op.name in _COMMUTATIVE and len(node.inputs) == 2  # an operation on two
    for inputs in (node.inputs, node.inputs[::-1])[: 1 + either]:
        found: dict[str, NodeEntry] | None = bound
        for part, given in zip(wanted.inputs, inputs, strict=True):
            found = None if found is None else _matched(part, given, found)
        if found is not None:
            return found
    return None


def _renamed(entry: NodeEntry, name: str, given: set[NodeEntry]) -> NodeEntry:
    """Return a result of a new call under a name; an old node keeps its own."""
    node = entry.node
    if entry in given or node.is_variable:
        return entry
    return NodeEntry(Node(node.op, name, node.attrs, node.inputs, node.control_deps), entry.index)
