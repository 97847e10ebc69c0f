"""Times the pipelines in turns, and says how much of the copies each hides; those on CPU devices are made here."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

import weft
from weft.bench.overlap.by_hand import ThreadsPipeline
from weft.bench.overlap.pipelines import NumPyPipeline, WeftPipeline, make_chunks
from weft.bench.progress import progress
from weft.bench.samples import Job, Samples, VerificationError, interleave, timed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from weft.bench.overlap.pipelines import Chunks, Parts, Pipeline

_TABLE = "overlap"
_RELATIVE = 1e-4


@dataclass(frozen=True, slots=True)
class Overlap:
    """What one pipeline took, in milliseconds, minima of all repetitions.

    Attributes
    ----------
    name : str
        Which.
    copy : float
        Its copies alone.
    compute : float
        Its products, or its kernels, alone.
    pipeline : float
        Both.
    """

    name: str
    copy: float
    compute: float
    pipeline: float

    @property
    def larger(self) -> float:
        """The larger part: no pipeline is faster, if its parts cannot be."""
        return max(self.copy, self.compute)

    @property
    def sum(self) -> float:
        """Both parts, one after the other."""
        return self.copy + self.compute

    @property
    def hidden(self) -> float:
        """How much of the smaller part the pipeline hides behind the larger: 1 is all, 0 none, below 0 it costs.

        Examples
        --------
        >>> from weft.bench.overlap.measuring import Overlap
        >>> Overlap("weft", copy=4.0, compute=10.0, pipeline=11.0).hidden
        0.75
        """
        return (self.sum - self.pipeline) / min(self.copy, self.compute)

    def json(self) -> dict[str, Any]:
        """Return the figures, and what follows from them."""
        return {**asdict(self), "larger": self.larger, "sum": self.sum, "hidden": self.hidden}


def measure(count: int, rows: int, columns: int, reps: int, trace: Path | None = None) -> list[Overlap]:
    """Verify and time the pipelines on CPU devices.

    Parameters
    ----------
    count, rows, columns : int
        How many chunks, and their shape.
    reps : int
        Repetitions of everything.
    trace : Path, optional
        Where the trace of one more run under the policy ``per_device`` goes, in the format of the suffix.

    Returns
    -------
    list of Overlap
        One for each pipeline.

    Raises
    ------
    VerificationError
        When a pipeline's products are not NumPy's.
    ImportError
        Without threadpoolctl, which gives NumPy's pipelines one thread: it comes with ``weft[machine]``.
    """
    try:
        threadpoolctl: Any = import_module("threadpoolctl")  # ships no types
    except ImportError as error:
        raise ImportError("this needs threadpoolctl: pip install threadpoolctl", name="threadpoolctl") from error
    chunks = make_chunks(count, rows, columns)
    with threadpoolctl.threadpool_limits(1, user_api="blas"), ExitStack() as stack:
        overlapping = WeftPipeline(chunks, weft.Engine(1, "per_device"))
        pipelines: list[Pipeline] = [
            overlapping,
            WeftPipeline(chunks, weft.Engine(policy="serial")),
            ThreadsPipeline(chunks),
            NumPyPipeline(chunks),
        ]
        for pipeline in pipelines:
            stack.callback(pipeline.close)
            _verify(pipeline, chunks)
        found = time_parts(pipelines, reps)
        if trace is not None:
            overlapping.run()  # its workers and memory have cooled down
            with weft.trace(trace, engine=overlapping.engine):
                overlapping.run()
    return found


def _verify(pipeline: Pipeline, chunks: Chunks) -> None:
    pipeline.run()
    for source, result in zip(chunks.sources, pipeline.results(), strict=True):
        if not np.allclose(result, source @ chunks.matrix, _RELATIVE):
            raise VerificationError(f"{pipeline.name}: the products are not NumPy's")


def time_parts(pipelines: Sequence[Parts], reps: int) -> list[Overlap]:
    """Time pipelines and their parts in turns."""
    samples = Samples()
    jobs = [
        Job(_TABLE, case, pipeline.name, partial(timed, run, 1e6))
        for pipeline in pipelines
        for case, run in (("copy", pipeline.copy), ("compute", pipeline.compute), ("pipeline", pipeline.run))
    ]
    with progress("overlap", len(jobs) * reps) as tick:
        interleave(jobs, reps, samples, tick)
    return [
        Overlap(pipeline.name, *(min(samples.values[_TABLE, pipeline.name, case]) for case in samples.cases(_TABLE)))
        for pipeline in pipelines
    ]
