"""From a call on symbols to a node."""

# ruff: noqa: SLF001 - what composes looks into ops and symbols

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._array.symbolic import is_symbol
from weft._core import Input, SymbolCore
from weft._symbol.naming import HIDDEN, chosen, named, next_name
from weft._symbol.symbols import Symbol
from weft.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.ops import Op

__all__ = ["compose_call", "compose_op", "function_of"]

_INPUT = Input()
_NUMBERS = (bool, int, float, complex)
_call = SymbolCore.call


def compose_call(op: Op, arrays: tuple[Any, ...], attributes: dict[str, Any]) -> Any:  # noqa: ANN401 - one symbol, or several
    """Return the symbol of a call, or a tuple of those of its results.

    Examples
    --------
    >>> import weft
    >>> from weft._symbol.composing import compose_call
    >>> compose_call(weft.ops.get_op("add"), (weft.symbol.Variable("x"), 1), {})
    <Symbol add...>
    """
    inputs: list[SymbolCore] = []
    plain = True
    for x in arrays:
        if x.__class__ is Symbol:
            inputs.append(x._core)
        else:
            plain = False
    if not plain:
        attributes = {**attributes, "operands": _template(op, arrays)}
    name, texts = next_name(op.name)
    result = Symbol(_call(op._entry, name, attributes, inputs, None, _spelled(texts)))
    return result if op.nout == 1 else tuple(result)


def _template(op: Op, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    found: list[Any] = []
    for x in arrays:
        if is_symbol(x):
            found.append(_INPUT)
        elif isinstance(x, _NUMBERS):
            found.append(x.item() if isinstance(x, np.generic) else x)
        elif isinstance(x, np.generic) or (isinstance(x, np.ndarray) and not x.ndim):
            found.append(x.item())
        else:
            raise GraphError(
                f"{op.name}() has a symbol and {type(arrays[len(found)]).__name__} among its operands: let a variable stand for the array, "
                "and give the array to eval() or bind()"
            )
    return tuple(found)


def _spelled(texts: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return texts of a node with underscores around their keys, by which files tell them from attributes."""
    if not texts:
        return None
    return {key if key.startswith("__") and key.endswith("__") else f"__{key}__": text for key, text in texts.items()}


def compose_op(
    op: Op, arrays: tuple[Any, ...], name: str | None, texts: dict[str, Any], given: dict[str, Any]
) -> Symbol:
    """Return the symbol of a call with inputs by position and by name; an input that is not given becomes a variable.

    Raises
    ------
    GraphError
        If a keyword is neither an input nor an attribute.

    Examples
    --------
    >>> import weft
    >>> from weft._symbol.composing import compose_op
    >>> compose_op(weft.ops.get_op("matmul"), (), "product", {}, {}).list_arguments()
    ['product_x1', 'product_x2']
    """
    name = named(name, op.name)
    keyword = {key: each._core for key, each in given.items() if isinstance(each, Symbol)}
    attributes = {key: each for key, each in given.items() if key not in keyword}
    for key in [key for key in attributes if key in HIDDEN or (key.startswith("__") and key.endswith("__"))]:
        texts = {**texts, key: str(attributes.pop(key))}
    _check_attributes(op, name, attributes)
    positional = [x for x in arrays if isinstance(x, Symbol)]
    if len(positional) < len(arrays):
        attributes["operands"] = _template(op, arrays)
    from weft._symbol.naming import current_texts  # noqa: PLC0415

    noted = _spelled({**current_texts(), **texts})
    return Symbol(_call(op._entry, name, attributes, [x._core for x in positional], keyword, noted))


def _check_attributes(op: Op, name: str, attributes: dict[str, Any]) -> None:
    """Refuse keywords that belong to a variable, or to nothing."""
    known = op.attribute("attribute_names", None)
    for key, value in attributes.items():
        for hidden in HIDDEN:
            if key.endswith(f"_{hidden}"):
                owner = key[: -len(hidden) - 1]
                raise GraphError(
                    f"node {name!r}: {key!r} is no attribute of op {op.name!r}: say it of the variable, by "
                    f"{owner}=weft.symbol.Variable('{name}_{owner}', {hidden}={value!r})"
                )
        if known is not None and key not in known:
            names = (
                ", ".join(op.attribute("input_names", ()))
                if not callable(op.attribute("input_names", ()))
                else "its own"
            )
            raise GraphError(
                f"node {name!r}: op {op.name!r} has no attribute {key!r}: its attributes are "
                f"{', '.join(known) or 'none'}, its inputs {names or 'any number of arrays'}"
            )


def _missing(op: Op, function: Callable[..., Any], count: int, given: dict[str, Any]) -> list[str]:
    """Return the inputs that a function must have and that it was not given: they become variables."""
    inputs = op.attribute("input_names", ())
    rest = list(signature(function).parameters.values())[count:]
    wanted = [each.name for each in rest if each.default is each.empty and each.name not in given]
    return [] if callable(inputs) else [each for each in wanted if each in inputs]


def function_of(op: Op, function: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return what `weft.symbol` has under the name of an op: by NumPy's arguments where weft has a function of it."""

    def compose(*arrays: Any, name: str | None = None, attr: dict[str, str] | None = None, **given: Any) -> Any:  # noqa: ANN401
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
                    return function(*arrays, **given)
        result = compose_op(op, arrays, name, texts, given)
        return result if op.nout == 1 else tuple(result)

    compose.__name__ = compose.__qualname__ = op.name
    compose.__doc__ = op.docstring or getattr(function, "__doc__", None) or f"Compose a call of the op {op.name!r}."
    return compose
