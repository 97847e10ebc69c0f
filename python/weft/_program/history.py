"""The reasons for recordings, and the argument that makes too many programs."""

from __future__ import annotations

import warnings
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._engine import observers
from weft.errors import RecordingWarning

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

#: This many programs that differ in one argument alone are too many.
_MANY = 8
#: Recorded calls that a new one is compared with.
_REMEMBERED = 64


@dataclass(frozen=True, slots=True)
class Call:
    """The parts of a call that make it a program of its own.

    Parameters
    ----------
    parts : mapping
        By the name of an argument or an outer name: the value to compare, and its description.
    """

    parts: Mapping[str, tuple[Hashable, str]]

    def differences(self, other: Call) -> list[str]:
        """Return the names that differ between two calls."""
        names = dict.fromkeys((*self.parts, *other.parts))
        return [name for name in names if self._key(name) != other._key(name)]

    def _key(self, name: str) -> Hashable:
        part = self.parts.get(name)
        return None if part is None else part[0]

    def shown(self, name: str) -> str:
        """Return a part in words."""
        return self.parts[name][1] if name in self.parts else "not read"


class History:
    """The recorded calls of a function, which several threads may record at the same time.

    It has no lock, since to compare keys runs code of their classes. So data that other threads may change is copied
    first.

    Parameters
    ----------
    name : str
        The function's.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: deque[Call] = deque(maxlen=_REMEMBERED)
        self._variants: dict[tuple[str, int], set[int]] = {}
        self._warned: set[str] = set()
        self._why = f"{name} has not been recorded"

    def why(self) -> str:
        """Return the reason for the last recording."""
        return self._why

    def clear(self) -> None:
        """Forget the calls, because their programs are forgotten."""
        self._calls.clear()
        self._variants.clear()
        self._why = f"{self._name} was cleared, and has not been recorded since"

    def enter(self, call: Call, values: Mapping[str, Any], stacklevel: int, evicted: int) -> None:
        """Note a recording, and warn if one argument alone has made many.

        Parameters
        ----------
        call : Call
            The recorded call.
        values : mapping
            The arguments by name.
        stacklevel : int
            For the warning: the calling frame, counted from this one.
        evicted : int
            The number of programs that the function may keep.
        """
        self._why = self._reason(call, evicted)
        self._calls.append(call)
        if observers.recorded is not None:
            observers.recorded(self._name, self.why)
        for name in call.parts:
            rest = hash(tuple((other, part[0]) for other, part in call.parts.items() if other != name))
            variants = self._variants.setdefault((name, rest), set())
            variants.add(hash(call.parts[name][0]))
            if len(variants) >= _MANY and name not in self._warned:
                self._warned.add(name)
                advice = _advice(name, values.get(name), is_argument=name in values)
                message = f"{self._name}: {name} alone has made {len(variants)} programs, the last for {call.shown(name)}: {advice}"
                warnings.warn(message, RecordingWarning, stacklevel=stacklevel)
        while len(self._variants) > _REMEMBERED * _MANY:
            self._variants.pop(next(iter(self._variants.copy()), ("", 0)), None)

    def warn_of_draws(self, generators: tuple[str, ...], stacklevel: int) -> None:
        """Warn of draws in a recording from generators that replays do not draw from; parameters as for `enter`."""
        message = (
            f"{self._name}: numbers were drawn from {' and '.join(generators)} while it was recorded, by it or by another thread. "
            "Those that it drew are the same at every call: draw from weft.random.default_rng(seed), made outside of it, or pass "
            "the numbers as an array"
        )
        warnings.warn(message, RecordingWarning, stacklevel=stacklevel)

    def _reason(self, call: Call, evicted: int) -> str:
        calls = self._calls.copy()
        if not calls:
            return f"{self._name} was called for the first time"
        nearest = min(reversed(calls), key=lambda other: len(call.differences(other)))
        names = call.differences(nearest)
        if not names:
            return (
                f"{self._name}: such a call was recorded before, and its program is no longer kept "
                f"(max_programs={evicted}), or a state whose value was read while recording has changed"
            )
        changes = "; ".join(f"{name} was {nearest.shown(name)}, and is {call.shown(name)}" for name in names)
        same = [name for name in names if call.shown(name) == nearest.shown(name)]
        note = f" ({', '.join(same)}: another object)" if same else ""
        return f"{self._name}: {changes}{note}"


def _advice(name: str, value: object, *, is_argument: bool) -> str:
    """Return advice on a better argument."""
    if not is_argument:
        return f"each new value of {name} is recorded anew; keep it in an array that the function reads or mutates in place"
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return f"pass an array, whose value is no part of a program: weft.asarray({name}, dtype=x.dtype), x being what it meets"
    if hasattr(value, "shape"):
        return "each shape is recorded anew; pad it to one of a few, or raise max_programs if that many are meant"
    return "each value is recorded anew; pass what varies as arrays"
