"""Ops for loops of scripts: weft's `scan` in MXNet's order, rows of data, and zeros in the place of results."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from weft._core import NDArray, Node, SymbolCore
from weft._graph.composite import make_node, register
from weft._graph.control import body_of, forwards, text_of
from weft._graph.naming import next_name
from weft._graph.symbols import Symbol
from weft._mxnet.operator import BY_NAME
from weft._numpy import namespace
from weft._registry.op import get_op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def data_first(results: Sequence[Symbol]) -> list[Symbol]:
    """Return outputs and states of a loop, in the place of these results of a node of `scan`, whose states come first.

    Examples
    --------
    >>> import weft
    >>> from weft._mxnet.loops import data_first
    >>> x, s = weft.symbol.Variable("x"), weft.symbol.Variable("s")
    >>> [y.list_arguments() for y in data_first(weft.scan(lambda state, row: (state + row, row), s, x))]
    [['x', 's'], ['x', 's']]
    """
    node = results[0].get_node()
    inputs = _turned(list(node.inputs), node.attributes["carries"], node.attributes["rows"])
    made = Node(_foreach, node.name, node.attrs, inputs, node.control_deps)
    return [Symbol.of_entries([entry]) for entry in made.outputs]


def with_rows(data: Symbol) -> Symbol:
    """Return data as rows of one axis or more: MXNet has no scalars.

    Examples
    --------
    >>> import weft
    >>> from weft._mxnet.loops import with_rows
    >>> with_rows(weft.symbol.Variable("x")).infer_shape(x=(3,))[1]
    [(3, 1)]
    """
    shape = data._single(data._shapes()[1])
    if shape is not None and len(shape) > 1:
        return data
    return make_node(_rows, next_name("foreach_rows")[0], {}, [data], None)[0]


def zeros_for(results: Sequence[Symbol]) -> list[Symbol]:
    """Return zeros of the shapes and dtypes of results, which are not computed for it.

    Examples
    --------
    >>> import weft
    >>> from weft._mxnet.loops import zeros_for
    >>> x = weft.symbol.Variable("x")
    >>> zeros_for([weft.sum(x, axis=0)])[0].eval(x=[[1.0, 2.0]])
    [NDArray([0., 0.])]
    """
    body = Symbol(SymbolCore.group([each._core for each in results]))
    inputs = [Symbol.of_entries(node.outputs) for node in body._core.inputs("all")]
    attributes = {"body": text_of(body), "inputs": tuple(body.list_inputs()), "results": len(results)}
    return make_node(_zeros, next_name("zeros_for")[0], attributes, inputs, None)


def _turned(given: list[Any], first: int, second: int) -> list[Any]:
    """Return a list whose first parts, of these lengths, have changed places."""
    return [*given[first : first + second], *given[:first], *given[first + second :]]


def _states_first(attributes: dict[str, Any], ins: Sequence[Any], outs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return values for inputs and results in the order of `scan`."""
    carries, rows, results = (attributes[key] for key in ("carries", "rows", "results"))
    return _turned(list(ins), rows, carries), _turned(list(outs), results - carries, carries)


def _as_of_scan(key: str) -> Callable[..., Any]:
    """Return a rule of `scan` in MXNet's order."""
    rule: Any = get_op("scan").attribute(key)

    def infer(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
        carries, rows, results = (attributes[key] for key in ("carries", "rows", "results"))
        found, made = rule(attributes, *_states_first(attributes, ins, outs))
        return _turned(list(found), carries, rows), _turned(list(made), carries, results - carries)

    return infer


def _run(*arrays: NDArray, **attributes: Any) -> tuple[NDArray, ...]:
    inputs, _ = _states_first(attributes, arrays, ())
    found: Any = get_op("scan")(*inputs, **attributes)
    return tuple(_turned(list(found), attributes["carries"], attributes["results"] - attributes["carries"]))


def _gradient(node: Any, grads: Sequence[Any]) -> list[Any]:
    rule: Any = get_op("scan").attribute("gradient")
    attributes = node.attributes
    inputs, heads = _states_first(attributes, node.inputs, grads)
    found = rule(SimpleNamespace(name=node.name, attributes=attributes, inputs=inputs), heads)
    return _turned(list(found), attributes["carries"], attributes["rows"])


_shapes, _dtypes = _as_of_scan("infer_shape"), _as_of_scan("infer_type")
_foreach = register(
    "foreach",
    _run,
    forwards(_shapes, _dtypes),
    num_inputs=get_op("scan").attribute("num_inputs"),
    num_outputs=get_op("scan").attribute("num_outputs"),
    infer_shape=_shapes,
    infer_type=_dtypes,
    gradient=_gradient,
)


def _row_shapes(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    del attributes
    [data], [rows] = ins, outs
    if data is not None:
        rows = (*data, 1) if len(data) == 1 else data
    elif rows is not None and len(rows) > 2:
        data = rows
    return [data], [rows]


def _row_dtypes(attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    del attributes
    known = [ins[0] or outs[0]]
    return known, known


def _row_gradient(node: Any, grads: Sequence[Any]) -> list[Any]:
    return [BY_NAME["reshape_like"](grads[0], node.inputs[0])]


def _run_rows(data: NDArray) -> tuple[NDArray, ...]:
    return (data.reshape((-1, 1)) if data.ndim == 1 else data,)


_rows = register(
    "foreach_rows",
    _run_rows,
    forwards(_row_shapes, _row_dtypes),
    num_inputs=1,
    num_outputs=1,
    infer_shape=_row_shapes,
    infer_type=_row_dtypes,
    gradient=_row_gradient,
)


def _zeros_rule(what: str, attributes: dict[str, Any], ins: list[Any], outs: list[Any]) -> tuple[list[Any], list[Any]]:
    body = body_of(attributes["body"])
    given = dict(zip(attributes["inputs"], ins, strict=True))
    made = (body.shapes if what == "shapes" else body.types)(given)[1]
    return ins, [each if known is None else known for known, each in zip(outs, made, strict=True)]


def _run_zeros(*arrays: NDArray, **attributes: Any) -> tuple[NDArray, ...]:
    nothing = [None] * attributes["results"]
    _, shapes = _zeros_rule("shapes", attributes, [x.shape for x in arrays], nothing)
    _, dtypes = _zeros_rule("dtypes", attributes, [x.dtype for x in arrays], nothing)
    return tuple(namespace.zeros(shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True))


def _no_gradient(node: Any, grads: Sequence[Any]) -> list[None]:
    del grads
    return [None] * len(node.inputs)


_zero_shapes, _zero_dtypes = partial(_zeros_rule, "shapes"), partial(_zeros_rule, "dtypes")
_zeros = register(
    "zeros_for",
    _run_zeros,
    forwards(_zero_shapes, _zero_dtypes),
    num_inputs=get_op("scan").attribute("num_inputs"),
    num_outputs=get_op("scan").attribute("num_outputs"),
    infer_shape=_zero_shapes,
    infer_type=_zero_dtypes,
    gradient=_no_gradient,
)
