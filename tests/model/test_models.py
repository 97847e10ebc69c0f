"""Models: eager, as programs, op by op; what makes a new program; modes; what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd, device, layer, model, opt, tensor
from weft.errors import ArgumentTypeError, ModelError, ShapeError


class CNN(model.Model):
    """The network of graph.md, with narrower layers, and with what has a state: normalisation and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = layer.Conv2d(1, 4, 5, padding=0, activation="RELU")
        self.norm = layer.BatchNorm2d()
        self.pool1 = layer.MaxPool2d(2, 2, padding=0)
        self.conv2 = layer.Conv2d(6, 3)
        self.relu = layer.ReLU()
        self.flatten = layer.Flatten()
        self.dropout = layer.Dropout(0.25)
        self.dense = layer.Linear(10)
        self.loss = layer.SoftMaxCrossEntropy()
        self.factor = 1.0

    def forward(self, x: Any) -> Any:
        y = self.pool1(self.norm(self.conv1(x)))
        y = self.flatten(self.relu(self.conv2(y)))
        return self.dense(self.dropout(y)) * self.factor

    def train_one_batch(self, x: Any, y: Any) -> Any:
        out = self.forward(x)
        loss = self.loss(out, y)
        self.optimizer(loss)
        return out, loss


def batch(n: int = 8, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    dev = device.get_default_device()
    x, y = tensor.Tensor((n, 1, 14, 14), dev, tensor.float32), tensor.Tensor((n,), dev, tensor.int32)
    x.copy_from_numpy(rng.normal(size=x.shape).astype(np.float32))
    y.copy_from_numpy(rng.integers(0, 10, n))
    return x, y


def compiled(*, use_graph: bool, sequential: bool = False, optimizer: Any = None, train: bool = True) -> CNN:
    device.get_default_device().SetRandSeed(3)
    net = CNN()
    net.set_optimizer(optimizer or opt.SGD(0.05, momentum=0.9, weight_decay=1e-5))
    net.compile([batch()[0]], is_train=train, use_graph=use_graph, sequential=sequential)
    return net


def test_weights_are_the_same_however_it_runs() -> None:
    found, losses = [], []
    for use_graph, sequential in ((False, False), (True, False), (True, True)):
        net = compiled(use_graph=use_graph, sequential=sequential)
        losses.append([net(*batch(seed=step))[1].item() for step in range(4)])
        net.eval()
        out = net(batch()[0])
        found.append({name: value.numpy() for name, value in net.get_states().items()} | {"out": out.numpy()})
        assert len(net.programs) == (2 if use_graph else 0)
    assert losses[0] == losses[1] == losses[2]
    for other in found[1:]:
        for name, value in found[0].items():
            np.testing.assert_array_equal(value, other[name], name)
    assert list(found[0])[:4] == ["conv1.W", "conv1.b", "norm.scale", "norm.bias"]
    assert not np.array_equal(found[0]["norm.running_mean"], np.zeros(4))


def test_the_program_needs_less_memory_and_results_are_new_arrays() -> None:
    net = compiled(use_graph=True)
    x, y = batch()
    out, _ = net(x, y)
    first = out.numpy().copy()
    net(x, y)
    np.testing.assert_array_equal(out.numpy(), first)
    (program,) = net.programs
    assert program.nbytes <= 0.62 * program.eager_nbytes
    assert not any(state is out for state in program.states)


def test_another_batch_size_and_another_attribute_are_new_programs() -> None:
    net = compiled(use_graph=True)
    for n in (8, 3, 8, 3):
        assert net(*batch(n))[0].shape == (n, 10)
    assert len(net.programs) == 2
    net.eval()
    x = batch()[0]
    before = net(x).numpy()
    net.factor = 2.0
    np.testing.assert_array_equal(net(x).numpy(), 2 * before)
    assert len(net.programs) == 4


def test_training_and_evaluation_are_modes_of_a_model_alone() -> None:
    one, other = compiled(use_graph=False), compiled(use_graph=True, train=False)
    seen = []
    one.loss.forward = lambda out, t: seen.append(autograd.training) or autograd.softmax_cross_entropy(out, t)  # type: ignore[func-returns-value, method-assign]
    x, y = batch()
    one(x, y)
    assert other(x).shape == (8, 10)
    assert seen == [True]
    assert not autograd.training
    other.eval()
    one.train()
    assert not np.array_equal(one.forward(x).numpy(), one.forward(x).numpy())  # dropout draws
    one.eval()
    np.testing.assert_array_equal(one.forward(x).numpy(), one(x).numpy())
    assert not one(x).requires_grad


def test_train_one_batch_by_its_name_is_the_program_too() -> None:
    net = compiled(use_graph=True)
    net.train_one_batch(*batch())
    net(*batch())
    (program,) = net.programs
    assert program.name == "train_one_batch"


def test_dropout_draws_anew_at_each_replay() -> None:
    net = compiled(use_graph=True, optimizer=opt.SGD(0.0))
    x, y = batch()
    assert len({net(x, y)[1].item() for _ in range(3)}) == 3


@pytest.mark.parametrize("labels", ["classes", "column", "rows"])
def test_labels_are_classes_or_rows(labels: str) -> None:
    x = weft.asarray(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32))
    classes = np.array([0, 2, 1, 2], np.int32)
    t = {"classes": classes, "column": classes[:, None], "rows": np.eye(3, dtype=np.float32)[classes]}[labels]
    loss = autograd.softmax_cross_entropy(x, weft.asarray(t))
    shifted = x.numpy() - np.log(np.exp(x.numpy()).sum(axis=1, keepdims=True))
    assert loss.shape == (1,)
    np.testing.assert_allclose(loss.numpy()[0], -shifted[np.arange(4), classes].mean(), rtol=1e-5)


