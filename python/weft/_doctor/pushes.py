"""One push as the hook sees it: the callable, the line, and the declared accesses."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from weft._core import NDArray, Variable, _place
from weft._doctor.guards import as_row, is_array, is_mapping, is_memory
from weft._doctor.memory import Region, Regions, covered, span_of
from weft._doctor.reach import arguments_of, attributes_of, closed_over, functions_of, reached
from weft._doctor.sources import split_place
from weft._doctor.uses import is_dynamic, used
from weft._engine.identity import ObjectVariables
from weft._engine.owners import owner_of
from weft._engine.task_call import GuardedCall, TaskCall
from weft._trace.record import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from weft._doctor.memory import Span

_OVERWRITE = 2
#: Variables that are remembered.
_VARIABLES = 100_000
#: Places that were described.
_places: dict[int, tuple[str, int]] = {}


def place_of(bits: int) -> tuple[str, int]:
    """Return file and line of a push."""
    found = _places.get(bits)
    if found is None:
        found = _places[bits] = split_place(_place(bits))
    return found


class Owners:
    """The objects with variables made by `Engine.variable_of`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], weakref.ref[Any] | None] = {}

    def of(self, variable: Variable) -> Any:
        """Return the object of a variable, or None if it was made by hand."""
        key = variable._key
        if len(self._known) > _VARIABLES:
            self._known.clear()
        if key not in self._known:
            for registry in [*ObjectVariables.living]:
                for owner, other in registry.newest():
                    if other._key in self._known:
                        break
                    self._known[other._key] = weakref.ref(owner)
            self._known.setdefault(key, None)
        reference = self._known[key]
        return None if reference is None else reference()


