"""Schedules of learning rates in common use: steps, half a cosine, warm-up, one cycle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from weft._numpy import namespace
from weft._singa.elementwise import chosen
from weft._singa.optimizers.schedules import DecayScheduler, Range, as_number, as_schedule
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from weft._core import NDArray


def _positive(name: str, value: object, noun: str = "number") -> float:
    number = as_number(name, value)
    if not (math.isfinite(number) and number > 0):
        raise ArgumentValueError(f"{name} is a positive {noun}, not {value}")
    return number


def _steps(name: str, value: object) -> float:
    return _positive(name, value, "number of steps")


def _cosine(start: float, end: float, share: NDArray) -> NDArray:
    """Return numbers between a start and an end, along half a cosine."""
    return end + (start - end) * (1 + namespace.cos(math.pi * share)) / 2


class StepDecay(DecayScheduler):
    """A number that is multiplied by `gamma` after each `step_size` steps, or at given steps.

    Parameters
    ----------
    init_value : float
        The number at the beginning.
    step_size : int or sequence of int
        After how many steps it is multiplied, again and again; or the steps after which it is, each once.
    gamma : float, default: 0.1
        The factor.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> opt.StepDecay(1.0, 30, 0.5)(weft.asarray([60.0])), opt.StepDecay(1.0, [30, 80], 0.5)(weft.asarray([60.0]))
    (NDArray([0.25]), NDArray([0.5]))
    """

    def __init__(self, init_value: float, step_size: float | Sequence[float], gamma: float = 0.1) -> None:
        super().__init__(init_value)
        self._again = not isinstance(step_size, Sequence)
        given = step_size if isinstance(step_size, Sequence) else [step_size]
        self.steps = [_steps("step_size", each) for each in given]
        self.gamma = Range().check("gamma", as_number("gamma", gamma))

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        if self._again:
            times = step // self.steps[0]
        else:
            times = namespace.zeros_like(step)
            for at in self.steps:
                times = times + (step >= at)
        return self.init_value * namespace.power(namespace.full_like(times, self.gamma), times)


class CosineDecay(DecayScheduler):
    """A number that falls to `end_value` along half a cosine, and stays there.

    ``end + (init - end) * (1 + cos(pi * step / decay_steps)) / 2``.

    Parameters
    ----------
    init_value : float
        The number at the beginning.
    decay_steps : int
        After how many steps it arrives.
    end_value : float, default: 0
        Where.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> rate = opt.CosineDecay(1.0, 100)
    >>> [round(rate(weft.asarray([float(step)])).item(), 3) for step in (0, 25, 50, 100, 200)]
    [1.0, 0.854, 0.5, 0.0, 0.0]
    """

    def __init__(self, init_value: float, decay_steps: float, end_value: float = 0.0) -> None:
        super().__init__(init_value)
        self.decay_steps = _steps("decay_steps", decay_steps)
        self.end_value = Range(None).check("end_value", as_number("end_value", end_value))

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        share = namespace.minimum(step / self.decay_steps, 1.0)
        return _cosine(self.init_value, self.end_value, share)


class WarmUp(DecayScheduler):
    """A number that rises on a straight line from `start_value` to that of another schedule, which begins then.

    Parameters
    ----------
    after : float or DecayScheduler
        The schedule after that, counted from its own step 0.
    warmup_steps : int
        Over how many steps it rises.
    start_value : float, default: 0
        The number at the beginning.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> rate = opt.WarmUp(opt.CosineDecay(1.0, 100), 10)
    >>> [rate(weft.asarray([float(step)])).item() for step in (0, 5, 10, 60)]
    [0.0, 0.5, 1.0, 0.5]
    """

    def __init__(self, after: float | DecayScheduler, warmup_steps: float, start_value: float = 0.0) -> None:
        super().__init__(start_value)
        self.after = as_schedule("after", after, Range(None))
        self.warmup_steps = _steps("warmup_steps", warmup_steps)

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        slope = (self.after.init_value - self.init_value) / self.warmup_steps
        later = self.after(namespace.maximum(step - self.warmup_steps, 0.0))
        return chosen(step < self.warmup_steps, self.init_value + slope * step, later)


class OneCycle(DecayScheduler):
    """A number that rises to `max_value` and falls to almost nothing, each along half a cosine.

    Of L. N. Smith and N. Topin, "Super-Convergence" (2017), with PyTorch's arguments: it begins with ``max_value / div_factor``,
    is `max_value` at step ``pct_start * total_steps - 1``, and from step ``total_steps - 1`` on is the beginning divided by
    `final_div_factor`.

    Parameters
    ----------
    max_value : float
        The greatest number.
    total_steps : int
        How many steps there are.
    pct_start : float, default: 0.3
        The share of them with a rising rate.
    div_factor, final_div_factor : float, default: 25, 10000
        As above.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> rate = opt.OneCycle(1.0, 10)
    >>> [round(rate(weft.asarray([float(step)])).item(), 3) for step in (0, 2, 9)]
    [0.04, 1.0, 0.0]
    """

    def __init__(
        self,
        max_value: float,
        total_steps: float,
        pct_start: float = 0.3,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
    ) -> None:
        divisors = [
            _positive(name, value)
            for name, value in (("div_factor", div_factor), ("final_div_factor", final_div_factor))
        ]
        self.max_value = Range().check("max_value", as_number("max_value", max_value))
        super().__init__(self.max_value / divisors[0])
        self.end_value = self.init_value / divisors[1]
        self.total_steps = _steps("total_steps", total_steps)
        share = as_number("pct_start", pct_start)
        if not 0 <= share <= 1:
            raise ArgumentValueError(f"pct_start is a share of the steps, from 0 to 1, not {pct_start}")
        self._top, self._last = share * self.total_steps - 1, self.total_steps - 1

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        fall = namespace.clip((step - self._top) / max(self._last - self._top, 1e-9), 0.0, 1.0)
        falling = _cosine(self.max_value, self.end_value, fall)
        if self._top <= 0:
            return falling
        rising = _cosine(self.init_value, self.max_value, step / self._top)
        return chosen(step <= self._top, rising, falling)
