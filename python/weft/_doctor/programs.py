"""Calls of programs in a check run: op by op, or replayed, and then looked at.

Op by op, the core looks at the results of each op; a replay takes a part of that time. So the first calls of each program run op by op,
those of doubling numbers, and as many more as there is time for. Others are replayed; their results, and the memory that they write to, are
looked at. If one of these is not finite, that memory is set back, and the function runs once more op by op. Then the memory is set to the
replay's values again, by whatever way that run ended: the script sees the replay alone.

A second run needs back all that the first one has changed. Of ops of weft's own that is memory: a generator's words are an array, and
bodies of loops and branches write to arrays alone. Of functions of the script's (callables, native functions, ops that it registered) nobody knows: they run
once. After a call with such functions that makes values which are not finite, out of finite ones, the next calls run op by op. If these
find no op, the call is named. So it is with replays that the script asks for by itself, as of a captured block: there is no function to run op by op.

Calls that run op by op at any price: in ops, beside other threads of the script's, those that the tape listens to, those that start work which ends later, on
devices or among processes, and those with donated arguments.
"""

from __future__ import annotations

import threading
import time
import weakref
from contextlib import suppress
from functools import partial
from math import inf
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import NDArray, _are_finite, _keep, _put_back, _watch_drain
from weft._doctor.guards import is_mapping, is_row
from weft._doctor.reach import is_foreign, module_of
from weft._program.trees import leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from weft._core import Compiled
    from weft._doctor.budget import Budget
    from weft._doctor.finite import FirstNaNs, Suspect
    from weft._program.function import ProgramFunction, Settings
    from weft._program.program import Program

#: Calls of each program that run op by op at any price; such calls where nobody may run one again, and those behind a call with an unknown op.
_FIRST, _ONCE, _BEHIND = 8, 32, 4
#: Callables of such a call that are all looked at.
_CHECKED = 32
#: Functions that say of which module they are.
_PLAIN = (FunctionType, MethodType, BuiltinFunctionType, np.ufunc, cast("type[Any]", type(np.sum)))
#: Functions and programs that are told apart.
_MOST = 1024
#: Bytes of the memory that is kept for the time of a replay.
_KEPT = 1 << 26
#: The level of the stack on which the call is, from the recording of its program.
_CALLER = 6


def program_of(
    function: ProgramFunction, args: tuple[Any, ...], kwargs: dict[str, Any] | None, level: int
) -> tuple[Program | None, bool]:
    """Return the program of a call that runs op by op, and whether it was recorded now: the script may ask for it.

    Parameters
    ----------
    function : ProgramFunction
        The function; what it raises while it is recorded goes to the caller.
    args, kwargs
        The arguments.
    level : int
        The level of the stack on which the call is, from here.

    Examples
    --------
    >>> import weft
    >>> from weft._doctor.programs import program_of
    >>> step = weft.program(lambda x: x + 1)
    >>> program, is_new = program_of(step, (weft.ones(3),), None, 2)
    >>> step.programs == (program,), is_new
    (True, True)
    """
    program: Program | None = function._program_of(args, kwargs)
    if program is not None or function._shares_a_leaf(function._bind(args, kwargs)):  # of these the call itself decides
        return program, False
    return function._program_of(args, kwargs, level), True


class _Function:
    """The calls of one function."""

    __slots__ = ("is_plain", "recorded", "settings", "suspect")

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings  # kept, so that no other one has its identity
        self.recorded = 0
        #: Whether all of its calls run op by op.
        self.is_plain = False
        #: A call with values that are not finite, by an op that is not known.
        self.suspect: Suspect | None = None


