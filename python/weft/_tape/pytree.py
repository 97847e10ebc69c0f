"""Nested arguments: lists, tuples, dicts and dataclasses of arrays, taken apart and put together again."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the leaves of a structure, and what makes one like it of as many others. None has no leaves.

    Examples
    --------
    >>> from weft._tape.pytree import flatten
    >>> leaves, build = flatten({"w": [1, 2], "b": (3, None)})
    >>> leaves, build([10, 20, 30])
    ([1, 2, 3], {'w': [10, 20], 'b': (30, None)})
    """
    leaves: list[Any] = []
    make = _take_apart(tree, leaves)

    def build(found: list[Any]) -> Any:
        return make(iter(found))

    return leaves, build


def _take_apart(tree: Any, leaves: list[Any]) -> Callable[..., Any]:
    if tree is None:
        return _nothing
    if _is_a(tree, dict):
        parts = {key: _take_apart(value, leaves) for key, value in tree.items()}
        return partial(_build, lambda found: dict(zip(parts, found, strict=True)), list(parts.values()))
    if _is_a(tree, tuple | list):
        make: Any = getattr(tree, "_make", tree.__class__)  # of a named tuple
        return partial(_build, make, [_take_apart(value, leaves) for value in tree])
    if is_dataclass(tree) and not isinstance(tree, type):
        names = [field.name for field in fields(tree) if field.init]
        return partial(
            _build,
            lambda found: replace(tree, **dict(zip(names, found, strict=True))),
            [_take_apart(getattr(tree, name), leaves) for name in names],
        )
    leaves.append(tree)
    return next


def _is_a(tree: object, kind: Any) -> bool:
    return isinstance(tree, kind)


def _nothing(_: Iterator[Any]) -> None:
    return None


def _build(make: Callable[[list[Any]], Any], parts: list[Callable[..., Any]], rest: Iterator[Any]) -> Any:
    return make([part(rest) for part in parts])


def several(answer: Any) -> tuple[Any, ...]:
    """Return a tuple, or a list, as a tuple, and anything else as the one item of one."""
    return (*answer,) if answer.__class__ in (tuple, list) else (answer,)


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a structure of what `function` gives for each leaf.

    Examples
    --------
    >>> from weft._tape.pytree import map_arrays
    >>> map_arrays(lambda x: -x, [1, (2, None)])
    [-1, (-2, None)]
    """
    leaves, build = flatten(tree)
    return build([function(leaf) for leaf in leaves])
