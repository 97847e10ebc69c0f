"""One run on a GPU: each line verified, then timed in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from weft.bench.gpu import additions, chains, graphs, launches, overlap, streams
from weft.bench.progress import progress
from weft.bench.samples import interleave, watched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft.bench.gpu.setup import Line, Setup

__all__ = ["LINES", "measure"]

LINES = (overlap.LINE, launches.LINE, additions.LINE, chains.LINE, graphs.LINE, streams.LINE)


def measure(setup: Setup, lines: Sequence[Line], write: Callable[[dict[str, str]], None]) -> dict[str, str]:
    """Time these lines, and leave what was measured in the setup's samples.

    Parameters
    ----------
    setup : Setup
        The device, and who is compared.
    lines : sequence of Line
        Which.
    write : callable
        Called after each line, with the lines that came to no result until then: what was measured stays, should a
        device hang later.

    Returns
    -------
    dict of str to str
        Lines that came to no result, and why.
    """
    problems: dict[str, str] = {}
    for line in lines:
        try:
            with watched():
                jobs = line.prepare(setup)
            with progress(line.key, len(jobs) * setup.settings.reps) as tick:
                interleave(jobs, setup.settings.reps, setup.samples, tick)
        except Exception as error:  # noqa: BLE001 - weft's, CuPy's, the driver's: the other lines are timed all the same
            problems[line.key] = f"{type(error).__name__}: {error}"
        write(problems)
    return problems
