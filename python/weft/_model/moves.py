"""Calls whose results are thrown away, where SINGA's methods of the same name change the tensor."""

from __future__ import annotations

import sys
import warnings
from opcode import opmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["warn_if_discarded"]

_UNIT = 2
#: Room for the interpreter's notes, which follows calls.
_CACHE = opmap.get("CACHE", -1)
_POP_TOP = opmap["POP_TOP"]


def warn_if_discarded(said: str) -> None:
    """Warn where the caller's caller is a statement of its own: its result is popped by the instruction that comes next."""
    frame = sys._getframe(2)
    if _discards(frame):
        warnings.warn(said, RuntimeWarning, stacklevel=3)


def _discards(frame: FrameType) -> bool:
    code, at = frame.f_code.co_code, frame.f_lasti + _UNIT
    while at < len(code) and code[at] == _CACHE:
        at += _UNIT
    return at < len(code) and code[at] == _POP_TOP
