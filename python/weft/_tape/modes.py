"""Whether the tape listens, and whether layers train, separately for each thread and each task of asyncio."""

from __future__ import annotations

from contextvars import ContextVar

import numpy as np

from weft._core import Scope, tape_mode
from weft._registry.brief import brief
from weft.errors import ArgumentTypeError

#: None if not set: then the tape listens.
LISTENING: ContextVar[bool | None] = ContextVar("weft.autograd.listening", default=None)
TRAINING: ContextVar[bool] = ContextVar("weft.autograd.training", default=False)
#: Whether a function under `weft.checkpoint` is computed again: what the first time was to change has changed already.
AGAIN: ContextVar[bool] = ContextVar("weft.autograd.again", default=False)
tape_mode(LISTENING, TRAINING)


def flag(value: object, name: str) -> bool:
    """Return a value assigned to a switch as a bool; ArgumentTypeError for one that only counts as true or false.

    Examples
    --------
    >>> from weft._tape.modes import flag
    >>> flag(1, "training")
    True
    """
    if isinstance(value, bool | np.bool_ | int | np.integer) and value in (0, 1):
        return bool(value == 1)
    raise ArgumentTypeError(f"{name} is True or False, not {brief(value)}")


def train(*, mode: bool) -> None:
    """Let layers train and the tape listen from now on, or neither.

    Examples
    --------
    >>> from contextvars import copy_context
    >>> from weft._tape.modes import TRAINING, train
    >>> copy_context().run(lambda: (train(mode=True), TRAINING.get())[1])
    True
    """
    Scope((TRAINING, mode), (LISTENING, mode)).__enter__()  # both in one call: an interrupt leaves either both or none


def no_grad() -> Scope:
    """Pause the tape in the block: results need no gradient there, and writes to leaves are allowed.

    Holds for this thread, or task of asyncio, and for all that it calls; `weft.grad` and its like listen in the block
    all the same.

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
    return listening(mode=False)


def listening(*, mode: bool) -> Scope:
    """Let the tape listen in the block, or not; if it does, even while this thread is paused."""
    return Scope((LISTENING, mode), paused=False if mode else None)


def paused() -> Scope:
    """Pause the tape for this thread until the block ends."""
    return Scope(paused=True)
