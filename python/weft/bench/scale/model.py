"""The model: links by latency and bandwidth, all-reduces by their algorithm, a training step in virtual time.

A message of m bytes takes ``alpha + beta * m`` seconds (Hockney, 1994). All-reduces are a ring (reduce-scatter, then
all-gather; bandwidth-optimal) or a pipelined tree (reduce, then broadcast; logarithmic in latency).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

Algorithm: TypeAlias = Literal["ring", "tree"]
ALGORITHMS: tuple[Algorithm, ...] = ("ring", "tree")


@dataclass(frozen=True, slots=True)
class Link:
    """The cost of a message: `alpha` seconds, and `beta` for each byte."""

    alpha: float
    beta: float


def terms(algorithm: Algorithm, ranks: int, nbytes: float) -> tuple[float, float]:
    """Return how often an all-reduce pays `alpha`, and for how many bytes `beta`.

    Examples
    --------
    >>> from weft.bench.scale.model import terms
    >>> terms("ring", 4, 1000), terms("tree", 4, 1000), terms("ring", 1, 1000)
    ((6, 1500.0), (4, 2000.0), (0, 0.0))
    """
    if ranks == 1:
        return 0, 0.0
    if algorithm == "ring":
        return 2 * (ranks - 1), 2.0 * (ranks - 1) / ranks * nbytes
    return 2 * math.ceil(math.log2(ranks)), 2.0 * nbytes


def seconds_of(algorithm: Algorithm, link: Link, ranks: int, nbytes: float) -> float:
    """Return the seconds of an all-reduce."""
    latencies, moved = terms(algorithm, ranks, nbytes)
    return latencies * link.alpha + moved * link.beta


def fit(algorithm: Algorithm, measured: Sequence[tuple[int, int, float]]) -> tuple[Link, float]:
    """Return the link that explains measured all-reduces best, and its median error as a factor.

    Parameters
    ----------
    algorithm : {"ring", "tree"}
        The algorithm of the calls.
    measured : sequence of (int, int, float)
        Ranks, bytes and seconds.

    Notes
    -----
    Least squares of relative errors, so that small messages count as much as large ones.

    Examples
    --------
    >>> from weft.bench.scale.model import Link, fit, seconds_of
    >>> link = Link(2e-6, 1e-9)
    >>> rows = [(n, m, seconds_of("ring", link, n, m)) for n in (2, 3, 4) for m in (8, 1 << 20)]
    >>> found, error = fit("ring", rows)
    >>> round(found.alpha * 1e6, 6), round(found.beta * 1e9, 6), round(error, 6)
    (2.0, 1.0, 1.0)
    """
    rows = np.array([terms(algorithm, ranks, nbytes) for ranks, nbytes, _ in measured], float)
    seconds = np.array([each for _, _, each in measured])
    alpha, beta = np.linalg.lstsq(rows / seconds[:, None], np.ones(len(rows)), rcond=None)[0]
    link = Link(max(float(alpha), 0.0), max(float(beta), 0.0))
    return link, error_of(algorithm, link, measured)


def error_of(algorithm: Algorithm, link: Link, measured: Sequence[tuple[int, int, float]]) -> float:
    """Return the median error of a link, as a factor, over all measurements; 1 without any.

    Examples
    --------
    >>> from weft.bench.scale.model import Link, error_of
    >>> error_of("ring", Link(1e-6, 0.0), [(2, 8, 1e-6), (2, 16, 1e-6)])
    2.0
    """
    if not measured:
        return 1.0
    found = np.array([seconds_of(algorithm, link, ranks, nbytes) for ranks, nbytes, _ in measured])
    seconds = np.array([each for _, _, each in measured])
    return float(np.exp(np.median(np.abs(np.log(np.maximum(found, 1e-12) / seconds)))))


@dataclass(frozen=True, slots=True)
class Network:
    """A network as training sees it.

    Parameters
    ----------
    nbytes : tuple of int
        The bytes of each layer's gradient, first layer first.
    forward, backward : float
        Seconds on one rank, shared out among the layers by their bytes.
    """

    nbytes: tuple[int, ...]
    forward: float
    backward: float


@dataclass(frozen=True, slots=True)
class Step:
    """One training step on so many ranks: seconds in all and in communication, and how much of that is hidden."""

    seconds: float
    communication: float
    hidden: float


def step(
    network: Network,
    link: Link,
    algorithm: Algorithm,
    ranks: int,
    *,
    bucket: int,
    spread: float = 0.0,
    overhead: float = 0.0,
    samples: int = 64,
) -> Step:
    """Simulate training steps in virtual time, and return their average.

    Parameters
    ----------
    network : Network
        The network to train.
    link, algorithm
        How gradients are reduced.
    ranks : int
        How many there are.
    bucket : int
        Bytes that are sent together.
    spread : float, default: 0
        The standard deviation of a rank's computing time, as a share of it: all wait for the slowest.
    overhead : float, default: 0
        Seconds that each collective takes besides: its push, its start, its end.
    samples : int, default: 64
        Steps that are drawn, by evenly spaced chances of the slowest rank.

    Examples
    --------
    >>> from weft.bench.scale.model import Link, Network, step
    >>> network = Network((4_000_000,) * 10, 0.1, 0.2)
    >>> free = step(network, Link(0.0, 0.0), "ring", 100, bucket=1)
    >>> round(free.seconds, 6), free.communication
    (0.3, 0.0)
    >>> round(step(network, Link(0.0, 1e-9), "ring", 1000, bucket=1).hidden, 2)
    0.9
    """
    total = sum(network.nbytes)
    buckets: list[tuple[float, int]] = []  # when each is full, of a backward of length 1, and its bytes
    done = waiting = 0
    for nbytes in reversed(network.nbytes):
        done += nbytes
        waiting += nbytes
        if waiting >= bucket:
            buckets.append((done / total, waiting))
            waiting = 0
    if waiting:
        buckets.append((1.0, waiting))
    costs = [overhead + seconds_of(algorithm, link, ranks, nbytes) for _, nbytes in buckets]
    seconds = shown = 0.0
    for chance in (np.arange(samples) + 0.5) / samples:
        slowest = 1.0 + (spread * max(NormalDist().inv_cdf(float(chance) ** (1 / ranks)), 0.0) if spread else 0.0)
        forward, backward = network.forward * slowest, network.backward * slowest
        now = 0.0
        for (share, _), cost in zip(buckets, costs, strict=True):
            now = max(now, forward + share * backward) + cost
        seconds += max(now, forward + backward)
        shown += max(0.0, now - forward - backward)
    communication = sum(costs)
    hidden = 1.0 - shown / samples / communication if communication else 1.0
    return Step(seconds / samples, communication, hidden)
