"""Functions that run for many examples at once: their views of arrays, and the calls of `weft.vmap` that are open.

Each open call is a *level*. Inside of it a mapped array is an `Examples`: it has the shape of one example, and holds
all of them, along a first axis of their own. Its value may be an `Examples` of an outer level.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from weft._core import NDArray
from weft._registry.symbol_hook import Symbolic

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence


class Level:
    """One open call of `weft.vmap`.

    Parameters
    ----------
    name : str
        The function's name.
    size : int
        The number of examples.
    depth : int
        How many levels are around it.
    spread : callable
        Returns an array that is the same for all examples with their axis in front: ``spread(x, size)``.
    show : callable
        Makes the function's view: ``show(level, value)``.
    """

    __slots__ = ("_show", "_spread", "depth", "name", "open", "size")

    def __init__(
        self,
        name: str,
        size: int,
        depth: int,
        spread: Callable[[Any, int], Any],
        show: Callable[[Level, Any], Examples],
    ) -> None:
        self.name, self.size, self.depth = name, size, depth
        self.open = True
        self._spread, self._show = spread, show

    def show(self, value: Any) -> Examples:
        """Return the function's view of an array with the examples along its first axis."""
        return self._show(self, value)

    def value_of(self, x: Any) -> Any:
        """Return an array with the examples of this level along its first axis."""
        return x.value if isinstance(x, Examples) and x.level is self else self._spread(x, self.size)


class Examples(Symbolic):
    """The base of a function's view of an array under `weft.vmap`: `value` has the examples along its first axis."""

    __slots__ = ("level", "value")

    level: Level
    value: Any


def is_array(x: object) -> bool:
    """Return whether `x` is an array, or a view of one under `weft.vmap`."""
    return isinstance(x, NDArray | Examples)


def is_examples(x: object) -> bool:
    """Return whether `x` is a view of an array under `weft.vmap`."""
    return isinstance(x, Examples)


def innermost(operands: tuple[Any, ...]) -> Level:
    """Return the innermost level of some operands."""
    return max((x.level for x in operands if isinstance(x, Examples)), key=lambda level: level.depth)


#: The levels around the running code, the outermost first.
LEVELS: ContextVar[tuple[Level, ...]] = ContextVar("weft.vmap.levels", default=())


@contextmanager
def inside(levels: tuple[Level, ...]) -> Generator[None]:
    """Let these be the levels around a block."""
    token = LEVELS.set(levels)
    try:
        yield
    finally:
        LEVELS.reset(token)


def held(x: Any) -> Any:
    """Return the array that lies below all levels."""
    while isinstance(x, Examples):
        x = x.value
    return x


def raised(x: Any, levels: Sequence[Level]) -> Any:
    """Return an array with the axes of all levels in front, below them: that of the outermost is the first.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.levels import raised
    >>> raised(weft.ones(2), ())
    NDArray([1., 1.])
    """
    if not levels:
        return x
    return raised(levels[-1].value_of(x), levels[:-1])


def shown(x: Any, levels: Sequence[Level]) -> Any:
    """Return the innermost function's view of an array with the axes of all levels in front.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.levels import shown
    >>> shown(weft.ones(2), ())
    NDArray([1., 1.])
    """
    for level in levels:
        x = level.show(x)
    return x


def within(x: Any, change: Callable[[Any], Any]) -> Any:
    """Return an array with the one that lies below all levels changed.

    Examples
    --------
    >>> import weft
    >>> from weft._registry.levels import within
    >>> within(weft.ones(2), weft.negative)
    NDArray([-1., -1.])
    """
    return x.level.show(within(x.value, change)) if isinstance(x, Examples) else change(x)
