"""Arguments that overlap what the function refers to: the copies that overlapping memory needs are made, at every call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable


def shifted(state: Any, x: Any) -> Any:
    state[1:5] += x
    return x * 2


def backwards(state: Any, x: Any) -> Any:
    x[...] = state[4::-1][:4]
    return state.sum()


def rows(state: Any, x: Any) -> Any:
    state[:4] = state[:4].cumsum() + x
    weft.multiply(x, state[2:6], out=x)
    return x.sum()


@pytest.mark.parametrize("body", [shifted, backwards, rows])
@pytest.mark.parametrize("starts", [(0, 0), (0, 20), (2, 1), (20, 3), (6, 0)])
def test_arguments_that_overlap_states(body: Callable[[Any, Any], Any], starts: tuple[int, int]) -> None:
    ours, theirs, free = weft.arange(10.0), weft.arange(10.0), weft.arange(30.0)
    step = weft.program(lambda x: body(ours, x))
    for start in (*starts, *starts):  # from 20 on, elsewhere
        found = step(ours[start : start + 4] if start < 20 else free[start : start + 4])
        apart = weft.arange(30.0)[start : start + 4] if start >= 20 else None
        wanted = body(theirs, theirs[start : start + 4] if apart is None else apart)
        if apart is not None:
            free[start : start + 4] = weft.arange(30.0)[start : start + 4]
        assert found.tolist() == wanted.tolist()
        assert ours.tolist() == theirs.tolist()


def test_a_state_that_an_argument_has_changed_has_no_known_value() -> None:
    state = weft.asarray(0.0)

    @weft.program
    def step(x: Any) -> Any:
        x += 1
        return x * 2 if float(state) < 2 else x

    assert step(weft.asarray(1.0)).item() == 4.0
    with pytest.raises(CaptureError, match="test_overlaps"):
        step(state)
    assert state.item() == 0.0
