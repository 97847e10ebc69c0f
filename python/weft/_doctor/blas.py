"""Ops side by side with several threads of BLAS each: more threads than processors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import numpy as np

from weft._core import find_op
from weft._doctor.findings import Finding
from weft._doctor.sources import function_named
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
#: The part of their time for which such ops run beside each other, at least, and seconds.
_BESIDE, _LEAST = 0.1, 1e-3


def too_many_threads(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line with ops that call BLAS beside each other with more threads than there are processors."""
    chosen = np.nonzero(run.record.began & ~run.record.waits & (run.ends > 0))[0]
    if run.workers < 2 or _beside_of(run, chosen)[0] < _LEAST:
        return
    from weft._machine.software import blas  # noqa: PLC0415 - longer than to read a short trace

    libraries = [library for library in blas() if library["threads"] > 1]
    processors = usable_cpus()
    if not libraries:
        return
    library = max(libraries, key=lambda each: each["threads"])
    groups = run.by_place(chosen)
    using = {place: group for place, group in groups.items() if _calls_blas(place, run, group[0])}
    together = np.array([op for group in using.values() for op in group], np.int64)
    beside, most = _beside_of(run, together)
    total = float(run.took[together].sum())
    threads = most * library["threads"]
    if beside < max(_LEAST, _BESIDE * total) or threads <= processors:
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
    return _beside(run.ends[ops] - (run.took[ops] * 1e9).astype(np.int64), run.ends[ops])


def _beside(begins: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> tuple[float, int]:
    """Return the seconds for which several of these stretches last at once, and how many do at most.

    Examples
    --------
    >>> import numpy as np
    >>> from weft._doctor.blas import _beside
    >>> _beside(np.array([0, 10**9, 5 * 10**9]), np.array([2 * 10**9, 3 * 10**9, 6 * 10**9]))
    (1.0, 2)
    """
    times = np.concatenate((begins, ends))
    order = np.argsort(times, kind="stable")
    steps = np.concatenate((np.ones(len(begins), np.int64), -np.ones(len(ends), np.int64)))[order]
    running = np.cumsum(steps)
    lasting = np.diff(times[order], append=times.max(initial=0))
    return float(lasting[running > 1].sum()) / 1e9, int(running.max(initial=0))


def _calls_blas(place: tuple[str, int], run: Run, op: int) -> bool:
    name = run.record.label(op)
    own = find_op(name)
    if own is not None and own.attribute("blas", False):
        return True
    return any(
        (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult))
        or (isinstance(node, ast.Attribute) and node.attr in _CALLS)
        or (isinstance(node, ast.Name) and node.id in _CALLS)
        for found in function_named(*place, name.rpartition(".")[2])
        for node in ast.walk(found)
    )
