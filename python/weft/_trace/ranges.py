"""NVTX ranges: NVIDIA's profilers show them beside the work of a device, while it happens.

A range has only the times of its calls, so none can be made from a record afterwards. A trace wraps the callables that
are pushed while it records instead. Native ops run no Python and get no ranges.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

    Wrap: TypeAlias = Callable[[Callable[..., object], str | None], Callable[..., object]]


def profiler_ranges() -> Wrap | None:
    """Return a function that wraps a callable, given with its name or None, in a range; None without ``nvtx``."""
    if find_spec("nvtx") is None:
        return None
    nvtx = import_module("nvtx")
    if not nvtx.enabled():
        return None
    domain = nvtx.get_domain("weft")

    def wrap(function: Callable[..., object], name: str | None) -> Callable[..., object]:
        label: str = getattr(function, "__qualname__", type(function).__qualname__) if name is None else name
        return _Ranged(function, label, domain, domain.get_event_attributes(message=label))

    return wrap


class _Ranged:
    """A callable that runs within a range."""

    def __init__(self, function: Callable[..., object], name: str, domain: Any, attributes: Any) -> None:
        self.__qualname__ = name  # the name in notes on errors
        self._function, self._domain, self._attributes = function, domain, attributes

    def __call__(self, *args: object) -> None:
        try:
            self._domain.push_range(self._attributes)  # inside, because interrupts may follow any call
            self._function(*args)
        finally:
            self._domain.pop_range()
