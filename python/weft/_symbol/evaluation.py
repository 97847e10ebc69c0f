"""Symbols computed: each node in turn is a call of its op on arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from weft._array.operands import as_array
from weft._core import Input, graph_calls, graph_order_mutation
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from weft._core import GraphCore, NDArray
    from weft._symbol.symbols import Symbol
    from weft.ops import Op

__all__ = ["Schedule", "evaluate"]


class _Step(NamedTuple):
    """One call: what is called, on what, and where its results go."""

    name: str
    op: Op
    inputs: tuple[int, ...]
    first: int
    results: int
    call: Callable[..., Any]
    attributes: dict[str, Any]
    template: tuple[Any, ...] | None

    def reads(self) -> list[int]:
        """Return the entries of which the call needs values, and not only shape and dtype."""
        said: Any = self.op.attribute("ignores", ())
        ignored = said(self.attributes) if callable(said) else said
        places: Iterable[int] = range(len(self.inputs))
        if self.template is not None:
            places = [at for at, each in enumerate(self.template) if type(each) is Input]
        return [entry for place, entry in zip(places, self.inputs, strict=False) if place not in ignored]

    def operands(self, values: list[Any]) -> list[Any]:
        found = [values[at] for at in self.inputs]
        if self.template is None:
            return found
        rest = iter(found)
        return [next(rest) if type(each) is Input else each for each in self.template]


def _prepared(
    op: Op, attributes: dict[str, Any], *, is_mutated: bool
) -> tuple[Callable[..., Any], dict[str, Any], tuple[Any, ...] | None]:
    """Return what is called, with which attributes, and the operands where numbers are among them."""
    template = attributes.get("operands")
    if template is not None:
        attributes = {key: each for key, each in attributes.items() if key != "operands"}
    show: Callable[..., Any] | None = op.attribute("view", None)
    # Symbols are values: of memory that is mutated nobody has a view.
    if is_mutated and op.attribute("shares_memory", default=False):
        show = None
    return op if show is None else show, attributes, template


def _steps(calls: Iterable[tuple[str, Any, dict[str, Any], tuple[int, ...], int, int, bool]]) -> list[_Step]:
    """Return rows as steps: what rows of one op and one set of attributes share is made once."""
    known: dict[tuple[int, int, bool], tuple[Any, Any, Any]] = {}
    steps: list[_Step] = []
    for name, op, attributes, inputs, first, count, is_mutated in calls:
        key = id(op), id(attributes), is_mutated
        found = known.get(key)
        if found is None:
            found = known[key] = _prepared(op, attributes, is_mutated=is_mutated)
        steps.append(tuple.__new__(_Step, (name, op, inputs, first, count, *found)))
    return steps


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
        self.steps = _steps(calls)
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
            if step.results == 1:
                values[step.first] = result[0] if isinstance(result, tuple) else result
            else:
                values[step.first : step.first + step.results] = result
            if watch is not None:
                for index in range(step.results):
                    watch(_result_name(step, index), values[step.first + index])


def _result_name(step: _Step, index: int) -> str:
    given: Any = step.op.attribute("output_names", ("output",) if step.results == 1 else ())
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
