"""Ops that are computed by calls of others: on arrays they call these, on symbols they compose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._core import SymbolCore
from weft._graph.composing import spelled
from weft._graph.naming import current_texts, next_name
from weft._graph.symbols import Symbol
from weft._registry.op import Op
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def make_node(
    op: Op, name: str, attributes: dict[str, Any], inputs: Sequence[Symbol], texts: dict[str, Any] | None
) -> list[Symbol]:
    """Return the results of a new node.

    Examples
    --------
    >>> import weft
    >>> from weft._graph.composite import make_node
    >>> make_node(weft.ops.get_op("exp"), "e", {}, [weft.symbol.Variable("x")], None)
    [<Symbol e>]
    """
    noted = spelled({**current_texts(), **(texts or {})})
    return list(Symbol(SymbolCore.call(op._entry, name, attributes, [x._core for x in inputs], None, noted)))


class Composite(Op):
    """An op that is computed by others."""

    __slots__ = ()

    def __call__(self, *arrays: Any, out: Any = None, **attributes: Any) -> Any:
        """Compute, or compose."""
        if any(map(is_symbol, arrays)):
            inputs = [x for x in arrays if is_symbol(x)]
            if len(inputs) < len(arrays):
                raise GraphError(f"{self.name}() of symbols takes symbols alone")
            name, texts = next_name(self.name)
            return tuple(make_node(self, name, attributes, inputs, texts))
        if out is not None:
            raise ArgumentTypeError(f"{self.name}() has no out=: its results are new arrays")
        return self.compute["cpu"](*arrays, **attributes)


def register(name: str, run: Callable[..., Any], infer: Callable[..., Any], **attributes: Any) -> Composite:
    """Return a new op of the registry that is computed by `run`, on arrays, which returns a tuple of arrays."""
    op = Composite(name, infer, run, nout=2)  # any other than one: results come as a tuple
    op._entry.register([], op.level, op)
    for key, value in attributes.items():
        op.set_attribute(key, value)
    op.set_attribute("view", op)
    return op
