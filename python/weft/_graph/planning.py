"""Memory: offsets for values that live for a while, and for the entries of a graph."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

import numpy as np

from weft import _core
from weft._core import graph_plan_memory
from weft._graph.graphs import Graph, core_of
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    #: A column of numbers.
    Integers: TypeAlias = Sequence[int] | NDArray[np.integer]

_LARGEST = np.iinfo(np.int64).max


def plan_offsets(
    lower: Integers,
    upper: Integers,
    size: Integers,
    *,
    alignment: int = 64,
    capacity: int | None = None,
    seconds: float = 0.0,
) -> NDArray[np.int64]:
    """Find offsets for intervals, so that no two that are live at the same time share a byte.

    Interval ``i`` is live in the half-open span of time ``lower[i]`` to ``upper[i]`` and takes ``size[i]`` bytes. An
    interval without a size, or without a lifetime, conflicts with nothing.

    By default the best of several placements by rule is returned, within some 50 ms for hundreds of intervals. An exact
    search follows where `seconds` are given, or where a `capacity` is and that placement does not fit: canonical
    solutions, bounded by sections, without dominated ones [1]_. It ends when it has found a plan that cannot be
    smaller, when the capacity is met, or when the time is over. The GIL is released, and Ctrl-C ends it.

    Parameters
    ----------
    lower, upper : sequence of int, or array of integers, shape (n,)
        When each interval begins and ends, in any unit.
    size : sequence of int, or array of integers, shape (n,)
        How many bytes each takes.
    alignment : int, default: 64
        A power of two in bytes: all offsets are multiples of it.
    capacity : int, optional
        How many bytes there are. Any placement that fits is as good as another.
    seconds : float, default: 0.0
        How long the search may take. With a capacity and 0, a fixed number of steps, some minutes.

    Returns
    -------
    NDArray
        int64, shape (n,): where each interval begins, in bytes. The memory's size is ``(offsets + size).max()``.

    Raises
    ------
    PlanError
        If nothing fits the capacity, or nothing was found that does. The message names the lower bound.
    ArgumentValueError
        If an interval ends before it begins, a size is negative, lengths differ, the alignment is no power of two, or
        numbers are too large.
    ArgumentTypeError
        If the columns are not of integers.

    References
    ----------
    .. [1] M. D. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning",
           ASPLOS 2023.

    Examples
    --------
    The third begins when the first ends, and takes its place:

    >>> from weft.graph import plan_offsets
    >>> plan_offsets([0, 0, 1], [1, 2, 2], [64, 128, 64])
    array([128,   0, 128])
    """
    columns = _column("lower", lower), _column("upper", upper), _column("size", size)
    negative = np.flatnonzero(columns[2] < 0)
    if negative.size:
        index = int(negative[0])
        raise ArgumentValueError(f"size[{index}] is {columns[2][index]}; a size is a number of bytes, at least 0")
    offsets = np.zeros(columns[2].shape, np.int64)
    most = None if capacity is None else _number("capacity", capacity)
    _core.plan_offsets(*columns, offsets, _number("alignment", alignment), most, _seconds(seconds))
    return offsets


def _column(name: str, values: Integers) -> NDArray[np.int64]:
    try:
        column = np.asarray(values)
    except ValueError as error:
        raise ArgumentValueError(f"{name} must be one-dimensional: {error}") from error
    if column.ndim != 1:
        raise ArgumentValueError(f"{name} has shape {column.shape}; it must be one-dimensional, one number an interval")
    if column.size == 0:
        return np.empty(0, np.int64)
    if column.dtype == object or column.dtype.kind == "u":
        # Python ints that NumPy has no dtype for, or numbers that may be too large for int64.
        large = [
            index for index, value in enumerate(column) if isinstance(value, int | np.integer) and value > _LARGEST
        ]
        if large:
            raise ArgumentValueError(f"{name}[{large[0]}] is {column[large[0]]}; numbers go up to 2**63 - 1")
    if column.dtype.kind not in "iu":
        raise ArgumentTypeError(f"{name} must be integers, not {column.dtype}")
    return np.ascontiguousarray(column, dtype=np.int64)


def _number(name: str, value: SupportsIndex) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(f"{name} must be an integer, not {type(value).__name__}") from None
    if not 0 <= number <= _LARGEST:
        raise ArgumentValueError(f"{name} is {number}; it must be between 0 and 2**63 - 1")
    return number


def _seconds(value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ArgumentTypeError(f"seconds must be a number, not {type(value).__name__}") from None


def external_of(given: str | Iterable[str]) -> tuple[bool, list[str]]:
    """Return whether outputs are outside, and the names of other values outside.

    Examples
    --------
    >>> from weft._graph.planning import external_of
    >>> external_of("outputs"), external_of(["h_output"])
    ((True, []), (False, ['h_output']))
    """
    outputs = isinstance(given, str) and given == "outputs"
    return outputs, [] if outputs else [given] if isinstance(given, str) else list(given)


def plan_memory(graph: Graph, memory: str = "min", external: str | Iterable[str] = ()) -> Graph:
    """Return the graph with a place in one arena for each intermediate and each output (PlanMemory).

    Parameters
    ----------
    graph : Graph
        A graph with inferred shapes and dtypes.
    memory : {"min", "balanced", "speed"}
        How much longer the critical path may become because values share memory: as it likes, a twentieth, not at all.
    external : "outputs" or list of str, optional
        Values that lie outside, besides arguments.

    Returns
    -------
    Graph
        With, for each entry, `storage_id` (-2 outside), `storage_offset` and `storage_inplace_index`; and with
        `storage_allocated_bytes`, the size of the arena, and `storage_peak_live_bytes`.

    Raises
    ------
    GraphError
        If shapes or dtypes are not known.

    Examples
    --------
    >>> import weft
    >>> y = weft.exp(weft.exp(weft.symbol.Variable("x", shape=(16,))))
    >>> graph = weft.graph.infer_type(weft.graph.infer_shape(weft.graph.Graph(y)))
    >>> weft.graph.plan_memory(graph).attrs["storage_allocated_bytes"]
    64
    """
    outputs, named = external_of(external)
    return Graph._of(graph_plan_memory(core_of(graph), memory, outputs, named))
