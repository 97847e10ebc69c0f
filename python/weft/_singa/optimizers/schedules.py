"""Numbers that change from step to step: learning rates, momentum, decay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from weft._core import NDArray
from weft._numpy import namespace
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Range:
    """The numbers that something may be: finite ones.

    Attributes
    ----------
    least : float, optional
        The least of them.
    below : float, optional
        A bound that they stay below.
    """

    least: float | None = 0.0
    below: float | None = None

    def check(self, name: str, value: object) -> float:
        """Return the number that a value is; an error with the argument's name, if it is none of these."""
        number = as_number(name, value, "a number or an opt.DecayScheduler")
        fits = math.isfinite(number)
        fits = fits and (self.least is None or number >= self.least) and (self.below is None or number < self.below)
        if not fits:
            raise ArgumentValueError(f"{name} is {self}, not {value}")
        return number

    def __str__(self) -> str:
        """Return the range of the numbers, in words."""
        least = "" if self.least is None else f"at least {self.least:g}"
        below = "" if self.below is None else f"below {self.below:g}"
        return " and ".join(filter(None, (least, below))) or "a finite number"


def as_number(name: str, value: object, wanted: str = "a number") -> float:
    """Return the number that a value is, Python's or NumPy's; ArgumentTypeError, with the name, if it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentTypeError(f"{name} is {wanted}, not {type(value).__name__}")
    return float(value)


def as_size(name: str, value: object, least: int = 0) -> float:
    """Return a number of elements; an error with its name if it is none, or below `least`.

    Examples
    --------
    >>> from weft._singa.optimizers.schedules import as_size
    >>> as_size("threshold", 2e6)
    2000000.0
    """
    number = as_number(name, value, "a number of elements")
    if not number >= least:
        raise ArgumentValueError(f"{name} is a number of elements, at least {least}, not {value}")
    return number


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
        self.init_value = Range(None).check("init_value", as_number("init_value", init_value))

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
        return namespace.full_like(step, self.init_value)


class ExponentialDecay(DecayScheduler):
    """A number that is multiplied by `decay_rate` over each `decay_steps` steps.

    Parameters
    ----------
    init_value : float
        The number at the beginning.
    decay_steps : int
        Over how many steps it is multiplied once.
    decay_rate : float
        The factor.
    staircase : bool, default: False
        Whether it changes after each `decay_steps` steps alone.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> opt.ExponentialDecay(0.1, 10, 0.5)(weft.asarray([20.0]))
    NDArray([0.025])
    """

    def __init__(self, init_value: float, decay_steps: float, decay_rate: float, staircase: bool = False) -> None:
        super().__init__(init_value)
        steps = as_number("decay_steps", decay_steps)
        if not (math.isfinite(steps) and steps > 0):
            raise ArgumentValueError(f"decay_steps is a positive number of steps, not {decay_steps}")
        rate = Range().check("decay_rate", as_number("decay_rate", decay_rate))
        self.decay_steps, self.decay_rate, self.staircase = steps, rate, bool(staircase)

    def call(self, step: NDArray) -> NDArray:
        """Return the number."""
        times = step // self.decay_steps if self.staircase else step / self.decay_steps
        return self.init_value * namespace.power(namespace.full_like(times, self.decay_rate), times)


def as_schedule(name: str, value: float | DecayScheduler, among: Range) -> DecayScheduler:
    """Return a number as a schedule; an error if it is neither, or if it begins with none of the numbers it may be."""
    if isinstance(value, DecayScheduler):
        among.check(f"{name}, which begins with init_value,", getattr(value, "init_value", 0.0))
        return value
    return Constant(among.check(name, value))


def computed(schedule: DecayScheduler, step: NDArray, dtype: npt.DTypeLike) -> NDArray:
    """Return the value of a schedule after so many steps; an error if it answers anything but an array of one element."""
    found = schedule(step)
    name = type(schedule).__name__
    if not isinstance(found, NDArray):
        raise ArgumentTypeError(
            f"{name}.call() returns an array, computed from the array that it is given, not {type(found).__name__}: a number "
            "would stay as it was when a program was recorded"
        )
    if found.size != 1:
        raise ShapeError(f"{name}.call() returns an array of one element, not of shape {found.shape}")
    return found.astype(dtype).reshape(step.shape)
