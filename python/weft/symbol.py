"""Symbols: computations that are composed first and run later.

Every op of the registry is a function here, by its name: ``weft.symbol.exp(x, name="e")``. An input that is not given
becomes a variable ``<node>_<input>``. weft's own functions take symbols as well: ``weft.exp(x)`` does the same.

>>> import weft
>>> x = weft.symbol.Variable("x", shape=(2, 3))
>>> y = weft.sum(weft.exp(x), axis=1)
>>> y.eval(x=weft.zeros((2, 3)))
[NDArray([3., 3.])]
"""

from __future__ import annotations

import sys
from operator import index as _index
from pathlib import Path
from types import FunctionType
from typing import Any

from weft._core import SymbolCore, format_value, graph_load_json
from weft._graph import (
    control as _control,
    deferred as _deferred,
    own_operators as _own_operators,
    pullback as _pullback,
)
from weft._graph.composing import function_named, function_of, spelled, split_notes
from weft._graph.executor import Executor
from weft._graph.naming import HIDDEN, AttrScope, NameManager, Prefix, current_texts, named
from weft._graph.symbols import Symbol
from weft._registry.op import get_op, list_ops
from weft.errors import ArgumentTypeError

__all__ = [
    "AttrScope",
    "Executor",
    "Group",
    "NameManager",
    "Prefix",
    "Symbol",
    "Variable",
    "create",
    "load",
    "load_json",
    "var",
]

del _control, _deferred, _own_operators, _pullback  # which have registered their ops


def Variable(  # noqa: N802 - its name in NNVM and MXNet
    name: str,
    shape: Any = None,
    dtype: Any = None,
    init: Any = None,
    *,
    attr: dict[str, str] | None = None,
    **attrs: Any,
) -> Symbol:
    """Return a variable: what is given when the symbol is bound or evaluated.

    Parameters
    ----------
    name : str
        Its name.
    shape : tuple of int, optional
        What is known of its shape; None stands for a length that is not.
    dtype : dtype-like, optional
        Its dtype.
    init : object, optional
        How it is initialised.
    attr : dict of str, optional
        Texts to note on it.
    **attrs
        ``lr_mult``, ``wd_mult``, ``ctx_group`` and the like, or keys that begin and end with two underscores.

    Raises
    ------
    ArgumentValueError
        If a keyword is none of those.

    Examples
    --------
    >>> import weft
    >>> weft.symbol.Variable("x", shape=(None, 3), dtype="float64").list_attr()
    {'__dtype__': 'float64', '__shape__': '(None, 3)'}
    """
    from weft._registry.op import as_dtype  # noqa: PLC0415 - as above
    from weft.errors import ArgumentTypeError, ArgumentValueError  # noqa: PLC0415 - for the mistaken

    if not isinstance(name, str):
        raise ArgumentTypeError(f"a variable's name is a text, and {name!r} was given")
    texts: dict[str, Any] = {**current_texts(), **(attr or {})}
    if shape is not None:
        texts["__shape__"] = format_value(_lengths(name, shape))
    if dtype is not None:
        texts["__dtype__"] = as_dtype(dtype).name
    if init is not None:
        texts["__init__"] = init if isinstance(init, str) else init.dumps() if hasattr(init, "dumps") else repr(init)
    for key, value in attrs.items():
        if key not in HIDDEN and not (key.startswith("__") and key.endswith("__")):
            raise ArgumentValueError(
                f"Variable({name!r}) has no argument {key!r}: to note a text write attr={{{key!r}: ...}}, or __{key}__="
            )
        texts[key] = value if isinstance(value, str) else format_value(value)
    spelled = {f"__{key}__" if key in HIDDEN else key: text for key, text in texts.items()}
    return Symbol(SymbolCore.variable(named(name, "variable"), spelled or None))


var = Variable


def Group(symbols: Any) -> Symbol:  # noqa: N802 - its name in NNVM and MXNet; symbols
    """Return a symbol of all outputs of several symbols.

    Examples
    --------
    >>> import weft
    >>> x = weft.symbol.Variable("x")
    >>> weft.symbol.Group([x + 1, x * 2]).eval(x=[1, 2])
    [NDArray([2, 3]), NDArray([2, 4])]
    """
    found = list(symbols)
    for each in found:
        if not isinstance(each, Symbol):
            raise ArgumentTypeError(f"a group is made of symbols, and {type(each).__name__} was given")
    return Symbol(SymbolCore.group([each._core for each in found]))


