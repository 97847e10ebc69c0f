"""Offsets for intervals: what is promised, and what is refused."""

from __future__ import annotations

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
    """The most bytes that are live at once."""
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
