"""Symbols computed: each node in turn is a call of its op on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._array.operands import as_array
from weft._core import Input, graph_calls, graph_order_mutation
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft._core import GraphCore, NDArray
    from weft._symbol.symbols import Symbol
    from weft.ops import Op

__all__ = ["Schedule", "evaluate"]


class _Step:
    """One call: what is called, on what, and where its results go."""

    __slots__ = ("attributes", "call", "count", "first", "inputs", "name", "op", "template")

    def __init__(
        self,
        name: str,
        op: Op,
        attributes: dict[str, Any],
        inputs: tuple[int, ...],
        first: int,
        count: int,
        is_mutated: bool,  # noqa: FBT001 - a column of a row
    ) -> None:
        self.name, self.op, self.inputs, self.first, self.count = name, op, inputs, first, count
        self.template = attributes.get("operands")
        self.attributes = attributes
        if self.template is not None:
            self.attributes = {key: each for key, each in attributes.items() if key != "operands"}
        show: Callable[..., Any] | None = op.attribute("view", None)
        # Symbols are values: of memory that is mutated nobody has a view.
        if is_mutated and op.attribute("shares_memory", default=False):
            show = None
        self.call: Callable[..., Any] = op if show is None else show

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

    __slots__ = ("count", "outputs", "steps", "variables")

    def __init__(self, graph: GraphCore) -> None:
        graph = graph_order_mutation(graph)
        indexed = graph.indexed()
        self.count = indexed.num_node_entries
        variables, calls = graph_calls(graph)
        self.variables = dict(variables)
        if len(self.variables) < len(variables):
            seen: set[str] = set()
            for name, _ in variables:
                if name in seen:
                    raise GraphError(f"two variables are named {name!r}: which array is meant by the name is not known")
                seen.add(name)
        unknown = sorted({op.name for _, op, *_ in calls if not op._entry.is_registered})  # noqa: SLF001 - its record
        if unknown:
            listed = ", ".join(map(repr, unknown))
            which = f"op {listed} is" if len(unknown) == 1 else f"ops {listed} are"
            raise GraphError(f"no {which} registered: weft.register_op(name, ...) says how one is computed")
        self.steps = [_Step(*call) for call in calls]
        self.outputs = [indexed.entry_id(at, index) for at, index, _ in indexed.outputs]

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
            if step.count == 1:
                values[step.first] = result[0] if isinstance(result, tuple) else result
            else:
                values[step.first : step.first + step.count] = result
            if watch is not None:
                for index in range(step.count):
                    watch(_result_name(step, index), values[step.first + index])


def _result_name(step: _Step, index: int) -> str:
    given: Any = step.op.attribute("output_names", ("output",) if step.count == 1 else ())
    rule: Callable[..., Sequence[str]] = given  # if it is one
    names: Sequence[str] = rule(step.attributes) if callable(given) else given
    return f"{step.name}_{names[index] if index < len(names) else f'output{index}'}"


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
