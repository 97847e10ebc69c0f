"""The training loop: serial to read, parallel to run.

`train` pushes one op after the other, each with what it reads and what it mutates. No
line says what may run side by side; the engine finds out:

- each device works on its half of a batch while the other works on the other half;
- a layer's gradients are collected while those of the layer below are computed;
- the next batch is loaded, into the other of two sets of buffers, during this one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

import weft

from .buffers import Layer, Replica
from .network import (
    Array,
    copy,
    hidden_error,
    hidden_layer,
    hidden_slope,
    initial_weights,
    load_rows,
    output_error,
    step_weights,
    weight_gradient,
)
from .workbench import Workbench

DEVICES = (weft.cpu(0), weft.cpu(1))


@dataclass(frozen=True)
class Data:
    """Images (rows, pixels and a constant one) and labels (rows, classes)."""

    images: Array
    labels: Array


@dataclass(frozen=True)
class Plan:
    """How to train.

    Attributes
    ----------
    epochs : int
        Passes over the images.
    hidden : int
        Hidden units.
    batch : int
        Rows in a batch; even, as each device takes half.
    rate : float
        Learning rate of a single hidden unit; many take smaller steps.
    seed : int
        Seed of the weights to begin with, and of the order of the images.
    """

    epochs: int
    hidden: int
    batch: int
    rate: float = 100.0
    seed: int = 0

    def batches(self, rng: np.random.Generator, images: int) -> Iterator[NDArray[np.intp]]:
        """Yield the batches of an epoch, each the numbers of its images: (2, batch / 2)."""
        shuffled = rng.permutation(images)
        for stop in range(self.batch, images + 1, self.batch):
            yield shuffled[stop - self.batch : stop].reshape(len(DEVICES), -1)


@dataclass(frozen=True)
class Outcome:
    """What a run of `train` gave: weights, wall time and number of ops."""

    weights: tuple[Array, Array]
    seconds: float
    ops: int


def train(engine: weft.Engine, data: Data, plan: Plan, on_epoch: Callable[[], object]) -> Outcome:
    """Train the network, half of each batch on each device.

    Parameters
    ----------
    engine : weft.Engine
        Runs the ops; a fresh one, as all of its ops are counted.
    data : Data
        What to learn.
    plan : Plan
        How to learn it.
    on_epoch : callable
        Called without arguments at the end of each epoch, as an op of its own.

    Returns
    -------
    Outcome
        Its weights are the same, bit for bit, whatever the policy of the engine.
    """
    w1, w2 = initial_weights(data.images.shape[1], plan.hidden, data.labels.shape[1], plan.seed)
    step = partial(step_weights, plan.rate / plan.hidden / plan.batch)
    rng = np.random.default_rng(plan.seed)

    bench = Workbench(engine)
    push = bench.push
    images, labels = bench.tensor("images", data.images), bench.tensor("labels", data.labels)
    nets = [Replica(bench, cpu, plan.batch // len(DEVICES), w1, w2) for cpu in DEVICES]
    layer1 = Layer(bench, DEVICES[0], "w1", w1, [(net.device, net.w1, net.g1) for net in nets])
    layer2 = Layer(bench, DEVICES[1], "w2", w2, [(net.device, net.w2, net.g2) for net in nets])

    started = perf_counter()
    for _ in range(plan.epochs):
        for batch in plan.batches(rng, len(data.images)):
            for net, half in zip(nets, batch, strict=True):
                cpu = net.device
                x, y = net.inputs[bench.batch % 2]
                push("load", partial(load_rows, half), [images, labels], [x, y], cpu.copy)
                push("hidden", hidden_layer, [x, net.w1], [net.hidden], cpu)
                push("error", output_error, [net.hidden, net.w2, y], [net.error], cpu)
                push("grad2", weight_gradient, [net.hidden, net.error], [net.g2], cpu)
                push("slope", hidden_slope, [], [net.hidden], cpu)
                push("back", hidden_error, [net.error, net.w2, net.hidden], [net.hidden_error], cpu)
                push("grad1", weight_gradient, [x, net.hidden_error], [net.g1], cpu)
            for layer in (layer2, layer1):
                for branch in layer.branches:
                    push("collect", copy, [branch.gradient], [branch.collected], branch.device.copy)
                arrived = [branch.collected for branch in layer.branches]
                push("sum", np.add, arrived, [layer.total], layer.home)
                push("step", step, [], [layer.total, layer.weights], layer.home)
                for branch in layer.branches:
                    push("return", copy, [layer.weights], [branch.weights], branch.device.copy)
            bench.batch += 1
        engine.push(on_epoch, read_vars=[layer1.weights.var, layer2.weights.var], name="epoch")
    engine.wait_for_all()
    seconds = perf_counter() - started
    return Outcome((w1, w2), seconds, engine.stats()["completed"])
