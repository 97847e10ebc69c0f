"""The hook of a check run: ops run one at a time, and memory is compared around them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._core import NDArray, _watch_drain, _watch_origins
from weft._doctor.findings import Finding
from weft._doctor.guards import is_array, is_real, is_row
from weft._doctor.memory import Region, Regions, host_of
from weft._doctor.orders import OPS, Logged, logged
from weft._doctor.pushes import Owners, Push, place_of
from weft._doctor.reach import loaded
from weft._doctor.sources import made_at
from weft._engine.task_call import TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from weft._core import _Origins
    from weft._doctor.findings import Report

#: Pushes of one line that are checked whatever it takes, and seconds that checks may take in any case.
_FIRST = 4
_GRACE = 0.5
#: Seconds that it takes until another thread has run a short op, about.
_HANDED_OVER = 3e-4
#: What checks may take beside the script, as a part of its own time.
_SHARE = 1.5
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
        self.region, self.path, self.wrote = region, path, wrote
        self.says_read = any(one is region.array for one in push.reads)
        self.guards = {key for key, writes in push.guards.items() if writes or not wrote}
        self.version = region.version()
        self.count = 0


class _Passed:
    """An op that is not looked at."""

    replaced = None
    number = 0


_PASSED: Any = _Passed()


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
        self._lock = threading.RLock()
        self._current: Push | None = None
        self._accesses: dict[tuple[object, int, bool], Access] = {}
        self._writers: dict[Region, set[object]] = {}
        self._reached: set[tuple[object, Region]] = set()
        self._pushes: Counter[int] = Counter()
        self._threads: dict[int, int] = {}
        self._numbers: Counter[int] = Counter()
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
        if not inside and not self._is_due(place):
            self._counts["ops that were not looked at"] += 1
            self._numbers[self._thread()] += 1
            return cast("Push", _PASSED)
        push = Push(callable_, name, place, kind, objects)
        if inside:  # its op runs: nobody can wait for it
            current = self._current
            push.resolve(self._owners, self._regions)
            if current is not None:
                current.inner += push.covers
            self._counts["pushed inside ops"] += 1
            return push
        if not self._lock.acquire(timeout=_PATIENCE):
            self._counts["pushed while another thread was busy"] += 1
            return push
        begun = time.perf_counter()
        try:
            self._drain()
            push.thread = self._thread()
            self._numbers[push.thread] += 1
            push.number = self._numbers[push.thread]
            push.resolve(self._owners, self._regions)
            self._before(push)
        except BaseException:
            self._lock.release()
            raise
        self._current = push
        push.started = time.perf_counter()
        self._spent += push.started - begun
        return push

    def pushed(self, push: Push, was_pushed: bool) -> None:
        """Look at the memory after it."""
        if not push.number:
            return
        try:
            if not was_pushed:
                return
            ended = self._drain()
            begun = time.perf_counter()
            # The op itself ran meanwhile, and another thread had to take it.
            self._spent += min(begun - push.started, _HANDED_OVER)
            if not ended:
                self._counts["ops that ended later"] += 1
                return
            self._after(push)
            self._spent += time.perf_counter() - begun
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

    def _thread(self) -> int:
        return self._threads.setdefault(threading.get_ident(), len(self._threads))

    def _is_due(self, place: int) -> bool:
        """Return whether the op that is pushed there is checked: the first ones, and what there is time for."""
        self._pushes[place] += 1
        count = self._pushes[place]
        if count <= _FIRST or count & (count - 1) == 0:
            return True
        elapsed = time.perf_counter() - self._started
        return self._spent < _GRACE or self._spent < _SHARE * (elapsed - self._spent)

    def _before(self, push: Push) -> None:
        self._counts["ops"] += 1
        if self.kinds & {"undeclared-write", "undeclared-read"}:
            self._read_by_name(push)
        if "undeclared-write" in self.kinds:
            push.before = {region: region.fingerprint(push.covers) for region in self._around(push)}
            push.versions = {region: region.version() for region in push.before if region.is_array}
        if "first-nan" in self.kinds:
            changed = [*push.writes]
            if push.guards:
                changed += push.arrays().values()
            push.odd = not all(map(_is_finite, changed)) or not all(map(_is_finite_value, push.values()))
        if self._logs and len(self.log) < OPS:
            push.entry = logged(push)
            self.log.append(push.entry)

    def _around(self, push: Push) -> Iterator[Region]:
        for path, array in push.arrays().items():
            self._regions.of(array, path, push.file)
        yield from self._regions

    def _after(self, push: Push) -> None:
        if push.before is not None:
            alone = threading.active_count() == 1
            paths = self._paths(push)
            for region, before in push.before.items():
                after = region.fingerprint(push.covers)
                if before is None or after is None:
                    self._counts["memory that cannot be read"] += before is None
                elif before == after or push.versions.get(region) != region.version():
                    continue  # an op that was pushed inside, or an array op, has written to it
                elif any(first < region.span[1] and region.span[0] < end for first, end in push.inner):
                    self._counts["changes by ops that were pushed inside ops"] += 1
                elif not alone and region not in paths:
                    self._counts["changes while other threads ran"] += 1
                else:
                    push.changed.append(region)
                    self._wrote(push, region, paths.get(region, ""))
        if "first-nan" in self.kinds:
            self._look_for_nan(push)
        if push.entry is not None:
            push.entry.end(push)

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
        arrays = push.arrays()
        names = loaded(push.callable)
        parameters = push.parameters()
        for path, array in arrays.items():
            region = self._regions.of(array, path, push.file)
            if region is not None and not push.declares_reading(region):
                self._reached.add((push.key, region))
                if path in names or path in parameters:
                    region.votes.update(push.guards)
                    # A variable is often called as the array for which it stands.
                    region.votes.update(key for key, name in push.names.items() if name == path)
                    self._note(push, region, path, wrote=False)

    # NaNs.

    def _look_for_nan(self, push: Push) -> None:
        results: list[Any] = [*push.writes, *(region.array for region in push.changed)]
        if isinstance(push.callable, TaskCall):
            results.append(push.callable._outcome.value)
        hosts = [result for result in results if not isinstance(result, NDArray)]
        read_is_finite = not push.odd and all(map(_is_finite, push.reads))
        if not read_is_finite:
            self._vetoed.add(push.place)
            return
        given = [each for each in push.values() if not any(each is written for written in push.writes)]
        has_input = bool(push.reads or push.guards or any(map(_is_number, given)))
        has_input = has_input or any(kind == 1 for _, kind in push.declared)
        bad = next((result for result in hosts if not _is_finite_value(result)), None)
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
        for (key, region, wrote), access in self._accesses.items():
            if wrote and self._is_undeclared(access):
                written.add((key, region))
                flawed.add(region)
                if "undeclared-write" in self.kinds:
                    report.add(self._finding("undeclared-write", access))
        for (key, region, wrote), access in self._accesses.items():
            if wrote or (key, region) in written or "undeclared-read" not in self.kinds:
                continue
            if self._is_raced(access, flawed):
                report.add(self._finding("undeclared-read", access))

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

    def _finding(self, kind: str, access: Access) -> Finding:
        region = access.region
        name = access.path or region.path or f"an array of shape {tuple(region.shape)}"
        quoted = f"`{name}`" if access.path or region.path else name
        line = made_at(region.file or access.place[0], name) if quoted[0] == "`" else 0
        file = (region.file or access.place[0]).replace("\\", "/").rpartition("/")[2]
        made = f" (made at {file}:{line})" if line else ""
        wrote = kind == "undeclared-write"
        message = f"{access.label} {'writes' if wrote else 'reads'} {quoted}{made} and does not say so"
        return Finding(kind, *access.place, message, _cure(access, name, wrote=wrote), count=access.count)


def _cure(access: Access, name: str, *, wrote: bool) -> str:
    word = "Mutate" if wrote else "Read"
    if access.says_read and wrote:
        return "it is declared as read: tag it weft.Mutate, or weft.Overwrite if all of it is written, instead of weft.Read"
    if access.task:
        plain = name if name.isidentifier() else "x"
        option = "mutates" if wrote else "reads"
        return f"take it as `{plain}: weft.{word}`, or declare it by `@weft.task({option}=[{name}])`"
    option = "mutate_vars" if wrote else "read_vars"
    if isinstance(access.region.array, NDArray):
        return f"name it in the push: `{option}=[{name}]`"
    return f"name its variable in the push: `{option}=[engine.variable_of({name})]`, or the one that its other ops name"


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
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if is_real(value):
        return bool(np.isfinite(value))
    if is_array(value):
        return _is_finite(value)
    if is_row(value) and depth:
        return all(_is_finite_value(each, depth - 1) for each in value[:256])
    return True


def _is_number(value: Any) -> bool:
    """Whether a value is an input of a computation."""
    return isinstance(value, (int, float, complex, np.number, np.ndarray, NDArray, TaskHandle, list))
