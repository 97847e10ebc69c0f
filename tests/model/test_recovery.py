"""A batch that fails costs that batch: parameters and what the optimizer keeps stay, and come back by `recover`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from learning import MODES, Trained

import weft
from weft import device, errors, layer, opt, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

OPTIMIZERS: list[Callable[[], opt.Optimizer]] = [
    lambda: opt.SGD(lr=0.1),
    lambda: opt.SGD(lr=0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    lambda: opt.SGD(lr=0.1, momentum=0.9, nesterov=True),
    lambda: opt.RMSProp(lr=0.01),
    lambda: opt.AdaGrad(lr=0.01),
    lambda: opt.Adam(lr=0.01, weight_decay=0.01),
]


class Classifier(Trained):
    """Dense layers, one with running averages, and labels."""

    def __init__(self) -> None:
        super().__init__()
        self.dense1, self.relu, self.dense2 = layer.Linear(8), layer.ReLU(), layer.Linear(3)
        self.loss = layer.SoftMaxCrossEntropy()

    def forward(self, x: Any) -> Any:
        return self.dense2(self.relu(self.dense1(x)))


def batches(count: int) -> list[tuple[Any, Any]]:
    generator = np.random.default_rng(3)
    return [
        (
            tensor.from_numpy(generator.normal(size=(4, 5)).astype("f4")),
            tensor.from_numpy(generator.integers(0, 3, 4).astype("i4")),
        )
        for _ in range(count)
    ]


def trained(make: Callable[[], opt.Optimizer], mode: str, given: list[tuple[Any, Any]]) -> Classifier:
    device.get_default_device().SetRandSeed(0)
    net = Classifier()
    net.set_optimizer(make())
    net.compile([given[0][0]], **MODES[mode])
    for batch in given:
        net(*batch)
    return net


def values(net: Classifier) -> list[np.ndarray]:
    kept = [array for slot in net.optimizer.slots for array in net.optimizer.get_states()[slot].values()]
    return [array.numpy().copy() for array in (*net.get_states().values(), *kept)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_bad_label_costs_one_batch(make: Callable[[], opt.Optimizer], mode: str) -> None:
    given = batches(4)
    net = trained(make, mode, given[:3])
    before = values(net)
    bad = tensor.from_numpy(np.array([0, 1, 99, 2], "i4"))
    _, loss = net(given[3][0], bad)
    with pytest.raises(IndexError, match="no class 99"):
        loss.numpy()
    with pytest.raises(IndexError) as caught:
        net.dense1.W.numpy()
    assert any("model.recover()" in note for note in caught.value.__notes__)
    assert {type(error) for error in net.recover()} == {errors.ArgumentIndexError}
    assert net.recover() == []
    assert all(map(np.array_equal, values(net), before))
    _, loss = net(*given[3])
    assert np.isfinite(loss.numpy()).all()
    assert not all(map(np.array_equal, values(net), before))
    weft.wait_all()


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_what_was_begun_is_refused(mode: str) -> None:
    net = trained(OPTIMIZERS[1], mode, batches(2))
    kept = net.dense1.W.numpy().copy()

    def spoil() -> None:
        np.asarray(net.dense2.W)[0] = np.nan
        raise KeyError("half")

    weft.get_engine().push(spoil, mutate_vars=[net.dense2.W])
    with pytest.raises(errors.RecoveryError, match="load what was saved") as refused:
        net.recover()
    assert isinstance(refused.value.__cause__, KeyError)
    with weft.autograd.no_grad():
        net.dense2.W[...] = 0.0
    assert net.recover() == []
    assert np.array_equal(net.dense1.W.numpy(), kept)
    weft.wait_all()


def test_a_model_that_is_not_compiled_has_nothing_to_recover() -> None:
    with pytest.raises(errors.ModelError, match="recover: Classifier is not compiled"):
        Classifier().recover()
