"""Symbols made: variables, groups, calls without their inputs, symbols in files."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Any

from weft._core import SymbolCore, format_value, graph_load_json
from weft._graph.composing import spelled, split_notes
from weft._graph.naming import HIDDEN, current_texts, named
from weft._graph.symbols import Symbol
from weft._registry.avals import as_dtype
from weft._registry.op import get_op
from weft.errors import ArgumentTypeError, ArgumentValueError, GraphError


def Variable(  # noqa: N802 - its name in NNVM and MXNet
    name: str,
    shape: Any = None,
    dtype: Any = None,
    init: Any = None,
    *,
    attr: dict[str, str] | None = None,
    **attrs: Any,
) -> Symbol:
    """Return a variable: a value that comes when the symbol is bound or evaluated.

    Parameters
    ----------
    name : str
        Its name.
    shape : tuple of int, optional
        Its shape, as far as known; None stands for an unknown length.
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


def create(op_name: str, name: str | None = None, *, attr: dict[str, str] | None = None, **attributes: Any) -> Symbol:
    """Return a call of an op without its inputs; a call of the symbol gives them.

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
        raise GraphError(f"{str(path)!r} is no graph: byte {error.start} of it is no UTF-8") from None
    return load_json(text)


def _lengths(name: str, shape: Any) -> tuple[int | None, ...]:
    said = f"the shape of {name!r} is a tuple of lengths, with None for an unknown one, and {shape!r} was given"
    try:
        listed = (shape,) if isinstance(shape, int) else tuple(shape)
        lengths = tuple(None if each is None else operator.index(each) for each in listed)
    except TypeError:
        raise ArgumentTypeError(said) from None
    if any(each is not None and each < 0 for each in lengths):
        raise ArgumentValueError(said)
    return lengths
