"""State that is made while a thread records, and must not become part of the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from weft._core import Scope, recording, unrecorded

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def outside(make: Callable[[], T]) -> T:
    """Return the result of `make`, computed now, even while this thread records a program.

    Arrays made in a recording exist only in the program; parameters and an optimizer's state outlive it.
    """
    if recording() is None:
        return make()
    with Scope(paused=False):
        return unrecorded(make)
