"""Calls of weft's functions on symbols with too few known facts: one node; its ops are made when arrays are there.

Most functions compose as they are: the rules of their ops find shapes out later. Where a function itself looks at a
shape or a dtype, to choose its ops or their attributes, and that is not known yet, the node is the op ``function``: its
attributes say which function, and the arguments as they were written.
"""

from __future__ import annotations

import inspect
import operator
import sys
from types import EllipsisType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from weft import _core
from weft._call.devices import as_device
from weft._core import ArrayFunction, Input, NDArray
from weft._engine.default import get_engine
from weft._engine.labels import Device
from weft._graph.composite import Composite, make_node, register
from weft._graph.naming import next_name
from weft._numpy.names import signature_of
from weft._ops.creation import asarray, empty
from weft._program.unrecorded import outside
from weft._registry.avals import Aval
from weft._registry.shapes import is_index
from weft._registry.symbol_hook import MixedOperandsError, UnknownFactError, is_symbol
from weft.errors import CaptureError, GraphError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from weft._graph.symbols import Symbol

_INPUT = Input()
#: Elements that an array of integers among the arguments may have: it is written into the node.
_LARGEST = 1024
#: Types of attributes that are kept as given, besides sequences and None.
_WRITTEN = (bool, int, float, complex, str, np.dtype, slice, EllipsisType)


def defer(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], unknown: UnknownFactError) -> Any:
    """Return the symbols of a call that waits for shapes: one, or a list or a tuple of them as the function returns.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> y = weft.moveaxis(x, 0, -1)
    >>> y.list_attr()
    {'arguments': "(('x', _), ('source', 0), ('destination', -1))", 'function': 'moveaxis', 'results': '1'}
    >>> y.infer_shape(x=(2, 3, 4))[1]
    [(3, 4, 2)]
    """
    function = _function(name)
    signature = signature_of(function)
    inputs: list[Symbol] = []
    if signature is None:
        raise unknown
    bound = signature.bind(*args, **kwargs)
    try:
        arguments = tuple((key, _template(name, value, inputs)) for key, value in _pairs(signature, bound))
    except _NotWrittenError:
        raise unknown from None
    if not inputs:  # of a symbol that it was not given
        raise unknown
    count, kind = _count(name, bound, unknown)
    chosen, texts = next_name(name.rpartition(".")[2], instead=True)
    attributes = {"function": name, "arguments": arguments, "results": count}
    found = make_node(_op, chosen, attributes, inputs, texts)
    return found[0] if kind is None else kind(found)


# The attributes of the node.


class _NotWrittenError(Exception):
    """An argument cannot be an attribute."""


def _pairs(signature: inspect.Signature, bound: inspect.BoundArguments) -> Iterator[tuple[str, Any]]:
    for key, value in bound.arguments.items():
        if signature.parameters[key].kind is inspect.Parameter.VAR_KEYWORD:
            yield from value.items()
        else:
            yield key, value


def _template(name: str, value: Any, inputs: list[Symbol]) -> Any:
    """Return an argument as an attribute, with places for symbols."""
    if is_symbol(value):
        inputs.extend(value)
        return _INPUT if len(value) == 1 else (_INPUT,) * len(value)
    given: Any = value
    if isinstance(value, list | tuple):
        listed: Sequence[Any] = given
        return tuple(_template(name, each, inputs) for each in listed)
    if isinstance(value, NDArray | np.ndarray):
        return _small(name, given)
    if isinstance(value, np.generic):
        given = given.item()
    elif isinstance(value, Device):
        given = str(value)
    elif _is_scalar_type(given):
        given = np.dtype(given)
    elif value is not None and not isinstance(value, _WRITTEN):
        raise _NotWrittenError
    return given


def _is_scalar_type(value: Any) -> bool:
    return isinstance(value, type) and (issubclass(value, np.generic) or value in {bool, int, float, complex})


def _small(name: str, value: Any) -> Any:
    """Return positions as tuples of integers."""
    if isinstance(value, NDArray) or value.dtype.kind not in "biu" or value.size > _LARGEST:
        raise MixedOperandsError(name, type(value).__name__)
    return _tuples(value.tolist())


def _tuples(value: Any) -> Any:
    listed: list[Any] = value  # if it is one
    return tuple(map(_tuples, listed)) if isinstance(value, list) else value


def _filled(template: Any, rest: Iterator[Any]) -> Any:
    if type(template) is Input:
        return next(rest)
    parts: tuple[Any, ...] = template  # if it is one
    return tuple(_filled(each, rest) for each in parts) if isinstance(template, tuple) else template


