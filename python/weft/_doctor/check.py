"""The hook of a check run: ops run one at a time, and memory is compared around them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from types import FunctionType
from typing import TYPE_CHECKING, Any

from weft._core import _watch_drain
from weft._doctor.accesses import Accesses
from weft._doctor.budget import Budget
from weft._doctor.finite import FirstNaNs
from weft._doctor.frames import globals_of_pusher, locals_of_pusher
from weft._doctor.memory import Region, Regions
from weft._doctor.orders import OPS, Logged, logged, thread_name
from weft._doctor.programs import Programs
from weft._doctor.pushes import Owners, Push
from weft._doctor.reach import code_of
from weft._trace.record import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from weft._doctor.findings import Report

#: Pushes of one code at one line that are checked at any price, and those with a look at names; and pairs of these that are told apart.
_FIRST, _NAMES, _CODES = 8, 16, 4096
#: Ops that are logged, even if their line has been looked at.
_LOGGED = 2_000
#: Bytes of an array that is looked at though nothing but the script's names reach it.
_NAMED = 1 << 26
#: Seconds for which the end of an op is waited for, which may need something that the script does later; less after each such op, and the least.
_PATIENCE, _HASTE = 2.0, 0.01


class _Timed:
    """A callable that says how long it took."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self.__qualname__ = getattr(push.callable, "__qualname__", push.name)

    def __call__(self) -> Any:
        begun = time.perf_counter()
        try:
            return self._push.runs()
        finally:
            self._push.took = time.perf_counter() - begun


class _Inside:
    """A callable that was pushed inside of an op."""

    def __init__(self, owner: Checker, push: Push) -> None:
        self._owner, self._push = owner, push
        self.__qualname__ = getattr(push.callable, "__qualname__", push.name)

    def __call__(self) -> Any:
        return self._owner.inside(self._push)


class _Recorded:
    """A callable of a captured block: it is looked at when it runs, one at a time with all others of a replay."""

    def __init__(self, owner: Checker, push: Push) -> None:
        self._owner, self._push = owner, push
        self.__name__ = self.__qualname__ = push.name

    def __call__(self) -> Any:
        return self._owner.replaying(self._push)


