"""A progress bar where there is a terminal and rich, a line per repetition elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from harness.samples import Job


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[Job], None]]:
    """Yield what is to be called before each of ``total`` jobs."""
    try:
        from rich.progress import Progress  # noqa: PLC0415 - optional
    except ImportError:
        rich_progress = None
    else:
        rich_progress = Progress(transient=True) if sys.stderr.isatty() else None
    if rich_progress is None:
        yield _lines(title, total)
        return
    with rich_progress:
        task = rich_progress.add_task(title, total=total)

        def tick(job: Job) -> None:
            rich_progress.update(task, advance=1, description=f"{title}: {job.implementation}, {job.case}")

        yield tick


def _lines(title: str, total: int) -> Callable[[Job], None]:
    done = 0

    def tick(_job: Job) -> None:
        nonlocal done
        done += 1
        if done * 10 // total != (done - 1) * 10 // total:
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    return tick
