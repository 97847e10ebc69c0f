"""Layers one behind the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from weft._singa.layers.base import Layer
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft._core import NDArray


class Sequential(Layer):
    """Layers and functions, each called with the result of the one before.

    Parameters
    ----------
    *parts : Layer or callable
        The functions to call, in this order. Parameters are named by the places of their layers: ``0.W``, ``2.W``.

    Examples
    --------
    >>> import weft
    >>> from weft import layer
    >>> net = layer.Sequential(layer.Linear(8), weft.tanh, layer.Linear(2))
    >>> net(weft.ones((3, 4))).shape
    (3, 2)
    >>> list(net.get_params()), len(net), net[2]
    (['0.W', '0.b', '2.W', '2.b'], 3, <Linear: W (8, 2), b (2,)>)
    """

    def __init__(self, *parts: Layer | Callable[..., Any]) -> None:
        super().__init__()
        self._parts: list[Layer | Callable[..., Any]] = []
        for part in parts:
            self.append(part)

    def append(self, part: Layer | Callable[..., Any]) -> None:
        """Put a layer or a function behind the others."""
        given: object = part
        if isinstance(given, type) or not callable(given):
            what = f"the class {given.__name__}: make one of it" if isinstance(given, type) else repr(part)
            raise ArgumentTypeError(f"Sequential takes layers and functions, and was given {what}")
        self._parts.append(part)

    def named(self) -> Iterator[tuple[str, Layer | NDArray]]:
        """Yield the layers with their places as names."""
        yield from ((str(at), part) for at, part in enumerate(self._parts) if isinstance(part, Layer))
        yield from ((name, value) for name, value in super().named() if not name.startswith("_parts."))

    def forward(self, *inputs: Any) -> Any:
        """Return the result of the last part."""
        parts = iter(self._parts)
        first = next(parts, None)
        if first is None:
            raise ArgumentTypeError("Sequential has no parts to call: append() takes some")
        found = first(*inputs)
        for part in parts:
            found = part(found)
        return found

    if TYPE_CHECKING:  # a call is `forward`

        def __call__(self, *inputs: Any) -> Any: ...

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self._parts)

    def __iter__(self) -> Iterator[Layer | Callable[..., Any]]:
        """Return an iterator over the parts."""
        return iter(self._parts)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> Sequential: ...
    def __getitem__(self, at: int | slice) -> Any:
        """Return a part; or, of a slice, the parts as another `Sequential`, which shares them."""
        return Sequential(*self._parts[at]) if isinstance(at, slice) else self._parts[at]