def test_time_profiling(capsys: pytest.CaptureFixture[str]) -> None:
    dev = device.get_default_device()
    net = compiled(use_graph=True)
    before = {}
    x, y = batch()
    net(x, y)
    before = {name: value.numpy() for name, value in net.get_states().items()}
    net.print_time_profiling()
    assert "nn.conv" in capsys.readouterr().out
    for name, value in net.get_states().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    dev.SetVerbosity(2)
    dev.SetSkipIteration(1)
    try:
        for _ in range(3):
            net(x, y)
        net.print_time_profiling()
        said = capsys.readouterr().out
        dev.PrintTimeProfiling()
    finally:
        dev.Reset()
    assert re.search(r"2 iterations, .* each", said)
    assert "forward propagation" in said
    assert "backward and update" in said
    assert "nn.conv+nn.relu " in said
    assert "CNN, training" in capsys.readouterr().out


# What is refused, and a passing twin beside it.


def test_a_model_that_is_not_compiled() -> None:
    net = CNN()
    net.set_optimizer(opt.SGD())
    with pytest.raises(ModelError, match="not compiled"):
        net.save_states("nowhere")
    net.compile([batch()[0]], is_train=True, use_graph=True)
    net(*batch())


class Bare(model.Model):
    """Whose `__init__` calls nobody's."""

    def __init__(self) -> None:
        self.dense = layer.Linear(3)
        self.loss = layer.MeanSquareError()

    def forward(self, x: Any) -> Any:
        return self.dense(x)

    def train_one_batch(self, x: Any, y: Any) -> Any:
        loss = self.loss(self.forward(x), y)
        self.optimizer(loss)
        return loss


def test_a_model_that_does_not_call_its_base() -> None:
    net, x, y = Bare(), tensor.random((4, 2)), tensor.zeros((4, 3))
    net.set_optimizer(opt.SGD(0.1))
    net.compile([x], use_graph=True)
    losses = [float(net(x, y).numpy().mean()) for _ in range(3)]
    assert losses[2] < losses[0]
    assert list(net.get_params()) == ["dense.W", "dense.b"]


@pytest.mark.parametrize("inputs", [(), [], [2.0], "x"], ids=str)
def test_what_compile_takes(inputs: Any) -> None:
    with pytest.raises(ArgumentTypeError, match="a list of arrays"):
        CNN().compile(inputs)


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_shapes_that_do_not_fit_name_the_layer_and_both_shapes(use_graph: bool) -> None:
    net = compiled(use_graph=use_graph)
    x, y = batch()
    with pytest.raises(
        ShapeError, match=r"conv1 \(Conv2d\) takes images of 1 channels.*\(8, 2, 14, 14\).*\(4, 1, 5, 5\)"
    ):
        net(weft.zeros((8, 2, 14, 14), np.float32), y)
    with pytest.raises(ShapeError, match=r"dense \(Linear\) takes rows of 54.*\(8, 150\).*\(54, 10\)"):
        net(weft.zeros((8, 1, 18, 18), np.float32), y)
    with pytest.raises(ShapeError, match=r"softmax_cross_entropy.*\(8, 10\) and \(5,\)"):
        net(x, y[:5])
    net(x, y)


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_an_optimizer_forgotten(use_graph: bool) -> None:
    x, y = batch()
    net = CNN()
    net.compile([x], is_train=True, use_graph=use_graph)
    with pytest.raises(RuntimeError, match=r"CNN has no optimizer: net.set_optimizer\("):
        net(x, y)
    with pytest.raises(TypeError, match=r"set_optimizer takes an optimizer.* not 3 \(int\)"):
        net.set_optimizer(3)
    net.set_optimizer(opt.SGD(0.1))
    assert net(x, y)[1].item() > 0


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_labels_out_of_range(use_graph: bool) -> None:
    net = compiled(use_graph=use_graph)
    x, y = batch()
    y.copy_from_numpy(np.array([0, 1, 2, 3, 4, 5, 6, 10]))
    _, loss = net(x, y)
    with pytest.raises(IndexError, match="no class 10 among 10"):
        loss.item()
    with pytest.raises(IndexError, match="no class 10"):
        weft.wait_all()  # the update failed with the loss
    net = compiled(use_graph=use_graph)
    y.copy_from_numpy(np.array([0, 1, 2, 3, 4, 5, 6, 9]))
    assert net(x, y)[1].item() > 0
    with pytest.raises(TypeError, match="do not go into a tensor of dtype int32"):
        y.copy_from_numpy(np.full(8, 0.5))
    with pytest.raises(ValueError, match=r"9 elements, and the tensor of shape \(8,\) has 8"):
        y.copy_from_numpy(np.ones(9, np.int32))
