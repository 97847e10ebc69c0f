"""The memory of networks by plan: for inference, for training, and for training with results computed again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from weft import graph as g

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft.bench.plan.networks import Network
    from weft.graph import Graph
    from weft.symbol import Symbol


@dataclass(frozen=True, slots=True)
class Plan:
    """Bytes of an arena, the most that are live in it, and how long planning took."""

    nbytes: int
    peak: int
    seconds: float

    @property
    def megabytes(self) -> float:
        """The arena, in units of 2**20 bytes."""
        return self.nbytes / 2**20

    @property
    def to_peak(self) -> float:
        """The arena over the most that is live."""
        return self.nbytes / self.peak


@dataclass(frozen=True, slots=True)
class PlannedNetwork:
    """The plans of one network, and what MXNet's are, in MB."""

    name: str
    inference: Plan
    training: Plan
    again: Plan
    mxnet_inference: int
    mxnet_training: int

    def json(self) -> dict[str, Any]:
        """Return everything as JSON has it."""
        return asdict(self)


def sized(symbol: Symbol) -> Graph:
    """Return the graph of a symbol with shapes and dtypes, without what these make needless.

    Examples
    --------
    >>> import weft
    >>> from weft.bench.plan.training import sized
    >>> sized(weft.exp(weft.symbol.Variable("x", shape=(2,)))).attrs["shape"]
    [(2,), (2,)]
    """
    return g.eliminate_identity(g.infer_type(g.infer_shape(g.Graph(symbol))))


def _plan(graph: Graph, external: Sequence[str]) -> Plan:
    start = perf_counter()
    attrs = g.plan_memory(graph, external=external).attrs
    return Plan(attrs["storage_allocated_bytes"], attrs["storage_peak_live_bytes"], perf_counter() - start)


def plan_network(network: Network) -> PlannedNetwork:
    """Plan a network three times. Gradients lie outside: they go where they are asked for.

    Examples
    --------
    >>> from weft.bench.plan.networks import NETWORKS
    >>> from weft.bench.plan.training import plan_network
    >>> alexnet = plan_network(next(each for each in NETWORKS if each.name == "AlexNet"))
    >>> alexnet.again.nbytes <= alexnet.training.nbytes
    True
    """
    inference = _plan(sized(network.forwards(training=False)[0]), ())
    loss, both, gradients = network.trained()
    graph = sized(both)
    training = _plan(graph, gradients)
    start = perf_counter()
    smaller = g.recompute(graph, loss, external=gradients)
    seconds = perf_counter() - start
    again = _plan(smaller, gradients)
    return PlannedNetwork(
        network.name, inference, training, Plan(again.nbytes, again.peak, seconds), network.inference, network.training
    )
