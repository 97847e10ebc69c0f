"""Offsets for intervals: what is promised, and what is refused."""

from __future__ import annotations

import _thread
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from weft import errors
from weft.graph import plan_offsets

if TYPE_CHECKING:
    from numpy.typing import NDArray

Columns = tuple["NDArray[np.int64]", "NDArray[np.int64]", "NDArray[np.int64]"]


def dense(seed: int, count: int = 200) -> Columns:
    """Intervals of very different lengths and sizes, as accelerators' programs have them."""
    rng = np.random.default_rng(seed)
    lower = rng.integers(0, 1000, count)
    upper = lower + np.minimum(rng.geometric(0.02, count), 400)
    return lower, upper, np.ceil(rng.exponential(80.0, count)).astype(np.int64) * 512


def peak(lower: NDArray[np.int64], upper: NDArray[np.int64], size: NDArray[np.int64]) -> int:
    """The most bytes that are live at the same time."""
    return max(int(size[(lower <= time) & (time < upper)].sum()) for time in lower)


def overlaps(offsets: NDArray[np.int64], lower: Any, upper: Any, size: Any) -> bool:
    """Whether two intervals that are live at the same time share a byte."""
    lower, upper, size = (np.asarray(column) for column in (lower, upper, size))
    ends = offsets + size
    together = np.maximum.outer(lower, lower) < np.minimum.outer(upper, upper)
    shared = np.maximum.outer(offsets, offsets) < np.minimum.outer(ends, ends)
    np.fill_diagonal(shared, val=False)
    return bool((together & shared).any())


@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 15), st.integers(0, 300)), max_size=25),
    st.sampled_from([1, 8, 64]),
)
def test_no_two_that_are_live_together_overlap(rows: list[tuple[int, int, int]], alignment: int) -> None:
    lower, upper, size = ([row[0] for row in rows], [a + b for a, b, _ in rows], [row[2] for row in rows])
    offsets = plan_offsets(lower, upper, size, alignment=alignment)
    assert offsets.dtype == np.int64
    assert offsets.shape == (len(rows),)
    assert not (offsets % alignment).any()
    assert not overlaps(offsets, lower, upper, size)


@pytest.mark.parametrize("seed", range(3))
def test_dense_intervals_take_at_most_a_quarter_more_than_is_live(seed: int) -> None:
    columns = dense(seed)
    offsets = plan_offsets(*columns)
    assert not overlaps(offsets, *columns)
    assert (offsets + columns[2]).max() <= 1.25 * peak(*columns)


def test_columns_may_be_sequences_or_arrays_of_any_integers() -> None:
    expected = [128, 0, 128]
    columns = [0, 0, 1], [1, 2, 2], [64, 128, 64]
    assert plan_offsets(*columns).tolist() == expected
    assert plan_offsets(*(np.array(column, np.uint8) for column in columns)).tolist() == expected
    assert plan_offsets(*(np.array(column * 2)[:3] for column in columns)).tolist() == expected
    assert plan_offsets(*(np.repeat(column, 2)[::2] for column in columns)).tolist() == expected
    assert plan_offsets([], [], []).tolist() == []


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([0], [1], [-1]), {}, ValueError, r"size\[0\] is -1"),
        (([0, 5], [1, 3], [1, 1]), {}, ValueError, "interval 1 ends before it begins: lower is 5, upper is 3"),
        (([0, 1], [1], [1]), {}, ValueError, "2, 1 and 1 elements"),
        (([[0]], [1], [1]), {}, ValueError, r"lower has shape \(1, 1\)"),
        (([0], [1], [2**63]), {}, ValueError, r"size\[0\] is 9223372036854775808"),
        (([0], [1], [2**70]), {}, ValueError, r"size\[0\] is 1180591620717411303424"),
        (([0, 0], [1, 1], [2**62, 2**62]), {}, ValueError, "interval 1 add up"),
        (([0.5], [1], [1]), {}, TypeError, "lower must be integers, not float64"),
        ((["a"], [1], [1]), {}, TypeError, "lower must be integers"),
        (([0], [1], [1]), {"alignment": 0}, ValueError, "alignment is 0"),
        (([0], [1], [1]), {"alignment": 48}, ValueError, "alignment is 48"),
        (([0], [1], [1]), {"alignment": -8}, ValueError, "alignment is -8"),
        (([0], [1], [1]), {"alignment": 1.0}, TypeError, "alignment must be an integer"),
        (([0], [1], [1]), {"capacity": -1}, ValueError, "capacity is -1"),
        (([0], [1], [1]), {"seconds": -1.0}, ValueError, "seconds is -1"),
        (([0], [1], [1]), {"seconds": float("nan")}, ValueError, "seconds is NaN"),
        (([0], [1], [1]), {"seconds": "1s"}, TypeError, "seconds must be a number"),
    ],
)
def test_mistakes_name_what_is_wrong(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        plan_offsets(*arguments, **options)
    assert isinstance(caught.value, errors.WeftError)


def test_a_capacity_below_what_is_live_names_the_bound() -> None:
    with pytest.raises(errors.PlanError, match=r"no placement takes less than 192 bytes.* at time 1") as caught:
        plan_offsets([0, 0, 1], [2, 2, 2], [64, 64, 64], capacity=128)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, MemoryError)
    assert plan_offsets([0, 0, 1], [2, 2, 2], [64, 64, 64], capacity=192).max() == 128


