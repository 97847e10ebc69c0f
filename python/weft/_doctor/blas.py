"""Ops side by side with several threads of BLAS each: more threads than processors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from weft._core import find_op
from weft._doctor.findings import Finding
from weft._doctor.glance import BESIDE, beside
from weft._doctor.sources import function_named, may_call
from weft._machine.processors import usable_cpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from weft._doctor.run import Run

#: Functions that call BLAS or LAPACK, by the names that NumPy and SciPy give them.
_CALLS = frozenset(
    [
        "cholesky",
        "det",
        "dot",
        "eig",
        "eigh",
        "eigvals",
        "eigvalsh",
        "einsum",
        "inner",
        "inv",
        "lstsq",
        "lu",
        "lu_factor",
        "matmul",
        "matrix_power",
        "multi_dot",
        "pinv",
        "qr",
        "slogdet",
        "solve",
        "svd",
        "svdvals",
        "tensordot",
        "vdot",
    ]
)
#: The part of their time for which such ops run beside each other, at least.
_PART = 0.1


def too_many_threads(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line with ops that call BLAS beside each other with more threads than there are processors."""
    chosen = np.nonzero(run.record.began & ~run.record.waits & (run.ends > 0))[0]
    if run.workers < 2 or _beside_of(run, chosen)[0] < BESIDE:
        return
    groups = run.by_place(chosen)
    using = {place: group for place, group in groups.items() if _calls_blas(place, run, group[0])}
    if not using:
        return
    from weft._machine.software import blas  # noqa: PLC0415 - longer than to read a short trace

    libraries = [library for library in blas() if library["threads"] > 1]
    processors = usable_cpus()
    if not libraries:
        return
    library = max(libraries, key=lambda each: each["threads"])
    together = np.array([op for group in using.values() for op in group], np.int64)
    lasting, most = _beside_of(run, together)
    total = float(run.took[together].sum())
    threads = most * library["threads"]
    if lasting < max(BESIDE, _PART * total) or threads <= processors:
        return
    for (file, line), group in using.items():
        yield Finding(
            "too-many-threads",
            file,
            line,
            f"`{run.record.label(group[0])}` calls {library['library']}, which takes {library['threads']} threads for each call, and {most} "
            f"such ops run side by side: {threads} threads on {processors} processors",
            "let one of both share out the work: OPENBLAS_NUM_THREADS=1 (MKL_NUM_THREADS=1) in the environment, "
            "`threadpoolctl.threadpool_limits(1)` before the first push, or `weft.Engine(blas_threads=1)` for functions of weft's own",
            count=len(group),
        )


def _beside_of(run: Run, ops: npt.NDArray[np.int64]) -> tuple[float, int]:
    return beside(run.ends[ops] - (run.took[ops] * 1e9).astype(np.int64), run.ends[ops])


def _calls_blas(place: tuple[str, int], run: Run, op: int) -> bool:
    name = run.record.label(op)
    own = find_op(name)
    if own is not None and own.attribute("blas", False):
        return True
    return may_call(place[0], _CALLS) and any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and node.attr in _CALLS)
        or (isinstance(node, ast.Name) and node.id in _CALLS)
        for found in function_named(*place, name.rpartition(".")[2])
        for node in ast.walk(found)
    )
