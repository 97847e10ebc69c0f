"""The same network on one device, its training step as a function: run eagerly, and as a program.

The program is recorded at the first batch. Every later one is a replay in planned memory; the weights are those of the eager
loop, bit for bit.
"""

from functools import partial
from time import perf_counter
from typing import NamedTuple

import numpy as np

import weft

from .arithmetic import Values, Weights, first_weights, gradients, softmax
from .training import Data, Plan


class Comparison(NamedTuple):
    """What came of both: the program, seconds per step eager and replayed, whether all weights have the same bits."""

    program: weft.Program
    eager: float
    replayed: float
    same: bool


def step(x: Values, y: Values, weights: Weights, rate: float) -> None:
    """Learn from a batch: `x`, (n, p), and `y`, (n, c); the weights are changed in place."""
    found = gradients(x, y, weights, weft.tanh, partial(softmax, weft))
    for weight, part in zip(weights, found, strict=True):
        weight -= rate * part  # noqa: PLW2901 (in place)


def compare(data: Data, plan: Plan) -> Comparison:
    """Train by eager steps and by replays, in turn, on the default engine."""
    recorded = weft.program(step)
    rate = plan.rate / plan.hidden / plan.batch
    outcomes: dict[str, tuple[list[float], list[bytes]]] = {}
    for name, train in (("eager", step), ("replayed", recorded)):
        images, labels = weft.asarray(data.images[:, :-1]), weft.asarray(data.labels)
        weights = Weights(*map(weft.asarray, first_weights(data, plan)))
        rng, seconds = np.random.default_rng(plan.seed), []
        for _ in range(plan.epochs):
            for batch in plan.batches(rng, len(data.images)):
                rows = batch.ravel()
                x, y = weft.take(images, rows, axis=0), weft.take(labels, rows, axis=0)
                weft.wait_all()
                started = perf_counter()
                train(x, y, weights, rate)
                weft.wait_all()
                seconds.append(perf_counter() - started)
        outcomes[name] = seconds, [weight.numpy().tobytes() for weight in weights]
    (program,) = recorded.programs
    eager, replayed = (float(np.median(seconds)) for seconds, _ in outcomes.values())
    return Comparison(program, eager, replayed, outcomes["eager"][1] == outcomes["replayed"][1])
