"""From a call on symbols to a node."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import host_array
from weft._core import Input, SymbolCore
from weft._graph.constants import LARGEST
from weft._graph.naming import HIDDEN, chosen, current_texts, named, next_name
from weft._graph.symbols import Symbol
from weft._ops.searching import where
from weft._registry import hooks
from weft._registry.levels import Examples
from weft._registry.op import get_op
from weft._registry.symbol_hook import MixedOperandsError, is_symbol
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.op import Op

_INPUT = Input()
_NUMBERS = (bool, int, float, complex)
#: Operands that become constants: NumPy's scalars have dtypes of their own; Python's numbers take the dtype of the other operand.
_SEQUENCES = (list, tuple, np.ndarray, np.generic)
#: NumPy's numbers that are longer than any element of an array here, real and complex.
_LONG: Any = (np.longdouble, np.clongdouble)
_call = SymbolCore.call


def compose(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any], out: object = None) -> Any:
    """Return the symbol of a call of `op`, or a tuple of those of its results. A ufunc's call may name a mask.

    Raises
    ------
    GraphError
        If an operand is an array, or results are to be written somewhere.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.composing import compose
    >>> compose(weft.ops.get_op("add"), (weft.symbol.Variable("x"), 1), {}).list_arguments()
    ['x']
    """
    if out is not None:
        raise GraphError(
            f"{op.name}() of symbols has no out=: what is written where is decided when it is bound; under weft.vmap results are new"
            " arrays"
        )
    prepare = op._prepare
    if prepare is not None:
        attributes = prepare(*arrays, **attributes)
    if attributes and op.ufunc is not None:
        mask = attributes.get("where", True)
        attributes = {key: each for key, each in attributes.items() if key != "where" and each is not None}
        if not isinstance(mask, bool):
            found = compose(op, arrays, attributes)
            given = constant(mask)  # other elements are undefined where there is no out=
            return where(given, found, 0) if op.nout == 1 else tuple(where(given, each, 0) for each in found)
    inputs: list[SymbolCore] = []
    plain = True
    for x in arrays:
        if x.__class__ is Symbol or isinstance(x, Symbol):
            inputs.append(x._core)
        else:
            plain = False
    if not plain:
        if any(isinstance(x, Examples) for x in arrays):
            return hooks.compose_examples(op, arrays, attributes)
        if any(isinstance(x, _SEQUENCES) for x in arrays):
            arrays = tuple(map(constant, arrays))
        inputs = [x._core for x in arrays if is_symbol(x)]
        attributes = {**attributes, "operands": _template(op, arrays)}
    name, texts = next_name(op.name)
    result = object.__new__(Symbol)  # a call of the class would be one more frame
    result._core = _call(op._entry, name, attributes, inputs, None, spelled(texts) if texts else None)
    return result if op.nout == 1 else tuple(result)


def constant(x: Any) -> Any:
    """Return a node that holds a list of numbers, a NumPy array or scalar, or `x` itself if it is none or larger than a file should hold.

    Examples
    --------
    >>> from weft._graph.composing import constant
    >>> constant([1, 2]).list_attr()
    {'dtype': 'dtype(int64)', 'shape': '(2,)', 'values': '(1, 2)'}
    """
    given: Any = x
    if not isinstance(x, _SEQUENCES) or (isinstance(x, list | tuple) and any(map(is_symbol, given))):
        return given
    if isinstance(x, _LONG):
        return complex(given) if isinstance(x, _LONG[1]) else float(given)  # arrays do not have its dtype
    found = host_array(given)
    if found.size > LARGEST:
        return given
    name, texts = _manager_name("constant")
    attributes = {"shape": found.shape, "dtype": found.dtype, "values": tuple(found.ravel().tolist())}
    return Symbol(_call(get_op("constant")._entry, name, attributes, [], None, texts))


def _manager_name(hint: str) -> tuple[str, dict[str, Any] | None]:
    """Return the name of a node without one of its own, and its notes."""
    return named(None, hint), spelled(current_texts())


def _template(op: Op, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for x in arrays:
        if is_symbol(x):
            found.append(_INPUT)
        elif isinstance(x, _NUMBERS):
            found.append(x)
        else:
            raise MixedOperandsError(op.name, type(arrays[len(found)]).__name__)
    return tuple(found)


def spelled(texts: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return texts of a node with underscores around their keys: so files tell them from attributes.

    Examples
    --------
    >>> from weft._graph.composing import spelled
    >>> spelled({"ctx_group": "first"})
    {'__ctx_group__': 'first'}
    """
    if not texts:
        return None
    return {key if key.startswith("__") and key.endswith("__") else f"__{key}__": text for key, text in texts.items()}


def compose_op(
    op: Op,
    arrays: tuple[Any, ...],
    name: str | None,
    texts: dict[str, Any],
    given: dict[str, Any],
    *,
    is_named: bool = False,
) -> Symbol:
    """Return the symbol of a call with inputs by position and by name; an input that is not given becomes a variable.

    With `is_named`, `name` is one that the manager of the block has made already.

    Raises
    ------
    GraphError
        If a keyword is neither an input nor an attribute.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.composing import compose_op
    >>> compose_op(weft.ops.get_op("matmul"), (), "product", {}, {}).list_arguments()
    ['product_x1', 'product_x2']
    """
    if name is None or not is_named:
        name = named(name, op.name)
    keyword = {key: each._core for key, each in given.items() if isinstance(each, Symbol)}
    rest = {key: each for key, each in given.items() if key not in keyword}
    attributes, noted = split_notes(op, name, rest)
    arrays = tuple(map(constant, arrays))
    positional = [x for x in arrays if isinstance(x, Symbol)]
    if len(positional) < len(arrays):
        attributes["operands"] = _template(op, arrays)
    all_texts = spelled({**current_texts(), **texts, **noted})
    return Symbol(_call(op._entry, name, attributes, [x._core for x in positional], keyword, all_texts))


