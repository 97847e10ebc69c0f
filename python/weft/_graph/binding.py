"""From a symbol to an executor: arrays that are given, or made of the shapes that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call.devices import as_device
from weft._call.operands import as_array
from weft._core import GraphCore, NDArray, graph_infer_shape, graph_infer_type, graph_inferred
from weft._engine.labels import Device
from weft._graph.executor import Executor
from weft._ops.creation import zeros
from weft.errors import ArgumentTypeError, ArgumentValueError, GraphError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weft._graph.symbols import Symbol
    from weft._graph.training import Again

_REQUESTS = ("write", "add", "null")
_OF_MXNET = {"ctx": "device", "group2ctx": "group2device"}
_NAMES = ("args", "args_grad", "grad_req", "aux_states")  # in their order


def _listed(what: str, names: Sequence[str], given: Any, *, complete: bool) -> dict[str, Any]:
    """Return the values that were given for names, as a dict."""
    if given is None:
        given = {}
    by_name: bool = isinstance(given, dict)
    if not by_name:
        found = list(given)
        if len(found) != len(names):
            raise GraphError(f"the symbol has {len(names)} {what} ({', '.join(names)}), and {len(found)} were given")
        given = dict(zip(names, found, strict=True))
    missing = [name for name in names if name not in given]
    if complete and missing:
        raise GraphError(f"no array is given for {what}: {', '.join(missing)}")
    return {name: given[name] for name in names if given.get(name) is not None}


def _requests(names: Sequence[str], given: Any) -> dict[str, str]:
    by_name: bool = isinstance(given, dict)
    found: dict[str, str]
    if isinstance(given, str):
        found = dict.fromkeys(names, given)
    elif by_name:
        found = {name: given.get(name, "null") for name in names}
    else:
        found = dict(_listed("arguments", names, given, complete=True))
    for name, request in found.items():
        if request not in _REQUESTS:
            raise ArgumentValueError(
                f"grad_req of {name!r} is one of {', '.join(_REQUESTS)}, and {request!r} was given"
            )
    return found


def by_position(given: tuple[Any, ...], device: Any, *named: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the device, with its companions, of arguments by position and by name.

    Examples
    --------
    >>> from weft._graph.binding import by_position
    >>> by_position(("cpu:0", {"x": 1}), None, None, None, "write", None)
    ('cpu:0', ({'x': 1}, None, 'write', None))
    """
    if given and isinstance(given[0], Device | str):
        if device is not None:
            raise ArgumentTypeError("bind: device is given twice, by position and by name")
        device, given = given[0], given[1:]
    if len(given) > len(_NAMES):
        raise ArgumentTypeError(f"bind: {len(given)} arguments by position, and there are {', '.join(_NAMES)}")
    for name, known in zip(_NAMES[: len(given)], named, strict=False):
        if known is not None and (not isinstance(known, str) or known != "write"):
            raise ArgumentTypeError(f"bind: {name} is given twice, by position and by name")
    return device, (*given, *named[len(given) :])


def bind(
    symbol: Symbol, args: Any, grads: Any, requests: Any, states: Any, device: Any, groups: Any, again: Again
) -> Executor:
    """Return an executor on given arrays: see `Symbol.bind`."""
    graph = GraphCore(symbol._core)
    names, aux = graph.variables()
    found = _arrays("arguments", names, args)
    held = _arrays("auxiliary states", aux, states) if aux or states else {}
    known: dict[str, Any] = {} if grads is None else _listed("arguments", names, grads, complete=False)
    for name, grad in known.items():
        if not isinstance(grad, NDArray) or grad.shape != found[name].shape:
            shape = getattr(grad, "shape", None)
            raise ShapeError(
                f"the gradient of {name!r} is an NDArray of shape {found[name].shape}, and got shape {shape}"
            )
    shapes: dict[str, Any] = {}
    for each in (found, held):
        for name, array in each.items():
            shapes[name] = array.shape
    graph_infer_shape(graph, shapes, "__shape__")
    wanted = dict.fromkeys(names, requests) if requests in _REQUESTS else _requests(names, requests)
    return Executor(symbol, found, known, wanted, held, device, groups, again, graph)


def _arrays(what: str, names: Sequence[str], given: Any) -> dict[str, NDArray]:
    """Return an array for each name, from a dict or a list of values."""
    if given.__class__ is not dict or given.keys() < set(names):
        given = _listed(what, names, given, complete=True)
    found: dict[str, NDArray] = {}
    for name in names:
        array = given.get(name)
        if array is None:
            raise GraphError(f"no array is given for {what}: {name}")
        found[name] = array if array.__class__ is NDArray else as_array(array)
    return found


def simple_bind(
    symbol: Symbol, device: Any, requests: Any, types: Any, groups: Any, shapes: dict[str, Any], again: Again
) -> Executor:
    """Return an executor on new arrays: see `Symbol.simple_bind`."""
    graph = symbol.graph
    names, aux = graph.variables()
    known = {name: shape for name, shape in shapes.items() if shape is not None}
    unknown = set(known).difference(names, aux)
    if unknown:
        meant = [f"MXNet's {name}= is {_OF_MXNET[name]}= here" for name in sorted(unknown) if name in _OF_MXNET]
        listed = f"there are {', '.join(names + aux)}"
        raise GraphError(f"no variable is named {', '.join(sorted(unknown))}: {'; '.join([*meant, listed])}")
    found = graph_inferred(graph_infer_shape(graph, known, "__shape__"), "shape")
    for name, shape in zip([*names, *aux], [*found[0], *found[2]], strict=True):
        if shape is None or None in shape:
            raise ShapeError(
                f"the shape of {name!r} does not follow from {', '.join(shapes) or 'nothing'}: give it, too"
            )
    given = {name: dtype for name, dtype in types.items() if dtype is not None}
    dtypes = graph_inferred(graph_infer_type(graph, given, "__dtype__"), "dtype")
    wanted = _requests(names, requests)
    where = _devices(symbol, device, groups)

    def made(listed: Sequence[str], sizes: list[Any], kinds: list[Any]) -> dict[str, NDArray]:
        return {
            name: zeros(shape, dtype=dtype, device=where.get(name, device))
            for name, shape, dtype in zip(listed, sizes, kinds, strict=True)
        }

    args = made(names, found[0], dtypes[0])
    grads = {
        name: zeros(each.shape, dtype=each.dtype, device=each.device)
        for name, each in args.items()
        if wanted[name] != "null"
    }
    return Executor(symbol, args, grads, wanted, made(aux, found[2], dtypes[2]), device, groups, again, graph)


def _devices(symbol: Symbol, device: Any, groups: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the devices of variables that belong to a group."""
    if not groups:
        return {}
    found: dict[str, Any] = {}
    for name, texts in symbol.attr_dict().items():
        group = texts.get("__ctx_group__")
        if group is not None:
            found[name] = as_device(groups[group]) if group in groups else device
    return found
