"""Random numbers of other libraries, which a program would repeat: generators' states before and after a recording."""

from __future__ import annotations

import random
import sys
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from weft._program.guards import Name

_State: TypeAlias = "Callable[[], object]"

#: The place of the last of the 624 words in NumPy's Mersenne Twister, which change after a full round of draws. The
#: position follows it, and changes at each draw.
_LAST_WORD = 4 * 623


class Generators:
    """The generators shared by a process, and those that a function refers to, in their present states.

    Every recording checks the shared ones. NumPy's state takes as long to make as a small recording, so only two of its
    words are checked.

    Parameters
    ----------
    names : iterable of Name
        The function's outer names.

    Examples
    --------
    >>> import random
    >>> from weft._program.foreign_rng import Generators
    >>> generators = Generators(())
    >>> _ = random.random()
    >>> generators.drawn()
    ('random',)
    """

    def __init__(self, names: Iterable[Name]) -> None:
        module: Any = sys.modules.get("numpy.random")
        self._states = _shared(getattr(random.random, "__self__", None), module and module.get_bit_generator())
        for name in names:
            value: Any = name.value()
            state = _of_python(value) if isinstance(value, random.Random) else module and _of_numpy(value, module)
            if state:
                self._states = (*self._states, (name.text, state))
        self._before = [state() for _, state in self._states]

    def drawn(self) -> tuple[str, ...]:
        """Return the names of those that have been drawn from since, by any thread."""
        now = [state() for _, state in self._states]
        if now == self._before:
            return ()
        return tuple(
            name for (name, _), one, other in zip(self._states, now, self._before, strict=True) if one != other
        )


@lru_cache(maxsize=1)
def _shared(pythons: Any, numpys: Any) -> tuple[tuple[str, _State], ...]:
    """Return the generators of the process, `random`'s and `numpy.random`'s, by name: they hardly ever change."""
    found: list[tuple[str, _State]] = []
    if isinstance(pythons, random.Random):
        found.append(("random", _of_python(pythons)))
    if numpys is not None:
        found.append(("numpy.random", _of_bits(numpys, sys.modules["numpy.random"])))
    return tuple(found)


def _of_python(generator: random.Random) -> _State:
    """Return a function for the state of a Python generator; it returns None without one, as for the system's."""

    def state() -> object:
        try:
            return generator.getstate()
        except NotImplementedError:
            return None

    return state


class _Words:
    """Two 32-bit words in the state of a NumPy generator, which lives as long as arrays of them."""

    def __init__(self, address: int, generator: object) -> None:
        self.generator = generator
        self.__array_interface__ = {"version": 3, "data": (address, True), "shape": (2,), "typestr": "=u4"}


def _of_numpy(generator: Any, module: Any) -> _State | None:
    """Return a function for the state of a NumPy generator; None for other objects."""
    if isinstance(generator, module.Generator):
        return _of_bits(generator.bit_generator, module)
    return partial(_legacy, generator) if isinstance(generator, module.RandomState) else None


def _of_bits(generator: Any, module: Any) -> _State:
    """Return a function for the state of a bit source; it returns None for another library's without one."""
    if type(generator) is not module.MT19937:
        return lambda: _comparable(getattr(generator, "state", None))
    return np.asarray(_Words(generator.ctypes.state_address + _LAST_WORD, generator)).tobytes


def _legacy(generator: Any) -> object:
    return _comparable(generator.get_state(legacy=False))


def _comparable(state: Any) -> object:
    """Return a state in a form that `==` compares."""
    if isinstance(state, np.ndarray):
        return state.tobytes()
    items = getattr(state, "items", None)
    return state if items is None else {key: _comparable(value) for key, value in items()}
