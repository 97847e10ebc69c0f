"""The stand-in for an optimizer until a model is given one."""

from __future__ import annotations

from typing import NoReturn

from weft.errors import ModelError


class NoOptimizer:
    """Says, when it is called, how to set an optimizer.

    Parameters
    ----------
    model : str
        The model's name.
    """

    def __init__(self, model: str) -> None:
        self._model = model

    def __bool__(self) -> bool:
        """Return False: there is none."""
        return False

    def __call__(self, *_: object, **__: object) -> NoReturn:
        """Raise ModelError."""
        raise ModelError(f"{self._model} has no optimizer: net.set_optimizer(opt.SGD(lr=0.1)) gives it one")