def create(
    op_name: str,
    name: str | None = None,
    *,
    attr: dict[str, str] | None = None,
    **attributes: Any,
) -> Symbol:
    """Return a call of an op whose inputs come later, by calling the symbol.

    Parameters
    ----------
    op_name : str
        The op.
    name : str, optional
        The name of the node.
    attr : dict of str, optional
        Texts to note on the node.
    **attributes
        The attributes of the call; ``ctx_group`` and the like are noted on the node.

    Raises
    ------
    GraphError
        If there is no such op, or it has no such attribute.

    Examples
    --------
    >>> import weft
    >>> product = weft.symbol.create("matmul", name="product")
    >>> product(weft.symbol.Variable("x")).list_arguments()
    ['x', 'product_x2']
    """
    from weft.errors import GraphError  # noqa: PLC0415 - for the mistaken

    try:
        op = get_op(op_name)
    except KeyError:
        raise GraphError(f"no op is named {op_name!r}: weft.ops.list_ops() names them all") from None
    name = named(name, op.name)
    inputs = [key for key, each in attributes.items() if isinstance(each, Symbol)]
    if inputs:
        raise GraphError(
            f"node {name!r}: the inputs of op {op.name!r} come when the symbol is called, and {inputs[0]!r} is one: "
            f"weft.symbol.create({op_name!r}, ...)({inputs[0]}=...)"
        )
    own, noted = split_notes(op, name, attributes)
    texts = spelled({**current_texts(), **(attr or {}), **noted})
    return Symbol(SymbolCore.atom(op._entry, name, own, texts))


def load_json(text: str) -> Symbol:
    """Return the symbol that a text in NNVM's format describes.

    Raises
    ------
    GraphError
        If the text is damaged; the message names the node.

    Examples
    --------
    >>> import weft
    >>> weft.symbol.load_json((weft.symbol.Variable("x") + 1).tojson()).list_arguments()
    ['x']
    """
    return Symbol(graph_load_json(text).symbol())


def load(path: str | Path) -> Symbol:
    """Return the symbol in a file.

    Raises
    ------
    GraphError
        If the file is damaged; the message names the node.
    """
    data = Path(path).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        from weft.errors import GraphError  # noqa: PLC0415 - for the mistaken

        raise GraphError(f"{str(path)!r} is no graph: byte {error.start} of it is no UTF-8") from None
    return load_json(text)


class _Room:
    """The ops whose names begin alike, as `weft` has them in a module: ``weft.symbol.nn.conv``."""

    __slots__ = ("_prefix", "_room")

    def __init__(self, prefix: str, room: object) -> None:
        self._prefix, self._room = prefix, room

    def __getattr__(self, name: str) -> Any:
        return _found(f"{self._prefix}.{name}", getattr(self._room, name, None))

    def __dir__(self) -> list[str]:
        start = len(self._prefix) + 1
        return sorted({op[start:].partition(".")[0] for op in list_ops() if op.startswith(f"{self._prefix}.")})

    def __repr__(self) -> str:
        return f"<the ops of weft.symbol.{self._prefix}>"


def _lengths(name: str, shape: Any) -> tuple[int | None, ...]:
    from weft.errors import ArgumentTypeError, ArgumentValueError  # noqa: PLC0415 - for the mistaken

    said = (
        f"the shape of {name!r} is a tuple of lengths, in which None is one that is not known, and {shape!r} was given"
    )
    try:
        listed = (shape,) if isinstance(shape, int) else tuple(shape)
        lengths = tuple(None if each is None else _index(each) for each in listed)
    except TypeError:
        raise ArgumentTypeError(said) from None
    if any(each is not None and each < 0 for each in lengths):
        raise ArgumentValueError(said)
    return lengths


def _meant(name: str) -> str:
    """Return what to write instead of a name that is not known, if that is clear."""
    from difflib import get_close_matches  # noqa: PLC0415 - for the mistaken

    if name[0].isupper() and "weft.mxnet" not in sys.modules:
        return ": MXNet's ops are there after import weft.mxnet"
    near = get_close_matches(name, list_ops(), 1)
    return f": did you mean {near[0]!r}?" if near else ""


def _found(name: str, function: object) -> Any:
    try:
        op = get_op(name)
    except KeyError:
        if any(each.startswith(f"{name}.") for each in list_ops()):
            return _Room(name, function)
        if not isinstance(function, FunctionType) or not function.__module__.startswith(("weft._ops.", "weft._call.")):
            raise AttributeError(f"weft.symbol has no {name!r}, and no op is named so{_meant(name)}") from None
        return function_named(name, function)
    return function_of(op, function if callable(function) else None)


def __getattr__(name: str) -> Any:
    """Return the function that composes a call of the op of this name, or the ops whose names begin with it."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _found(name, getattr(sys.modules["weft"], name, None))


def __dir__() -> list[str]:
    """Return the names of this module, and those of all ops."""
    return sorted({*__all__, *(op.partition(".")[0] for op in list_ops())})
