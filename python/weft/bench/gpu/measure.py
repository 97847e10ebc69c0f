"""One run on a GPU: each line verified, then timed in turns."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from weft.bench.gpu import additions, chains, graphs, launches, overlap, streams
from weft.bench.progress import progress
from weft.bench.samples import interleave, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from weft.bench.gpu.setup import Line, Setup

#: The part of the time of a run that is kept for each line.
_LEAST = 0.1

LINES = (overlap.LINE, launches.LINE, additions.LINE, chains.LINE, graphs.LINE, streams.LINE)


def measure(setup: Setup, lines: Sequence[Line], write: Callable[[dict[str, str]], None]) -> dict[str, str]:
    """Time these lines, and leave the times in the setup's samples.

    Parameters
    ----------
    setup : Setup
        The device, and the libraries on it.
    lines : sequence of Line
        Which.
    write : callable
        Called before and after each line, with the lines without a result until then, also one that has just begun: figures
        stay, and a line that hung is told, should a device never answer.

    Returns
    -------
    dict of str to str
        Lines that came to no result, and why.
    """
    problems: dict[str, str] = {}
    allowed = setup.settings.run_s
    ends, least = monotonic() + allowed, allowed * _LEAST
    for after, line in zip(reversed(range(len(lines))), lines, strict=True):
        write({**problems, line.key: "not done when the run was ended"})
        print(f"{line.key}: verifying", file=sys.stderr, flush=True)
        try:
            with _within(max(least, ends - monotonic() - after * least)):
                with watched():
                    jobs = line.prepare(setup)
                with progress(line.key, len(jobs) * setup.settings.reps) as tick:
                    interleave(jobs, setup.settings.reps, setup.samples, tick)
        except Exception as error:  # noqa: BLE001 - weft's, CuPy's, the driver's: the other lines are timed all the same
            problems[line.key] = f"{type(error).__name__}: {error}"
        write(problems)
    return problems


@contextmanager
def _within(seconds: float) -> Generator[None]:
    """Raise a `TimeoutError` where the body takes longer: waits answer it as they answer Ctrl-C."""
    if sys.platform == "win32":  # which has no such signal
        yield
        return

    def late(*_: object) -> None:
        raise TimeoutError(f"it was not done after {seconds:.0f} s")

    before, timer = signal.signal(signal.SIGALRM, late), (0.0, 0.0)
    try:
        # A line before this one may have been deaf to the signal for longer than the time left. Again each second, as an
        # exception in a finalizer goes no further.
        timer = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), 1.0)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, before)
