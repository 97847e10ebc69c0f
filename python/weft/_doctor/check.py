"""The hook of a check run: ops run one at a time, and memory is compared around them."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import NDArray, _watch_drain, _watch_origins
from weft._doctor.findings import Finding
from weft._doctor.frames import globals_of_pusher, locals_of_pusher, name_of
from weft._doctor.guards import is_array, is_mapping, is_real, is_row
from weft._doctor.memory import Region, Regions, host_of
from weft._doctor.orders import OPS, Logged, logged, thread_name
from weft._doctor.pushes import Owners, Push, place_of
from weft._doctor.sources import made_at
from weft._engine.task_call import TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from weft._core import _Origins
    from weft._doctor.findings import Report

#: Pushes of one line that are checked whatever it takes, those whose names are looked at, and seconds that checks may take in any case.
_FIRST, _NAMES = 4, 16
_GRACE = 0.2
#: What checks may take beside the script, in times of its own.
_SHARE = 3.0
#: Ops that are logged, even if their line has been looked at.
_LOGGED = 2_000
#: Bytes of an array that is looked at though nothing but the script's names reach it.
_NAMED = 1 << 26
#: Arrays that one finding names beside the first.
_LISTED = 2
#: Arrays that ops reach, of which is asked whether others write to them.
_REACHED = 10_000
#: Seconds for which the end of an op is waited for, which may need something that the script does later; less after each such op.
_PATIENCE = 2.0


class Access:
    """Undeclared accesses of one op to one region, wherever it was pushed.

    Parameters
    ----------
    push : Push
        The first one.
    region : Region
        The memory.
    path : str
        The expression by which the op reaches it; empty if that is not known.
    """

    __slots__ = ("count", "guards", "key", "label", "path", "place", "region", "says_read", "task", "version", "wrote")

    def __init__(self, push: Push, region: Region, path: str, *, wrote: bool) -> None:
        self.key, self.label, self.place = push.key, push.label, (push.file, push.line)
        self.task = isinstance(push.callable, TaskCall)
        self.region, self.wrote = region, wrote
        self.path = path if _is_shown(path) else name_of(region.array) or path
        self.says_read = any(one is region.array for one in push.reads)
        self.guards = {key for key, writes in push.guards.items() if writes or not wrote}
        self.version = region.version()
        self.count = 0


class _Passed:
    """An op that is not looked at."""

    replaced = None
    number = 0


_PASSED: Any = _Passed()


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


class Checker:
    """Told by the core of each push.

    Parameters
    ----------
    kinds : collection of str
        What is looked for.
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
        self._accesses: dict[tuple[object, int, bool], Access] = {}
        self._writers: dict[Region, set[object]] = {}
        self._reached: set[tuple[object, Region]] = set()
        self._pushes: Counter[int] = Counter()
        self._numbers: Counter[str] = Counter()
        self._nans: dict[tuple[str, str, int], Finding] = {}
        self._vetoed: set[int] = set()
        self._patience = _PATIENCE
        self._started, self._spent = time.perf_counter(), 0.0
        self._counts: Counter[str] = Counter()

    # What the core calls.

    def pushing(
        self,
        callable_: Any,
        name: str | None,
        place: int,
        kind: int,
        inside: bool,
        _engine: int,
        objects: Sequence[Any],
    ) -> Push:
        """Look at the memory before an op."""
        due = _NAMES if inside else self._due(place)
        if not due:
            self._counts["ops that were not looked at"] += 1
            self._numbers[thread_name()] += 1
            return cast("Push", _PASSED)
        push = Push(callable_, name, place, kind, objects)
        push.is_short = due != _NAMES
        if inside:  # its op runs: nobody can wait for it
            self._pushing_inside(push)
            return push
        if not self._lock.acquire(timeout=_PATIENCE):
            self._counts["pushed while another thread was busy"] += 1
            return push
        begun = time.perf_counter()
        try:
            self._drain()
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
        self._spent += time.perf_counter() - begun
        return push

    def _pushing_inside(self, push: Push) -> None:
        """Prepare to look at the memory around an op when it runs, as the one that pushes it goes on."""
        self._counts["pushed inside ops"] += 1
        push.resolve(self._owners, self._regions)
        push.parent = self._current
        if push.parent is not None:
            push.parent.inner += push.covers
            if push.callable is not None and not push.is_async:
                push.replaced = _Inside(self, push)

    def inside(self, push: Push) -> Any:
        """Run an op that was pushed inside of another one, and look at the memory around it."""
        parent = push.parent
        if parent is None or not self._inside.acquire(blocking=False):  # one that waits for this one is looked at
            return push.runs()
        try:
            # Of what the other one declares it may change anything meanwhile.
            declared = [*push.covers]
            push.covers += parent.covers
            self._before(push)
            answer = push.runs()
            self._after(push)
            push.covers = declared
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
            if ended:
                self._after(push)
            else:
                self._counts["ops that ended later"] += 1
            # The op itself ran meanwhile.
            self._spent += max(0.0, time.perf_counter() - begun - push.took) if ended and push.took >= 0 else 0.0
        finally:
            self._current = None
            self._lock.release()

    def _drain(self) -> bool:
        """Wait for all that was pushed. Return whether it has ended."""
        ended = _watch_drain(self._patience)
        if not ended:
            self._patience = max(self._patience / 4, 0.01)
        return ended

    # Around an op.

    def _due(self, place: int) -> int:
        """Return how an op that is pushed there is checked: 0 for not at all, 1, or `_NAMES` with a look at all names.

        The first ones are, and what there is time for.
        """
        self._pushes[place] += 1
        count = self._pushes[place]
        if count <= _FIRST or count & (count - 1) == 0:
            return _NAMES
        elapsed = time.perf_counter() - self._started
        if self._spent < _GRACE or self._spent < _SHARE * (elapsed - self._spent):
            return _NAMES if count <= _NAMES else 1
        return 0

    def _before(self, push: Push) -> None:
        if self.kinds & {"undeclared-write", "undeclared-read"} and not push.is_short:
            self._read_by_name(push)
        if "undeclared-write" in self.kinds:
            push.before = {region: region.fingerprint(push.covers) for region in self._around(push)}
            push.versions = {region: region.version() for region in push.before if region.is_array}
        if "first-nan" in self.kinds:
            changed = [*push.writes]
            if push.guards:
                changed += push.arrays().values()
            push.odd = not all(map(_is_finite, changed)) or not all(map(_is_finite_value, push.values()))

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
            self._wrote(push, region, paths.get(region, ""))
        if "first-nan" in self.kinds:
            self._look_for_nan(push)
        if push.entry is not None:
            push.entry.end(push)

    def _changed(self, push: Push) -> Iterator[Region]:
        """Yield the memory whose bytes an op has changed without a word."""
        for region, before in (push.before or {}).items():
            after = region.fingerprint(push.covers)
            if before is None or after is None:
                self._counts["memory that cannot be read"] += before is None
            elif before == after or push.versions.get(region) != region.version():
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

    def _wrote(self, push: Push, region: Region, path: str) -> None:
        self._writers.setdefault(region, set()).add(push.key)
        region.votes.update(key for key, writes in push.guards.items() if writes)
        self._note(push, region, path, wrote=True)

    def _note(self, push: Push, region: Region, path: str, *, wrote: bool) -> None:
        key = push.key, id(region), wrote
        access = self._accesses.get(key)
        if access is None:
            access = self._accesses[key] = Access(push, region, path, wrote=wrote)
        access.count += 1

    def _read_by_name(self, push: Push) -> None:
        """Note the arrays that the callable uses by names and does not declare."""
        if push.callable is None:
            return
        uses = push.uses()
        arrays = {**{id(array): (path, array) for path, array in push.arrays().items()}, **uses}
        for path, array in arrays.values():
            region = self._regions.of(array, path, push.file)
            if region is not None and not push.declares_reading(region):
                self._reached.add((push.key, region))
                if id(array) in uses:
                    region.votes.update(push.guards)
                    # A variable is often called as the array for which it stands.
                    region.votes.update(key for key, name in push.names.items() if name == path)
                    self._note(push, region, path, wrote=False)

    # NaNs.

    def _look_for_nan(self, push: Push) -> None:
        results: list[Any] = [*push.writes, *(region.array for region in push.changed)]
        if isinstance(push.callable, TaskCall):
            results.append(push.callable._outcome.value)
        hosts = [leaf for result in results if not isinstance(result, NDArray) for leaf in _leaves(result)]
        read_is_finite = not push.odd and all(map(_is_finite, push.reads))
        if not read_is_finite:
            self._vetoed.add(push.place)
            return
        given = [each for each in push.values() if not any(each is written for written in push.writes)]
        has_input = bool(push.reads or push.guards or any(map(_is_number, given)))
        has_input = has_input or any(kind == 1 for _, kind in push.declared)
        bad = next((leaf for leaf in hosts if not _is_finite_value(leaf)), None)
        if bad is None or not has_input:
            return
        values = np.asarray(bad)
        nan, infinite = int(np.isnan(values).sum()), int(np.isinf(values).sum())
        read = ", ".join(str(tuple(array.shape)) for array in push.reads) or "what it was given"
        self._nan(push.name, (push.file, push.line), (nan, infinite), tuple(values.shape), read)

    def _nan(
        self,
        name: str,
        place: tuple[str, int],
        found: tuple[int, int],
        shape: tuple[int, ...],
        read: str,
        count: int = 1,
    ) -> None:
        key = (name, *place)
        known = self._nans.get(key)
        if known is not None:
            known.count += count
            return
        nan, infinite = found
        size = int(np.prod(shape, dtype=object)) if shape else 1
        what = " and ".join(f"{number:,} {word}" for number, word in ((nan, "NaN"), (infinite, "infinite")) if number)
        self._nans[key] = Finding(
            "first-nan",
            *place,
            f"`{name}` makes the first values that are not finite: {what} of {size:,} elements of shape {shape}, out of finite "
            f"inputs of shape {read}",
            "look at the inputs of this line: a logarithm or division of 0, a root of a negative number, a sum that overflows",
            count=count,
        )

    # At the end.

    def finish(self, report: Report) -> None:
        """Add what was found."""
        origins = _watch_origins()
        if "first-nan" in self.kinds:
            self._finish_nans(report, origins)
        self._finish_accesses(report)
        report.count("ops", self._counts.pop("ops", 0))
        report.count("array ops", origins["checked"])
        for what, number in self._counts.items():
            report.count(what, number)
        report.count("ops on devices or that end later", origins["unseen"])
        report.count("arrays left out", self._regions.left_out)

    @property
    def suspects(self) -> bool:
        """Whether an op could reach, in a way that is not looked at, what another one writes."""
        return any(
            (region.writers | self._writers.get(region, set())) - {key} for key, region in [*self._reached][:_REACHED]
        )

    def _finish_nans(self, report: Report, origins: _Origins) -> None:
        for origin in origins["found"]:
            if origin["place"] in self._vetoed:
                continue
            read = ", ".join(str(tuple(shape)) for shape in origin["read"])
            found = origin["nan"], origin["infinite"]
            self._nan(origin["name"], place_of(origin["place"]), found, tuple(origin["shape"]), read, origin["count"])
        for finding in self._nans.values():
            report.add(finding)

    def _finish_accesses(self, report: Report) -> None:
        written: set[tuple[object, int]] = set()
        flawed: set[int] = set()
        found: dict[tuple[str, object], list[Access]] = {}
        for (key, region, wrote), access in self._accesses.items():
            if wrote and self._is_undeclared(access):
                written.add((key, region))
                flawed.add(region)
                if "undeclared-write" in self.kinds:
                    found.setdefault(("undeclared-write", access.place), []).append(access)
        for (key, region, wrote), access in self._accesses.items():
            if wrote or (key, region) in written or "undeclared-read" not in self.kinds:
                continue
            if self._is_raced(access, flawed):
                found.setdefault(("undeclared-read", access.place), []).append(access)
        for (kind, _), accesses in found.items():
            report.add(self._finding(kind, accesses))

    @staticmethod
    def _guard(region: Region) -> tuple[int, int] | None:
        """Return the variable that stands for memory which has none of its own: the one that most ops name that use it."""
        return region.votes.most_common(1)[0][0] if region.votes else None

    def _is_undeclared(self, access: Access) -> bool:
        if access.region.is_known:
            return True
        guard = self._guard(access.region)
        return guard is None or guard not in access.guards

    def _is_raced(self, access: Access, flawed: set[int]) -> bool:
        """Whether another op changes what an op reads by name."""
        region = access.region
        if region.is_known:
            version = region.version()
            if version is not None and version != access.version:
                return True
            return bool(region.writers - {access.key})
        if id(region) in flawed:
            return False  # the one who writes it is told
        guard = self._guard(region)
        others = self._writers.get(region, set()) - {access.key}
        return guard is not None and guard not in access.guards and bool(others)

    def _finding(self, kind: str, accesses: list[Access]) -> Finding:
        """Return the finding of one line: of all memory that its op touches and does not declare."""
        access, *others = accesses
        wrote = kind == "undeclared-write"
        name, shown = self._called(access)
        more = [self._called(other)[1] for other in others]
        listed = ", ".join(more[:_LISTED])
        too = (
            ""
            if not more
            else f", and {listed}"
            if len(more) <= _LISTED
            else f", and {listed} and {len(more) - _LISTED} more"
        )
        message = f"{access.label} {'writes' if wrote else 'reads'} {shown}{too} and does not say so"
        short, cure = _cure(access, name, wrote=wrote)
        return Finding(kind, *access.place, f"{message}: {short}", cure, count=max(each.count for each in accesses))

    @staticmethod
    def _called(access: Access) -> tuple[str, str]:
        """Return the expression that reaches the memory of an access, and how a message shows it, with where that was made."""
        region = access.region
        found = access.path or region.path
        if not found:
            name = f"an array of shape {tuple(region.shape)}"
            return name, name
        line = made_at(region.file or access.place[0], found)
        file = (region.file or access.place[0]).replace("\\", "/").rpartition("/")[2]
        return found, f"`{found}` (made at {file}:{line})" if line else f"`{found}`"


