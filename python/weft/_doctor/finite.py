"""Whether values are finite, and which op made the first that are not."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, _watch_origins
from weft._doctor.findings import Finding
from weft._doctor.guards import is_array, is_mapping, is_number, is_real, is_row
from weft._doctor.memory import host_of
from weft._doctor.pushes import place_of
from weft._engine.observers import caller
from weft._engine.owners import owner_of, weakly_referenceable
from weft._engine.task_call import TaskCall
from weft._engine.task_handle import TaskHandle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from weft._core import _Origin
    from weft._doctor.findings import Report
    from weft._doctor.pushes import Push


_TO_DO = (
    "look at the inputs of this line: a logarithm or division of 0, a root of a negative number, a sum that overflows"
)
_TO_SEE = "look for its op: in a program with functions of yours it is named where calls run op by op; run fewer turns before this one"


@dataclass
class Suspect:
    """Calls of a program with results that are not finite, out of finite inputs, by an op that is not known.

    Parameters
    ----------
    name, file, line
        The program, and where it was called.
    found, shape
        Elements of its first such result that are no numbers, and that are infinite; the shape of that.
    read : str
        The shapes of its inputs.
    """

    name: str
    file: str
    line: int
    found: tuple[int, int]
    shape: tuple[int, ...]
    read: str
    count: int = 0
    #: Whether a later call says more: it has found such an op, or makes such values without one.
    is_told: bool = False


class FirstNaNs:
    """The ops that made the first values that are not finite."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, int], Finding] = {}
        self._origins: list[_Origin] = []
        #: Inputs of ops that made such values: other results of theirs have the same cause.
        self._inputs: list[weakref.ref[Any]] = []
        _watch_origins()  # an earlier look's
        #: Ops of weft's own, and those that the core cannot look at.
        self.checked = self.unseen = 0

    def _take(self) -> list[_Origin]:
        """Return the core's findings since the last question."""
        origins = _watch_origins()
        self.checked += origins["checked"]
        self.unseen += origins["unseen"]
        return origins["found"]

    def keep(self) -> int:
        """Keep the core's findings until now. Return the number of its ops since the last time."""
        before = self.checked
        self._origins += self._take()
        return self.checked - before

    @property
    def number(self) -> int:
        """How often an op has made such values until now."""
        return len(self._origins) + sum(finding.count for finding in self._found.values())

    def before(self, push: Push) -> None:
        """Look at the arrays that an op reads and changes."""
        changed = [*push.writes, *push.reads]
        if push.guards:
            changed += push.arrays().values()
        push.odd = not all(map(is_finite, changed)) or not all(map(is_finite_value, push.values()))
        if push.odd:
            self._origins += self._take()

    def after(self, push: Push) -> None:
        """Look at its results."""
        if push.odd:  # the core's findings at its line are nothing new
            self._origins += [origin for origin in self._take() if origin["place"] != push.place]
            return
        results: list[Any] = [*push.writes, *(region.array for region in push.changed)]
        if isinstance(push.callable, TaskCall):
            results.append(push.callable._outcome.value)
        hosts = [leaf for result in results if not isinstance(result, NDArray) for leaf in _leaves(result)]
        bad = next((leaf for leaf in hosts if not is_finite_value(leaf)), None)
        if bad is None or not _has_input(push):
            return
        key = (push.name, push.file, push.line)
        owners = [owner_of(array) for array in push.reads if not isinstance(array, NDArray)]
        if key not in self._found and any(reference() is owner for reference in self._inputs for owner in owners):
            return
        self._inputs += [weakref.ref(owner) for owner in owners if weakly_referenceable(owner)]
        self._add(key, *_odd_in(bad), _shapes_of(push.reads) or "its arguments")

    def suspected(self, name: str, made: Iterable[Any], read: Iterable[Any]) -> Suspect:
        """Return the call of a program by the line that pushes, of which results are not finite."""
        odd = next(host for array in made if (host := host_of(array)) is not None and not is_finite(array))
        return Suspect(name, *caller(), *_odd_in(odd), _shapes_of(read) or "its arguments")

    def suspect(self, call: Suspect) -> None:
        """Add a finding for it, unless an op was found."""
        if not call.is_told:
            self._add((call.name, call.file, call.line), call.found, call.shape, call.read, call.count, _TO_SEE)

    def _add(
        self,
        key: tuple[str, str, int],
        found: tuple[int, int],
        shape: tuple[int, ...],
        read: str,
        count: int = 1,
        advice: str = _TO_DO,
    ) -> None:
        known = self._found.get(key)
        if known is not None:
            known.count += count
            return
        name, file, line = key
        size = int(np.prod(shape, dtype=object)) if shape else 1
        numbers = " and ".join(
            f"{number:,} {word}" for number, word in zip(found, ("NaN", "infinite"), strict=True) if number
        )
        self._found[key] = Finding(
            "first-nan",
            file,
            line,
            f"`{name}` makes the first values that are not finite: {numbers} of {size:,} elements of shape {shape}, out of finite "
            f"inputs of shape {read}",
            advice,
            count=count,
        )

    def finish(self, report: Report, *, told: bool) -> None:
        """Add the findings."""
        for origin in [*self._origins, *self._take()]:
            read = ", ".join(str(tuple(shape)) for shape in origin["read"])
            found = origin["nan"], origin["infinite"]
            self._add(
                (origin["name"], *place_of(origin["place"])), found, tuple(origin["shape"]), read, origin["count"]
            )
        if told:
            for finding in self._found.values():
                report.add(finding)


def _has_input(push: Push) -> bool:
    """Whether an op computes from anything: one that does not has made its values because it was asked to."""
    given = [each for each in push.values() if not any(each is written for written in push.writes)]
    numbers = any(True for each in given for _ in _leaves(each)) or any(isinstance(each, TaskHandle) for each in given)
    return bool(push.reads or push.guards or numbers) or any(kind == 1 for _, kind in push.declared)


def _odd_in(array: Any) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return how many elements are no numbers, and how many are infinite; and the shape."""
    values = np.asarray(array)
    return (int(np.isnan(values).sum()), int(np.isinf(values).sum())), tuple(values.shape)


def _shapes_of(arrays: Iterable[Any]) -> str:
    return ", ".join(str(tuple(array.shape)) for array in arrays)


def is_finite(array: Any) -> bool:
    """Whether an array has only finite values, as far as anybody can look at them."""
    try:
        host = host_of(array) if isinstance(array, NDArray) else np.asarray(array)
    except Exception:  # noqa: BLE001 - a failed array, an exporter that refuses
        return True
    if host is None or host.dtype.kind not in "fc":
        return True
    return bool(np.isfinite(host).all())


def is_finite_value(value: Any, depth: int = 3) -> bool:
    """Whether a number, an array, or all in a list or a dict is finite."""
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if is_real(value):
        return bool(np.isfinite(value))
    if is_array(value):
        return is_finite(value)
    return all(is_finite_value(leaf) for leaf in _leaves(value, depth)) if is_row(value) or is_mapping(value) else True


def _leaves(value: Any, depth: int = 3) -> Iterator[Any]:
    """Yield the numbers and arrays in a result."""
    if isinstance(value, TaskHandle):
        value = value._outcome.value
    if (is_row(value) or is_mapping(value)) and depth:
        for each in [*(value.values() if is_mapping(value) else value)][:256]:
            yield from _leaves(each, depth - 1)
    elif is_array(value) or is_number(value):
        yield value
