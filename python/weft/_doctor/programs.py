"""Calls of programs in a check run: op by op, or replayed, and then looked at.

Op by op, the core looks at the results of each op; a replay takes a part of that time. So the first calls of each program run op by op,
those of doubling numbers, and as many more as there is time for. Others are replayed; their results, and the memory that they write to, are
looked at. If one of these is not finite, that memory is set back, and the function runs once more op by op. Then the memory is set to the
replay's values again, by whatever way that run ended: the script sees the replay alone.

Programs with callables and native functions run op by op: these are checked one by one. So do calls in ops, calls beside other threads of the
script's, calls that the tape listens to, and those with arrays on devices or with donated arguments.
"""

from __future__ import annotations

import time
import weakref
from math import inf
from typing import TYPE_CHECKING, Any

from weft._core import NDArray, _are_finite, _keep, _put_back, _watch_drain
from weft._program.trees import leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._core import Compiled
    from weft._doctor.budget import Budget
    from weft._doctor.finite import FirstNaNs
    from weft._program.function import ProgramFunction
    from weft._program.program import Program

#: Calls of each program that run op by op at any price, and calls for each program that is recorded.
_FIRST = 8
#: Functions and programs that are told apart.
_MOST = 1024
#: Bytes of the memory that is kept for the time of a replay.
_KEPT = 1 << 26
#: The level of the stack on which the call is, from the recording of its program.
_CALLER = 5


class _Function:
    """The calls of one function."""

    __slots__ = ("calls", "is_plain", "recorded", "settings")

    def __init__(self, settings: object) -> None:
        self.settings = settings  # kept, so that no other one has its identity
        self.calls = self.recorded = 0
        #: Whether all of its calls run op by op.
        self.is_plain = False


class _Known:
    """The calls of one program. It keeps states of the program, and goes with it."""

    __slots__ = ("arguments", "calls", "is_replayed", "odd", "own", "program", "states")

    def __init__(self, program: weakref.ref[Program], compiled: Compiled, *, may_be_replayed: bool) -> None:
        self.program = program
        #: Calls, and those with results that are not finite.
        self.calls = self.odd = 0
        #: Seconds of its fastest replay.
        self.own = inf
        steps = compiled.describe()
        written = {(view["kind"], view["number"]) for step in steps for view in step["outputs"]}
        #: States that it writes to, and the numbers of such arguments.
        self.states = [state for number, state in enumerate(compiled.states) if ("state", number) in written]
        self.arguments = [number for kind, number in written if kind == "argument" and number is not None]
        self.is_replayed = may_be_replayed and not any(step["opaque"] for step in steps)

    def writes_to(self, function: ProgramFunction, args: Any, kwargs: Any) -> list[Any]:
        """Return the arrays that a call writes to."""
        if not self.arguments:
            return self.states
        leaves = function._leaves(function._bind(args, kwargs))
        return [*self.states, *(leaves[number] for number in self.arguments)]