class _Known:
    """The calls of one program. It keeps states of the program, and goes with it."""

    __slots__ = (
        "arguments", "behind", "block", "calls", "is_odd", "is_pure", "is_replayed", "odd", "own", "program", "pushes", "states", "touched",
    )  # fmt: skip

    def __init__(self, program: weakref.ref[Program], compiled: Compiled, *, may_be_replayed: bool) -> None:
        self.program = program
        #: Calls, and those with results that are not finite.
        self.calls = self.odd = 0
        #: Seconds of its fastest replay.
        self.own = inf
        written = {(view["kind"], view["number"]) for step in compiled.describe() for view in step["outputs"]}
        #: States, those that it writes to, and the numbers of such arguments.
        self.touched = compiled.states
        self.states = [state for number, state in enumerate(compiled.states) if ("state", number) in written]
        self.arguments = [number for kind, number in written if kind == "argument" and number is not None]
        #: Whether nobody notices a second run, and whether it is replayed.
        self.is_pure = compiled.repeats(is_own)
        self.is_replayed = may_be_replayed and (self.is_pure or compiled.repeats(_is_of_this_process))
        #: Callables and native functions that a call pushes, which are told of in calls that run op by op.
        self.pushes: int | None = None
        #: Replays that the script asks for by itself.
        self.block = _Function()
        #: Whether its results are not finite though all ops are well.
        self.is_odd = False
        #: Calls that run op by op next, for a call with an unknown op.
        self.behind = 0

    def writes_to(self, function: ProgramFunction, args: Any, kwargs: Any) -> list[Any]:
        """Return the arrays that a call writes to."""
        if not self.arguments:
            return self.states
        leaves = function._leaves(function._bind(args, kwargs))
        return [*self.states, *(leaves[number] for number in self.arguments)]

    def uses(self, function: ProgramFunction, args: Any, kwargs: Any) -> list[NDArray]:
        """Return the arrays that a call reads or writes to."""
        leaves = function._leaves(function._bind(args, kwargs))
        return [*self.touched, *(leaf for leaf in leaves if isinstance(leaf, NDArray))]


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
    drain, is_alone : callable
        Waits for all that was pushed, and returns whether it has ended; returns whether no thread of the script's runs but this one.
    pushes, pass_by : callable
        Returns the number of callables and native functions that this thread has pushed; adds some that nobody tells of.
    """

    def __init__(
        self,
        budget: Budget,
        nans: FirstNaNs,
        drain: Callable[[], bool],
        is_alone: Callable[[], bool],
        pushes: Callable[[], int],
        pass_by: Callable[[int], None],
        *,
        looks: bool,
    ) -> None:
        self._budget, self._nans, self._looks = budget, nans, looks
        self._drain, self._is_alone, self._pushes, self._pass_by = drain, is_alone, pushes, pass_by
        self._functions: dict[int, _Function] = {}
        self._known: dict[int, _Known] = {}
        self._suspects: list[Suspect] = []
        #: How many calls run op by op: in them, all do.
        self._inside = 0
        #: Whether a program is recorded for calls to come, and whether callables of a captured block are looked at.
        self.records = self.is_looked_at = False
        #: Whether callables are pushed by a call that is a check.
        self.is_checked = False
        #: Calls that were replayed, and those of them with values that no second run has looked for.
        self.replayed = self.untold = 0

    def call(self, function: ProgramFunction, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Run a call of a program."""
        if self._inside:
            return function._eagerly(args, kwargs)
        asked, is_alone = time.perf_counter(), self._is_alone()
        called = self._functions.get(id(function._settings)) or self._function(function._settings)
        if called is None or called.is_plain:
            return self._plainly(function, args, kwargs) if is_alone else function._eagerly(args, kwargs)
        recorded = called.recorded
        program = self._program(called, function, args, kwargs)
        if not is_alone:
            return function._eagerly(args, kwargs)
        if called.recorded > recorded:  # as the script itself would
            asked = time.perf_counter()
        known = None
        if program is not None:
            plain = bool(program._heard or function._settings.options.donate)
            known = self._known.get(id(program)) or self._of(program, may_be_replayed=not plain)
        if known is not None and not known.is_replayed:
            return self._plainly(function, args, kwargs)
        if known is None or self._is_op_by_op(known, asked):
            return self._op_by_op(called, known, function, args, kwargs, asked)
        return (self._replay if known.is_pure else self._replay_once)(called, known, function, args, kwargs, asked)

    def _function(self, settings: Settings) -> _Function | None:
        if len(self._functions) >= _MOST:
            return None
        called = self._functions[id(settings)] = _Function(settings)
        return called

    def _program(self, called: _Function, function: ProgramFunction, args: Any, kwargs: Any) -> Program | None:
        """Return the program of a call; None if it cannot be recorded."""
        self.records = True
        try:
            program, is_new = program_of(function, args, kwargs, _CALLER)
        except Exception:  # noqa: BLE001 - arguments that it refuses, a function that cannot be recorded: the call says so
            called.is_plain = True
            return None
        finally:
            self.records = False
        called.recorded += is_new
        return program

    def _of(self, program: Program, *, may_be_replayed: bool) -> _Known | None:
        if len(self._known) >= _MOST:
            return None
        key, known = id(program), self._known
        reference = weakref.ref(program, lambda _: known.pop(key, None))
        found = known[key] = _Known(reference, program._compiled, may_be_replayed=may_be_replayed)
        return found

    def _is_op_by_op(self, known: _Known, now: float) -> bool:
        known.calls += 1
        if known.is_pure:
            return self._looks and self._is_due(known.calls, now)
        if known.behind or known.pushes is None:
            known.behind = max(0, known.behind - 1)
            return True
        return known.calls <= _ONCE or self._is_due(known.calls, now) or self._budget.allows(now)

    def _is_due(self, count: int, now: float) -> bool:
        return count <= _FIRST or not count & (count - 1) or self._budget.allows_program(now)

    def _plainly(self, function: ProgramFunction, args: Any, kwargs: Any) -> Any:
        """Run it op by op. Calls inside run so, too."""
        self._inside += 1
        try:
            return function._eagerly(args, kwargs)
        finally:
            self._inside -= 1

    def _op_by_op(
        self, called: _Function, known: _Known | None, function: ProgramFunction, args: Any, kwargs: Any, asked: float
    ) -> Any:
        """Run it op by op, which is a check."""
        waits = self._budget.begin()
        self._drain()
        own = known.own if known is not None and known.own < inf else 0.0
        own += self._budget.work_in(time.perf_counter() - waits)  # of ops that were pushed before
        self._budget.look(self._nans.keep())
        pushes, spent, told = self._pushes(), self._budget.spent, self._nans.number
        result = None
        self.is_checked = known is not None and (known.pushes or 0) <= _CHECKED
        try:
            result = self._plainly(function, args, kwargs)
            return result
        finally:
            self.is_checked = False
            ended = self._drain()
            self._nans.keep()
            is_told = self._nans.number > told
            if known is not None:
                pushes = self._pushes() - pushes
                known.is_replayed &= known.pushes in {None, pushes}
                known.pushes = pushes
                if not known.is_pure and self._looks and not is_told and not self._finite(_arrays_of(result)):
                    known.is_odd = is_told = True  # by no op that is found: as it is asked to
            if called.suspect is not None:
                called.suspect.is_told |= is_told
            if ended:  # checks of callables have said what they spend
                self._budget.end(time.perf_counter() - asked - (self._budget.spent - spent), own)

    def _replay(
        self, _: _Function, known: _Known, function: ProgramFunction, args: Any, kwargs: Any, asked: float
    ) -> Any:
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

    def _replay_once(
        self, called: _Function, known: _Known, function: ProgramFunction, args: Any, kwargs: Any, asked: float
    ) -> Any:
        """Replay a call that nobody may run again, and look at its results."""
        self._pass_by(known.pushes or 0)
        run = partial(function._as_program, args, kwargs)
        if not self._looks or known.is_odd:
            self.replayed += 1
            return run()
        written = known.writes_to(function, args, kwargs)
        result, made = self._looked_at(known, run, written)
        if known.own < inf:
            self._budget.replayed(asked, known.own)
        if made:
            self._suspect(called, known, function._settings.name, made, known.uses(function, args, kwargs))
        return result

    def replaying(
        self, program: Program, arguments: tuple[NDArray, ...], run: Callable[[bool], tuple[NDArray, ...]]
    ) -> tuple[NDArray, ...]:
        """Run a replay that the script asks for by itself, as of a captured block, and look at its ops one by one, or at its results."""
        asked = time.perf_counter()
        known = None
        if not self._inside and self._is_alone() and _is_main():
            known = self._known.get(id(program)) or self._of(program, may_be_replayed=False)
        if known is None:
            return run(False)
        known.calls += 1
        # Its callables are looked at one by one, or not at all.
        in_order = not known.is_pure and (self._is_due(known.calls, asked) or self._budget.allows(asked))
        if in_order:
            self._budget.begin()
            self._drain()
        told, self.is_looked_at = self._nans.number, in_order
        run_so, written = partial(run, in_order), [*known.states, *arguments]
        results: tuple[NDArray, ...]
        try:
            results, made = (
                self._looked_at(known, run_so, written) if self._looks and not known.is_odd else (run_so(), [])
            )
            if in_order:
                self._drain()
        finally:
            self.is_looked_at = False
        if in_order:
            self._budget.end(time.perf_counter() - asked, known.own if known.own < inf else 0.0)
        elif known.own < inf:
            self._budget.replayed(asked, known.own)
        if self._nans.number > told:
            known.is_odd = True  # an op has been named
        elif made:
            self._suspect(known.block, known, program.name, made, [*known.touched, *arguments])
        return results

    def _looked_at(self, known: _Known, run: Callable[[], Any], written: list[NDArray]) -> tuple[Any, list[Any]]:
        """Run a replay. Return its results, and the arrays that it has made or changed if the first are not finite and were it before."""
        self.replayed += 1
        was_finite = self._finite(written)  # of what it only reads that is known behind it
        begun = time.perf_counter()
        result = run()
        if not was_finite:
            return result, []
        self._drain()
        known.own = min(known.own, time.perf_counter() - begun)
        made = [*_arrays_of(result), *written]
        return result, [] if self._finite(made) else made

    def _suspect(self, called: _Function, known: _Known, name: str, made: list[Any], used: list[Any]) -> None:
        """Note that a call made values that are not finite, if it was given none."""
        if not self._finite([array for array in used if not any(array is one for one in made)]):
            return
        self.untold += 1
        known.behind = _BEHIND
        if called.suspect is None:
            called.suspect = self._nans.suspected(name, made, used)
            self._suspects.append(called.suspect)
        called.suspect.count += 1

    def _finite(self, arrays: list[NDArray]) -> bool:
        """Whether arrays are finite, as soon as that can be said."""
        are_finite = _are_finite(arrays)
        if are_finite is None:
            self._drain()
            are_finite = _are_finite(arrays)
        return are_finite is not False

    def finish(self) -> None:
        """Name the calls of which no op is known."""
        for suspect in self._suspects:
            self._nans.suspect(suspect)

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


