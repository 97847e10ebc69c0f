"""Graphs from graphs: mutations as values, neighbours as one call."""

from __future__ import annotations

from weft._core import graph_apply_pass, graph_functionalise
from weft._graph import composite_ops as _derived, layouts as _layouts  # noqa: F401 # pyright: ignore[reportUnusedImport] # they register ops
from weft._graph.graphs import Graph, core_of

__all__ = ["eliminate_identity", "functionalise", "fuse"]


def eliminate_identity(graph: Graph) -> Graph:
    """Return the graph without calls whose result is their first operand, as shapes and dtypes tell.

    These are casts to the dtype that is there, reshapes to the same shape, conjugates of real numbers, and sums of gradients
    over axes of which none was broadcast. Shapes and dtypes must be known; the graph that is returned has them.

    Examples
    --------
    >>> import weft
    >>> from weft import graph as g
    >>> x = weft.symbol.Variable("x", shape=(2, 3))
    >>> sized = g.infer_type(g.infer_shape(g.Graph(weft.exp(weft.reshape(x, (2, 3))))))
    >>> [node.op.name for node in g.eliminate_identity(sized).indexed_graph().nodes if node.op]
    ['exp']
    """
    return Graph._of(graph_apply_pass(core_of(graph), "eliminate_identity"))


def functionalise(graph: Graph, *, states: bool = False) -> Graph:
    """Return the graph with values in the place of mutations.

    A call that mutates inputs becomes one of the op ``functional``, of which the mutated inputs are further results: who
    read a later version of a variable reads these. Nothing is written in place any more, so passes that know only values
    (`eliminate_common`, `eliminate_dead`, `fold_constants`, `fuse`) are right for it.

    Parameters
    ----------
    graph : Graph
        The graph.
    states : bool, default: False
        Whether the last values of mutated variables follow the outputs. `attrs` has their names as ``mutated_inputs``.

    Returns
    -------
    Graph
        A graph that computes the same. An output that is mutated later is its last version.

    Examples
    --------
    >>> import weft
    >>> @weft.register_op("doctest_advance", infer=lambda x, state: x, mutates=[1])
    ... def advance(out, x, state):
    ...     state += 1
    ...     out[...] = x * state
    >>> x, state = weft.symbol.Variable("x"), weft.symbol.Variable("state")
    >>> y = weft.symbol.doctest_advance(x, state) + weft.symbol.doctest_advance(x, state)
    >>> values = weft.graph.functionalise(weft.graph.Graph(y), states=True)
    >>> values.attrs["mutated_inputs"], values.symbol.eval(x=[1.0], state=[0.0])
    (['state'], [NDArray([3.]), NDArray([2.])])
    """
    return Graph._of(graph_functionalise(core_of(graph), states))


def fuse(graph: Graph) -> Graph:
    """Return the graph with element-wise neighbours as one call.

    A group is calls of ops that are ``elementwise``, of whose results only the last is used elsewhere. It becomes a call
    of the op ``fused``, under the name of that last one; its attribute ``subgraph`` is the group as JSON. Whoever runs it runs
    the same ops in the same order, and rounds as they do.

    Examples
    --------
    >>> import weft
    >>> x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    >>> z = weft.symbol.tanh(x * y, name="z") @ y
    >>> print(weft.graph.print_ir(weft.graph.fuse(weft.graph.Graph(z))))
    Graph(%x, %y) {
      %x
      %y
      %2 = fused(%x, %y), subgraph=Graph(%x0, %x1) {
          %x0
          %x1
          %2 = multiply(%x0, %x1)  # multiply...
          %3 = tanh(%2)  # z
          ret %3
        }  # z
      %3 = matmul(%2, %y)  # matmul...
      ret %3
    }
    <BLANKLINE>
    """
    return Graph._of(graph_apply_pass(core_of(graph), "fuse"))