def pieces(count: int, seed: int) -> Columns:
    """A square of 2**20 cut into rectangles: a placement without a gap exists, and is hard to find."""
    rng = np.random.default_rng(seed)
    found = [(0, 2**20, 2**20)]
    while len(found) < count:
        found.sort(key=lambda piece: max(piece[1] - piece[0], piece[2]))
        lower, upper, size = found.pop()
        part = float(rng.uniform(0.2, 0.8))
        if upper - lower >= size:
            middle = lower + int((upper - lower) * part)
            found += [(lower, middle, size), (middle, upper, size)]
        else:
            found += [(lower, upper, int(size * part)), (lower, upper, size - int(size * part))]
    lower, upper, size = np.array(found).T
    return lower, upper, size


def test_a_search_fits_what_placements_by_rule_do_not() -> None:
    columns = pieces(60, 1)
    by_rule = plan_offsets(*columns, alignment=1)
    assert (by_rule + columns[2]).max() > 2**20
    for options in ({"capacity": 2**20}, {"capacity": 2**20, "seconds": 30.0}, {"seconds": 30.0}):
        offsets = plan_offsets(*columns, alignment=1, **options)  # type: ignore[arg-type]
        assert not overlaps(offsets, *columns)
        assert (offsets + columns[2]).max() == 2**20


def test_a_search_that_finds_nothing_in_time_tells_the_bound() -> None:
    columns = pieces(300, 2)
    with pytest.raises(errors.PlanError, match=r"lower bound is 1048576 bytes.* after 0.05 s; raise"):
        plan_offsets(*columns, alignment=1, capacity=2**20, seconds=0.05)


def test_what_no_placement_fits_is_known_after_a_search() -> None:
    # At most three units are live at the same time, but whatever lies at the edges in the middle is in the way at one end.
    lower, upper, size = [0, 0, 1, 3, 3, 2], [2, 4, 3, 5, 6, 5], [2, 1, 1, 1, 1, 1]
    bound = peak(*(np.array(column) for column in (lower, upper, size)))
    smallest = int((plan_offsets(lower, upper, size, alignment=1, seconds=30.0) + size).max())
    assert smallest >= bound
    with pytest.raises(errors.PlanError):
        plan_offsets(lower, upper, size, alignment=1, capacity=smallest - 1)


def test_ctrl_c_ends_a_search_and_other_threads_run_meanwhile() -> None:
    columns = pieces(300, 3)
    begins = threading.Event()

    class Long:
        """Seconds that tell when they are read, which is right before the search."""

        def __float__(self) -> float:
            begins.set()
            return 1e6

    def interrupt() -> None:
        begins.wait()
        _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        plan_offsets(*columns, alignment=1, capacity=2**20, seconds=Long())  # type: ignore[arg-type]
    thread.join()
