"""A progress bar where there is a terminal and rich, a line per repetition elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from weft._trace.optional import need

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from weft.bench.samples import Job


@contextmanager
def progress(title: str, total: int) -> Generator[Callable[[Job], None]]:
    """Yield the function to call before each of ``total`` jobs."""
    if not sys.stderr.isatty() or find_spec("rich") is None:
        yield _lines(title, total)
        return
    console = need("rich.console").Console(stderr=True)
    with need("rich.progress").Progress(console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)

        def tick(job: Job) -> None:
            bar.update(task, advance=1, description=f"{title}: {job.implementation}, {job.case}")

        yield tick


def _lines(title: str, total: int) -> Callable[[Job], None]:
    done = 0

    def tick(_job: Job) -> None:
        nonlocal done
        done += 1
        if done * 10 // total != (done - 1) * 10 // total:
            print(f"{title}: {done} of {total}", file=sys.stderr, flush=True)

    return tick
