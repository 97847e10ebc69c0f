"""Symbols computed: each node in turn is a call of its op on arrays."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from weft._call.operands import as_array
from weft._core import Input, graph_apply_pass, graph_calls, graph_infer_shape
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from weft._core import GraphCall, GraphCore, NDArray
    from weft._graph.symbols import Symbol
    from weft._registry.op import Op


class _Kind(NamedTuple):
    """The common part of calls of one op with one set of attributes."""

    op: Op
    call: Callable[..., Any]
    attributes: dict[str, Any]
    template: tuple[Any, ...] | None

    def make(self, inputs: tuple[int, ...], values: list[Any]) -> Any:
        """Make the call on values of these entries."""
        found = [values[at] for at in inputs]
        if self.template is not None:
            rest = iter(found)
            found = [next(rest) if type(each) is Input else each for each in self.template]
        return self.call(*found, **self.attributes)


def prepared(op: Op, attributes: dict[str, Any], *, is_mutated: bool) -> _Kind:
    """Return the maker of calls of an op with these attributes.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.evaluation import prepared
    >>> kind = prepared(weft.ops.get_op("sum"), {"axis": (0,)}, is_mutated=False)
    >>> kind.make((0,), [weft.ones((2, 3))])
    NDArray([2., 2., 2.])
    """
    template = attributes.pop("operands", None)
    show: Callable[..., Any] | None = op.attribute("view", None)
    # Symbols are values: no view shows memory that is mutated.
    if is_mutated and op.attribute("shares_memory", default=False):
        show = None
    return _Kind(op, op if show is None else show, attributes, template)


class _Completed(NamedTuple):
    """A call with attributes that follow from the shape of its result."""

    name: str
    kind: _Kind
    inputs: tuple[int, ...]
    first: int
    results: int


def _completed(step: GraphCall | _Completed, shape: tuple[int | None, ...] | None) -> GraphCall | _Completed:
    rule: Callable[..., dict[str, Any]] | None = step.kind.op.attribute("completed", None)
    if rule is None or shape is None or None in shape:
        return step
    kind = step.kind._replace(attributes=rule(step.kind.attributes, shape))
    return _Completed(step.name, kind, step.inputs, step.first, step.results)


def read_by(step: GraphCall | _Completed) -> list[int]:
    """Return the entries that a call needs as values, and not only by shape and dtype.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.evaluation import Schedule, read_by
    >>> [read_by(step) for step in Schedule(weft.symbol.zeros_like(weft.symbol.Variable("x")).graph).steps]
    [[]]
    """
    kind: _Kind = step.kind
    said = kind.op.attribute("ignores", ())
    ignored = cast("Container[int]", said(kind.attributes) if callable(said) else said)
    places: Iterable[int] = range(len(step.inputs))
    if kind.template is not None:
        places = [at for at, each in enumerate(kind.template) if type(each) is Input]
    return [entry for place, entry in zip(places, step.inputs, strict=False) if place not in ignored]


class Schedule:
    """A graph as calls, inputs first.

    Parameters
    ----------
    graph : GraphCore
        The graph.
    shapes : mapping of str to tuple of int, optional
        The shapes of variables: from these follow the attributes of calls that do not say all of their shape.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.evaluation import Schedule
    >>> schedule = Schedule((weft.symbol.Variable("x") + 1).graph)
    >>> values = schedule.values({"x": weft.ones(2)})
    >>> schedule.run(values)
    >>> [values[at] for at in schedule.outputs]
    [NDArray([2., 2.])]
    """

    __slots__ = ("count", "kinds", "outputs", "steps", "variables")

    def __init__(self, graph: GraphCore, shapes: Mapping[str, Any] | None = None) -> None:
        graph = graph_apply_pass(graph, "order_mutation")
        indexed = graph.indexed()
        self.count = indexed.num_node_entries
        kinds: list[_Kind] = []

        def prepare(op: Op, attributes: dict[str, Any], is_mutated: bool) -> _Kind:
            kinds.append(prepared(op, attributes, is_mutated=is_mutated))
            return kinds[-1]

        variables, steps = graph_calls(graph, prepare)
        self.steps: list[GraphCall | _Completed] = list(steps)
        self.variables = dict(variables)
        if len(self.variables) < len(variables):
            seen: set[str] = set()
            for name, _ in variables:
                if name in seen:
                    raise GraphError(f"two variables are named {name!r}: which array is meant by the name is not known")
                seen.add(name)
        unknown = sorted({kind.op.name for kind in kinds if not kind.op._entry.is_registered})
        if unknown:
            listed = ", ".join(map(repr, unknown))
            which = f"op {listed} is" if len(unknown) == 1 else f"ops {listed} are"
            raise GraphError(f"no {which} registered: weft.register_op(name, ...) says how one is computed")
        self.kinds = kinds
        if shapes is not None and any(kind.op.attribute("completed", None) for kind in kinds):
            known = {name: shape for name, shape in shapes.items() if name in self.variables}
            found = graph_infer_shape(graph, known, "__shape__").attribute("shape")
            self.steps = [_completed(step, found[step.first]) for step in self.steps]
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
        steps: Iterable[GraphCall | _Completed] | None = None,
        watch: Callable[[str, NDArray], object] | None = None,
    ) -> None:
        """Make the calls, and put their results into `values`."""
        for step in self.steps if steps is None else steps:
            try:
                result = step.kind.make(step.inputs, values)
            except Exception as error:
                error.add_note(f"weft: node {step.name!r} (op {step.kind.op.name!r})")
                raise
            if step.results == 1:
                values[step.first] = result[0] if isinstance(result, tuple) else result
            else:
                values[step.first : step.first + step.results] = result
            if watch is not None:
                for index in range(step.results):
                    watch(_result_name(step, index), values[step.first + index])


def _result_name(step: GraphCall | _Completed, index: int) -> str:
    given: Any = step.kind.op.attribute("output_names", ("output",) if step.results == 1 else ())
    rule: Callable[..., Sequence[str]] = given  # if it is one
    names: Sequence[str] = rule(step.kind.attributes) if callable(given) else given
    return f"{step.name}_{names[index] if index < len(names) else f'output{index}'}"


def evaluate(symbol: Symbol, arrays: Mapping[str, Any]) -> list[NDArray]:
    """Compute the outputs of a symbol.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.evaluation import evaluate
    >>> evaluate(weft.symbol.Variable("x") * 3, {"x": 2})
    [NDArray(6)]
    """
    graph = symbol.graph
    given = {name: as_array(arrays[name]) for names in graph.variables() for name in names if name in arrays}
    schedule = Schedule(graph, {name: each.shape for name, each in given.items()})
    unknown = [name for name in arrays if name not in schedule.variables]
    if unknown:
        known = f"its variables are {', '.join(schedule.variables)}" if schedule.variables else "it has none"
        warnings.warn(f"eval(): no variable is named {', '.join(unknown)}: {known}", stacklevel=4)
    values = schedule.values(given)
    schedule.run(values)
    return [values[at] for at in schedule.outputs]
