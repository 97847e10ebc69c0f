"""Failures of native ops carry the op and the line that pushed it, as those of callables do."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).name


def cross_entropy(labels: weft.NDArray) -> Any:
    return weft.nn.cross_entropy(weft.ones((3, 4), dtype="f4"), labels)


def embedding(labels: weft.NDArray) -> Any:
    return weft.nn.embedding(labels, weft.ones((4, 2), dtype="f4"))


def here() -> int:
    """The line of the caller."""
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


@pytest.mark.parametrize("op", [cross_entropy, embedding])
def test_kernels(op: Callable[[weft.NDArray], Any]) -> None:
    line = op.__code__.co_firstlineno + 1
    labels = weft.asarray(np.array([0, 9, 1], "i4"))
    for function in (op, weft.program(op)):
        for _ in range(2):
            found = function(labels)
            with pytest.raises(IndexError) as caught:
                found.numpy()
            (note,) = [note for note in caught.value.__notes__ if "pushed at" in note]
            assert note.startswith("weft: op 'nn.")
            assert note.endswith(f"{HERE}:{line}")


def test_allocation() -> None:
    huge, line = weft.ones((1 << 46,), dtype="u1"), here()
    with pytest.raises(MemoryError) as caught:
        huge.wait_to_read()
    assert caught.value.__notes__[0].endswith(f"{HERE}:{line}")