class Programs:
    """Decides how each call of a program runs.

    Parameters
    ----------
    budget : Budget
        The time that checks may take.
    nans : FirstNaNs
        The ops that made the first values that are not finite.
    looks : bool
        Whether such values are looked for.
    drain, is_alone, pushes : callable
        Waits for all that was pushed, and returns whether it has ended; returns whether no thread of the script's runs but this one;
        returns the number of callables and native functions that were pushed.
    """

    def __init__(
        self,
        budget: Budget,
        nans: FirstNaNs,
        drain: Callable[[], bool],
        is_alone: Callable[[], bool],
        pushes: Callable[[], int],
        *,
        looks: bool,
    ) -> None:
        self._budget, self._nans, self._looks = budget, nans, looks
        self._drain, self._is_alone, self._pushes = drain, is_alone, pushes
        self._functions: dict[int, _Function] = {}
        self._known: dict[int, _Known] = {}
        #: How many calls run op by op: in them, all do.
        self._inside = 0
        #: Calls that were replayed, and those of them with values that no second run has looked for.
        self.replayed = self.untold = 0

    def call(self, function: ProgramFunction, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Run a call of a program."""
        if self._inside or not self._is_alone():
            return function._eagerly(args, kwargs)
        asked = time.perf_counter()
        called = self._functions.get(id(function._settings)) or self._function(function._settings)
        if called is None or called.is_plain:
            return self._plainly(function, args, kwargs)
        called.calls += 1
        program = self._program(called, function, args, kwargs)
        known = None if program is None else self._known.get(id(program)) or self._of(program, function)
        if program is None or known is None:
            pushes = self._pushes()
            result = self._op_by_op(function, args, kwargs, asked, 0.0)
            called.is_plain |= self._pushes() != pushes
            return result
        if not known.is_replayed:
            return self._plainly(function, args, kwargs)
        known.calls += 1
        if self._looks and self._is_due(known.calls, asked):
            return self._op_by_op(function, args, kwargs, asked, known.own if known.own < inf else 0.0)
        return self._replay(known, function, args, kwargs, asked)

    def _function(self, settings: object) -> _Function | None:
        if len(self._functions) >= _MOST:
            return None
        called = self._functions[id(settings)] = _Function(settings)
        return called

    def _program(self, called: _Function, function: ProgramFunction, args: Any, kwargs: Any) -> Program | None:
        """Return the program of a call, if there is one, or it is worth to record it."""
        lower = False
        try:
            program: Program | None = function._program_of(args, kwargs)
            lower = program is None and called.calls > _FIRST * (called.recorded + 1)
            if not lower or function._shares_a_leaf(function._bind(args, kwargs)):  # of these the call itself decides
                return program
            program = function._program_of(args, kwargs, _CALLER)
        except Exception:  # noqa: BLE001 - arguments that it refuses, a function that cannot be recorded: the call says so
            called.is_plain = lower
            return None
        called.recorded += 1
        return program

    def _of(self, program: Program, function: ProgramFunction) -> _Known | None:
        if len(self._known) >= _MOST:
            return None
        key, known = id(program), self._known
        reference = weakref.ref(program, lambda _: known.pop(key, None))
        may_be_replayed = not (program._heard or function._settings.options.donate)
        found = known[key] = _Known(reference, program._compiled, may_be_replayed=may_be_replayed)
        return found

    def _is_due(self, count: int, now: float) -> bool:
        return count <= _FIRST or not count & (count - 1) or self._budget.allows_program(now)

    def _plainly(self, function: ProgramFunction, args: Any, kwargs: Any) -> Any:
        """Run it op by op. Calls inside run so, too."""
        self._inside += 1
        try:
            return function._eagerly(args, kwargs)
        finally:
            self._inside -= 1

    def _op_by_op(self, function: ProgramFunction, args: Any, kwargs: Any, asked: float, own: float) -> Any:
        """Run it op by op, which is a check. A replay takes `own` seconds."""
        waits = self._budget.begin()
        self._drain()
        own += self._budget.work_in(time.perf_counter() - waits)  # of ops that were pushed before
        self._budget.look(self._nans.keep())
        pushes = self._pushes()
        try:
            return self._plainly(function, args, kwargs)
        finally:
            ended = self._drain()
            self._nans.keep()
            if ended and self._pushes() == pushes:  # which are accounted for one by one
                self._budget.end(time.perf_counter() - asked, own)

    def _replay(self, known: _Known, function: ProgramFunction, args: Any, kwargs: Any, asked: float) -> Any:
        """Replay it, and look at its results."""
        if not self._looks:
            return function._as_program(args, kwargs)
        written = known.writes_to(function, args, kwargs)
        kept = self._kept(known, written)
        if kept is None:
            return self._plainly(function, args, kwargs)
        begun = time.perf_counter()
        result = function._as_program(args, kwargs)
        taken = time.perf_counter() - begun
        results = [result] if isinstance(result, NDArray) else _arrays_of(result)
        are_finite = _are_finite([*results, *written])
        if are_finite is None:
            self._drain()
            taken = time.perf_counter() - begun
            are_finite = _are_finite([*results, *written])
        known.own = min(known.own, taken)
        self.replayed += 1
        self._budget.replayed(asked, known.own)  # no more is known to be the script's: checks take the caches
        if are_finite:
            return result
        known.odd += 1
        if are_finite is not None and self._is_due(known.odd, begun):
            self._again(function, args, kwargs, written, kept)
        else:
            self.untold += 1
        return result

    def _kept(self, known: _Known, written: list[Any]) -> bytes | None:
        """Return the elements of arrays that a call writes to; None if they cannot be kept, now or ever."""
        if not written:
            return b""
        if known.arguments and not all(isinstance(array, NDArray) for array in written):
            known.is_replayed = False
            return None
        kept = _keep(written, _KEPT)
        if kept is None:
            ended = self._drain()
            kept = _keep(written, _KEPT)
            known.is_replayed &= kept is not None or not ended
        return kept

    def _again(self, function: ProgramFunction, args: Any, kwargs: Any, written: list[NDArray], before: bytes) -> None:
        """Run a call that was replayed once more, op by op, on the memory as it was. Set the replay's values again."""
        left = _keep(written, _KEPT)
        if left is None:
            self.untold += 1
            return
        self._budget.look(self._nans.keep())
        begun = self._budget.begin()
        try:
            _put_back(written, before)
            self._plainly(function, args, kwargs)
        except Exception:  # noqa: BLE001 - the script has had its result
            self.untold += 1
        finally:
            try:
                _watch_drain(None)  # that run's ops alone are pending
            finally:
                _put_back(written, left)
                self._nans.keep()
                self._budget.end(time.perf_counter() - begun, 0.0)


def _arrays_of(result: Any) -> list[Any]:
    return [leaf for leaf in leaves_of(result) if isinstance(leaf, NDArray)]
