"""Symbols computed: each node in turn is a call of its op on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._array.operands import as_array
from weft._core import Input, NDArray
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from weft._core import GraphCore, Node
    from weft._symbol.symbols import Symbol

__all__ = ["Schedule", "evaluate"]


class _Step:
    """One call: what is called, on what, and where its results go."""

    __slots__ = ("attributes", "call", "inputs", "name", "node", "results", "template")

    def __init__(self, node: Node, inputs: tuple[int, ...], results: range) -> None:
        self.node, self.name = node, node.name
        op = node.op
        attributes = node.attributes
        self.template = attributes.pop("operands", None)
        self.attributes = attributes
        show: Callable[..., Any] | None = op.attribute("view", None)
        self.call: Callable[..., Any] = op if show is None else show
        self.inputs = inputs
        self.results = results

    def operands(self, values: list[Any]) -> list[Any]:
        found = [values[at] for at in self.inputs]
        if self.template is None:
            return found
        rest = iter(found)
        return [next(rest) if type(each) is Input else each for each in self.template]


class Schedule:
    """A graph as calls in an order in which inputs come first.

    Examples
    --------
    >>> import weft
    >>> from weft._symbol.evaluation import Schedule
    >>> schedule = Schedule((weft.symbol.Variable("x") + 1).graph)
    >>> values = schedule.values({"x": weft.ones(2)})
    >>> schedule.run(values)
    >>> [values[at] for at in schedule.outputs]
    [NDArray([2., 2.])]
    """

    __slots__ = ("count", "nodes", "outputs", "starts", "steps", "variables")

    def __init__(self, graph: GraphCore) -> None:
        indexed = graph.indexed()
        self.nodes = nodes = indexed.nodes
        self.count = indexed.num_node_entries
        edges, starts = indexed.inputs(), indexed.input_starts
        first = 0
        self.starts: list[int] = []
        self.steps: list[_Step] = []
        self.variables: dict[str, int] = {}
        for number, node in enumerate(nodes):
            self.starts.append(first)
            if node.is_variable:
                if node.name in self.variables:
                    raise GraphError(f"two variables are named {node.name!r}: which array is meant by the name is not known")
                self.variables[node.name] = first
            else:
                inputs = tuple(self.starts[at] + index for at, index, _ in edges[starts[number] : starts[number + 1]])
                self.steps.append(_Step(node, inputs, range(first, first + node.num_outputs)))
            first += node.num_outputs
        self.outputs = [self.starts[at] + index for at, index, _ in indexed.outputs]

    def values(self, arrays: Mapping[str, Any]) -> list[Any]:
        """Return a place for the value of each entry, with `arrays` in those of variables.

        Raises
        ------
        GraphError
            If one is missing.
        """
        values: list[Any] = [None] * self.count
        missing = [name for name in self.variables if name not in arrays]
        if missing:
            raise GraphError(f"no array is given for {', '.join(missing)}")
        for name, at in self.variables.items():
            values[at] = arrays[name]
        return values

    def run(
        self,
        values: list[Any],
        steps: Iterable[_Step] | None = None,
        watch: Callable[[str, NDArray], object] | None = None,
    ) -> None:
        """Make the calls, and put their results into `values`."""
        for step in self.steps if steps is None else steps:
            result = step.call(*step.operands(values), **step.attributes)
            if len(step.results) == 1:
                values[step.results.start] = result[0] if isinstance(result, tuple) else result
            else:
                values[step.results.start : step.results.stop] = result
            if watch is not None:
                names = step.node.op.attribute("output_names", ("output",)) if len(step.results) == 1 else ()
                for index, at in enumerate(step.results):
                    name = names[index] if not callable(names) and index < len(names) else f"output{index}"
                    watch(f"{step.name}_{name}", values[at])


def evaluate(symbol: Symbol, arrays: Mapping[str, Any]) -> list[NDArray]:
    """Compute the outputs of a symbol.

    Examples
    --------
    >>> import weft
    >>> from weft._symbol.evaluation import evaluate
    >>> evaluate(weft.symbol.Variable("x") * 3, {"x": 2})
    [NDArray(6)]
    """
    schedule = Schedule(symbol.graph)
    given = {name: as_array(arrays[name]) for name in schedule.variables if name in arrays}
    values = schedule.values(given)
    schedule.run(values)
    return [values[at] for at in schedule.outputs]