def _call(name: str, arguments: Sequence[tuple[str, Any]], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Call the function, and return its results."""
    function = _function(name)
    signature = signature_of(function)
    if signature is None:
        raise GraphError(f"the function {name!r} has no signature")
    rest = iter(arrays)
    given = {key: _filled(template, rest) for key, template in arguments}
    if given.get("device") is not None:
        given["device"] = as_device(given["device"])
    bound = inspect.BoundArguments(signature, {key: given.pop(key) for key in signature.parameters if key in given})
    found: Any = function(*bound.args, **bound.kwargs, **given)
    several: Sequence[Any] = found  # if it is several
    return tuple(several) if isinstance(found, list | tuple) else (found,)


def _function(name: str) -> Callable[..., Any]:
    """Return weft's function of a name; GraphError for any other."""
    module, _, own = name.rpartition(".")
    namespace = sys.modules.get(f"weft.{module}" if module else "weft")
    found: Any = getattr(namespace, own, None) if own in getattr(namespace, "__all__", ()) else None
    if not isinstance(found, FunctionType | ArrayFunction) or module not in {"", "linalg", "fft", "nn"}:
        raise GraphError(f"weft has no function {name!r}, which a node is to call")
    return found


# How many results there are: where that rests on shapes, there is no node to be made.


def _count(
    name: str, bound: inspect.BoundArguments, unknown: UnknownFactError
) -> tuple[int, type[list[Any] | tuple[Any, ...]] | None]:
    rule = _COUNTS.get(name)
    if rule is None:
        return 1, None
    bound.apply_defaults()
    count, kind = rule(bound.arguments)
    if count is None:
        raise UnknownFactError(f"how many results {name}() has is not known: {unknown}")
    return (1, None) if count < 0 else (count, kind)


def _of_parts(given: dict[str, Any]) -> tuple[int | None, type[list[Any]]]:
    parts: Any = given["indices_or_sections"]
    return (operator.index(parts) if is_index(parts) else len(parts) + 1), list


def _of_arrays(given: dict[str, Any]) -> tuple[int | None, type[list[Any]]]:
    return (-1 if len(given["arrays"]) == 1 else len(given["arrays"])), list


def _fixed(count: int | None) -> Callable[[dict[str, Any]], tuple[int | None, type[tuple[Any, ...]]]]:
    return lambda _: (count, tuple)


def _of_axes(given: dict[str, Any]) -> tuple[int | None, type[list[Any]]]:
    axis: Any = given["axis"]
    return (None if axis is None else -1 if is_index(axis) else len(axis)), list


def _of_rnn(given: dict[str, Any]) -> tuple[int | None, type[tuple[Any, ...]]]:
    return (3 if given["mode"] == "lstm" else 2), tuple


_COUNTS: dict[str, Callable[[dict[str, Any]], tuple[int | None, Any]]] = {
    **dict.fromkeys(("split", "array_split", "hsplit", "vsplit", "dsplit"), _of_parts),
    **dict.fromkeys(("atleast_1d", "atleast_2d", "atleast_3d"), _of_arrays),
    "broadcast_arrays": lambda given: (len(given["arrays"]), list),
    "meshgrid": lambda given: (len(given["arrays"]), list),
    "gradient": _of_axes,
    **dict.fromkeys(("unstack", "nonzero", "where_nonzero"), _fixed(None)),
    **dict.fromkeys(("linalg.qr", "linalg.eig", "linalg.eigh", "linalg.slogdet", "histogram"), _fixed(2)),
    "linalg.svd": _fixed(3),
    "linalg.lstsq": _fixed(4),
    "nn.rnn": _of_rnn,
}


# The attributes of the op.


def _run(*arrays: NDArray, function: str, arguments: Any, results: int) -> tuple[Any, ...]:
    del results
    return _call(function, arguments, arrays)


def _infer(*avals: Aval, function: str, arguments: Any, results: int) -> tuple[Aval, ...]:
    """Return the avals of the function's results: it is called while nothing runs."""
    found = (
        _recorded(function, arguments, avals)
        if _core.recording() is None
        else outside(lambda: _recorded(function, arguments, avals))
    )
    if len(found) != results:
        raise ShapeError(f"{function}() has {len(found)} results of these shapes, and the node has {results}")
    return found


def _recorded(function: str, arguments: Any, avals: Sequence[Aval]) -> tuple[Aval, ...]:
    engine = get_engine()
    recording = _core.Recording(engine, function)
    try:
        recording.begin()
        arrays = [empty(aval.shape, aval.dtype, engine=engine) for aval in avals]
        return tuple(Aval(x.shape, x.dtype) for x in map(asarray, _call(function, arguments, arrays)))
    except CaptureError as error:
        raise ShapeError(f"the shapes of the results of {function}() depend on values: {error}") from error
    finally:
        recording.abort()


def _inputs(attributes: dict[str, Any]) -> int:
    return _count_inputs(attributes["arguments"])


def _count_inputs(value: Any) -> int:
    parts: tuple[Any, ...] = value  # if it is one
    return sum(map(_count_inputs, parts)) if isinstance(value, tuple) else type(value) is Input


def _places(attributes: dict[str, Any]) -> tuple[int, ...]:
    """Return the inputs among the arguments that say where elements lie."""
    found: list[int] = []
    count = 0
    for name, value in attributes["arguments"]:
        before, count = count, count + _count_inputs(value)
        if name in {"indices", "condition"}:
            found += range(before, count)
    return tuple(found)


def _results(attributes: dict[str, Any]) -> int:
    found: int = attributes["results"]
    return found


def _later(node: Any, grads: Any) -> Any:
    del grads
    raise UnknownFactError(f"{node.attributes['function']}() is differentiated where arrays are there")


_op: Composite = register(
    "function",
    _run,
    _infer,
    num_inputs=_inputs,
    num_outputs=_results,
    places=_places,
    gradient=_later,
    attribute_names=("function", "arguments", "results"),
)
