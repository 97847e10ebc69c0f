"""Files that a command is to write: looked at before the work, not after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft._command.running import CommandError
from weft._trace import formats
from weft._trace.optional import need

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def check_trace(path: Path) -> None:
    """See to it that a trace can be written.

    Raises
    ------
    ArgumentValueError
        If the suffix names no format.
    CommandError
        If the folder is not there, or the format needs a package that is missing.
    """
    try:
        formats.check(path)
    except ImportError as error:
        raise CommandError(f"{path}: {error}") from error
    _check_folder(path)


#: Formats of the pictures that matplotlib draws.
PICTURES = (".svg", ".png", ".pdf")


def check_picture(path: Path) -> None:
    """See to it that a picture in one of these formats can be written.

    Raises
    ------
    CommandError
        If the suffix names no format, the folder is not there, or matplotlib is missing.
    """
    check_suffix(path, PICTURES)
    try:
        need("matplotlib")
    except ImportError as error:
        raise CommandError(f"{path}: {error}") from error


def check_suffix(path: Path, suffixes: Sequence[str]) -> None:
    """See to it that a file of one of these suffixes can be written.

    Raises
    ------
    CommandError
        If the suffix is another, or the folder is not there.
    """
    if path.suffix not in suffixes:
        raise CommandError(f"{path}: the suffix says the format, and is one of {', '.join(suffixes)}")
    _check_folder(path)


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {path.parent}")
