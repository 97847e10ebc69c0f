"""Keys of symbols: ``x[1:, None, i]`` is a node, for any shape of `x`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import NDArray
from weft._graph.composing import compose, constant
from weft._registry.op import get_op
from weft._registry.shapes import is_index
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentIndexError, ArgumentTypeError

if TYPE_CHECKING:
    from weft._graph.symbols import Symbol


def indexed(x: Symbol, key: Any) -> Symbol:
    """Return the elements of a symbol of one output that a key names, as of an array.

    Parameters
    ----------
    x : Symbol
        The indexed symbol.
    key : slice, None, Ellipsis, Symbol, list of int, or a tuple of those and integers
        The key. Symbols and lists hold positions, not truth values: how many of these are true is not known.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.indexing import indexed
    >>> x = weft.symbol.Variable("x")
    >>> indexed(x, (slice(1, None), None)).eval(x=[1.0, 2.0, 3.0])
    [NDArray([[2.],
             [3.]])]
    """
    parts: tuple[Any, ...] = key  # if it is one
    entries: list[Any] = list(parts) if isinstance(key, tuple) else [key]
    if not any(each is Ellipsis for each in entries):
        entries.append(Ellipsis)
    arrays: list[Any] = []
    spec: list[Any] = []
    for each in entries:
        entry: Any = each
        if each is None or each is Ellipsis:
            spec.append(each)
        elif isinstance(each, slice):
            spec.append(_ends(entry))
        elif is_symbol(each) or isinstance(each, NDArray | np.ndarray | list):
            arrays.append(_positions(each))
            spec.append("array")
        else:
            spec.append(_integer(each))
    return cast("Symbol", compose(get_op("getitem"), (x, *arrays), {"key": tuple(spec)}))


def _positions(given: Any) -> Any:
    if is_symbol(given) or isinstance(given, NDArray):
        return given
    found = np.asarray(given)
    if found.size == 0:
        found = found.astype(np.intp)
    if found.dtype.kind == "b" and found.ndim == 1:
        found = np.flatnonzero(found)
    if found.dtype.kind not in "iu":
        raise ArgumentIndexError(f"a symbol is indexed by positions, and not by an array of dtype {found.dtype}")
    return constant(found)


def _ends(entry: Any) -> tuple[int | None, ...]:
    return tuple(None if end is None else operator.index(end) for end in (entry.start, entry.stop, entry.step))


def _integer(given: Any) -> int:
    if isinstance(given, bool | np.bool_) or not is_index(given):
        raise ArgumentTypeError(
            "an output of a symbol is chosen by an index or by a name, and elements by slices, integers, lists of them, None, "
            f"... and tuples of those: not by {given!r}"
        )
    return operator.index(given)
