"""How much a kernel must compute to take a given time on this device."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST, _MOST = 64, 1 << 24
_REPS = 5


def steps_for(target_us: float, run: Callable[[int], float]) -> int:
    """Return the number of steps with which a kernel takes so long.

    Parameters
    ----------
    target_us : float
        The time, in microseconds.
    run : callable
        Runs the kernel with so many steps, and returns its microseconds.

    Examples
    --------
    >>> from weft.bench.gpu.tuning import steps_for
    >>> steps_for(100.0, lambda steps: 5.0 + steps / 50)
    4750
    """

    def fastest(steps: int) -> float:
        return min(run(steps) for _ in range(_REPS))

    few, short = _FIRST, fastest(_FIRST)
    many, long = few, short
    # So many that the time is that of the steps and not of the launch.
    while long < max(target_us, 2 * short) and many < _MOST:
        many *= 2
        long = fastest(many)
    slope = (long - short) / (many - few) if many > few else short / few
    return max(1, min(_MOST, round(few + (target_us - short) / slope)))
