"""Runs in other orders: each op's inputs and outputs as numbers, and the comparison of two runs."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from weft._doctor.findings import Finding
from weft._doctor.frames import globals_of_pusher
from weft._doctor.guards import is_array, is_mapping, is_row, is_scalar
from weft._doctor.memory import Region, Regions
from weft._doctor.programs import program_of
from weft._doctor.pushes import Owners, Push
from weft._engine.task_call import TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from weft._program.function import ProgramFunction, Settings

#: Ops that are logged for one run; later ones are not compared.
OPS = 20_000
#: The file beside a run's answer with the pushes to log.
WANTED = "wanted"
#: Regions that are compared around an op that may reach any.
_REGIONS = 256
#: The level of the stack on which a call of a program is, from the recording of the program.
_CALLER = 4
_Print = int | str | None


@dataclass(slots=True)
class Logged:
    """One op of a run.

    Parameters
    ----------
    thread, number
        Which push of which thread it is.
    name, file, line
        Its name, and where it was pushed.
    inputs, outputs : list
        Fingerprints of its declared memory, before and after it.
    others : dict
        Fingerprints of other memory that it reaches, before it.
    regions : dict
        Fingerprints of all memory that is known, before it, if no expression shows its reach: by where each was seen first,
        and its name.
    """

    thread: str
    number: int
    name: str
    file: str
    line: int
    inputs: list[_Print] = field(default_factory=list)
    outputs: list[_Print] | None = None
    others: dict[str, _Print] = field(default_factory=dict)
    regions: dict[str, _Print] = field(default_factory=dict)

    def end(self, push: Push) -> None:
        """Note the outputs."""
        self.outputs = [print_of(array) for array in push.writes]
        if isinstance(push.callable, TaskCall):
            self.outputs.append(print_of(push.callable._outcome.value))


def thread_name() -> str:
    """Return the name of the calling thread, which other runs give it, too."""
    return threading.current_thread().name


def logged(push: Push, regions: Regions) -> Logged:
    """Return the beginning of an entry for an op that is about to run."""
    entry = Logged(push.thread, push.number, push.name, push.file, push.line)
    overwritten = {id(array) for array, kind in push.declared if kind == 2}
    entry.inputs = [print_of(array) for array in push.reads]
    entry.inputs += [print_of(array) for array in push.writes if id(array) not in overwritten]
    entry.inputs += [print_of(value, arrays=False) for value in push.values() if not is_array(value)]
    entry.inputs += push.closed
    declared = [*push.reads, *push.writes]
    for path, array in push.arrays().items():
        if not any(array is one for one in declared):
            entry.others[path] = print_of(array)
    if push.is_dynamic:
        for region in itertools.islice(regions, _REGIONS):
            if region.made and not push.declares_reading(region):
                entry.regions[f"{region.made} {region.path}"] = print_of(region.array)
    return entry


def print_of(value: Any, depth: int = 4, *, arrays: bool = True) -> _Print:
    """Return a print that tells a value from others, the same in each run; None for one of an unknown kind.

    Without `arrays`, those in lists and dicts count by their shapes alone: nothing declares that they are read.

    Examples
    --------
    >>> from weft._doctor.orders import print_of
    >>> print_of([1, 2.5]) == print_of([1, 2.5]), print_of(object()) is None
    (True, True)
    """
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if is_scalar(value):
        return f"{type(value).__name__} {value!r}" if len(repr(value)) < 200 else _digest(repr(value))
    if is_array(value):
        return _print_of_array(value) if arrays else f"{tuple(value.shape)} {value.dtype}"
    found: list[_Print] | None = None
    if is_row(value) and depth:
        found = [print_of(each, depth - 1, arrays=arrays) for each in value[:1000]]
    elif is_mapping(value) and depth:
        pairs = [*value.items()][:1000]
        found = [print_of(each, depth - 1, arrays=arrays) for pair in pairs for each in pair]
    return None if found is None or None in found else _digest(f"{type(value).__name__} {found}")


def _print_of_array(array: Any) -> _Print:
    try:
        region = Region(array, "", "")
        found = region.fingerprint()
    except TypeError:
        return None
    return None if found is None else f"{found} {region.shape} {region.dtype}"


def _digest(text: str) -> str:
    import hashlib  # noqa: PLC0415 - as long as to read a short trace, for values that are printed alone

    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class OrderLog:
    """The hook of a run in a drawn order: it logs, and changes nothing of the order.

    Parameters
    ----------
    wanted : set of (str, int), optional
        Thread and number of the pushes to log: those that the check run has logged. By default all.
    """

    def __init__(self, wanted: set[tuple[str, int]] | None = None) -> None:
        self._wanted = wanted
        self.log: list[Logged] = []
        self.regions, self._owners = Regions(), Owners()
        self._numbers: Counter[str] = Counter()
        #: Threads inside of a call of a program, in which all calls run op by op.
        self._inside: set[int] = set()
        #: Functions that cannot be recorded; kept, so that no other one has their identity.
        self._plain: dict[int, Settings] = {}

    def calling(self, function: ProgramFunction, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
        """Run a call of a program op by op. Its program is recorded, too, as in the check run."""
        thread, settings = threading.get_ident(), function._settings
        if thread in self._inside:
            return function._eagerly(args, kwargs)
        if id(settings) not in self._plain:
            try:
                program_of(function, args, kwargs, _CALLER)
            except Exception:  # noqa: BLE001 - the call says so, as in the check run
                self._plain[id(settings)] = settings
        self._inside.add(thread)
        try:
            return function._eagerly(args, kwargs)
        finally:
            self._inside.remove(thread)

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
        """Put a wrapper around the callable, or return None."""
        thread, number = thread_name(), 0
        if not inside:
            self._numbers[thread] += 1
            number = self._numbers[thread]
        if inside or (self._wanted is not None and (thread, number) not in self._wanted):
            return None
        push = Push(callable_, name, place, kind, objects)
        push.thread, push.number = thread, number
        if callable_ is not None and not push.is_async and len(self.log) < OPS:
            self.regions.look_at(f"{push.thread}.{push.number}")
            push.resolve(self._owners, self.regions)
            if push.is_dynamic:
                for path, array in globals_of_pusher():
                    self.regions.of(array, path, push.file)
            push.replaced = _Logging(self, push)
        return push

    def recording(self, *_: object) -> None:
        """Log nothing of replays."""

    def pushed(self, push: Push, was_pushed: bool) -> None:
        """Nothing is left to do."""


class _Logging:
    """A callable that is logged."""

    def __init__(self, owner: OrderLog, push: Push) -> None:
        self._owner, self._push = owner, push
        self.__qualname__ = getattr(push.callable, "__qualname__", push.name)

    def __call__(self) -> Any:
        push = self._push
        push.reach = None  # as it is now
        entry = logged(push, self._owner.regions)
        answer = push.runs()
        entry.end(push)
        self._owner.log.append(entry)
        return answer


@dataclass(slots=True)
class Difference:
    """An op that gave other outputs for the same declared inputs."""

    op: Logged
    others: list[str]
    count: int = 1

    @property
    def key(self) -> tuple[str, str, int]:
        """The key that tells it from other ops."""
        return self.op.name, self.op.file, self.op.line


def differences(base: Iterable[Logged], other: Iterable[Logged]) -> tuple[dict[tuple[str, str, int], Difference], int]:
    """Compare two runs op by op.

    Returns
    -------
    dict
        By op, the first difference in the order of the other run.
    int
        How many ops were compared.
    """
    known = {(one.thread, one.number): one for one in base}
    found: dict[tuple[str, str, int], Difference] = {}
    compared = 0
    for op in other:
        first = known.get((op.thread, op.number))
        if first is None or (first.name, first.file, first.line) != (op.name, op.file, op.line):
            continue
        if first.outputs is None or op.outputs is None or len(first.outputs) != len(op.outputs):
            continue
        if first.inputs != op.inputs:  # objects of an unknown kind count as equal: their contents are not declared
            continue
        compared += 1
        pairs = zip(first.outputs, op.outputs, strict=True)
        if all(one is None or two is None or one == two for one, two in pairs):
            continue
        paths = [path for path, value in op.others.items() if path in first.others and first.others[path] != value]
        paths = paths or [
            key for key, value in op.regions.items() if key in first.regions and first.regions[key] != value
        ]
        difference = found.setdefault((op.name, op.file, op.line), Difference(op, paths, 0))
        difference.count += 1
    return found, compared


def findings_of(
    drawn: dict[tuple[str, str, int], Difference],
    again: dict[tuple[str, str, int], Difference],
    known: Iterable[Finding],
) -> list[Finding]:
    """Return findings from differences between runs.

    Parameters
    ----------
    drawn : dict
        Differences in orders that were drawn.
    again : dict
        Differences between two runs in the same order.
    known : iterable of Finding
        Errors that were found otherwise: they explain the results of their ops.
    """
    explained = {(one.file, one.line) for one in known if one.severity == "error"}
    found: list[Finding] = []
    for key, difference in {**drawn, **again}.items():
        op = difference.op
        place = op.file, op.line
        if place in explained:
            continue
        shown = f"`{op.name}` ({op.file.replace(chr(92), '/').rpartition('/')[2]}:{op.line})"
        if key not in again and difference.others:
            name = difference.others[0].rpartition(" ")[2]
            name = f"`{name}`" if name else "memory"
            found.append(
                Finding(
                    "undeclared-read",
                    *place,
                    f"{shown} reads {name} and does not say so: in another order of the ops it gives other values for the "
                    "same declared inputs",
                    "take it as an argument with the tag weft.Read, or name it in the push: `read_vars=[...]`",
                    count=difference.count,
                )
            )
        else:
            when = "the next time" if key in again else "in another order of the ops"
            found.append(
                Finding(
                    "nondeterministic",
                    *place,
                    f"{shown} gives other bits {when} for the same inputs",
                    "pass all that it depends on: a seeded generator as an argument, the time, the order of a set; or declare the "
                    "memory that it reads",
                    count=difference.count,
                )
            )
        explained.add(place)
    return found
