"""A failure belongs to the bytes that a failed op would have written, and to no others, whatever is read after it."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

import weft
from conftest import SOON

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LENGTH = 24


def failed() -> weft.NDArray:
    """Return integers of which each op fails."""
    return weft.arange(1, LENGTH + 1) ** weft.asarray([-1] * LENGTH)


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    """Have all failures told, so that none is at the end of the process."""
    yield
    with suppress(ValueError, ExceptionGroup):
        weft.wait_all(timeout=SOON)


def is_good(array: weft.NDArray) -> bool:
    try:
        array.wait_to_read(SOON)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "look",
    [
        abs,
        weft.sum,
        lambda t: t[0:LENGTH].copy(),
        weft.program(weft.negative),
    ],
    ids=["abs", "sum", "copy", "program"],
)
def test_who_looks_at_all_fails_and_leaves_what_is_good(look: Callable[[weft.NDArray], weft.NDArray]) -> None:
    t = weft.arange(LENGTH) - failed()
    t[12:19] = weft.arange(7)
    for _ in range(2):
        assert not is_good(look(t))
    assert t[12:15].numpy().tolist() == [0, 1, 2]
    assert not is_good(t[11:13])
    assert not is_good(t)
    t[0:12] = 1
    t[19:] = 2
    assert int(weft.sum(t)) == 12 + 21 + 10


def test_who_changes_a_part_fails_for_that_part_alone() -> None:
    t = weft.arange(LENGTH) - failed()
    t[12:19] = 5
    t[10:15] += 1
    assert not is_good(t[12:13])
    assert t[15:19].numpy().tolist() == [5] * 4
    t[0:15] = t[15:16]
    assert t[0:19].numpy().tolist() == [5] * 19


def test_who_changes_all_fails_for_all() -> None:
    t = weft.arange(LENGTH) - failed()
    t[12:19] = 5
    t += 1
    assert not is_good(t[12:13])
    t[...] = 3
    assert t.numpy().tolist() == [3] * LENGTH


class Model:
    """What arrays are in serial order: values, and which of them failed."""

    def __init__(self, arrays: int) -> None:
        self.values = np.arange(arrays * LENGTH).reshape(arrays, LENGTH)
        self.failed = np.zeros((arrays, LENGTH), dtype=bool)

    def write(self, place: tuple[int, slice], value: np.ndarray | int, *, fails: bool) -> None:
        self.failed[place] = fails
        if not fails:
            self.values[place] = value


def run(program: list[tuple[int, ...]], arrays: int, model: Model) -> list[weft.NDArray]:
    made = [weft.arange(at * LENGTH, (at + 1) * LENGTH) for at in range(arrays)]
    bad = failed()
    for what, target, source, start, other, length in program:
        here, there = slice(start, start + length), slice(other, other + length)
        place, origin = (target, here), (source, there)
        fails = bool(model.failed[origin].any())
        match what:
            case 0:
                made[target][here] = bad[here]
                model.write(place, 0, fails=True)
            case 1:
                made[target][here] = start
                model.write(place, start, fails=False)
            case 2:
                made[target][here] = made[source][there]
                if place != origin:  # what is assigned to itself stays
                    model.write(place, model.values[origin].copy(), fails=fails)
            case 3:
                made[target][here] += made[source][there]
                both = fails or bool(model.failed[place].any())
                model.write(place, model.values[place] + model.values[origin], fails=both)
            case 4:
                made[target] = abs(made[source])
                fails = bool(model.failed[source].any())
                model.write((target, slice(None)), abs(model.values[source]), fails=fails)
            case 5:
                made[target][start : start + 1] = weft.sum(made[source])
                total = model.values[source].sum()
                model.write((target, slice(start, start + 1)), total, fails=bool(model.failed[source].any()))
            case _:
                made[target] += 1
                fails = bool(model.failed[target].any())
                model.write((target, slice(None)), model.values[target] + 1, fails=fails)
    return made


@pytest.mark.parametrize("seed", range(int(os.environ.get("WEFT_FAILED_RANGES", "60"))))
def test_programs_in_which_ops_fail(seed: int) -> None:
    random = Random(seed)
    arrays = 3

    def step() -> tuple[int, ...]:
        length = random.randrange(1, LENGTH)
        first, second = (random.randrange(LENGTH - length + 1) for _ in range(2))
        what = random.choices(range(7), weights=(2, 6, 5, 4, 2, 2, 1))[0]
        return (what, random.randrange(arrays), random.randrange(arrays), first, second, length)

    model = Model(arrays)
    made = run([step() for _ in range(40)], arrays, model)
    for at in random.sample(range(arrays * LENGTH), arrays * LENGTH):
        number, element = divmod(at, LENGTH)
        shown = made[number][element : element + 1]
        if model.failed[number, element]:
            assert not is_good(shown), (number, element)
        else:
            assert int(shown.numpy()[0]) == model.values[number, element], (number, element)
