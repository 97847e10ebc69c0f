"""Kinds of values on the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def positive(text: str) -> int:
    """Read a number of at least 1.

    Raises
    ------
    ArgumentTypeError
        If there is none.

    Examples
    --------
    >>> from weft._command.arguments import positive
    >>> positive("3")
    3
    """
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise ArgumentTypeError(f"{text!r}: a number of at least 1")
    return number


def listed(text: str, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Read names with commas between them, each once.

    Raises
    ------
    ArgumentTypeError
        If one of them is not among `known`.

    Examples
    --------
    >>> from weft._command.arguments import listed
    >>> listed("B,A,B", "ABC", "tables")
    ('B', 'A')
    """
    names = tuple(dict.fromkeys(text.split(",")))
    if not set(names) <= set(known):
        raise ArgumentTypeError(f"{text!r}: the {what} are {', '.join(known)}")
    return names
