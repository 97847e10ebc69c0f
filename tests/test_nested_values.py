"""Values that contain themselves, or are nested deeply: wherever weft walks over them, Python's own error comes back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import _core

if TYPE_CHECKING:
    from collections.abc import Callable

DEEP = 200_000


@dataclasses.dataclass
class Node:
    """A tree whose leaves know their parents."""

    parent: Node | None = None
    children: list[Node] = dataclasses.field(default_factory=list)


def family() -> Node:
    root = Node()
    root.children.append(Node(root))
    return root


def cyclic_list() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


def cyclic_dict() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["value"] = value
    return value


def deep_list() -> list[Any]:
    value: list[Any] = []
    for _ in range(DEEP):
        value = [value]
    return value


def deep_slice() -> slice:
    value = slice(None)
    for _ in range(DEEP):
        value = slice(value)
    return value


def deep_set() -> frozenset[Any]:
    value: frozenset[Any] = frozenset()
    for _ in range(1500):
        value = frozenset([value])
    return value


MADE: list[Callable[[], Any]] = [cyclic_list, cyclic_dict, deep_list, deep_slice, family]


@pytest.mark.parametrize("make", MADE)
def test_arguments_of_programs(make: Callable[[], Any]) -> None:
    program = weft.program(lambda _x, y: y + 1.0)
    with pytest.raises(RecursionError):
        program(make(), weft.ones(2))
    assert program([1, [2]], weft.ones(2)).tolist() == [2.0, 2.0]


def test_static_arguments_of_programs() -> None:
    program = weft.program(lambda _x, y: y + 1.0, static_argnames="_x")
    with pytest.raises(RecursionError):
        program(_x=deep_set(), y=weft.ones(2))


@pytest.mark.parametrize("make", [cyclic_list, deep_list, deep_slice])
def test_attributes_of_symbols(make: Callable[[], Any]) -> None:
    with pytest.raises(RecursionError):
        weft.symbol.Variable("x", attr={"a": make()})
    with pytest.raises(RecursionError):
        _core.format_value(make())


@pytest.mark.parametrize("kind", [np.longdouble, np.clongdouble])
def test_numbers_that_python_has_no_type_for(kind: Callable[[int], Any]) -> None:
    x = weft.symbol.Variable("x")
    for made in (x + kind(2), kind(2) * x, x ** kind(2), weft.symbol.Variable("y", attr={"a": kind(2)})):
        assert isinstance(made, weft.symbol.Symbol)
    assert "2" in _core.format_value(kind(2))


def test_tasks_in_tasks() -> None:
    dask = pytest.importorskip("weft.distributed.dask")
    nested: Any = 1
    for _ in range(5000):
        nested = (abs, nested)
    with pytest.raises(RecursionError):
        dask.get({"a": nested}, "a")
    assert dask.get({"a": (abs, (abs, -1))}, "a") == 1
