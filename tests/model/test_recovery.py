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
    lambda: opt.ParamGroups({"*.b": opt.SGD(lr=0.1, momentum=0.9), "*": opt.AdamW(lr=0.01)}),
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


@pytest.mark.parametrize("mode", MODES)
def test_losses_of_a_bad_batch_and_of_the_next_lead_to_recover(mode: str) -> None:
    given = batches(3)
    net = trained(OPTIMIZERS[0], mode, given[:2])
    for labels in (tensor.from_numpy(np.array([0, 1, 99, 2], "i4")), given[2][1]):
        _, loss = net(given[2][0], labels)
        with pytest.raises(IndexError, match="no class 99") as caught:
            loss.numpy()
        assert sum("model.recover()" in note for note in caught.value.__notes__) == 1
    net.recover()
    _, loss = net(*given[2])
    assert np.isfinite(loss.numpy()).all()
    weft.wait_all()


class Summing(Classifier):
    """Steps by the gradients of two batches, and averages of its parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.sums = opt.GradientSum()

    def train_one_batch(self, x: Any, y: Any, last: bool) -> Any:
        loss = self.loss(self.forward(x), y)
        self.sums.add(weft.autograd.gradients(loss))
        if last:
            self.optimizer.apply_gradients(self.sums.take())
            self.averages.update()
        return loss


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_sums_of_gradients_and_averages_come_back(mode: str, last: bool) -> None:
    (x, y), *_ = batches(1)
    net = Summing()
    net.set_optimizer(opt.SGD(lr=0.1))
    net.compile([x], **MODES[mode])
    net.averages = opt.EMA(net, decay=0.5)
    bad = tensor.from_numpy(np.array([0, 1, 99, 2], "i4"))
    for labels, ends in ((y, False), (y, True)) if last else ():
        net(x, labels, last=ends)
    kept = net.dense1.W.numpy().copy(), net.averages.averages["dense1.W"].numpy().copy()
    if last:
        net(x, y, last=False)
    with pytest.raises(IndexError, match="no class 99"):
        net(x, bad, last=last).numpy()
    net.recover()
    found = net.dense1.W.numpy(), net.averages.averages["dense1.W"].numpy()
    assert all(map(np.array_equal, found, kept))
    for ends in (False, True):
        net(x, y, last=ends)
    assert not np.array_equal(net.dense1.W.numpy(), kept[0])
    mean = (kept[1] + net.dense1.W.numpy()) / 2
    np.testing.assert_allclose(net.averages.averages["dense1.W"].numpy(), mean, rtol=1e-6)
    assert net.recover() == []
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


# Labels in the host's memory.


class Foreign:
    """An array as torch's: neither the dtype nor the methods are NumPy's."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape, self.dtype = array, array.shape, "foreign.int64"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wrap", [np.asarray, Foreign], ids=["numpy", "foreign"])
def test_labels_of_the_host_are_checked_when_they_are_handed_over(mode: str, wrap: Any) -> None:
    given = batches(3)
    net = trained(OPTIMIZERS[1], mode, given[:1])
    for wrong, labels in ((99, [0, 1, 99, 2]), (-1, [0, -1, 2, 0])):
        before = values(net)
        with pytest.raises(IndexError, match=f"no class {wrong} among 3"):
            net(given[1][0], wrap(np.array(labels, "i8")))
        assert all(map(np.array_equal, values(net), before))
        _, loss = net(given[1][0], wrap(np.array([0, 1, 2, 2], "i8")))
        assert np.isfinite(loss.numpy()).all()
        assert not all(map(np.array_equal, values(net), before))
    assert net.recover() == []
    assert net.optimizer.step_counter.item() == 3


def test_labels_among_other_integers_are_left_to_the_loss() -> None:
    given = batches(1)
    net = trained(OPTIMIZERS[0], "graph", given)
    _, loss = net(given[0][0], np.array([0, 1, 2, 0]))
    loss.numpy()
    _, loss = net(given[0][0], np.eye(3, dtype="f4")[[0, 1, 2, 0]])  # rows of probabilities
    loss.numpy()
    _, loss = net(given[0][0], np.array([[0], [1], [2], [0]]))
    loss.numpy()
    with pytest.raises(IndexError, match="no class 3 among 3"):
        net(given[0][0], np.array([[0], [1], [3], [0]]))


@pytest.mark.parametrize("mode", MODES)
def test_integers_that_are_no_labels_are_not_taken_for_them(mode: str) -> None:
    class Words(Trained):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.dense, self.loss = layer.Embedding(50, 4), layer.Linear(3), layer.SoftMaxCrossEntropy()

        def forward(self, ids: Any) -> Any:
            return self.dense(self.words(ids))

    net, ids = Words(), np.array([49, 7, 30])
    net.set_optimizer(opt.SGD(0.1))
    net.compile([ids], **MODES[mode])
    for labels in (tensor.from_numpy(np.array([0, 2, 1])), np.array([0, 2, 1]), np.array([1, 1, 1])):
        assert np.isfinite(net(ids, labels)[1].numpy()).all()
    for _ in range(2):
        with pytest.raises(IndexError, match="no class 3 among 3"):
            net(ids, np.array([0, 3, 1]))
        with pytest.raises(IndexError, match="no class 4 among 3"):
            net(np.array([[1], [2]]).reshape(2), y=np.array([0, 4]))
    assert net.recover() == []
