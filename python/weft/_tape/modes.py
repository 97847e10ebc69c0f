"""Whether the tape listens, and whether layers train: for each thread and each task of asyncio by itself."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import numpy as np

from weft._core import tape_mode, tape_pause
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Generator

#: None where nobody has said: then the tape listens.
LISTENING: ContextVar[bool | None] = ContextVar("weft.autograd.listening", default=None)
TRAINING: ContextVar[bool] = ContextVar("weft.autograd.training", default=False)
tape_mode(LISTENING, TRAINING)


def flag(value: object, name: str) -> bool:
    """Return what is assigned to a switch as a bool; ArgumentTypeError for what only counts as true or false.

    Examples
    --------
    >>> from weft._tape.modes import flag
    >>> flag(1, "training")
    True
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value == 1)
    raise ArgumentTypeError(f"{name} is True or False, not {value!r}")


@contextmanager
def no_grad() -> Generator[None]:
    """Let nothing be heard in the block: what it computes needs no gradient, and it may write to leaves.

    Holds for this thread, or task of asyncio, and what it calls; `weft.grad` and its like listen in the block all the same.

    Examples
    --------
    >>> import weft
    >>> w = weft.ones(2)
    >>> w.requires_grad = True
    >>> with weft.autograd.no_grad():
    ...     w -= 0.5
    >>> w.requires_grad
    True
    """
    with listening(mode=False):
        yield


@contextmanager
def listening(*, mode: bool) -> Generator[None]:
    """Let the tape listen in the block, or not; if it does, even where this thread is paused."""
    token = LISTENING.set(mode)
    before = tape_pause(False) if mode else None
    try:
        yield
    finally:
        LISTENING.reset(token)
        if before is not None:
            tape_pause(before)


@contextmanager
def paused() -> Generator[None]:
    """Let nothing be heard that this thread does until the block ends."""
    before = tape_pause(True)
    try:
        yield
    finally:
        tape_pause(before)