class Push:
    """A push of a callable or a native function.

    Parameters
    ----------
    callable_ : callable or None
        None for a native function.
    name : str or None
        The name that it was given.
    place : int
        Its place, as the core has it.
    kind : int
        A `Kind`.
    objects : sequence of (Variable or NDArray, int)
        Its declared accesses.
    """

    __slots__ = (
        "before", "begun", "callable", "changed", "closed", "covers", "declared", "entry", "file", "guards", "handle", "inner", "is_async", "is_short", "key", "label",
        "line", "name", "names", "number", "odd", "own", "owners", "parent", "place", "reach", "reads", "replaced", "runs", "thread", "took", "versions",
        "writes",
    )  # fmt: skip

    def __init__(
        self, callable_: Any, name: str | None, place: int, kind: int, objects: Sequence[tuple[Any, int]]
    ) -> None:
        self.replaced: Any = None
        #: The callable that runs, and the call of a task behind it.
        self.runs = callable_
        if isinstance(callable_, GuardedCall):
            callable_ = callable_._call
        self.callable = callable_
        #: The op inside which it was pushed.
        self.parent: Push | None = None
        function = next(functions_of(callable_), None)
        self.name: str = (
            name
            or getattr(callable_, "__qualname__", None)
            or ("native function" if callable_ is None else type(callable_).__name__)
        )
        self.name = self.name.rpartition("<locals>.")[2]
        self.place = place
        self.file, self.line = place_of(place)
        if function is not None and isinstance(callable_, TaskCall):
            self.key: object = (function.__code__, self.name)
        else:
            self.key = (self.file, self.line, self.name)
        self.is_async = kind == Kind.ASYNC
        self.declared = objects
        self.reach: dict[str, Any] | None = None
        #: Arrays that it reads, and that it changes, and the spans of those.
        self.reads: list[Any] = []
        self.writes: list[Any] = []
        self.covers: list[Span] = []
        #: Spans that ops change which were pushed inside of it.
        self.inner: list[Span] = []
        #: Objects with variables that are no arrays, and how it accesses them.
        self.owners: list[tuple[Any, int]] = []
        #: Variables made by hand, with whether it changes them.
        self.guards: dict[tuple[int, int], bool] = {}
        self.names: dict[tuple[int, int], str | None] = {}
        self.handle: tuple[int, int] | None = None
        self.before: dict[Region, Any] | None = None
        self.versions: dict[Region, int | None] = {}
        self.odd = False
        #: The entry that an order run compares it with.
        self.entry: Any = None
        self.changed: list[Region] = []
        #: Seconds that it took; -1 before.
        self.took = -1.0
        #: When its check began, and the seconds since that are the script's own.
        self.begun = self.own = 0.0
        #: Whether its names are not looked at: those of its line were.
        self.is_short = False
        self.number, self.thread = 0, ""
        #: The numbers and texts that it closes over when it is pushed.
        self.closed = [f"{value!r}" for value in closed_over(callable_)]
        self.label = f"`{self.name}` ({self.shown})"

    @property
    def shown(self) -> str:
        """The line of its push, without the folder."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"

    def resolve(self, owners: Owners, regions: Regions) -> None:
        """Find its declared accesses."""
        names = self._parameters()
        for item, kind in self.declared:
            if isinstance(item, NDArray):
                self._array(item, kind, regions, names.get(id(item), ""), strict=True)
                continue
            owner = owners.of(item)
            if owner is None:
                self.guards[item._key] = bool(kind) or self.guards.get(item._key, False)
                self.names[item._key] = item.name
            elif is_memory(owner):
                self._array(owner, kind, regions, names.get(id(owner), ""), strict=True)
            else:
                # Memory of a file, of ctypes, of another library: its arrays are not the owners of it.
                on = [(path, array) for path, array in self.arrays().items() if owner_of(array) is owner]
                self.owners.append((owner, kind))
                for path, array in on or _arrays_in(owner):
                    self._array(array, kind, regions, path, strict=bool(on))
        if isinstance(self.callable, TaskCall) and self.declared:
            # A call's own result comes behind all other variables.
            last, kind = next(
                ((item, kind) for item, kind in reversed(self.declared) if isinstance(item, Variable)), (None, 0)
            )
            if kind == _OVERWRITE and last is not None and owners.of(last) is None:
                self.handle = last._key
                self.guards.pop(last._key, None)
                self.names.pop(last._key, None)

    def _parameters(self) -> dict[int, str]:
        """Return the names of a task's parameters by the identities of its arguments."""
        given = arguments_of(self.callable)
        if given is None:
            return {}
        return {id(owner_of(one)): name for name, one in given[1].items() if is_memory(one) or isinstance(one, NDArray)}

    def _array(self, array: Any, kind: int, regions: Regions, path: str, *, strict: bool) -> None:
        region = regions.of(array, path, self.file)
        if region is not None:
            region.is_known |= strict
            if kind:
                region.writers.add(self.key)
        (self.writes if kind else self.reads).append(array)
        if kind:
            span = span_of(array)
            self.covers.append(region.span if region is not None and not isinstance(array, NDArray) else span)

    def arrays(self) -> dict[str, Any]:
        """Return the arrays that its callable reaches, by their expressions."""
        if self.reach is None:
            self.reach = reached(self.callable) if self.callable is not None else {}
        return self.reach

    def declares_reading(self, region: Region) -> bool:
        """Whether it says that it reads all of a region, or changes it."""
        spans = [*self.covers, *(span_of(array) for array in self.reads)]
        if any(region.is_of(owner) for owner, _ in self.owners):
            return True
        return region.span[0] == region.span[1] or covered(region.span, spans)

    def declares_writing(self, region: Region) -> bool:
        """Whether it says that it changes the object that owns a region."""
        return any(kind and region.is_of(owner) for owner, kind in self.owners)

    def uses(self) -> dict[int, tuple[str, Any]]:
        """Return the arrays that its callable is certain to use, by their identities, and how it names them."""
        return {} if self.callable is None else used(self.callable)

    @property
    def is_dynamic(self) -> bool:
        """Whether it may reach memory in ways that no expression shows."""
        return self.callable is None or is_dynamic(self.callable)

    def values(self) -> Iterator[Any]:
        """Yield the arguments of a task's call that are no arrays."""
        if isinstance(self.callable, TaskCall):
            yield from self.callable._args
            yield from self.callable._kwargs.values()


def _arrays_in(owner: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays that an object holds in attributes, lists and dicts."""
    pending: list[tuple[str, Any, int]] = [("", owner, 0)]
    seen: set[int] = set()
    while pending and len(seen) < 1000:
        path, value, depth = pending.pop()
        if id(value) in seen or depth > 4:
            continue
        seen.add(id(value))
        if is_array(value):
            yield path, value
        elif (row := as_row(value, 256)) is not None:
            pending += [(f"{path}[{at}]", item, depth + 1) for at, item in enumerate(row)]
        elif is_mapping(value):
            pending += [(f"{path}[{key!r}]", item, depth + 1) for key, item in [*value.items()][:256]]
        elif depth == 0 or hasattr(value, "__dict__"):
            pending += [(f"{path}.{name}".lstrip("."), item, depth + 1) for name, item in attributes_of(value)]
