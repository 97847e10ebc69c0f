"""Nested arguments: lists, tuples, dicts, named tuples and dataclasses, taken apart and put together again.

The tape also takes subclasses of these, and None as a structure without leaves, for optional parameters. Dataclasses
are rebuilt by calls of their class. Programs take containers `exact`: their core knows a structure by its class, and
all other values are leaves.
"""

from __future__ import annotations

from dataclasses import Field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def class_of(value: object) -> Any:
    """Return the class of a value.

    Examples
    --------
    >>> from weft._tape.pytree import class_of
    >>> class_of(1.5)
    <class 'float'>
    """
    return type(value)


def _is_a(value: object, kind: Any) -> bool:
    return isinstance(value, kind)


def is_named(kind: Any) -> bool:
    """Return whether a class is one of named tuples."""
    return tuple in kind.__mro__ and hasattr(kind, "_fields")


def fields_of(kind: Any, *, exact: bool = True) -> tuple[str, ...]:
    """Return the names of a dataclass's fields: all of them, or the arguments of its class."""
    listed: Callable[[Any], tuple[Field[Any], ...]] = fields
    return tuple(field.name for field in listed(kind) if exact or field.init)


def parts_of(value: Any, *, exact: bool = True) -> list[Any] | None:
    """Return the items of a container, in order; None if the value is not a container."""
    kind = class_of(value)
    if kind is list or kind is tuple or is_named(kind) or (not exact and _is_a(value, (list, tuple))):
        return list(value)
    if kind is dict or (not exact and _is_a(value, dict)):
        return list(value.values())
    if is_dataclass(kind):
        return [getattr(value, name) for name in fields_of(kind, exact=exact)]
    return [] if value is None and not exact else None


def rebuilt(value: Any, parts: list[Any], *, exact: bool = True) -> Any:
    """Return a container like `value` with these parts."""
    kind = class_of(value)
    if value is None:
        return None
    if is_named(kind):
        return kind._make(parts)
    if _is_a(value, dict):
        return dict(zip(value, parts, strict=True))
    if _is_a(value, (list, tuple)):
        return parts if kind is list else kind(parts)
    names = fields_of(kind, exact=exact)
    return of_fields(kind, names, *parts) if exact else replace(value, **dict(zip(names, parts, strict=True)))


def of_fields(kind: type[Any], names: tuple[str, ...], *parts: object) -> Any:
    """Return an instance with these fields, without running its class's constructor."""
    made = object.__new__(kind)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)
    return made


def walk(value: object, whole: type[Any] | None = None, *, exact: bool = True) -> Iterator[Any]:
    """Yield all values in `value` that are not containers, in order; a value of the class `whole` is not one."""
    parts = None if whole is not None and isinstance(value, whole) else parts_of(value, exact=exact)
    if parts is None:
        yield value
        return
    for part in parts:
        yield from walk(part, whole, exact=exact)


def unflattened(value: Any, leaves: Iterator[Any], whole: type[Any] | None = None, *, exact: bool = True) -> Any:
    """Return a structure like `value` with these leaves.

    Examples
    --------
    >>> from weft._tape.pytree import unflattened
    >>> unflattened((1, [2, {"a": 3}]), iter("xyz"))
    ('x', ['y', {'a': 'z'}])
    """
    parts = None if whole is not None and isinstance(value, whole) else parts_of(value, exact=exact)
    if parts is None:
        return next(leaves)
    return rebuilt(value, [unflattened(part, leaves, whole, exact=exact) for part in parts], exact=exact)


def flatten(tree: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """Return the leaves of a structure, and a function that makes one like it from new ones. None has no leaves.

    Examples
    --------
    >>> from weft._tape.pytree import flatten
    >>> leaves, build = flatten({"w": [1, 2], "b": (3, None)})
    >>> leaves, build([10, 20, 30])
    ([1, 2, 3], {'w': [10, 20], 'b': (30, None)})
    """
    return list(walk(tree, exact=False)), lambda found: unflattened(tree, iter(found), exact=False)


def several(answer: Any) -> tuple[Any, ...]:
    """Return a tuple, or a list, as a tuple, and anything else as the one item of one."""
    return (*answer,) if answer.__class__ in (tuple, list) else (answer,)


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Return a structure with the results of `function` for each leaf.

    Examples
    --------
    >>> from weft._tape.pytree import map_arrays
    >>> map_arrays(lambda x: -x, [1, (2, None)])
    [-1, (-2, None)]
    """
    leaves, build = flatten(tree)
    return build([function(leaf) for leaf in leaves])
