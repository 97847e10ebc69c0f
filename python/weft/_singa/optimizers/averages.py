"""Averages of parameters over steps."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from weft._core import NDArray
from weft._numpy import namespace
from weft._program.unrecorded import outside
from weft._singa.models.tensors import write
from weft._tape.modes import no_grad
from weft.errors import ArgumentTypeError, ArgumentValueError, ModelError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping


class EMA:
    """Running averages of a model's parameters: ``average = decay * average + (1 - decay) * parameter`` at each `update`.

    Parameters
    ----------
    parameters : Layer, or dict of str to NDArray
        The parameters to average: a compiled model, or some of its ``get_params()``. Averages begin as the parameters are.
    decay : float, default: 0.999
        How much of them is kept.

    Attributes
    ----------
    averages : dict of str to NDArray
        The averages by name: ``net.save_states(path, ema.averages)`` saves them with the model.

    Examples
    --------
    >>> import weft
    >>> from weft import opt
    >>> w = weft.asarray([0.0])
    >>> ema = opt.EMA({"w": w}, decay=0.5)
    >>> w += 1
    >>> ema.update()
    >>> with ema.applied():
    ...     print(w)
    [0.5]
    >>> w
    NDArray([1.])
    """

    def __init__(self, parameters: Any, decay: float = 0.999) -> None:
        if not 0 <= decay <= 1:
            raise ArgumentValueError(f"EMA: decay is between 0 and 1, not {decay}")
        found = parameters.get_params() if hasattr(parameters, "get_params") else parameters
        if not hasattr(found, "items") or not all(isinstance(each, NDArray) for each in found.values()):
            raise ArgumentTypeError(f"EMA takes a model or its get_params(), not {type(parameters).__name__}")
        if not found:
            raise ModelError("EMA: there are no parameters yet: compile the model first")
        self.decay = decay
        self._parameters: dict[str, NDArray] = dict(found)
        with no_grad():
            self.averages: dict[str, NDArray] = outside(
                lambda: {name: each.copy() for name, each in self._parameters.items()}
            )

    def update(self) -> None:
        """Let the averages follow the parameters, in place; in a recorded step, too."""
        with no_grad():
            for name, parameter in self._parameters.items():
                average = self.averages[name]  # by one op, which a failed parameter fails: see `Model.recover`
                namespace.add(average * self.decay, (1 - self.decay) * parameter, out=average)

    @contextlib.contextmanager
    def applied(self) -> Generator[None]:
        """Let the parameters be the averages in a block, as for an evaluation, and their own values again after it."""
        with no_grad():
            kept = {name: each.copy() for name, each in self._parameters.items()}
        self._write(self.averages)
        try:
            yield
        finally:
            self._write(kept)

    def set_states(self, averages: Mapping[str, Any]) -> None:
        """Overwrite averages by name, as those of a file: ``ema.set_states(net.load_states(path))``."""
        unknown = sorted(set(averages) ^ set(self.averages))
        if unknown:
            raise ArgumentValueError(f"EMA: averages of {', '.join(map(repr, unknown))} are here or there alone")
        for name, value in averages.items():
            write(self.averages[name], namespace.asarray(value), 0)

    def _arrays(self) -> list[NDArray]:
        """Return all arrays that an update changes."""
        return list(self.averages.values())

    def _write(self, values: Mapping[str, NDArray]) -> None:
        for name, value in values.items():
            write(self._parameters[name], value, 0)
