"""The pipelines on a GPU: copied in, a kernel, copied out; the kernels take about as long as the copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import weft
from weft.bench.gpu.overlap import pipelines, tune
from weft.bench.gpu.pipelines import CuPyPipeline, make_chunks, verify
from weft.bench.overlap.measuring import time_parts

if TYPE_CHECKING:
    from pathlib import Path

    from weft.bench.gpu.setup import Setup
    from weft.bench.overlap.measuring import Overlap


def measure(setup: Setup, trace: Path | None = None) -> list[Overlap]:
    """Verify and time the pipelines on a GPU, in pinned memory.

    Parameters
    ----------
    setup : Setup
        The device, and the chunks.
    trace : Path, optional
        Where the trace of one more run in weft goes, in the format of the suffix.

    Returns
    -------
    list of Overlap
        One for each pipeline.

    Raises
    ------
    VerificationError
        When a pipeline's results are wrong.
    """
    chunks = make_chunks(setup, pinned=True)
    compared = pipelines(setup, chunks)
    own, *_ = compared
    if setup.cupy is not None:
        compared.append(CuPyPipeline(setup, chunks, "CuPy, one stream", streams=1))
    chunks.steps = tune(setup, chunks, own)
    for pipeline in compared:
        verify(pipeline, chunks)
    found = time_parts(compared, setup.settings.reps)
    if trace is not None:
        with weft.trace(trace):
            own.run()
    return found
