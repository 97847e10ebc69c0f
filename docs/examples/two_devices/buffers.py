"""What the ops work on: every array is made here, once, together with its variable."""

from collections.abc import Iterable
from typing import NamedTuple

import weft

from .network import Array
from .workbench import Tensor, Workbench


class Replica:
    """The network on one device, with room for half a batch.

    Parameters
    ----------
    bench : Workbench
        Makes the tensors.
    device : weft.Device
        Where the replica lives.
    n : int
        Rows in half a batch.
    w1, w2 : ndarray of float32
        The weights to begin with, (p, h) and (h, c); they are copied.

    Attributes
    ----------
    inputs : list of (Tensor, Tensor)
        Two sets of images and labels: one is filled while the other is in use.
    """

    def __init__(self, bench: Workbench, device: weft.Device, n: int, w1: Array, w2: Array) -> None:
        def buffer(name: str, *shape: int) -> Tensor:
            return bench.buffer(f"{device}.{name}", *shape)

        (p, h), c = w1.shape, w2.shape[1]
        self.device = device
        self.inputs = [(buffer(f"x[{i}]", n, p), buffer(f"y[{i}]", n, c)) for i in range(2)]
        self.hidden = buffer("hidden", n, h)
        self.error = buffer("error", n, c)
        self.hidden_error = buffer("hidden_error", n, h)
        self.w1 = bench.tensor(f"{device}.w1", w1.copy())
        self.w2 = bench.tensor(f"{device}.w2", w2.copy())
        self.g1 = buffer("g1", p, h)
        self.g2 = buffer("g2", h, c)


class Branch(NamedTuple):
    """One device's part in a layer: its weights, and its gradient there and at home."""

    device: weft.Device
    weights: Tensor
    gradient: Tensor
    collected: Tensor


class Layer:
    """The weights of one layer at home, where the gradients of all devices are summed.

    Parameters
    ----------
    bench : Workbench
        Makes the tensors.
    home : weft.Device
        Where the weights are updated.
    name : str
        What the layer is called.
    weights : ndarray of float32
        The weights to begin with; they are updated in place.
    branches : iterable of (weft.Device, Tensor, Tensor)
        The devices, each with its weights and its gradient.
    """

    def __init__(
        self,
        bench: Workbench,
        home: weft.Device,
        name: str,
        weights: Array,
        branches: Iterable[tuple[weft.Device, Tensor, Tensor]],
    ) -> None:
        self.home = home
        self.weights = bench.tensor(name, weights)
        self.total = bench.buffer(f"{name}.total", *weights.shape)
        self.branches = [
            Branch(device, replica, gradient, bench.buffer(f"{name}.{device}", *weights.shape))
            for device, replica, gradient in branches
        ]
