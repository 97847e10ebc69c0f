"""Gradients of what arrays are computed from, by a tape that listens while ops are pushed.

An array says that its gradient is wanted by `requires_grad`; from then on the tape notes each op over it, and over what it
gives, until `backward` or `gradients` walk back. `weft.grad` and its like do the same for a function's arguments.

Attributes
----------
training : bool
    Whether layers train, False until somebody assigns it: for this thread, or task of asyncio, and what it calls. False,
    assigned, also keeps the tape from listening, so that evaluation holds no values; `weft.grad` listens all the same.

>>> import weft
>>> from weft import autograd
>>> w = weft.asarray([1.0, 2.0])
>>> w.requires_grad = True
>>> loss = weft.sum(weft.tanh(w) * w)
>>> autograd.gradients(loss)[w].round(3)
NDArray([1.182, 1.105])
"""

from __future__ import annotations

import sys
from types import ModuleType

from weft._tape import modes
from weft._tape.checkpoints import checkpoint
from weft._tape.face import Gradients, backward, gradients
from weft._tape.leaves import stop_gradient
from weft._tape.modes import no_grad
from weft._tape.operators import Operator
from weft._tape.transforms import grad, jvp, value_and_grad, vjp

__all__ = [
    "Gradients",
    "Operation",
    "Operator",
    "backward",
    "checkpoint",
    "grad",
    "gradients",
    "jvp",
    "no_grad",
    "stop_gradient",
    "training",
    "value_and_grad",
    "vjp",
]

training: bool
#: SINGA's name of `Operator`.
Operation = Operator


class _Module(ModuleType):
    """The module, with an attribute that each task has for itself."""

    @property
    def training(self) -> bool:
        """Whether layers train."""
        return modes.TRAINING.get()

    @training.setter
    def training(self, value: bool) -> None:
        modes.TRAINING.set(bool(value))
        modes.LISTENING.set(bool(value))


sys.modules[__name__].__class__ = _Module
