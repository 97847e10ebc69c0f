"""A plugin of pytest's under which each test runs in a block of the doctor, and fails if that finds an error: ``-p doctored``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Tests whose ops do what the doctor is there to find.
KNOWN: frozenset[str] = frozenset()


@pytest.fixture(autouse=True)
def doctored(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check what a test pushes."""
    with weft.doctor(only=["undeclared-write", "undeclared-read", "first-nan"]) as report:
        yield
    if request.node.originalname not in KNOWN:
        assert [str(one) for one in report.errors] == []
