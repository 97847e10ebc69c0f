"""``weft bench kernels``: each library answers, and what it does is counted right."""

from __future__ import annotations

import pytest

from weft._command.tables import show
from weft.bench.kernels.command import _rows
from weft.bench.kernels.host import CASES, flops
from weft.bench.kernels.measuring import measure


@pytest.mark.slow
def test_every_case_is_timed_and_shown() -> None:
    cases = (CASES[0], CASES[1], CASES[-1])
    found = measure(1, 1, {}, cases)
    assert set(found.times) == set(cases)
    assert all(len(values) == 3 for times in found.times.values() for values in times.values())
    assert any("program" in name for name in found.times[CASES[-1]])
    rows = _rows(found)
    assert [row[0] for row in rows] == ["", *cases]
    assert all(len(row) == len(rows[0]) for row in rows)
    show("T", rows)


def test_operations_are_counted() -> None:
    assert flops("8x64x56^2, 64 of 3^2: forward") == 2 * 8 * 56 * 56 * 64 * 64 * 9
    assert flops("8x64x56^2, 64 of 3^2: backward") == 4 * 8 * 56 * 56 * 64 * 64 * 9