class Checker:
    """Told by the core of each push.

    Parameters
    ----------
    kinds : collection of str
        The kinds of findings to look for.
    logs : bool
        Whether ops are logged, to compare them with other runs.
    """

    def __init__(self, kinds: Iterable[str], *, logs: bool = False) -> None:
        self.kinds = frozenset(kinds)
        self.log: list[Logged] = []
        self._logs = logs
        self._regions, self._owners = Regions(), Owners()
        self._lock, self._inside = threading.RLock(), threading.Lock()
        self._current: Push | None = None
        self._accesses, self._nans = Accesses(), FirstNaNs()
        #: How often each code was pushed at each place. The codes are kept, so that no other one has the identity of one.
        self._pushes: dict[tuple[int, int], int] = {}
        self._codes: list[object] = []
        self._numbers: Counter[str] = Counter()
        self._patience = _PATIENCE
        self._budget = Budget()
        self._programs = Programs(
            self._budget,
            self._nans,
            self._drain,
            _is_alone,
            lambda: self._numbers[threading.current_thread().name],
            self._pass_by,
            looks="first-nan" in self.kinds,
        )
        #: Runs a call of a program outside of ops.
        self.calling = self._programs.call
        #: Runs a replay that the script asks for by itself.
        self.replay = self._programs.replaying
        #: Ops that were not looked at, and whether one was pushed since the last wait for all.
        self._passed, self._is_behind = 0, False
        #: Seconds of checks inside the current op.
        self._nested = 0.0
        self._counts: Counter[str] = Counter()

    # The core's calls.

    def pushing(
        self,
        callable_: Any,
        name: str | None,
        place: int,
        kind: int,
        inside: bool,
        _engine: int,
        objects: Sequence[Any],
    ) -> Push | None:
        """Look at the memory before an op. Return None for one that is not looked at."""
        asked = time.perf_counter()
        due = self._due(callable_, place, asked)
        if inside:  # its op runs: a wait for it would not end
            self._counts["pushed inside ops"] += 1
            if not due and self._current is None:
                self._budget.pass_by(asked)
                return None
            return self._pushing_inside(Push(callable_, name, place, kind, objects), due, asked)
        if not due:
            self._passed += 1
            self._is_behind = True
            self._numbers[threading.current_thread().name] += 1
            self._budget.pass_by(asked)
            return None
        if not self._lock.acquire(timeout=_PATIENCE):
            self._counts["pushed while another thread was busy"] += 1
            return None
        begun = self._budget.begin()
        try:
            push = Push(callable_, name, place, kind, objects)
            push.is_short, push.begun = due != _NAMES, begun
            push.own = self._catch_up(time.perf_counter())
            push.thread = thread_name()
            self._numbers[push.thread] += 1
            push.number = self._numbers[push.thread]
            self._regions.look_at(f"{push.thread}.{push.number}")
            push.resolve(self._owners, self._regions)
            self._counts["ops"] += 1
            self._before(push)
            if self._logs and len(self.log) < (_LOGGED if push.is_short else OPS):
                push.entry = logged(push, self._regions)
                self.log.append(push.entry)
        except BaseException:
            self._lock.release()
            raise
        self._current = push
        if callable_ is not None and not push.is_async:
            push.replaced = _Timed(push)
        return push

    def _pass_by(self, pushes: int) -> None:
        """Count pushes that nobody tells of: those of a program that is replayed."""
        if pushes:
            self._passed += pushes
            self._is_behind = True
            self._numbers[threading.current_thread().name] += pushes

    def _catch_up(self, begun: float) -> float:
        """Wait for the ops that are not looked at. Return the seconds of that which are the script's own."""
        self._drain()
        self._budget.look(self._nans.keep())
        was_behind, self._is_behind = self._is_behind, False
        return Budget.work_in(time.perf_counter() - begun) if was_behind else 0.0

    def _pushing_inside(self, push: Push, due: int, asked: float) -> Push:
        """Prepare to look at the memory around an op when it runs, as the one that pushes it goes on."""
        push.is_short = due != _NAMES
        push.resolve(self._owners, self._regions)
        push.parent = self._current
        if push.parent is None:
            self._budget.pass_by(asked)
            return push
        push.parent.inner += push.covers
        if due and push.callable is not None and not push.is_async:
            push.replaced = _Inside(self, push)
        self._nested += time.perf_counter() - asked
        return push

    def recording(
        self,
        callable_: Any,
        name: str | None,
        place: int,
        kind: int,
        _inside: bool,
        _engine: int,
        objects: Sequence[Any],
    ) -> Push | None:
        """Prepare to look at the memory around an op of a captured block, at each replay that the script asks for."""
        if self._programs.records or callable_ is None or kind == Kind.ASYNC:
            return None
        push = Push(callable_, name, place, kind, objects)
        push.resolve(self._owners, self._regions)
        for path, array in globals_of_pusher():
            if array.nbytes <= _NAMED:
                self._regions.of(array, path, push.file)
        push.replaced = _Recorded(self, push)
        return push

    def replaying(self, push: Push) -> Any:
        """Run an op of a captured block, and look at the memory around it."""
        if not self._programs.is_looked_at or not self._inside.acquire(blocking=False):
            return push.runs()
        try:
            push.reach = None  # as it is now
            self._counts["ops"] += 1
            self._before(push)
            answer = push.runs()
            self._after(push)
        finally:
            self._inside.release()
        return answer

    def inside(self, push: Push) -> Any:
        """Run an op that was pushed inside of another one, and look at the memory around it."""
        parent = push.parent
        if parent is None or not self._inside.acquire(blocking=False):  # one that waits for this one is looked at
            return push.runs()
        try:
            # The other one may change anything that it declares meanwhile.
            declared = [*push.covers]
            push.covers += parent.covers
            begun = time.perf_counter()
            self._before(push)
            ran = time.perf_counter()
            answer = push.runs()
            ended = time.perf_counter()
            self._after(push)
            push.covers = declared
            self._nested += time.perf_counter() - ended + ran - begun
        finally:
            self._inside.release()
        return answer

    def pushed(self, push: Push, was_pushed: bool) -> None:
        """Look at the memory after it."""
        if not push.number:
            return
        try:
            if not was_pushed:
                return
            begun = time.perf_counter()
            ended = self._drain()
            waited = time.perf_counter() - begun
            if ended:
                self._after(push)
                # Of an op that pushes others, all that runs until the last one ends.
                is_known = push.took >= 0 and not self._nested
                push.own += push.took if is_known else Budget.work_in(waited - self._nested)
            else:
                self._counts["ops that ended later"] += 1
                push.own += waited if self._patience > _HASTE else 0.0
        finally:
            self._budget.end(time.perf_counter() - push.begun, push.own)
            self._current, self._nested = None, 0.0
            self._lock.release()

    def _drain(self) -> bool:
        """Wait for all that was pushed. Return whether it has ended."""
        ended = _watch_drain(self._patience)
        if not ended:
            self._patience = max(self._patience / 4, _HASTE)
        return ended

    # Around an op.

    def _due(self, callable_: Any, place: int, now: float) -> int:
        """Return how an op that is pushed there is checked: 0 for not at all, 1, or `_NAMES` with a look at all names.

        The first ones of each line and code are, and later ones as far as there is time.
        """
        # This is asked of each push: it has to be short.
        code = callable_.__code__ if callable_.__class__ is FunctionType else code_of(callable_)
        key = place, id(code)
        count = self._pushes.get(key, 0) + 1
        if count == 1:
            if len(self._codes) >= _CODES:  # a line that makes a function at each turn
                key = place, 0
                count = self._pushes.get(key, 0) + 1
            else:
                self._codes.append(code)
        self._pushes[key] = count
        if count <= _FIRST or count & (count - 1) == 0:
            return _NAMES
        if self._programs.is_checked or self._budget.allows(now):
            return _NAMES if count <= _NAMES else 1
        return 0

    def _before(self, push: Push) -> None:
        if self.kinds & {"undeclared-write", "undeclared-read"} and not push.is_short:
            self._read_by_name(push)
        if "undeclared-write" in self.kinds:
            push.before = {region: region.fingerprint(push.covers) for region in self._around(push)}
            push.versions = {region: region.version() for region in push.before if region.is_array}
        if "first-nan" in self.kinds:
            self._nans.before(push)

    def _around(self, push: Push) -> Iterator[Region]:
        if push.is_short:
            yield from self._regions
            return
        for path, array in push.arrays().items():
            self._regions.of(array, path, push.file)
        if push.parent is None:  # in an op the frames are those of the worker
            for path, array in locals_of_pusher() if push.callable is None else globals_of_pusher():
                if array.nbytes <= _NAMED:
                    self._regions.of(array, path, push.file)
        yield from self._regions

    def _after(self, push: Push) -> None:
        paths: dict[Region, str] | None = None
        for region in self._changed(push):
            if paths is None:
                paths = self._paths(push)
            if region not in paths and not _is_alone():
                self._counts["changes while other threads ran"] += 1
                continue
            push.changed.append(region)
            if push.parent is not None:
                push.parent.inner.append(region.span)
            self._accesses.writes(push, region, paths.get(region, ""))
        if "first-nan" in self.kinds:
            self._nans.after(push)
        if push.entry is not None:
            push.entry.end(push)

    def _changed(self, push: Push) -> Iterator[Region]:
        """Yield the memory that an op has changed without a word."""
        for region, before in (push.before or {}).items():
            after = region.fingerprint(push.covers)
            if before is None or after is None:
                self._counts["memory that cannot be read"] += before is None
            elif before == after or push.declares_writing(region) or push.versions.get(region) != region.version():
                continue  # an op that was pushed inside, or an array op, has written to it
            elif any(first < region.span[1] and region.span[0] < end for first, end in push.inner):
                self._counts["changes by ops that were pushed inside ops"] += 1
            else:
                yield region

    def _paths(self, push: Push) -> dict[Region, str]:
        found: dict[Region, str] = {}
        for path, array in push.arrays().items():
            region = self._regions.of(array)
            if region is not None:
                found.setdefault(region, path)
        return found

    def _read_by_name(self, push: Push) -> None:
        """Note the arrays that the callable uses by names and does not declare."""
        if push.callable is None:
            return
        uses = push.uses()
        arrays = {**{id(array): (path, array) for path, array in push.arrays().items()}, **uses}
        for path, array in arrays.values():
            region = self._regions.of(array, path, push.file)
            if region is not None and not push.declares_reading(region):
                self._accesses.reaches(push, region)
                if id(array) in uses:
                    self._accesses.reads(push, region, path)

    # At the end.

    def finish(self, report: Report) -> None:
        """Add the findings."""
        self._programs.finish()
        self._nans.finish(report, told="first-nan" in self.kinds)
        self._accesses.finish(report, self.kinds)
        report.count("ops", self._counts.pop("ops", 0))
        report.count("array ops", self._nans.checked)
        report.count("ops that were not looked at", self._passed)
        report.count("calls of programs looked at by their results", self._programs.replayed)
        report.count("calls of programs whose values that are not finite were traced to no op", self._programs.untold)
        for checked, number in self._counts.items():
            report.count(checked, number)
        report.count("ops on devices or that end later", self._nans.unseen)
        report.count("arrays left out", self._regions.left_out)

    @property
    def suspects(self) -> bool:
        """Whether other orders could show more."""
        return self._accesses.are_suspect


def _is_alone() -> bool:
    """Whether no thread of the script's runs but the one that pushes: workers that have asked for their names are none."""
    if threading.active_count() == 1:
        return True
    kind = getattr(threading, "_DummyThread", ())
    return sum(not isinstance(thread, kind) for thread in threading.enumerate()) <= 1
