"""How a command ends: mistakes as one line on standard error, no traceback, and an exit status that scripts can read."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from weft.errors import WeftError

if TYPE_CHECKING:
    from collections.abc import Callable

#: The status after Ctrl-C, as shells have it.
INTERRUPTED = 130
#: That of a command that was called wrongly, as argparse has it.
_MISTAKE = 2
#: The status of SIGPIPE in shells.
_PIPE_CLOSED = 141


class CommandError(Exception):
    """A command cannot do its task; the message has the reason and the way out."""


def run(program: str, command: Callable[[], int]) -> int:
    """Run a command and return its exit status.

    Parameters
    ----------
    program : str
        The name that stands before an error.
    command : callable
        Returns the status of a command that came to its end.

    Returns
    -------
    int
        2 after a `CommandError` or one of weft's own errors, 130 after Ctrl-C, 141 if the reader of the output went
        away, or else the command's own status.
    """
    try:
        status = command()
        sys.stdout.flush()
    except (CommandError, WeftError) as error:
        print(f"{program}: error: {error}", file=sys.stderr)
        return _MISTAKE
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The interpreter flushes once more when it exits, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    return status
