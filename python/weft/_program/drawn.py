"""Random numbers that weft does not draw: a recording would repeat them for ever. Generators' states before it and after."""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft._program.names import Name

__all__ = ["Generators"]


class Generators:
    """The generators that a process shares, and those that a function refers to, as they are now.

    Parameters
    ----------
    names : iterable of Name
        What the function reads elsewhere.

    Examples
    --------
    >>> import random
    >>> from weft._program.drawn import Generators
    >>> generators = Generators(())
    >>> _ = random.random()
    >>> generators.drawn()
    ('random',)
    """

    def __init__(self, names: Iterable[Name]) -> None:
        self._states: dict[str, Callable[[], object]] = {"random": random.getstate}
        module: Any = sys.modules.get("numpy.random")
        if module is not None:
            self._states["numpy.random"] = partial(module.get_state, legacy=False)
            for name in names:
                value: Any = name.value()
                if _is_a(value, module.Generator):
                    self._states[name.text] = partial(getattr, value.bit_generator, "state")
                elif _is_a(value, module.RandomState):
                    self._states[name.text] = partial(value.get_state, legacy=False)
                elif _is_a(value, random.Random):
                    self._states[name.text] = value.getstate
        self._before = self._now()

    def _now(self) -> dict[str, object]:
        return {name: _comparable(state()) for name, state in self._states.items()}

    def drawn(self) -> tuple[str, ...]:
        """Return the names of those that have drawn numbers since."""
        now = self._now()
        return tuple(name for name, state in self._before.items() if now[name] != state)


def _is_a(value: object, kind: Any) -> bool:  # noqa: ANN401 - a class
    return isinstance(value, kind)


def _comparable(state: Any) -> object:  # noqa: ANN401 - numbers, arrays and dicts of them
    """Return a state as what `==` compares."""
    if isinstance(state, np.ndarray):
        return state.tobytes()
    items = getattr(state, "items", None)
    return state if items is None else {key: _comparable(value) for key, value in items()}
