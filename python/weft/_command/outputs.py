"""Files that a command is to write: looked at before the work, not after."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from weft._command.running import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["TRACES", "check", "check_trace"]

#: The formats of a trace.
TRACES = (".json", ".json.gz", ".png", ".svg", ".html", ".dot")
_DRAWN = (".png", ".svg", ".pdf")


def check_trace(path: Path) -> None:
    """See to it that a trace can be written.

    Raises
    ------
    CommandError
        If the suffix names no format, the folder is not there, or a picture needs matplotlib and it is missing.
    """
    check(path, TRACES)


def check(path: Path, suffixes: Sequence[str]) -> None:
    """See to it that a file of one of these formats can be written.

    Raises
    ------
    CommandError
        If the suffix names no format, the folder is not there, or a picture needs matplotlib and it is missing.
    """
    if not path.name.endswith(tuple(suffixes)):
        raise CommandError(f"{path}: the suffix says the format, and is one of {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no folder {path.parent}")
    if path.suffix in _DRAWN and find_spec("matplotlib") is None:
        raise CommandError(f"{path}: pictures need matplotlib: pip install 'weft[trace]'")