def _is_main() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _arrays_of(result: Any) -> list[Any]:
    return [leaf for leaf in leaves_of(result) if isinstance(leaf, NDArray)]


def is_own(function: object, depth: int = 4) -> bool:
    """Return whether a function is weft's own, and calls none of the script's.

    Examples
    --------
    >>> from functools import partial
    >>> from weft._doctor.programs import is_own
    >>> is_own(is_own), is_own(partial(is_own, print)), is_own(object())
    (True, True, False)
    """
    if isinstance(function, partial):
        given = [*function.args, *function.keywords.values()]
        return is_own(function.func, depth) and _are_own(given, depth)
    if not isinstance(function, _PLAIN) or not _is_of_this_process(function) or not is_foreign(module_of(function)):
        return False
    return _are_own(_held(function), depth)


def _are_own(values: Iterable[Any], depth: int) -> bool:
    return depth == 0 or all(is_own(each, depth - 1) for each in _functions_in(values, depth))


def _held(function: Any) -> Iterator[Any]:
    """Yield what a function holds by its closure."""
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # assigned later
            yield cell.cell_contents


def _functions_in(values: Any, depth: int) -> list[Any]:
    """Return what can be called among values, but for classes."""
    found: list[Any] = []
    for value in values:
        if callable(value):
            found += [] if isinstance(value, type) else [value]
        elif depth and (is_row(value) or is_mapping(value)):
            found += _functions_in(value.values() if is_mapping(value) else value, depth - 1)
    return found


def _is_of_this_process(function: object) -> bool:
    """Whether a function is none that waits for other processes."""
    while isinstance(function, partial):
        function = function.func
    return not str(module_of(function)).startswith("weft.distributed")
