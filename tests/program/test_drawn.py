"""Random numbers in programs: weft's go on at each replay, and those of other generators are warned of."""

from __future__ import annotations

import random
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import weft
from weft.errors import CaptureError


def ones() -> weft.NDArray:
    return weft.ones(3)


def test_draws_go_on() -> None:
    def draw(rng: Any) -> Any:
        return rng.normal(size=4), rng.random(size=2)

    eager, recorded = weft.random.default_rng(7), weft.random.default_rng(7)
    step = weft.program(lambda: draw(recorded))
    for _ in range(4):
        for wanted, found in zip(draw(eager), step(), strict=True):
            assert wanted.numpy().tobytes() == found.numpy().tobytes()


def test_unseeded_generators_are_refused() -> None:
    step = weft.program(lambda x: x + weft.random.default_rng().random(size=3))
    with pytest.raises(CaptureError, match="seed"):
        step(ones())
    seeded = weft.random.default_rng(1)
    weft.program(lambda x: x + seeded.random(size=3))(ones())


GENERATOR = np.random.default_rng(3)
TWISTER = np.random.Generator(np.random.MT19937(3))
LEGACY = np.random.RandomState(3)
OWN = random.Random(3)
SYSTEM = random.SystemRandom()
DRAWS = {
    "numpy.random": lambda: np.random.rand(3),  # noqa: NPY002 - the subject
    "random": random.random,
    "GENERATOR": lambda: GENERATOR.random(3),
    "LEGACY": lambda: LEGACY.rand(3),
    "OWN": lambda: OWN.uniform(0, 1),
    "TWISTER": lambda: TWISTER.random(3),
}


@pytest.mark.parametrize("name", DRAWS)
def test_draws_that_replays_would_repeat_are_warned_of(name: str) -> None:
    draw = DRAWS[name]
    step = weft.program(lambda x: x + draw())
    with pytest.warns(weft.errors.RecordingWarning, match=rf"drawn from {name} while it was recorded") as found:
        step(ones())
    assert [warning.filename for warning in found] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(ones())  # a replay
        draw()
        weft.program(lambda x: x + 1)(ones())


def test_draws_of_another_thread_are_warned_of_as_perhaps_its() -> None:
    drawn = threading.Thread(target=random.random)

    def start(x: Any) -> Any:
        drawn.start()
        drawn.join()
        return x + 1

    with pytest.warns(weft.errors.RecordingWarning, match="by it or by another thread"):
        weft.program(start)(ones())


def test_a_generator_without_a_state_is_no_obstacle() -> None:
    step = weft.program(lambda x: x + SYSTEM.randrange(1, 2))
    assert step(ones()).tolist() == [2.0] * 3
