"""`weft.trace`: the recording of a run or, given an array, the sum of its diagonal."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from weft._engine.recorder import Trace
from weft._ops import matrices

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._call.operands import ArrayLike
    from weft._core import Engine, NDArray


@overload
def trace(
    path: str | os.PathLike[str] | None = None, *, engine: Engine | None = None, limit: SupportsIndex = 1_000_000
) -> Trace: ...
@overload
def trace(
    path: ArrayLike,
    /,
    offset: SupportsIndex = 0,
    axis1: SupportsIndex = 0,
    axis2: SupportsIndex = 1,
    dtype: npt.DTypeLike | None = None,
    out: NDArray | None = None,
) -> NDArray: ...
def trace(path: Any = None, *args: Any, **options: Any) -> Any:
    """Record what an engine does, and show it.

    Used as a context manager. At the end it waits for the ops pushed inside, so that the trace is complete. Their
    failures are not raised by it and stay unreported. Then it writes `path`, if given, in the format of its suffix. An
    exception of the body passes through, and the record is written all the same.

    Parameters
    ----------
    path : str or PathLike, optional
        The file to write: ``.json`` or ``.json.gz`` for trace events, which https://ui.perfetto.dev opens; ``.html`` for
        a timeline that zooms and searches, in any browser; ``.png`` or ``.svg`` for a picture of it; ``.dot`` for the
        graph of ops and versions. Pictures need ``weft[trace]``.
    engine : Engine, optional
        The engine to record; by default the default engine. Others, also those made inside the block, are not recorded.
    limit : int, default: 1_000_000
        The most ops to keep, which bounds the memory; those after are counted.

    Returns
    -------
    Trace
        The record: ``.summary()``, ``.timeline(path)``, ``.graph(path)``, ``.save(path)``, ``.ops``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument is of the wrong type, or `path` has a suffix that stands for no format.
    FileNotFoundError
        If there is no folder to write `path` into.
    ImportError
        If the format needs ``weft[trace]``.
    TraceError
        When it starts, if another trace records the same engine.

    Notes
    -----
    Where ``nvtx`` is installed, each callable pushed inside runs within an NVTX range of its name, in the domain
    ``weft``, so that NVIDIA's profilers show it while it happens.

    Given an array instead of a path, it is NumPy's function of this name,
    ``trace(x, /, offset=0, axis1=0, axis2=1, dtype=None, out=None)``: the sum of a diagonal of the plane of two axes.

    See Also
    --------
    linalg.trace : The array API standard's function of this name.

    Examples
    --------
    >>> import weft
    >>> with weft.Engine(workers=2) as engine, weft.trace(engine=engine) as trace:
    ...     x = engine.new_variable("x")
    ...     engine.push(lambda: None, mutate_vars=[x], name="write")
    ...     engine.push(lambda: None, read_vars=[x], name="read")
    >>> trace.summary().critical_path
    ['write', 'read']
    >>> weft.trace([[1, 2], [3, 4]]).item()
    5
    """
    call = Trace if _is_path(path) else matrices.trace
    return call(path, *args, **options)


def _is_path(given: object) -> bool:
    """Return whether this is a call of the recording `trace`."""
    return given is None or isinstance(given, (str, os.PathLike))
