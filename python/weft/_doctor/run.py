"""A trace, and the facts that looks for advice need."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from weft._doctor.sources import split_place
from weft._trace.record import Access, distinct

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._trace.record import Record


@dataclass
class Run:
    """A trace, and the facts that several looks need.

    Parameters
    ----------
    record : Record
        The trace.
    workers : int
        Workers of its engine.
    """

    record: Record
    workers: int

    def __post_init__(self) -> None:
        ops = self.record.ops
        self.ops = ops
        self.took: npt.NDArray[np.float64] = self.record.durations() / 1e9
        self.pushed = ops["pushed"].astype(np.int64)
        self.ends = self.record.ends().astype(np.int64)
        self.top = ops["parent"] == -1
        self._places: dict[int, tuple[str, int]] = {}

    @cached_property
    def accesses(self) -> dict[int, list[tuple[int, int]]]:
        """The accesses of each op: variable and kind."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for op, variable, kind, _ in self.record.accesses.tolist():
            found[op].append((variable, kind))
        return found

    def place(self, op: int) -> tuple[str, int]:
        """Return file and line of an op's push."""
        number = int(self.ops["place"][op])
        if number not in self._places:
            self._places[number] = located(self.record.place(op))
        return self._places[number]

    def by_place(self, chosen: npt.NDArray[np.int64]) -> dict[tuple[str, int], list[int]]:
        """Return ops by file and line of their pushes."""
        groups: dict[tuple[str, int], list[int]] = defaultdict(list)
        numbers = self.ops["place"][chosen]
        for number in distinct(numbers)[0].tolist():
            group: list[int] = chosen[numbers == number].tolist()
            groups[self.place(group[0])] += group
        return groups

    @property
    def overwrites_again(self) -> bool:
        """Whether an op overwrites a variable that another one has used."""
        accesses = self.record.accesses
        _, first = distinct(accesses["variable"])
        later = np.ones(len(accesses), np.bool_)
        later[first] = False
        return bool((later & (accesses["kind"] == Access.OVERWRITE)).any())

    def finish_times(self, chosen: npt.NDArray[np.int64]) -> float:
        """Return the seconds that ops take from the first to the last, without waits between their pushes."""
        written: dict[int, float] = {}
        read: dict[int, float] = {}
        critical = 0.0
        for op in chosen.tolist():
            begins = 0.0
            for variable, kind in self.accesses[op]:
                begins = max(begins, written.get(variable, 0.0))
                if kind != Access.READ:
                    begins = max(begins, read.get(variable, 0.0))
            ends = begins + float(self.took[op])
            critical = max(critical, ends)
            for variable, kind in self.accesses[op]:
                if kind == Access.READ:
                    read[variable] = max(read.get(variable, 0.0), ends)
                else:
                    written[variable] = ends
        return max(critical, float(self.took[chosen].sum()) / self.workers)


def located(place: str) -> tuple[str, int]:
    """Return file and line of a place, the file as the system names it."""
    file, line = split_place(place)
    return (os.path.abspath(file) if file else "", line)  # noqa: PTH100 - without a look at links
