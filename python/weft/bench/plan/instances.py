"""Intervals in files, as MiniMalloc has them: a row each, columns by name."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from weft._command.running import CommandError

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

#: The names of a column.
_NAMES = {"lower": ("lower", "begin", "start"), "upper": ("upper", "end"), "size": ("size",)}


@dataclass(frozen=True, eq=False, slots=True)
class Instance:
    """The intervals of a file."""

    name: str
    path: Path
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    size: NDArray[np.int64]
    #: The capacity that the file's name tells: ``NAME.CAPACITY.csv``.
    capacity: int | None

    @property
    def peak(self) -> int:
        """The most bytes that are live at the same time.

        Examples
        --------
        >>> import numpy as np
        >>> from pathlib import Path
        >>> from weft.bench.plan.instances import Instance
        >>> lower, upper, size = np.array([0, 1, 2]), np.array([2, 3, 3]), np.array([8, 16, 4])
        >>> Instance("a", Path("a.csv"), lower, upper, size, None).peak
        24
        """
        times = np.concatenate([self.upper, self.lower])
        changes = np.concatenate([-self.size, self.size])
        # Ends come before begins at the same time: intervals are half open.
        order = np.lexsort((changes, times))
        return int(max(changes[order].cumsum(), default=0))


def read_folder(folder: Path) -> list[Instance]:
    """Read all CSV files of a folder, by name.

    Raises
    ------
    CommandError
        If there is no such folder, no CSV file in it, or one without such columns.
    """
    if not folder.is_dir():
        raise CommandError(f"{folder}: there is no such folder")
    paths = sorted(folder.glob("*.csv"))
    if not paths:
        raise CommandError(f"{folder}: there are no .csv files")
    return [read(path) for path in paths]


def read(path: Path) -> Instance:
    """Read one file.

    Raises
    ------
    CommandError
        If it has other columns, or something in them is no integer.
    """
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        columns = {name: _column(path, rows.fieldnames or (), name) for name in _NAMES}
        values: dict[str, list[int]] = {name: [] for name in _NAMES}
        for row in rows:
            for name, column in columns.items():
                try:
                    values[name].append(int(row[column]))
                except (TypeError, ValueError):
                    raise CommandError(
                        f"{path}, line {rows.line_num}: {column} is {row[column]!r}, no integer"
                    ) from None
    stem, _, capacity = path.stem.rpartition(".")
    known = capacity.isdecimal() and bool(stem)
    arrays = {name: np.array(column, np.int64) for name, column in values.items()}
    return Instance(stem if known else path.stem, path, **arrays, capacity=int(capacity) if known else None)


def _column(path: Path, names: object, wanted: str) -> str:
    found = [name for name in _NAMES[wanted] if name in (names if isinstance(names, (list, tuple)) else ())]
    if not found:
        raise CommandError(f"{path}: the first line names no column {' or '.join(_NAMES[wanted])}")
    return found[0]
