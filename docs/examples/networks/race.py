"""One network three times: eagerly, as a graph, as a graph op by op. Figures of each, and whether the weights are the same."""

from collections.abc import Callable, Iterator
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
#: Steps of one way before it is the next one's turn.
TURN = 4


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


class Training:
    """A network that is trained one way; seeded, so that all ways begin alike and see the same batches.

    Parameters
    ----------
    contest : Contest
        What is trained.
    way : str
        The name of the way.
    use_graph, sequential : bool
        As for ``compile``.
    """

    def __init__(self, contest: Contest, way: str, *, use_graph: bool, sequential: bool) -> None:
        self.way = way
        self.contest = contest
        self.device = device.get_default_device()
        self.device.SetRandSeed(0)
        self.net = contest.make()
        self.net.set_optimizer(contest.optimizer())
        self.x = tensor.Tensor((contest.batch, *contest.x.shape[1:]), self.device, contest.x.dtype)
        self.y = tensor.Tensor((contest.batch, *contest.y.shape[1:]), self.device, contest.y.dtype)
        self.net.compile([self.x], is_train=True, use_graph=use_graph, sequential=sequential)
        self.times: list[float] = []
        self.losses: list[list[float]] = [[] for _ in range(contest.epochs)]
        self._batches = self._chosen()

    def _chosen(self) -> Iterator[tuple[int, npt.NDArray[np.intp]]]:
        """Yield epochs, and which rows are next."""
        order, batch = np.random.default_rng(0), self.contest.batch
        for epoch in range(self.contest.epochs):
            shuffled = order.permutation(len(self.contest.x))
            for start in range(0, len(shuffled) - batch + 1, batch):
                yield epoch, shuffled[start : start + batch]

    def step(self) -> None:
        """Train on the next batch."""
        epoch, chosen = next(self._batches)
        self.x.copy_from_numpy(self.contest.x[chosen])
        self.y.copy_from_numpy(self.contest.y[chosen])
        self.device.Sync()
        began = perf_counter()
        _, loss = self.net(self.x, self.y)
        self.losses[epoch].append(float(loss.item()))
        self.device.Sync()  # the update, too
        self.times.append(perf_counter() - began)

    def outcome(self) -> Outcome:
        """Return what has come of it. The first steps record, and fill caches."""
        losses = [float(np.mean(found)) for found in self.losses]
        return Outcome(self.way, self.net, median(self.times[2:] or self.times), losses)


def run(contest: Contest, on_step: Callable[[str], object]) -> list[Outcome]:
    """Train a network all ways, by turns of some steps: a machine that is slower for a while is so for all of them."""
    ways = [Training(contest, way, use_graph=use_graph, sequential=sequential) for way, use_graph, sequential in WAYS]
    for start in range(0, contest.steps, TURN):
        for way in ways:
            for _ in range(min(TURN, contest.steps - start)):
                way.step()
                on_step(way.way)
    return [way.outcome() for way in ways]


def race(contest: Contest, repeats: int = 1) -> list[Outcome]:
    """Train a network all ways; print the times and whether the weights are the same."""
    best = run(contest, lambda _: None)
    for _ in range(repeats - 1):
        best = [
            min(pair, key=lambda outcome: outcome.step) for pair in zip(best, run(contest, lambda _: None), strict=True)
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
    """Return a row of figures for each way, in the columns of SINGA's tables.

    Memory is what the results of a step take: of a graph its arena, of the eager run what lives at the same time. The
    reduction compares it with all results of a step together, each of which has memory of its own layer by layer.
    """
    program = next(outcome.net.programs[0] for outcome in outcomes if outcome.net.programs)
    first, name = outcomes[0].step, contest.name if contest.ranks == 1 else f"{contest.name}, {contest.ranks} processes"
    found: list[tuple[str, ...]] = []
    for outcome in outcomes:
        nbytes = outcome.net.programs[0].nbytes if outcome.net.programs else program.eager_peak_nbytes
        found.append(
            (
                name,
                outcome.way,
                f"{nbytes / 1e6:.1f}",
                f"{1 - nbytes / program.eager_nbytes:.0%} of {program.eager_nbytes / 1e6:.1f}",
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
