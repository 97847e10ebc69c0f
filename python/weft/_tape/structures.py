"""Nested arguments: lists, tuples, dicts and dataclasses of arrays, taken apart and put together again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["flatten", "map_arrays"]


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:  # noqa: ANN401 - any structure
    """Return the leaves of a structure, and what makes one like it of as many others. None has no leaves.

    Examples
    --------
    >>> from weft._tape.structures import flatten
    >>> leaves, build = flatten({"w": [1, 2], "b": (3, None)})
    >>> leaves, build([10, 20, 30])
    ([1, 2, 3], {'w': [10, 20], 'b': (30, None)})
    """
    leaves: list[Any] = []
    make = _take_apart(tree, leaves)

    def build(found: list[Any]) -> Any:  # noqa: ANN401 - like the structure
        return make(iter(found))

    return leaves, build


def _take_apart(tree: Any, leaves: list[Any]) -> Callable[..., Any]:  # noqa: ANN401 - any structure
    kind: Any = type(tree)
    if tree is None:
        return lambda _: None
    if isinstance(tree, dict):
        parts = {key: _take_apart(value, leaves) for key, value in tree.items()}
        return lambda rest: {key: part(rest) for key, part in parts.items()}
    if isinstance(tree, tuple | list):
        items = [_take_apart(value, leaves) for value in tree]
        make = kind._make if hasattr(tree, "_make") else kind
        return lambda rest: make([item(rest) for item in items])
    if is_dataclass(tree) and not isinstance(tree, type):
        named = {field.name: _take_apart(getattr(tree, field.name), leaves) for field in fields(tree) if field.init}
        return lambda rest: replace(tree, **{name: part(rest) for name, part in named.items()})
    leaves.append(tree)
    return next


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:  # noqa: ANN401 - any structure
    """Return a structure of what `function` gives for each leaf.

    Examples
    --------
    >>> from weft._tape.structures import map_arrays
    >>> map_arrays(lambda x: -x, [1, (2, None)])
    [-1, (-2, None)]
    """
    leaves, build = flatten(tree)
    return build([function(leaf) for leaf in leaves])
