"""State that is made while a thread records, and must not be part of what is recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from weft._core import Scope, recording, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def outside(make: Callable[[], T]) -> T:
    """Return what `make` makes, now, though this thread may be recording a program.

    What is made in a recording has its place in the program alone; parameters and an optimizer's state outlive it.
    """
    if recording() is None:
        return make()
    with Scope(paused=False):
        return unrecorded(make)
