"""Small models that learn on some device, to be held against the same ones elsewhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft import layer, model, opt, tensor

__all__ = ["BATCHES", "MODES", "Cnn", "Learned", "Net", "Trained", "learn"]


class Trained(model.Model):
    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


class Net(Trained):
    """Two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.dense2, self.loss = layer.Linear(5), layer.Linear(3), layer.MeanSquareError()

    def forward(self, x: Any) -> Any:
        return self.dense2(tensor.tanh(self.dense1(x)))


class Cnn(Trained):
    """SINGA's network, smaller."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = layer.Conv2d(1, 4, 5, padding=0, activation="RELU")
        self.pool1 = layer.MaxPool2d(2, 2, padding=0)
        self.conv2 = layer.Conv2d(5, 3, activation="RELU")
        self.pool2 = layer.MaxPool2d(2, 2)
        self.flatten, self.dense1, self.relu = layer.Flatten(), layer.Linear(12), layer.ReLU()
        self.dense2, self.loss = layer.Linear(10), layer.SoftMaxCrossEntropy()

    def forward(self, x: Any) -> Any:
        y = self.pool2(self.conv2(self.pool1(self.conv1(x))))
        return self.dense2(self.relu(self.dense1(self.flatten(y))))


RNG = np.random.default_rng(0)
BATCHES = {
    Net: (RNG.normal(size=(4, 2)).astype("f4"), np.ones((4, 3), np.float32)),
    Cnn: (RNG.normal(size=(4, 1, 16, 16)).astype("f4"), np.arange(4, dtype=np.int32)),
}
MODES: dict[str, dict[str, bool]] = {
    "eager": {"use_graph": False},
    "graph": {"use_graph": True},
    "sequential": {"use_graph": True, "sequential": True},
}


class Learned(NamedTuple):
    """Losses step by step, and the bytes of what a model has in the end."""

    losses: list[float]
    states: list[bytes]


def learn(kind: type[Trained], dev: Any, mode: str) -> Learned:
    """Train a model for four steps on a device: everything of it is there."""
    data, wanted = BATCHES[kind]
    net, rng = kind(), np.random.default_rng(1)
    net.set_optimizer(opt.SGD(0.1, momentum=0.9))
    x, y = tensor.Tensor(data.shape, dev), tensor.Tensor(wanted.shape, dev, wanted.dtype)
    net.compile([x], is_train=True, **MODES[mode])
    shapes = {name: value.shape for name, value in net.get_params().items()}
    net.set_params({name: rng.normal(0, 0.3, size=shape).astype("f4") for name, shape in shapes.items()})
    assert {value.device for value in net.get_states().values()} == {dev}
    x.copy_from_numpy(data)
    y.copy_from_numpy(wanted)
    losses = [float(net(x, y)[1].numpy().sum()) for _ in range(4)]
    states = [value.numpy().tobytes() for value in net.get_states().values()]
    net.eval()
    assert net(x).device == dev
    return Learned(losses, states)
