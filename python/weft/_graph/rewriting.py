"""Graphs from graphs: mutations as values or in order, layouts, neighbours as one call, calls that are not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._core import Node, graph_apply_pass, graph_correct_layout, graph_fold_constants, graph_functionalise
from weft._graph import composite_ops as _derived, layouts as _layouts  # noqa: F401 # pyright: ignore[reportUnusedImport] # they register ops
from weft._graph.constants import LARGEST, constant
from weft._graph.evaluation import Schedule
from weft._graph.graphs import Graph, core_of
from weft._graph.passes import own_pass
from weft._graph.symbols import Symbol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft._core import NodeEntry


def eliminate_identity(graph: Graph) -> Graph:
    """Return the graph without calls that return their first operand, as shapes and dtypes tell.

    These are casts to the dtype that is there, reshapes to the same shape, conjugates of real numbers, and sums of
    gradients where no axis was broadcast. Shapes and dtypes must be known; the graph that is returned has them.

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

    A call that mutates inputs becomes one of the op ``functional``, with the mutated inputs as further results: readers
    of a later version of a variable read these. Nothing is written in place any more, so passes that know only values
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

    A group is calls of ops that are ``elementwise``; only its last result is used elsewhere. It becomes a call of the
    op ``fused``, under the name of that last one; its attribute ``subgraph`` is the group as JSON. It runs as the same
    ops in the same order, and rounds as they do.

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


def order_mutation(graph: Graph) -> Graph:
    """Return the graph with control dependencies that keep reads and mutations of a variable in order (OrderMutation).

    A reader of a version comes before the call that mutates it, and after the one that made it.
    """
    return Graph._of(graph_apply_pass(core_of(graph), "order_mutation"))


@own_pass("correct_layout", "CorrectLayout", change_graph=True, provides=["layout"], layouts="layout_inputs")
def correct_layout(graph: Graph, layouts: Mapping[str, str] | None = None) -> Graph:
    """Return the graph with each op's inputs in the layout that it takes (CorrectLayout).

    Parameters
    ----------
    graph : Graph
        The graph.
    layouts : dict of str to str
        Layouts of variables, such as "NCHW".

    Returns
    -------
    Graph
        With `layout`, a text or None for each entry. Transforms are inserted, and taken out where two meet.
    """
    return Graph._of(graph_correct_layout(core_of(graph), dict(layouts or {})))


def eliminate_common(graph: Graph) -> Graph:
    """Return the graph with one call in the place of equal ones.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> len(weft.graph.eliminate_common(weft.graph.Graph(weft.exp(x) + weft.exp(x))).indexed_graph())
    3
    """
    return Graph._of(graph_apply_pass(core_of(graph), "eliminate_common"))


def eliminate_dead(graph: Graph) -> Graph:
    """Return the graph without unused calls: those that only come before others."""
    return Graph._of(graph_apply_pass(core_of(graph), "eliminate_dead"))


@own_pass("fold_constants", "FoldConstants", change_graph=True)  # it computes, by ops that are Python's
def fold_constants(graph: Graph) -> Graph:
    """Return the graph with calls computed that rest on no variable, where results are small."""
    return Graph._of(graph_fold_constants(core_of(graph), evaluate_constant))


def evaluate_constant(node: Node) -> list[NodeEntry] | None:
    """Return constants for the results of a call that rests on constants; None where they are large.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.rewriting import evaluate_constant
    >>> two = weft.symbol.constant(shape=(1,), dtype="float32", values=(2.0,))
    >>> evaluate_constant(weft.exp(two).get_node())[0].node.op.name
    'constant'
    """
    if node.op.name == "constant":
        return node.outputs
    schedule = Schedule(Symbol.of_entries(node.outputs).graph)
    values = schedule.values({})
    schedule.run(values)
    found: list[NodeEntry] = []
    for index, at in enumerate(schedule.outputs):
        array = values[at].numpy()
        if array.size > LARGEST:
            return None
        name = node.name if len(schedule.outputs) == 1 else f"{node.name}_{index}"
        attributes = {"shape": array.shape, "dtype": array.dtype, "values": tuple(array.ravel().tolist())}
        found.append(Node(constant, name, attributes, []).outputs[0])
    return found
