"""One call of a model: as it is, or as a program; timed, if that was asked for."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from weft._core import NDArray, Scope
from weft._engine.default import get_engine
from weft._program.decorator import program
from weft._singa.models.deferred import deferred_of
from weft._singa.models.timing import Times
from weft._tape import modes

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._program.function import ProgramFunction
    from weft._singa.models.labels import Bounds

#: The models with a method that runs in this context: their calls of other methods are plain Python.
_running: ContextVar[tuple[int, ...]] = ContextVar("weft.model.running", default=())


def is_running(model: object) -> bool:
    """Return whether a method of a model is running in this context."""
    return id(model) in _running.get()


def in_mode(model: object, *, training: bool) -> Scope:
    """Let layers train, or not, in the block; the tape listens if they do."""
    running = (*_running.get(), id(model))
    return Scope((modes.TRAINING, training), (modes.LISTENING, training), (_running, running))


class Runs:
    """The programs of a model, and the times of its calls.

    Attributes
    ----------
    functions : dict of (str, bool) to ProgramFunction
        By the kind of the call, and whether op by op.
    times : dict of str to Times
        By the kind of the call.
    bounds : dict of (str, int or str, tuple of int) to int
        How many classes there are for labels in a place, of a shape, by the kind of the call.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self.functions: dict[tuple[str, bool], ProgramFunction] = {}
        self.times: dict[str, Times] = {}
        self.bounds: Bounds = {}

    def function(self, model: object, kind: str, method: Callable[..., Any], *, sequential: bool) -> ProgramFunction:
        """Return a method of a model as a program."""
        found = self.functions.get((kind, sequential))
        if found is None:
            # Activations are kept until the walk back in any order, so towers overlap in a small arena as well; in an
            # evaluation nothing is kept, and the smallest arena would run them one after the other.
            whole = program(method, sequential=sequential, memory="min" if kind == "training" else "balanced")
            found = self.functions[kind, sequential] = whole.__get__(model, type(model))
        return found

    def timed(self, kind: str, run: Callable[[], Any], given: tuple[Any, ...], places: set[str]) -> Any:
        """Return the results of `run`; its ops are timed if the device of the first array was told so."""
        x = next((each for each in given if isinstance(each, NDArray)), None)
        device = None if x is None else x.device
        deferred = deferred_of("cpu" if device is None else device.kind, 0 if device is None else device.index)
        if not deferred.verbosity:
            return run()
        title = f"{self._title}, {kind}"
        times = self.times.get(kind)
        if times is None:
            times = self.times[kind] = Times(deferred.skipped)
            times.places = places if kind == "training" else set()
        deferred.times[title] = times
        return times.measure(run, get_engine() if x is None else x.engine)

    def profile(self) -> str:
        """Return the times of the program that was used last, replayed on copies of nothing: its states are put back."""
        for kind in ("training", "evaluation"):
            found = [
                step for (each, _), function in self.functions.items() if each == kind for step in function.programs
            ]
            if found:
                last = found[-1]
                kept = [state.copy() for state in last.states]
                try:
                    return f"{kind}: {last.profile()}"
                finally:
                    with modes.no_grad():
                        for state, value in zip(last.states, kept, strict=True):
                            state[...] = value
        return "nothing was timed: Device.SetVerbosity(1) before the iterations that are to be"