def _cure(access: Access, name: str, *, wrote: bool) -> tuple[str, str]:
    """Return the tag to write, and all ways to say so."""
    word = "Mutate" if wrote else "Read"
    if access.says_read and wrote:
        tag = "tag it `weft.Mutate`" if access.task else "name it in `mutate_vars`"
        other = "`weft.Overwrite`" if access.task else "`overwrite_vars`"
        return f"it is declared as read: {tag}", f"{tag}, or {other} if all of it is written, and not as read"
    if access.task:
        names = [each for each in re.findall(r"\w+", name) if each.isidentifier() and not iskeyword(each)]
        plain = names[-1] if names and " " not in name else "x"
        option = "mutates" if wrote else "reads"
        short = f"take it as `{plain}: weft.{word}`"
        return short, f"{short}, or declare it by `@weft.task({option}=[{name}])`"
    option = "mutate_vars" if wrote else "read_vars"
    if isinstance(access.region.array, NDArray):
        short = f"name it in the push: `{option}=[{name}]`"
        return short, f"{short}; in a task the tag is weft.{word}"
    short = f"name its variable in the push: `{option}=[engine.variable_of({name})]`"
    return short, f"{short}, or the one that its other ops name; in a task the tag is weft.{word}"


def _is_finite(array: Any) -> bool:
    """Whether an array has only finite values, as far as anybody can look at them."""
    try:
        host = host_of(array) if isinstance(array, NDArray) else np.asarray(array)
    except Exception:  # noqa: BLE001 - a failed array, an exporter that refuses
        return True
    if host is None or host.dtype.kind not in "fc":
        return True
    return bool(np.isfinite(host).all())


