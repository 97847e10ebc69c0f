"""Engines for the push and wait benchmarks."""

from __future__ import annotations

import ctypes
import ctypes.util
from typing import TYPE_CHECKING

import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def engine() -> Iterator[weft.Engine]:
    """Two workers, threads already running."""
    with weft.Engine(2) as made:
        made.push(lambda: None)
        made.wait_for_all()
        yield made


@pytest.fixture
def variables(engine: weft.Engine) -> list[weft.Variable]:
    """Sixteen variables of the engine."""
    return [engine.new_variable() for _ in range(16)]


@pytest.fixture(scope="session")
def native_no_op() -> int:
    """Return the address of a function of C's library that may be called with 0 and returns 0: ``abs``."""
    address = ctypes.cast(ctypes.CDLL(ctypes.util.find_library("c")).abs, ctypes.c_void_p).value
    assert address is not None
    return address
