"""One network three times: eagerly, as a graph, as a graph op by op. Figures of each, and whether the weights are the same."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from weft import device, model, opt, tensor

Floats: TypeAlias = npt.NDArray[np.float32]
Labels: TypeAlias = npt.NDArray[np.int32] | Floats
#: How a network runs: its name, `use_graph`, `sequential`.
WAYS = (("eager", False, False), ("graph", True, False), ("graph, sequential", True, True))


@dataclass
class Contest:
    """What is trained, and on what.

    Parameters
    ----------
    name : str
        The network's.
    make : callable
        Makes a model.
    optimizer : callable
        Makes an optimizer.
    x, y : ndarray
        All images or rows, and their labels.
    batch : int
        How many go into one step.
    epochs : int
        How often all are gone through.
    ranks : int, default: 1
        How many processes do the same with other rows.
    """

    name: str
    make: Callable[[], model.Model]
    optimizer: Callable[[], opt.Optimizer]
    x: Labels
    y: Labels
    batch: int
    epochs: int
    ranks: int = 1

    @property
    def steps(self) -> int:
        """How many steps a training has."""
        return self.epochs * (len(self.x) // self.batch)


@dataclass
class Outcome:
    """What came out of one way to run.

    Parameters
    ----------
    way : str
        Its name.
    net : Model
        The trained network.
    step : float
        Seconds for one step, the median.
    losses : list of float
        The mean loss of each epoch.
    """

    way: str
    net: model.Model
    step: float
    losses: list[float]


def run(contest: Contest, way: str, *, use_graph: bool, sequential: bool, on_step: Callable[[], object]) -> Outcome:
    """Train a network one way; seeded, so that all ways begin alike and see the same batches."""
    dev = device.get_default_device()
    dev.SetRandSeed(0)
    net = contest.make()
    net.set_optimizer(contest.optimizer())
    x = tensor.Tensor((contest.batch, *contest.x.shape[1:]), dev, contest.x.dtype)
    y = tensor.Tensor((contest.batch, *contest.y.shape[1:]), dev, contest.y.dtype)
    net.compile([x], is_train=True, use_graph=use_graph, sequential=sequential)
    order, times, losses = np.random.default_rng(0), [], []
    for _ in range(contest.epochs):
        found = []
        shuffled = order.permutation(len(contest.x))
        for start in range(0, len(shuffled) - contest.batch + 1, contest.batch):
            chosen = shuffled[start : start + contest.batch]
            x.copy_from_numpy(contest.x[chosen])
            y.copy_from_numpy(contest.y[chosen])
            dev.Sync()
            began = perf_counter()
            _, loss = net(x, y)
            found.append(float(loss.item()))
            dev.Sync()  # the update, too
            times.append(perf_counter() - began)
            on_step()
        losses.append(float(np.mean(found)))
    # The first steps record, and fill caches.
    return Outcome(way, net, median(times[2:] or times), losses)


def race(contest: Contest, repeats: int = 1, on_step: Callable[[], object] = lambda: None) -> list[Outcome]:
    """Train a network all ways; print the times and whether the weights are the same."""
    outcomes = [
        run(contest, way, use_graph=use_graph, sequential=sequential, on_step=on_step)
        for way, use_graph, sequential in WAYS
        for _ in range(repeats)
    ]
    best = [
        min(outcomes[at : at + repeats], key=lambda outcome: outcome.step) for at in range(0, len(outcomes), repeats)
    ]
    for outcome in best:
        print(f"{outcome.way:18}{1e3 * outcome.step:8.1f} ms a step, loss {outcome.losses[-1]:.4f}")
    print(f"{'speed-up':18}{best[0].step / best[1].step:8.2f}")
    print(f"weights: {'the same in all runs, bit for bit' if same_weights(best) else 'DIFFERENT'}")
    return best


def accuracy(net: model.Model, x: Floats, y: Labels) -> float:
    """Return the share of images that a network classifies right."""
    net.eval()
    out = tensor.to_numpy(net(tensor.from_numpy(x)))
    net.train()
    return float(np.mean(out.argmax(axis=1) == y))


def rows(contest: Contest, outcomes: list[Outcome]) -> list[tuple[str, ...]]:
    """Return a row of figures for each way, in the columns of SINGA's tables."""
    program = next(outcome.net.programs[0] for outcome in outcomes if outcome.net.programs)
    eager = program.eager_peak_nbytes
    first = outcomes[0].step
    name = contest.name if contest.ranks == 1 else f"{contest.name}, {contest.ranks} processes"
    found: list[tuple[str, ...]] = []
    for outcome in outcomes:
        nbytes = outcome.net.programs[0].nbytes if outcome.net.programs else eager
        found.append(
            (
                name,
                outcome.way,
                f"{nbytes / 1e6:.1f}",
                f"{1 - nbytes / eager:.0%}" if nbytes != eager else "",
                f"{1e3 * outcome.step:.1f}",
                f"{contest.ranks * contest.batch / outcome.step:.0f}",
                f"{first / outcome.step:.2f}",
            )
        )
    return found


def same_weights(outcomes: list[Outcome]) -> bool:
    """Return whether all ways gave the same weights, bit for bit."""
    first, *others = (outcome.net.get_states() for outcome in outcomes)
    return all(np.array_equal(value.numpy(), other[name].numpy()) for other in others for name, value in first.items())