def _is_finite_value(value: Any, depth: int = 3) -> bool:
    """Whether a number, an array, or all in a list or a dict is finite."""
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if is_real(value):
        return bool(np.isfinite(value))
    if is_array(value):
        return _is_finite(value)
    return all(_is_finite_value(leaf) for leaf in _leaves(value, depth)) if is_row(value) or is_mapping(value) else True


def _leaves(value: Any, depth: int = 3) -> Iterator[Any]:
    """Yield the numbers and arrays in a result."""
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if (is_row(value) or is_mapping(value)) and depth:
        for each in [*(value.values() if is_mapping(value) else value)][:256]:
            yield from _leaves(each, depth - 1)
    elif is_array(value) or is_real(value):
        yield value


def _is_shown(path: str) -> bool:
    """Whether an expression says to its reader what it is: not so a place among arguments, or what a pointer keeps."""
    return bool(path) and path[0].isidentifier() and not path.startswith("argument ") and not path.endswith("._arr")


def _is_alone() -> bool:
    """Whether no thread of the script's runs but the one that pushes: workers that have asked for their names are none."""
    kind = getattr(threading, "_DummyThread", ())
    return sum(not isinstance(thread, kind) for thread in threading.enumerate()) <= 1


def _is_number(value: Any) -> bool:
    """Whether a value is an input of a computation."""
    if is_row(value) or is_mapping(value):
        return any(True for _ in _leaves(value))
    return isinstance(value, (int, float, complex, np.number, np.ndarray, NDArray, TaskHandle))
