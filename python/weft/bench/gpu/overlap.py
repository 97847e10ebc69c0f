"""Copies in, kernels and copies out over chunks: how much of the shorter stages disappears behind the longest."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from weft.bench.gpu.bounds import Bound, quotient
from weft.bench.gpu.pipelines import CuPyPipeline, WeftPipeline, make_chunks, verify
from weft.bench.gpu.setup import Line, Setup
from weft.bench.gpu.tuning import steps_for
from weft.bench.samples import Job, timed
from weft.bench.tables import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.gpu.bounds import Figures
    from weft.bench.gpu.pipelines import Chunks, Pipeline
    from weft.bench.gpu.settings import Settings

_PINNED, _PAGEABLE = "overlap", "overlap pageable"
FRESH, BUFFERS, BY_HAND = "weft", "weft, three buffers", "CuPy, streams and events by hand"
_STAGES = ("copy in", "compute", "copy out")
_PIPELINE = "pipeline"
#: Both directions at the same time are slower than either alone, and a pipeline uses both: its kernels take a little
#: longer than a copy alone, so that the longest stage is one that the pipeline can keep to.
_COMPUTE_OVER_COPY = 1.1


def longest(table: str, figures: Figures) -> float:
    """Return the least time of a pipeline: the longest stage, each at its best time alone."""
    return max(figures.least(table, (FRESH, BUFFERS, BY_HAND), stage) for stage in _STAGES)


def _bounds(_settings: Settings) -> tuple[Bound, ...]:
    def over_longest(table: str, name: str, figures: Figures) -> float:
        return figures(table, name, _PIPELINE) / longest(table, figures)

    def line(table: str, name: str, memory: str, limits: tuple[float | None, float | None]) -> list[Bound]:
        what = f"{name}, {memory} memory"
        over, beside = limits
        found = [Bound(_PINNED, f"{what} / longest stage", partial(over_longest, table, name), over)]
        if name != BY_HAND:
            found.append(Bound(_PINNED, f"{what} / CuPy by hand", quotient(table, name, BY_HAND, _PIPELINE), beside))
        return found

    return (
        *line(_PINNED, FRESH, "pinned", (1.05, 1.02)),
        *line(_PINNED, BUFFERS, "pinned", (1.05, 1.02)),
        *line(_PINNED, BY_HAND, "pinned", (None, None)),
        *line(_PAGEABLE, FRESH, "pageable", (None, None)),
        *line(_PAGEABLE, BY_HAND, "pageable", (None, None)),
    )


def tune(setup: Setup, chunks: Chunks, pipeline: Pipeline) -> int:
    """Return the steps with which the kernels take about as long as the slower of the copies."""
    if setup.settings.rounds is not None:
        return setup.settings.rounds

    def stage(run: Callable[[], None]) -> float:
        return min(timed(run, 1e3 * len(chunks.sources))[0] for _ in range(3))

    def kernel(steps: int) -> float:
        chunks.steps = steps
        return stage(pipeline.compute)

    copy = max(stage(pipeline.copy_in), stage(pipeline.copy_out))
    return steps_for(copy * _COMPUTE_OVER_COPY, kernel)


def pipelines(setup: Setup, chunks: Chunks) -> list[Pipeline]:
    """Return all that are compared."""
    found: list[Pipeline] = [
        WeftPipeline(setup, chunks, FRESH, fresh=True),
        WeftPipeline(setup, chunks, BUFFERS, fresh=False),
    ]
    if setup.cupy is not None:
        found.append(CuPyPipeline(setup, chunks, BY_HAND))
    return found


def _prepare(setup: Setup) -> list[Job]:
    jobs: list[Job] = []
    for table in (_PINNED, _PAGEABLE):
        setup.has_cupy(table, BY_HAND)
        jobs += _jobs(table, setup, make_chunks(setup, pinned=table == _PINNED))
    return jobs


def _jobs(table: str, setup: Setup, chunks: Chunks) -> list[Job]:
    compared = pipelines(setup, chunks)
    chunks.steps = tune(setup, chunks, compared[0])
    for pipeline in compared:
        verify(pipeline, chunks)
    return [
        Job(table, case, pipeline.name, partial(timed, run, 1e6))
        for pipeline in compared
        for case, run in (
            (_STAGES[0], pipeline.copy_in),
            (_STAGES[1], pipeline.compute),
            (_STAGES[2], pipeline.copy_out),
            ("both copies", pipeline.copy),
            (_PIPELINE, pipeline.run),
        )
    ]


LINE = Line(
    "overlap",
    (
        Table(_PINNED, "A pipeline over chunks in pinned memory", "ms"),
        Table(_PAGEABLE, "A pipeline over chunks in pageable memory", "ms"),
    ),
    _bounds,
    _prepare,
)
