"""The same training as in `training.py`, in array arithmetic: nothing is pushed by hand.

`train` is written as one would write it in NumPy. Its arrays are `weft.NDArray`: each line pushes what it
reads and what it mutates, and returns. The devices work side by side, and the next batch is on its way to
them while they compute. `train_numpy` and `train_torch` are what it is compared with.

Shapes: ``n`` rows, ``p`` inputs, ``h`` hidden units, ``c`` classes.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import weft

from .network import initial_weights
from .training import DEVICES, Data, Outcome, Plan

#: An array of NumPy, weft or torch.
Values: TypeAlias = Any
#: The module that its functions are in.
Namespace: TypeAlias = Any
#: Called without arguments when the last op of an epoch has run, or has been pushed.
OnEpoch: TypeAlias = Callable[[], object]


class Weights(NamedTuple):
    """Weights, (p, h), and bias, (h,), of the hidden layer; weights, (h, c), of the output."""

    w1: Values
    b1: Values
    w2: Values


class Replica(NamedTuple):
    """The network on one device, with room for its part of a batch: (n, p) and (n, c)."""

    x: weft.NDArray
    y: weft.NDArray
    weights: Weights


def softmax(xp: Namespace, scores: Values) -> Values:
    """Return the softmax of each row; `xp` is `numpy` or `weft`."""
    scores -= xp.max(scores, axis=1, keepdims=True)
    exps = xp.exp(scores)
    exps /= xp.sum(exps, axis=1, keepdims=True)
    return exps


def gradients(
    x: Values, y: Values, weights: Weights, tanh: Callable[[Values], Values], softmax: Callable[[Values], Values]
) -> Weights:
    """Return the gradient of the loss, summed over the rows of `x`, (n, p), and `y`, (n, c)."""
    w1, b1, w2 = weights
    fc1 = x @ w1 + b1
    hidden = tanh(fc1)
    error = softmax(hidden @ w2)
    error -= y
    back = error @ w2.T
    back *= 1 - hidden * hidden
    return Weights(x.T @ back, back.sum(axis=0), hidden.T @ error)


def train(
    engine: weft.Engine,
    data: Data,
    plan: Plan,
    on_epoch: OnEpoch,
    devices: tuple[weft.Device, weft.Device] = DEVICES,
) -> Outcome:
    """Train on `engine`, half of each batch on each device.

    Parameters
    ----------
    engine : weft.Engine
        Runs what the arithmetic pushes; a fresh one, as all of its ops are counted.
    data : Data
        What to learn.
    plan : Plan
        How to learn it.
    on_epoch : callable
        Called when all ops of an epoch have been pushed.
    devices : tuple of weft.Device
        Where the halves are; the weights are updated on the first.

    Returns
    -------
    Outcome
        Its weights are the same, bit for bit, whatever the policy of the engine.
    """
    home, _ = devices
    previous = weft.set_engine(engine)
    try:
        images, labels = weft.asarray(data.images[:, :-1]), weft.asarray(data.labels)
        first = first_weights(data, plan)
        weights = Weights(*(weft.asarray(weight, device=home) for weight in first))
        half = plan.batch // len(devices)
        nets = [
            Replica(
                weft.empty((half, images.shape[1]), dtype=weft.float32, device=device),
                weft.empty((half, labels.shape[1]), dtype=weft.float32, device=device),
                Weights(*(weft.asarray(weight, device=device) for weight in first)),
            )
            for device in devices
        ]
        backward = partial(gradients, tanh=weft.tanh, softmax=partial(softmax, weft))
        rate = plan.rate / plan.hidden / plan.batch
        rng = np.random.default_rng(plan.seed)

        started = perf_counter()
        for _ in range(plan.epochs):
            for batch in plan.batches(rng, len(data.images)):
                rows = batch.ravel()
                x, y = weft.take(images, rows, axis=0), weft.take(labels, rows, axis=0)
                found = []
                for i, net in enumerate(nets):
                    x[i * half : (i + 1) * half].copyto(net.x)
                    y[i * half : (i + 1) * half].copyto(net.y)
                    found.append(backward(net.x, net.y, net.weights))
                replicas = zip(*(net.weights for net in nets), strict=True)
                for weight, parts, copies in zip(weights, zip(*found, strict=True), replicas, strict=True):
                    here, there = (part.to_device(home) for part in parts)
                    weight -= rate * (here + there)  # noqa: PLW2901 (in place)
                    for copy in copies:
                        weight.copyto(copy)
            on_epoch()
        weft.wait_all()
        seconds = perf_counter() - started
        ops = engine.stats()["completed"]
        return outcome(Weights(*(weight.numpy() for weight in weights)), seconds, ops)
    finally:
        weft.set_engine(previous)


def train_numpy(data: Data, plan: Plan, on_epoch: OnEpoch) -> Outcome:
    """Train with NumPy, whole batches at a time."""
    images, labels = data.images[:, :-1], data.labels
    weights = first_weights(data, plan)
    backward = partial(gradients, tanh=np.tanh, softmax=partial(softmax, np))
    rate = plan.rate / plan.hidden / plan.batch
    rng = np.random.default_rng(plan.seed)

    started = perf_counter()
    for _ in range(plan.epochs):
        for batch in plan.batches(rng, len(data.images)):
            rows = batch.ravel()
            for weight, gradient in zip(weights, backward(images[rows], labels[rows], weights), strict=True):
                weight -= rate * gradient  # noqa: PLW2901 (in place)
        on_epoch()
    return outcome(weights, perf_counter() - started)


def train_torch(threads: int, data: Data, plan: Plan, on_epoch: OnEpoch) -> Outcome:
    """Train with torch on `threads` threads, whole batches at a time."""
    torch = import_module("torch")
    torch.set_num_threads(threads)
    images, labels = torch.tensor(data.images[:, :-1]), torch.tensor(data.labels)
    weights = Weights(*map(torch.tensor, first_weights(data, plan)))
    backward = partial(gradients, tanh=torch.tanh, softmax=partial(torch.softmax, dim=1))
    rate = plan.rate / plan.hidden / plan.batch
    rng = np.random.default_rng(plan.seed)

    started = perf_counter()
    for _ in range(plan.epochs):
        for batch in plan.batches(rng, len(data.images)):
            rows = torch.from_numpy(batch.ravel())
            for weight, gradient in zip(weights, backward(images[rows], labels[rows], weights), strict=True):
                weight -= rate * gradient  # noqa: PLW2901 (in place)
        on_epoch()
    return outcome(Weights(*(weight.numpy() for weight in weights)), perf_counter() - started)


def first_weights(data: Data, plan: Plan) -> Weights:
    """Return the weights that `training.train` starts from, its last row of `w1` as the bias."""
    w1, w2 = initial_weights(data.images.shape[1], plan.hidden, data.labels.shape[1], plan.seed)
    return Weights(w1[:-1], w1[-1], w2)


def outcome(weights: Weights, seconds: float, ops: int = 0) -> Outcome:
    """Return what came out in the form of `training.train`, the bias as the last row of the weights."""
    return Outcome((np.vstack([weights.w1, weights.b1]), weights.w2), seconds, ops)
