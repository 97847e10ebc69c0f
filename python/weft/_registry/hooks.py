"""Calls that go up: functions that an early room calls and a later one gives, when it is imported.

| hook | called by | given by |
|---|---|---|
| `compose` | calls of ops with a symbol among the operands | `weft._graph.composing` |
| `defer` | functions of weft's that know too little of a symbol | `weft._graph.deferred` |
| `index` | an array whose key has a symbol in it | `weft._graph.indexing` |
| `vjp` | gradients that are said by other functions | `weft._tape.transforms` |
| `scan_symbols`, `cond_symbols` | `weft.scan` and `weft.cond` of symbols | `weft._graph.control` |
| `apply_operator` | an operator of the user's on symbols | `weft._graph.own_operators` |
| `compose_examples`, `apply_to_examples` | the same under `weft.vmap` | `weft._batch.mapping` |
| `scan_examples`, `cond_examples` | `weft.scan` and `weft.cond` under `weft.vmap` | `weft._batch.mapping` |
| `graph_of_program` | `Program.graph` | `weft._graph.graphs` |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class Hook:
    """A function of a later room.

    Examples
    --------
    >>> from weft._registry.hooks import Hook
    >>> double = Hook()
    >>> double.set(lambda x: x * 2)
    >>> double(3)
    6
    """

    __slots__ = ("_function",)

    _function: Callable[..., Any]

    def set(self, function: Callable[..., Any]) -> None:
        """Give the function."""
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self._function(*args, **kwargs)


compose = Hook()
defer = Hook()
index = Hook()
vjp = Hook()
scan_symbols = Hook()
cond_symbols = Hook()
apply_operator = Hook()
compose_examples = Hook()
apply_to_examples = Hook()
scan_examples = Hook()
cond_examples = Hook()
graph_of_program = Hook()
