"""A model on a CUDA device: its tensors and parameters are there, and it learns what it learns on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft import device, layer, model, opt, tensor


class Net(model.Model):
    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.dense2, self.loss = layer.Linear(5), layer.Linear(3), layer.MeanSquareError()

    def forward(self, x: Any) -> Any:
        return self.dense2(tensor.tanh(self.dense1(x)))

    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def test_a_model_learns_on_a_device(fake_cuda: object, cupy: object) -> None:  # noqa: ARG001 - the driver
    losses: dict[str, list[float]] = {}
    weights: dict[str, list[bytes]] = {}
    cpu, gpu = device.get_default_device(), device.create_cuda_gpu()
    for name, dev, mode in (
        ("cpu", cpu, {}),
        ("cuda", gpu, {}),
        ("graph", gpu, {"use_graph": True}),
        ("sequential", gpu, {"use_graph": True, "sequential": True}),
    ):
        net = Net()
        net.set_optimizer(opt.SGD(0.1, momentum=0.9))
        x, y = tensor.Tensor((4, 2), dev), tensor.Tensor((4, 3), dev)
        net.compile([x], is_train=True, **{"use_graph": False, **mode})
        rng = np.random.default_rng(0)
        net.set_params(
            {name: rng.normal(size=value.shape).astype(np.float32) for name, value in net.get_params().items()}
        )
        assert {value.device for value in net.get_states().values()} == {dev}
        x.copy_from_numpy(rng.normal(size=(4, 2)).astype(np.float32))
        y.copy_from_numpy(np.ones((4, 3), np.float32))
        losses[name] = [float(net(x, y)[1].numpy()[0]) for _ in range(4)]
        weights[name] = [value.numpy().tobytes() for value in net.get_states().values()]
    np.testing.assert_allclose(losses["cuda"], losses["cpu"], rtol=1e-5)
    assert losses["cpu"][-1] < losses["cpu"][0]
    assert losses["graph"] == losses["sequential"] == losses["cuda"]
    assert weights["graph"] == weights["sequential"] == weights["cuda"]
