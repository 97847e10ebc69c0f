"""Kinds of values on the command line."""

from __future__ import annotations

from argparse import ArgumentTypeError


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
