"""The base of all optimizers: the walk over gradients, numbers that change, state by parameter, its names."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, recording
from weft._numpy import namespace
from weft._numpy.hints import refuse
from weft._program.unrecorded import outside
from weft._registry.brief import brief
from weft._singa.hints import INSTEAD_OF_OPTIMIZERS
from weft._singa.models.tensors import Tensor, dtype_of, write
from weft._singa.models.timing import place_outside
from weft._singa.optimizers.schedules import Constant, DecayScheduler, Range, as_schedule, computed
from weft._tape.api import backward
from weft._tape.modes import no_grad
from weft.errors import ArgumentTypeError, ArgumentValueError, GradientError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy.typing as npt


class Optimizer:
    """The base of all optimizers: it applies gradients to parameters, in place.

    Subclasses define `apply`. They name states of parameters in `slots`, and find them by `slot`; numbers that may be
    schedules they enter by `schedule`, and find by `value`. Both are arrays that are changed in place, so a recorded step
    goes on with their values.

    Parameters
    ----------
    lr : float or DecayScheduler
        The learning rate.
    dtype : dtype-like, default: float32
        The dtype of the numbers.

    Attributes
    ----------
    step_counter : NDArray
        The number of steps made, an array of one element.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> class SignDescent(opt.Optimizer):
    ...     def apply(self, param_name, param_value, param_grad):
    ...         with weft.autograd.no_grad():
    ...             param_value -= self.value("lr", param_value) * weft.sign(param_grad)
    >>> w = weft.asarray([1.0, -2.0])
    >>> w.requires_grad = True
    >>> SignDescent(0.5)((w * w).sum())
    >>> w
    NDArray([ 0.5, -1.5])
    """

    #: The states of each parameter, of its shape, zeros at first: SINGA's names of the dicts.
    slots: tuple[str, ...] = ()
    #: Whether the weight decay is added to gradients, and so goes into the states.
    _decays_gradients = True
    #: Whether steps of parameters in half precision, and their states, are in single: small squares are 0 in half.
    _widens = False

    def __init__(self, lr: float | DecayScheduler, dtype: npt.DTypeLike = np.float32) -> None:
        self.dtype = dtype_of(dtype)
        if self.dtype.kind != "f":
            raise ArgumentTypeError(f"the dtype of an optimizer's numbers is a floating-point one, not {self.dtype}")
        self.step_counter: NDArray = outside(lambda: Tensor((1,), dtype=np.float64, name="step_counter"))
        self._schedules: dict[str, DecayScheduler] = {}
        self._ranges: dict[str, Range] = {}
        self._values: dict[str, NDArray] = {}
        #: Numbers of 0 that a recorded step, or the choice of states, has left out.
        self._left_out: set[str] = set()
        self._names: dict[int, tuple[weakref.ref[NDArray], str]] = {}
        self._kept: dict[str, dict[str, NDArray]] = {slot: {} for slot in self.slots}
        #: Where in a user's program the walk back began, for the times that are shown.
        self.places: set[str] = set()
        self.schedule("lr", lr)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy, or a pickle, takes over: its names are those of the parameters that are copied with it."""
        known = ((kept(), name) for kept, name in self._names.values())
        return {**self.__dict__, "_names": [(parameter, name) for parameter, name in known if parameter is not None]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._names = {id(parameter): (weakref.ref(parameter), name) for parameter, name in state["_names"]}

    # Numbers that may change.

    def schedule(
        self, name: str, value: float | DecayScheduler, least: float | None = 0.0, below: float | None = None
    ) -> None:
        """Enter a number, or set it anew, under a name; programs that were recorded see the new one.

        Parameters
        ----------
        name : str
            The name for `value`.
        value : float or DecayScheduler
            A finite number, or the rule for it at each step.
        least, below : float, optional
            Its least value, and a bound that it must stay below: those of the first entry hold for good.

        Raises
        ------
        ArgumentValueError
            If the number was 0, and steps were recorded, or states made, that leave it out.
        """
        among = self._ranges.setdefault(name, Range(least, below))
        found = as_schedule(f"{type(self).__name__}: {name}", value, among)
        if name in self._left_out and _plays(found):
            raise ArgumentValueError(
                f"{type(self).__name__}: {name} was 0, and steps leave it out: make an optimizer with another number, or with a schedule "
                "that begins at 0"
            )
        self._schedules[name] = found
        now = outside(lambda: self._computed(found))
        if name in self._values:
            write(self._values[name], now, 0)
        else:
            self._values[name] = now

    def value(self, name: str, like: NDArray) -> NDArray:
        """Return the value of a number now, in the dtype and on the device of a parameter."""
        found = self._values[name]
        if found.dtype != like.dtype:
            found = found.astype(like.dtype)
        return found if found.device == like.device else NDArray.to_device(found, like.device)

    def plays(self, name: str) -> bool:
        """Return whether a number plays a part: unless it is 0, and stays that."""
        found = _plays(self._schedules[name])
        if not found and recording() is not None:
            self._left_out.add(name)
        return found

    def _computed(self, schedule: DecayScheduler) -> NDArray:
        with no_grad():
            return computed(schedule, self.step_counter, self.dtype)

    @property
    def lr(self) -> DecayScheduler:
        """The learning rate's schedule; a number or a schedule may be assigned."""
        return self._schedules["lr"]

    @lr.setter
    def lr(self, value: float | DecayScheduler) -> None:
        self.schedule("lr", value)

    @property
    def lr_value(self) -> NDArray:
        """The learning rate now, an array of one element."""
        return self._values["lr"]

    # Parameters.

    def prepare(self, parameters: Mapping[str, NDArray]) -> None:
        """Give parameters their names, and make their states."""
        for name, parameter in parameters.items():
            known = self._names.get(id(parameter))
            if known is not None and known[0]() is parameter and known[1] != name:
                for kept in self._kept.values():  # the states under its name of before
                    if known[1] in kept:
                        kept[name] = kept.pop(known[1])
            self._names[id(parameter)] = weakref.ref(parameter), name
            for slot in self.slots:
                self.slot(slot, name, parameter)

    def name_of(self, parameter: NDArray) -> str:
        """Return the name of a parameter: that which it was given, its own, or a number."""
        known = self._names.get(id(parameter))
        if known is not None and known[0]() is parameter:
            return known[1]
        name = getattr(parameter, "name", None) or f"parameter{len(self._names)}"
        self._names[id(parameter)] = weakref.ref(parameter), name
        return name

    def slot(self, slot: str, param_name: str, param_value: NDArray) -> NDArray:
        """Return a state of a parameter; the first call makes it."""
        kept = self._kept[slot]
        found = kept.get(param_name)
        if found is None:
            made = outside(lambda: namespace.zeros_like(param_value, self._wide(param_value.dtype)))
            found = kept[param_name] = made
        elif found.shape != param_value.shape:
            raise ShapeError(
                f"{type(self).__name__}: {slot} of {param_name!r} has the shape {found.shape}, and the parameter now has "
                f"{param_value.shape}: use one optimizer for each model"
            )
        return found

    # Steps.

    def device_check(self, *inputs: NDArray) -> None:
        """Raise unless all inputs are on the device of the first."""
        for x in inputs[1:]:
            if x.device != inputs[0].device:
                raise ArgumentValueError(f"{type(self).__name__}: arrays on {inputs[0].device} and on {x.device}")

    def __call__(self, loss: NDArray) -> None:
        """Compute the gradients of a loss, apply them, and count the step."""
        self.call(loss)
        self.step()

    def call(self, loss: NDArray) -> None:
        """Compute the gradients of a loss, and apply each as soon as it is there: the last layer's first."""
        self.places.add(place_outside())
        count = 0
        for parameter, gradient in backward(loss):
            self.apply(self.name_of(parameter), parameter, gradient)
            count += 1
        if not count:
            raise GradientError(
                "there is nothing to update: the loss was computed from arrays that require gradients, but store none. A parameter is "
                "made by weft.tensor.Tensor(shape, stores_grad=True), or p.stores_grad = True"
            )

    def backward_and_update(self, loss: NDArray) -> None:
        """Compute the gradients of a loss, apply them, and count the step; the same as a call."""
        self(loss)

    def update(self, param: NDArray, grad: NDArray) -> None:
        """Apply a gradient to a parameter, by `apply`."""
        self.apply(self.name_of(param), param, grad)

    def apply_gradients(self, gradients: Mapping[NDArray, NDArray] | Iterable[tuple[NDArray, NDArray]]) -> None:
        """Apply gradients that were computed before, and count the step.

        Parameters
        ----------
        gradients : dict of NDArray to NDArray, or iterable of pairs
            Parameters and their gradients, as from `weft.autograd.gradients`, `clip_grad_norm` or `GradientSum.take`.

        Examples
        --------
        >>> import weft
        >>> from weft import autograd, opt
        >>> w = weft.asarray([3.0, 4.0])
        >>> w.requires_grad = True
        >>> gradients, norm = opt.clip_grad_norm(autograd.gradients((w * w).sum()), 1.0)
        >>> opt.SGD(1.0).apply_gradients(gradients)
        >>> w.round(2), norm
        (NDArray([2.4, 3.2]), NDArray(10.))
        """
        for parameter, gradient in pairs_of("apply_gradients", gradients):
            self.update(parameter, gradient)
        self.step()

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, in place.

        Parameters
        ----------
        param_name : str
            The parameter's name, that of its states, too.
        param_value : NDArray
            The parameter.
        param_grad : NDArray
            The gradient, of the same shape.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no apply()")

    def step(self) -> None:
        """Count a step, and let all numbers follow their schedules."""
        with no_grad():
            self.step_counter += 1
        for name, schedule in self._schedules.items():
            if type(schedule) is not Constant:
                write(self._values[name], self._computed(schedule), 0)

    def _decayed(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> NDArray:
        """Return a gradient with the weight decay, in the dtype of the step; ShapeError if it is none of the parameter."""
        if param_value.shape != param_grad.shape:
            raise ShapeError(
                f"{type(self).__name__}: the gradient of {param_name!r} has the shape {param_grad.shape}, and the "
                f"parameter {param_value.shape}"
            )
        dtype = self._wide(param_value.dtype)
        gradient = param_grad if param_grad.dtype == dtype else param_grad.astype(dtype)
        if self._decays_gradients and self.plays("weight_decay"):
            return gradient + self.value("weight_decay", gradient) * param_value
        return gradient

    def _wide(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return the dtype of the steps of a parameter."""
        return np.dtype(np.float32) if self._widens and dtype.itemsize < 4 else dtype  # half precision

    # States in files.

    def get_states(self) -> dict[str, Any]:
        """Return the states for a file: ``step_counter``, a number, and for each slot a dict of arrays by parameter."""
        states: dict[str, Any] = {"step_counter": float(self.step_counter.item())}
        return states | {slot: dict(kept) for slot, kept in self._kept.items() if kept}

    def arrays(self) -> list[NDArray]:
        """Return all arrays that a step changes, parameters apart."""
        kept = [array for slot in self._kept.values() for array in slot.values()]
        return [*kept, self.step_counter, *self._values.values()]

    def check_states(self, states: Mapping[str, Any]) -> None:
        """Raise ArgumentValueError, or ShapeError, unless `set_states` would take over these states."""
        unknown = sorted(set(states) - {"step_counter", *self.slots})
        if unknown:
            raise ArgumentValueError(
                f"{type(self).__name__} keeps {_listed(['step_counter', *self.slots])}, and was given {_listed(unknown)}: these "
                "are another optimizer's states"
            )
        for slot in self.slots:
            for name, array in states.get(slot, {}).items():
                known = self._kept[slot].get(name)
                if known is not None and known.shape != tuple(array.shape):
                    raise ShapeError(
                        f"{type(self).__name__}: {slot} of {name!r} has the shape {known.shape}, and was given {array.shape}"
                    )

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Take over the result of `get_states`, in place; an error, and nothing changed, if it does not fit."""
        self.check_states(states)
        if "step_counter" in states:
            write(self.step_counter, namespace.full_like(self.step_counter, float(states["step_counter"])), 0)
        for slot in self.slots:
            for name, array in states.get(slot, {}).items():
                known = self._kept[slot].get(name)
                if known is None:
                    self._kept[slot][name] = namespace.asarray(array, copy=True)
                else:
                    write(known, namespace.asarray(array), 0)
        for name, schedule in self._schedules.items():
            write(self._values[name], self._computed(schedule), 0)


refuse(Optimizer, INSTEAD_OF_OPTIMIZERS)


def _plays(schedule: DecayScheduler) -> bool:
    """Return whether a number is another one than 0, at some step."""
    return type(schedule) is not Constant or schedule.init_value != 0


def pairs_of(
    name: str, gradients: Mapping[NDArray, NDArray] | Iterable[tuple[NDArray, NDArray]]
) -> list[tuple[NDArray, NDArray]]:
    """Return parameters and gradients as pairs; ArgumentTypeError, with the name of the caller, if they are none."""
    given: Any = gradients
    found: list[Any] = list(given.items() if hasattr(given, "items") else given)
    for each in found:
        if not _is_pair(each):
            raise ArgumentTypeError(
                f"{name} takes pairs of parameters and gradients, such as autograd.gradients(loss), and was given {brief(each)}"
            )
    return found


def _is_pair(x: Any) -> bool:
    if not isinstance(x, tuple):
        return False
    parts: list[Any] = list(x)  # pyright: ignore[reportUnknownArgumentType] # items of any type
    return [isinstance(each, NDArray) for each in parts] == [True, True]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
