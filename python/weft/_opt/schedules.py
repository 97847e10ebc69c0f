"""Numbers that change from step to step: learning rates, momentum, decay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._core import NDArray

__all__ = ["Constant", "DecayScheduler", "ExponentialDecay", "as_schedule"]


class DecayScheduler:
    """A number as a function of how many steps were made; subclasses define `call`.

    Parameters
    ----------
    init_value : float
        The number at the beginning.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> class Halving(opt.DecayScheduler):
    ...     def call(self, step):
    ...         return self.init_value * 0.5**step
    >>> Halving(8.0)(weft.asarray([2.0]))
    NDArray([2.])
    """

    def __init__(self, init_value: float) -> None:
        self.init_value = init_value

    def __call__(self, step: NDArray) -> NDArray:
        """Return the number after so many steps."""
        return self.call(step)

    def call(self, step: NDArray) -> NDArray:
        """Return the number, an array of one element, for an array of one element, the number of steps made."""
        raise NotImplementedError(f"{type(self).__name__} defines no call()")


class Constant(DecayScheduler):
    """The same number at every step.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> opt.Constant(0.5)(weft.asarray([7.0]))
    NDArray([0.5])
    """

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        return weft.full_like(step, self.init_value)


class ExponentialDecay(DecayScheduler):
    """A number that is multiplied by `decay_rate` over each `decay_steps` steps.

    Parameters
    ----------
    init_value : float
        The number at the beginning.
    decay_steps : int
        Over how many steps it is multiplied once.
    decay_rate : float
        By what.
    staircase : bool, default: False
        Whether it changes after each `decay_steps` steps alone.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> opt.ExponentialDecay(0.1, 10, 0.5)(weft.asarray([20.0]))
    NDArray([0.025])
    """

    def __init__(self, init_value: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> None:  # noqa: FBT001, FBT002 - SINGA's
        super().__init__(init_value)
        if decay_steps <= 0:
            raise ArgumentValueError(f"decay_steps is a positive number of steps, not {decay_steps}")
        self.decay_steps, self.decay_rate, self.staircase = decay_steps, decay_rate, staircase

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        times = step // self.decay_steps if self.staircase else step / self.decay_steps
        return self.init_value * weft.power(weft.full_like(times, self.decay_rate), times)


def as_schedule(name: str, value: float | DecayScheduler, least: float | None = None) -> DecayScheduler:
    """Return a number as a schedule; an error if it is neither, or below the least that it may be."""
    if isinstance(value, DecayScheduler):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ArgumentTypeError(f"{name} is a number or an opt.DecayScheduler, not {type(value).__name__}")
    if least is not None and not value >= least:
        raise ArgumentValueError(f"{name} is at least {least:g}, not {value}")
    return Constant(value)
