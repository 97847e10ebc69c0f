"""Scripts and modules that a command runs as Python would."""

from __future__ import annotations

import runpy
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from weft._command.running import CommandError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


def check_program(program: str, *, module: bool) -> None:
    """See to it that there is a script, or a module.

    Raises
    ------
    CommandError
        If there is none.
    """
    if module:
        _check_module(program)
    elif not Path(program).exists():
        raise CommandError(f"there is no script {program}")


def _check_module(name: str) -> None:
    sys.path.insert(0, "")  # as python -m looks for it
    try:
        found = find_spec(name)
    except (ImportError, ValueError):
        found = None  # its package is missing, or it is no name
    finally:
        del sys.path[0]
    if found is None:
        raise CommandError(f"there is no module {name}")


def run_program(
    program: str, arguments: list[str], *, module: bool, on_error: Callable[[BaseException], None] | None = None
) -> int:
    """Run the script as ``__main__`` and return the exit status that it would have had; tell `on_error` of its exception."""
    argv, path = sys.argv, sys.path[:]
    sys.argv = [program, *arguments]
    try:
        if module:
            sys.path.insert(0, "")
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(program).resolve().parent))
            runpy.run_path(str(Path(program).resolve()), run_name="__main__")
    except SystemExit as exit_:
        return _status(exit_.code)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - shown as the interpreter would show it
        own = _own(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(own), own)
        if on_error is not None:
            on_error(error)
        return 1
    finally:
        sys.argv, sys.path[:] = argv, path
    return 0


def _status(code: object) -> int:
    """Return the exit status that ``SystemExit(code)`` means, and print its message."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _own(traceback: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that is the script's: without the frames of this command and of runpy."""
    while traceback is not None:
        name = traceback.tb_frame.f_code.co_filename
        if name not in {__file__, runpy.__file__, "<frozen runpy>"}:
            break
        traceback = traceback.tb_next
    return traceback
