"""State that is made while a thread records, and must not be part of what is recorded."""

from __future__ import annotations

import contextvars
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from weft._core import recording

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["outside"]

T = TypeVar("T")


def outside(make: Callable[[], T]) -> T:
    """Return what `make` makes, now, though this thread may be recording a program.

    What is made in a recording has its place in the program alone; parameters and an optimizer's state outlive it.
    """
    if recording() is None:
        return make()
    made: list[T] = []
    failed: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            made.append(context.run(make))
        except BaseException as error:  # noqa: BLE001 - raised below, where it was asked for
            failed.append(error)

    # A recording is a thread's own: what another one pushes runs.
    thread = Thread(target=run, name="weft-outside")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]