def split_notes(op: Op, name: str, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the attributes among the keywords of a call, and the notes for its node.

    Raises
    ------
    GraphError
        If a keyword belongs to a variable, or to nothing.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.composing import split_notes
    >>> split_notes(weft.ops.get_op("sum"), "s", {"axis": 0, "ctx_group": "first"})
    ({'axis': 0}, {'ctx_group': 'first'})
    """
    attributes = dict(given)
    noted = [key for key in given if key in HIDDEN or (key.startswith("__") and key.endswith("__"))]
    texts = {key: str(attributes.pop(key)) for key in noted}
    for key, value in attributes.items():
        for hidden in HIDDEN:
            if key.endswith(f"_{hidden}"):
                owner = key[: -len(hidden) - 1]
                raise GraphError(
                    f"node {name!r}: {key!r} is no attribute of op {op.name!r}: say it of the variable, by "
                    f"{owner}=weft.symbol.Variable('{name}_{owner}', {hidden}={value!r})"
                )
    return attributes, texts


def _missing(op: Op, function: Callable[..., Any], count: int, given: dict[str, Any]) -> list[str]:
    """Return the inputs that a function must have and that it was not given: they become variables."""
    inputs = op.attribute("input_names", ())
    rest = list(signature(function).parameters.values())[count:]
    wanted = [each.name for each in rest if each.default is each.empty and each.name not in given]
    return [] if callable(inputs) else [each for each in wanted if each in inputs]


def function_of(op: Op, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return the function of `weft.symbol` for an op: with NumPy's arguments where weft has a function of it."""

    def compose(*arrays: Any, name: str | None = None, attr: dict[str, str] | None = None, **given: Any) -> Any:
        texts = dict(attr or {})
        if function is not None and arrays and not any(isinstance(each, Symbol) for each in given.values()):
            count = op.attribute("num_inputs", None)
            if not isinstance(count, int) or len(arrays) >= count or not isinstance(arrays[0], Symbol):
                for key in [key for key in given if key in HIDDEN or key.startswith("__")]:
                    texts[key] = str(given.pop(key))
                missing = _missing(op, function, len(arrays), given) if isinstance(arrays[0], Symbol) else ()
                if missing:
                    name = named(name, op.name)
                    given.update({each: Symbol(SymbolCore.variable(f"{name}_{each}", None)) for each in missing})
                with chosen(name, texts):
                    try:
                        return function(*arrays, **given)
                    except TypeError:
                        if _are_of(function, arrays, given):
                            raise
                # The op refuses arguments that the function does not have.
        arrange = getattr(op, "arranged", None)
        if arrange is not None and not all(isinstance(each, Symbol) for each in arrays):
            arrays, given = _by_position(op, arrange(arrays), given)
        result = compose_op(op, arrays, name, texts, given)
        return result if op.nout == 1 else tuple(result)

    compose.__name__ = compose.__qualname__ = op.name
    compose.__doc__ = op.docstring or getattr(function, "__doc__", None) or f"Compose a call of the op {op.name!r}."
    return compose


def _by_position(
    op: Op, arranged: tuple[list[Any], dict[str, Any]], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return inputs and attributes of a call of an op that orders its arguments itself."""
    inputs, attributes = arranged
    twice = attributes.keys() & named.keys()
    if twice:
        raise ArgumentTypeError(f"{op.name}() got {', '.join(sorted(twice))} by position and by name")
    attributes |= named
    if not any(each is None for each in inputs):
        return tuple(inputs), attributes
    names = op._entry.input_names({}, len(inputs))
    given = {key: each for key, each in zip(names, inputs, strict=False) if each is not None}
    return (), attributes | given


def _are_of(function: Callable[..., Any], arrays: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Return whether a function takes these arguments."""
    from weft._numpy.names import signature_of  # noqa: PLC0415 - for the mistaken

    signature = signature_of(function)
    try:
        if signature is not None:
            signature.bind(*arrays, **given)
    except TypeError:
        return False
    return True


def function_named(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of `weft.symbol` under the name of one that is made of several ops: `name` is that of the first.

    Examples
    --------
    >>> import weft
    >>> weft.symbol.vstack([weft.symbol.Variable("x"), weft.symbol.Variable("y")], name="rows").name
    'rows'
    """

    def compose(*arrays: Any, name: str | None = None, attr: dict[str, str] | None = None, **given: Any) -> Any:
        texts = dict(attr or {})
        for key in [key for key in given if key in HIDDEN or key.startswith("__")]:
            texts[key] = str(given.pop(key))
        with chosen(name, texts):
            return function(*arrays, **given)

    compose.__name__ = compose.__qualname__ = name
    compose.__doc__ = function.__doc__
    return compose
