"""Calls of programs in a check run: op by op, or replayed, and then looked at.

Op by op, the core looks at the results of each op; a replay takes a part of that time. So the first calls of each program run op by op,
those of doubling numbers, and as many more as there is time for. Others are replayed, and all that they return and write is looked at. If
that is not finite, the memory that the replay has overwritten is set back, the function runs once more op by op, and the memory is as
the replay has left it, whatever that run does. So the script sees the replay alone.

Programs with callables and native functions run op by op: these are checked one by one. So do calls in ops, while other threads run,
from whose results the tape goes on, with arrays on devices, and where arguments are donated.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from weft._core import NDArray, _are_finite, _watch_drain
from weft._doctor.memory import host_of
from weft._program.trees import leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable

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
#: Seconds that it takes to ask whether ops pend.
_ASKED = 5e-6
#: The level of the stack on which the call is, from the recording of its program.
_CALLER = 5

#: Memory of arrays, and copies of it.
_Copies = list[tuple[Any, Any]]


class _Function:
    """The calls of one function."""

    __slots__ = ("calls", "is_plain", "recorded", "settings")

    def __init__(self, settings: object) -> None:
        self.settings = settings  # kept, so that no other one has its identity
        self.calls = self.recorded = 0
        #: Whether all of its calls run op by op.
        self.is_plain = False


class _Known:
    """The calls of one program."""

    __slots__ = ("arguments", "calls", "is_replayed", "odd", "own", "program", "states")

    def __init__(self, program: Program, *, donates: bool) -> None:
        self.program = weakref.ref(program)
        #: Calls, and those with results that are not finite.
        self.calls = self.odd = 0
        #: Seconds of its fastest replay.
        self.own = 0.0
        steps = program._compiled.describe()
        written = [view for step in steps for view in step["outputs"]]
        #: Numbers of the states and arguments that it writes to.
        self.states = sorted({view["number"] for view in written if view["kind"] == "state"})
        self.arguments = sorted({view["number"] for view in written if view["kind"] == "argument"})
        self.is_replayed = not (donates or program._heard or any(step["opaque"] for step in steps))

    def writes_to(self, function: ProgramFunction, program: Program, args: Any, kwargs: Any) -> list[Any]:
        """Return the arrays that a call writes to."""
        if not self.states and not self.arguments:
            return []
        states = program._compiled.states
        leaves = function._leaves(function._bind(args, kwargs)) if self.arguments else ()
        return [*(states[number] for number in self.states), *(leaves[number] for number in self.arguments)]


class _Asked(NamedTuple):
    """What the check run gives."""

    budget: Budget
    nans: FirstNaNs
    looks: bool
    #: Waits for all that was pushed; answers whether it has ended.
    drain: Callable[[], bool]
    #: Whether no thread of the script's runs but this one.
    is_alone: Callable[[], bool]
    #: How many callables and native functions were pushed.
    pushes: Callable[[], int]


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
        self._run = _Asked(budget, nans, looks, drain, is_alone, pushes)
        self._functions: dict[int, _Function] = {}
        self._known: dict[int, _Known] = {}
        self._inside = threading.local()
        #: Calls that were replayed, and those of them with values that no second run has looked for.
        self.replayed = self.untold = 0

    def call(self, function: ProgramFunction, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Run a call of a program."""
        if getattr(self._inside, "depth", 0):
            return function._eagerly(args, kwargs)
        asked = time.perf_counter()
        called = self._function(function._settings)
        if called is None or called.is_plain or not self._run.is_alone():
            return self._plainly(function, args, kwargs)
        called.calls += 1
        program = self._program(called, function, args, kwargs)
        known = None if program is None else self._of(program, donates=bool(function._settings.options.donate))
        if program is None or known is None:
            pushes = self._run.pushes()
            result = self._op_by_op(function, args, kwargs, asked, 0.0)
            called.is_plain |= self._run.pushes() != pushes
            return result
        if not known.is_replayed:
            return self._plainly(function, args, kwargs)
        known.calls += 1
        if self._run.looks and self._is_due(known.calls, asked):
            return self._op_by_op(function, args, kwargs, asked, known.own)
        return self._replay(known, function, program, args, kwargs, asked)

    def _function(self, settings: object) -> _Function | None:
        called = self._functions.get(id(settings))
        if called is None and len(self._functions) < _MOST:
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

    def _of(self, program: Program, *, donates: bool) -> _Known | None:
        known = self._known.get(id(program))
        if known is not None and known.program() is program:
            return known
        if len(self._known) >= _MOST:
            self._known = {key: each for key, each in self._known.items() if each.program() is not None}
            if len(self._known) >= _MOST:
                return None
        known = self._known[id(program)] = _Known(program, donates=donates)
        return known

    def _is_due(self, count: int, now: float) -> bool:
        return count <= _FIRST or not count & (count - 1) or self._run.budget.allows(now)

    def _plainly(self, function: ProgramFunction, args: Any, kwargs: Any) -> Any:
        """Run it op by op. Calls inside run so, too."""
        self._inside.depth = getattr(self._inside, "depth", 0) + 1
        try:
            return function._eagerly(args, kwargs)
        finally:
            self._inside.depth -= 1

    def _op_by_op(self, function: ProgramFunction, args: Any, kwargs: Any, asked: float, own: float) -> Any:
        """Run it op by op, which is a check. A replay takes `own` seconds."""
        run = self._run
        told = time.perf_counter() - asked
        run.drain()
        run.budget.look(run.nans.keep())
        begun, pushes = run.budget.begin() - told, run.pushes()
        try:
            return self._plainly(function, args, kwargs)
        finally:
            ended = run.drain()
            run.nans.keep()
            if ended and run.pushes() == pushes:  # which are accounted for one by one
                run.budget.end(time.perf_counter() - begun, own)

    def _replay(
        self, known: _Known, function: ProgramFunction, program: Program, args: Any, kwargs: Any, asked: float
    ) -> Any:
        """Replay it, and look at its results."""
        run = self._run
        if not run.looks:
            return function._as_program(args, kwargs)
        written = known.writes_to(function, program, args, kwargs)
        copies: _Copies | None = []
        if written:
            waited = run.drain()
            copies = _copies_of(written) if waited else None
            if copies is None:
                known.is_replayed &= not waited
                return self._plainly(function, args, kwargs)
        begun = time.perf_counter()
        result = function._as_program(args, kwargs)
        ended = time.perf_counter()
        has_ended = run.drain()
        if (waited := time.perf_counter()) - ended > _ASKED:  # for a part of it
            ended = waited
        known.own = min(known.own or ended - begun, ended - begun)
        self.replayed += 1
        results = [result] if isinstance(result, NDArray) else _arrays_of(result)
        is_odd = has_ended and not _are_finite([*results, *written])
        run.budget.replayed(asked, known.own)  # no more is known to be the script's: checks take the caches
        if is_odd:
            known.odd += 1
            if self._is_due(known.odd, ended):
                self._again(function, args, kwargs, copies)
            else:
                self.untold += 1
        elif not has_ended:
            self.untold += 1
        return result

    def _again(self, function: ProgramFunction, args: Any, kwargs: Any, copies: _Copies) -> None:
        """Run a call that was replayed once more, op by op, on the memory as it was. Then that is as the replay has left it."""
        run = self._run
        run.budget.look(run.nans.keep())
        begun = run.budget.begin()
        left = [(memory, np.array(memory)) for memory, _ in copies]
        try:
            _write(copies)
            self._plainly(function, args, kwargs)
        except Exception:  # noqa: BLE001 - the script has had its result
            self.untold += 1
        finally:
            try:
                _watch_drain(None)  # that run's ops alone are pending
            finally:
                _write(left)
                run.nans.keep()
                run.budget.end(time.perf_counter() - begun, 0.0)


def _arrays_of(result: Any) -> list[Any]:
    return [leaf for leaf in leaves_of(result) if isinstance(leaf, NDArray)]


def _copies_of(arrays: list[Any]) -> _Copies | None:
    """Return the memory of arrays with copies of it; None if the host does not reach one of them, or they are too large."""
    if not all(isinstance(array, NDArray) for array in arrays) or sum(array.nbytes for array in arrays) > _KEPT:
        return None
    try:
        hosts = [host_of(array) for array in arrays]
    except Exception:  # noqa: BLE001 - a failed array
        return None
    if any(host is None or not host.flags.writeable for host in hosts):
        return None
    return [(host, np.array(host)) for host in hosts]


def _write(copies: _Copies) -> None:
    """Write copies to their memory. No interrupt comes in between: none of this is Python's own code."""
    memory, kept = [one for one, _ in copies], [one for _, one in copies]
    deque(map(np.copyto, memory, kept), maxlen=0)
