"""The pass that differentiates: of symbols, of entries or of names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import NodeEntry, SymbolCore, graph_gradient
from weft._graph.graphs import Graph, entries_of
from weft._graph.inferring import infer_shape, infer_type
from weft._graph.passes import own_pass
from weft._graph.recomputing import recompute
from weft._graph.rewriting import eliminate_identity
from weft._graph.symbols import Symbol
from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._core import Node


@own_pass(
    "gradient",
    "Gradient",
    change_graph=True,
    requires=["grad_ys", "grad_xs"],
    ys="grad_ys",
    xs="grad_xs",
    ys_out_grad="grad_ys_out_grad",
)
def gradient(
    graph: Graph | None,
    ys: Any,
    xs: Any,
    ys_out_grad: Any = None,
    aggregate: Callable[[list[Symbol]], Symbol] | None = None,
    mirror: Callable[[Node], bool] | bool | None = None,
    hint: Callable[[Symbol, Symbol], Symbol] | None = None,
    memory_limit: int | None = None,
) -> Graph:
    """Return a graph of the gradients of `ys`, one output for each of `xs` (Gradient).

    Parameters
    ----------
    graph : Graph
        The graph in which names are looked up.
    ys, xs : symbols, entries or names
        The values to differentiate, and those that gradients are with respect to. A value that comes twice among `ys` counts twice.
    ys_out_grad : list of Symbol or None, optional
        The gradients of `ys`; None stands for ones.
    aggregate : callable, optional
        ``(symbols) -> symbol`` adds the gradients of a value up that several calls take.
    mirror : callable or bool, optional
        ``(node) -> bool`` says which calls are made again for their gradient, instead of kept. True lets the planner
        choose, as `recompute` does: for that shapes must be known, from `graph` or from the variables.
    hint : callable, optional
        ``(gradient, of) -> gradient`` may put something around each gradient.
    memory_limit : int, optional
        Bytes that the plan of the graph may have, without its outputs: the cheapest calls that were found are made again
        for it to fit.

    Raises
    ------
    GradientError
        If an op on the way has no gradient.
    PlanError
        If nothing was found that fits the limit; it names the bound.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> y = weft.symbol.copy_to(x, device="cpu:0")
    >>> weft.graph.gradient(None, weft.symbol.Group([y, y]), x).symbol.eval(x=[2.0])
    [NDArray([2.])]
    """
    symbol_ys, symbol_xs = entries_of(graph, ys, "ys"), entries_of(graph, xs, "xs")
    heads: list[Any] = []
    if ys_out_grad is not None:
        given = [ys_out_grad] if isinstance(ys_out_grad, NodeEntry) else list(ys_out_grad)  # a group is its outputs
        heads = [None if each is None else entries_of(graph, each, "gradients")._core for each in given]
    add: Callable[[list[SymbolCore]], SymbolCore] | None = (
        None if aggregate is None else lambda cores: _answer("aggregate", aggregate([Symbol(core) for core in cores]))
    )
    note: Callable[[SymbolCore, SymbolCore], SymbolCore] | None = (
        None if hint is None else lambda grad, of: _answer("hint", hint(Symbol(grad), Symbol(of)))
    )
    chosen = mirror if callable(mirror) else None
    found = Graph._of(graph_gradient(symbol_ys._core, symbol_xs._core, heads, add, chosen, note))
    if mirror is not True and memory_limit is None:
        return found
    return recompute(with_known(graph, found), symbol_ys, memory_limit=memory_limit, external="outputs")


def _answer(name: str, answer: Any) -> SymbolCore:
    """Return the core of the symbol that a function of the caller's has returned."""
    if not isinstance(answer, Symbol):
        raise ArgumentTypeError(f"{name}= returns a symbol, and {brief(answer)} was returned")
    return answer._core


def with_known(known: Graph | None, graph: Graph) -> Graph:
    """Return a graph with shapes and dtypes, without calls that they make needless: from those of variables in `known`, and from variables' notes."""
    found: dict[str, dict[str, Any]] = {"shape": {}, "dtype": {}}
    if known is not None:
        indexed = known.indexed_graph()
        there = {node.name for node in graph._core.symbol().inputs("all")}
        for key, values in found.items():
            for at in indexed.input_nodes if key in known.attrs else ():
                name = indexed.nodes[at].name
                if name in there:
                    values[name] = known.attrs[key][indexed.entry_id(at)]
    return eliminate_identity(infer_type(infer_shape(graph, found["shape"]), found["dtype"]))


def gradient_symbol(symbol: Symbol, names: Sequence[str], heads: Sequence[Symbol] | None) -> Symbol:
    """Return the gradients of a symbol's outputs with respect to variables of these names.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.differentiating import gradient_symbol
    >>> x = weft.symbol.Variable("x")
    >>> gradient_symbol(x * x, ["x"], None).eval(x=[3.0])
    [NDArray([6.])]
    """
    known = {node.name: node.outputs[0] for node in symbol._core.inputs("all")}
    missing = [name for name in names if name not in known]
    if missing:
        raise GraphError(f"no variable is named {', '.join(missing)}: there are {', '.join(known)}")
    return gradient(None, symbol, [known[name] for name in names], heads).symbol
