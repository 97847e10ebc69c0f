"""Refusals of NumPy and Python as errors of weft: each is also of the built-in class that it was, and has the original as its cause.

Errors are sifted where calls enter (`weft._call.dispatch.carry`, `ArrayFunction`, `sieved`) and where hosted ops end.
An error of a user's code stays as it is: there a frame of the traceback is neither weft's nor NumPy's.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from weft.errors import (
    ArgumentDivisionError,
    ArgumentIndexError,
    ArgumentOverflowError,
    ArgumentTypeError,
    ArgumentValueError,
    AxisError,
    LinAlgError,
    OutOfMemoryError,
    WeftError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


P = ParamSpec("P")
R = TypeVar("R")

#: From refusals to weft's classes for them, the narrower ones first.
_CLASSES: tuple[tuple[type[Exception], type[WeftError]], ...] = (
    (np.linalg.LinAlgError, LinAlgError),
    (np.exceptions.AxisError, AxisError),
    (IndexError, ArgumentIndexError),
    (OverflowError, ArgumentOverflowError),
    (ZeroDivisionError, ArgumentDivisionError),
    (MemoryError, OutOfMemoryError),
    (TypeError, ArgumentTypeError),
    (ValueError, ArgumentValueError),
)
_OURS = {"weft", "numpy"}
#: PyTorch's names of arguments, and NumPy's.
_KEYWORDS = {"dim": "axis", "keepdim": "keepdims", "dims": "axes"}


def sifted(error: BaseException) -> BaseException:
    """Return the error to raise in place of one that has come up to here: itself, or one of weft's with it as the cause.

    Examples
    --------
    >>> from weft._registry.sieve import sifted
    >>> sifted(OverflowError("too large"))
    ArgumentOverflowError('too large')
    """
    if isinstance(error, WeftError) or type(error).__module__.partition(".")[0] not in {"builtins", "numpy"}:
        return error
    named = next((ours for theirs, ours in _CLASSES if isinstance(error, theirs)), None)
    if named is None or not _is_ours(error.__traceback__):
        return error
    made = named(str(error) + _keyword(error))
    if isinstance(error, np.exceptions.AxisError):
        made.axis, made.ndim = error.axis, error.ndim  # type: ignore[attr-defined]
    made.__cause__, made.__traceback__ = error, error.__traceback__
    return made


def _keyword(error: BaseException) -> str:
    """Return a message's addition on an argument that has another name here."""
    said = str(error)
    given = said.rpartition("unexpected keyword argument ")[2].strip("'") if isinstance(error, TypeError) else ""
    return f": write {_KEYWORDS[given]}=" if given in _KEYWORDS else ""


def _is_ours(traceback: TracebackType | None) -> bool:
    """Return whether all code between here and the refusal is weft's or NumPy's."""
    while traceback is not None:
        name: Any = traceback.tb_frame.f_globals.get("__name__")
        if not isinstance(name, str) or name.partition(".")[0] not in _OURS:
            return False
        traceback = traceback.tb_next
    return True


def sieved(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function that calls NumPy itself raise errors of weft alone.

    Examples
    --------
    >>> from weft._registry.sieve import sieved
    >>> sieved(abs)(-2)
    2
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            refusal = sifted(error)
            if refusal is error:
                raise
            raise refusal from error

    return call
