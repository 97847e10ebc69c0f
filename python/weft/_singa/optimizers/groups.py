"""Groups of parameters, each with an optimizer of its own."""

from __future__ import annotations

import weakref
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NoReturn

from weft._singa.optimizers.base import Optimizer
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weft._core import NDArray


class ParamGroups(Optimizer):
    """Several optimizers as one: each parameter goes to the first with a pattern that its name matches.

    So a rate, a weight decay or the whole rule is that of a group: biases and scales without decay, say, or a network taken over
    that learns slower than new parts.

    Parameters
    ----------
    groups : dict of str to Optimizer
        Optimizers by the patterns of names, as those of files: ``"*.b"``, ``"backbone.*"``, ``"*"`` for the rest.

    Attributes
    ----------
    groups : dict of str to Optimizer
        As given: ``optimizer.groups["*"].lr = 0.01`` takes effect at the next step.

    Examples
    --------
    >>> import weft
    >>> from weft import layer, opt
    >>> net = layer.Sequential(layer.Linear(3), layer.LayerNorm(), layer.Linear(1))
    >>> optimizer = opt.ParamGroups({"0.*": opt.SGD(0.01), "*.b": opt.AdamW(weight_decay=0), "*": opt.AdamW()})
    >>> _ = net(weft.ones((2, 4)))
    >>> optimizer.prepare(net.get_params())
    >>> [optimizer.group_of(name) for name in net.get_params()]
    ['0.*', '0.*', '*', '*', '*', '*.b']
    """

    def __init__(self, groups: Mapping[str, Optimizer]) -> None:
        if not hasattr(groups, "items") or not groups:
            raise ArgumentTypeError('ParamGroups takes a dict of optimizers by patterns: {"*.b": opt.SGD(0.1), ...}')
        for pattern, optimizer in groups.items():
            given: object = optimizer
            if not isinstance(given, Optimizer) or isinstance(given, ParamGroups):
                raise ArgumentTypeError(f"ParamGroups: {pattern!r} has no optimizer, but {optimizer!r}")
        if len({id(each) for each in groups.values()}) != len(groups):
            raise ArgumentValueError(
                "ParamGroups: each group has an optimizer of its own, as steps are counted by each"
            )
        self.groups: dict[str, Optimizer] = dict(groups)
        self.slots = tuple(f"{pattern} {slot}" for pattern, each in groups.items() for slot in each.slots)
        super().__init__(0.0)

    def group_of(self, param_name: str) -> str:
        """Return the pattern that the name of a parameter matches first."""
        for pattern in self.groups:
            if fnmatchcase(param_name, pattern):
                return pattern
        raise ArgumentValueError(
            f"ParamGroups: {param_name!r} matches none of {', '.join(map(repr, self.groups))}: a last pattern '*' takes the rest"
        )

    def prepare(self, parameters: Mapping[str, NDArray]) -> None:
        """Give parameters their names, and make their states."""
        parts: dict[str, dict[str, NDArray]] = {pattern: {} for pattern in self.groups}
        for name, parameter in parameters.items():
            parts[self.group_of(name)][name] = parameter
            self._names[id(parameter)] = weakref.ref(parameter), name
        for pattern, part in parts.items():
            self.groups[pattern].prepare(part)

    def apply(self, param_name: str, param_value: NDArray, param_grad: NDArray) -> None:
        """Apply a gradient to a parameter, by the optimizer of its group."""
        self.groups[self.group_of(param_name)].apply(param_name, param_value, param_grad)

    def step(self) -> None:
        """Count a step, here and in all groups."""
        super().step()
        for optimizer in self.groups.values():
            optimizer.step()

    @property
    def lr(self) -> NoReturn:
        """Each group has a rate of its own: AttributeError."""
        raise AttributeError('each group has a rate of its own: optimizer.groups["*"].lr')

    @lr.setter
    def lr(self, value: object) -> None:
        raise AttributeError(f'each group has a rate of its own: optimizer.groups["*"].lr = {value!r}')

    def arrays(self) -> list[NDArray]:
        """Return all arrays that a step changes, parameters apart: here and in all groups."""
        return [*super().arrays(), *(array for optimizer in self.groups.values() for array in optimizer.arrays())]

    def get_states(self) -> dict[str, Any]:
        """Return the states for a file: the number of steps, and slots named by group."""
        states: dict[str, Any] = {"step_counter": float(self.step_counter.item())}
        for pattern, optimizer in self.groups.items():
            own = optimizer.get_states()
            states |= {f"{pattern} {slot}": own[slot] for slot in optimizer.slots if slot in own}
        return states

    def check_states(self, states: Mapping[str, Any]) -> None:
        """Raise ArgumentValueError, or ShapeError, unless `set_states` would take over these states."""
        super().check_states(states)
        for pattern, optimizer in self.groups.items():
            optimizer.check_states(self._part(pattern, states))

    def set_states(self, states: Mapping[str, Any]) -> None:
        """Take over the result of `get_states`, in place; an error, and nothing changed, if it does not fit."""
        self.check_states(states)
        super().set_states({name: state for name, state in states.items() if name == "step_counter"})
        for pattern, optimizer in self.groups.items():
            optimizer.set_states(self._part(pattern, states))

    def _part(self, pattern: str, states: Mapping[str, Any]) -> dict[str, Any]:
        """Return the states of a group under the names of its optimizer."""
        own = {
            slot: states[f"{pattern} {slot}"] for slot in self.groups[pattern].slots if f"{pattern} {slot}" in states
        }
        return own | {name: state for name, state in states.items() if name == "step_counter"}
