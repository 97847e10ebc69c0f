"""Engines, variables and a native op for the benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import weft
from weft.bench import native_ops

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
def default_engine(engine: weft.Engine) -> Iterator[weft.Engine]:
    """The same, as the default engine."""
    previous = weft.set_engine(engine)
    yield engine
    weft.set_engine(previous)


@pytest.fixture
def variables(engine: weft.Engine) -> list[weft.Variable]:
    """Sixteen variables of the engine."""
    return [engine.new_variable() for _ in range(16)]


@pytest.fixture(scope="session")
def native_no_op() -> int:
    """Return the address of a native function that does nothing."""
    native = native_ops.load()
    assert native is not None, "the C library has no functions of one pointer to call"
    return native.no_op_address
