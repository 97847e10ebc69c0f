"""Capture: what a thread pushes on a CUDA device, recorded as one graph."""

from __future__ import annotations

from contextlib import ExitStack
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from weft._core import cuda_begin_capture
from weft._cuda.streams import cupy, enter as _enter
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from types import TracebackType

    from weft._core import Graph

__all__ = ["capture", "enter", "new_pool"]


class _Capture:
    """The block of a capture. One that could not end, being left on another thread, may be left again."""

    def __init__(self, name: str | None) -> None:
        self._name = name
        self._graph: Graph | None = None

    def __enter__(self) -> Graph:
        self._graph = cuda_begin_capture(self._name)
        return self._graph

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._graph is not None:
            self._graph._end(abandon=kind is not None)
            self._graph = None


def capture(name: str | None = None) -> AbstractContextManager[Graph]:
    """Record what this thread pushes on a CUDA device in a block, as one CUDA graph, and run nothing of it.

    Recorded are element-wise functions, kernels, fills, copies within the device, and callables that write to CUDA arrays
    alone, CuPy's functions among them: such a callable is called once, at its push, and what it launches is recorded.
    Ops depend on each other in the graph as their accesses ask for, so those that are independent run side by side. Other
    threads, and ops that have nothing to do with CUDA arrays, are not concerned.

    Parameters
    ----------
    name : str, optional
        The graph's name, in messages and traces.

    Returns
    -------
    context manager of Graph
        What was recorded, once the block has ended. Its `~Graph.replay` pushes it.

    Raises
    ------
    CaptureError
        At an op in the block that cannot be recorded, such as a copy from or to the host, an async op, or a wait for an
        array that the block writes; if captures nest; at the end of the block, if an op failed to be recorded.

    Notes
    -----
    The memory of all arrays is fixed when they are first named; an array that is first written in the block has no values
    before the first replay, as one of `weft.empty` has none. Results that nobody holds when the block ends are the graph's
    alone. Numbers are recorded as they are; array arguments are read anew at each replay. What a callable allocates by CuPy
    comes from a pool that the graph keeps; it must not read memory of the host.

    An exception that leaves the block leaves no graph.

    Examples
    --------
    >>> import weft
    >>> if weft.cuda.is_available():
    ...     x = weft.zeros(3, device=weft.gpu(0))
    ...     with weft.cuda.capture("step") as graph:
    ...         x += 1.0
    ...     for _ in range(10):
    ...         graph.replay()
    ...     assert x.tolist() == [10.0, 10.0, 10.0]
    """
    if name is not None and not isinstance(name, str):
        raise ArgumentTypeError(f"the name of a capture is a string, not {type(name).__name__}")
    return _Capture(name)


def new_pool() -> Any:  # noqa: ANN401 - CuPy has no types
    """Return a pool of CuPy's for what callables allocate, or None without CuPy."""
    return None if find_spec("cupy") is None else cupy().cuda.MemoryPool()


def enter(device: int, stream: int, pool: Any) -> AbstractContextManager[Any]:  # noqa: ANN401 - as above
    """Make a stream in capture CuPy's current one on this thread, allocate from a pool, and return what ends both."""
    entered = ExitStack()
    entered.push(_enter(device, stream))
    if pool is not None:
        entered.enter_context(cupy().cuda.using_allocator(pool.malloc))
    return entered
