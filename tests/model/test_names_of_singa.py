"""SINGA's names and arguments, where weft's own functions have others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd, device, layer, model, opt, tensor

A, B = np.array([[1.0, -2.0], [0.5, 4.0]], np.float32), np.array([[3.0, -2.0], [2.0, 1.0]], np.float32)


@pytest.mark.parametrize(
    ("name", "given", "due"),
    [
        ("abs", {"t": A}, np.abs(A)),
        ("ceil", {"t": A}, np.ceil(A)),
        ("exp", {"t": A}, np.exp(A)),
        ("sign", {"t": A}, np.sign(A)),
        ("square", {"t": A}, A * A),
        ("tanh", {"t": A}, np.tanh(A)),
        ("log", {"t": A * A}, np.log(A * A)),
        ("sqrt", {"t": A * A}, np.abs(A)),
        ("zeros_like", {"t": A}, A * 0),
        ("ones_like", {"t": A}, A * 0 + 1),
        ("lt", {"t": A, "x": B}, A < B),
        ("le", {"t": A, "x": B}, A <= B),
        ("gt", {"t": A, "x": 0.0}, A > 0),
        ("ge", {"t": A, "x": B}, A >= B),
        ("eq", {"t": A, "x": B}, A == B),
        ("add", {"lhs": A, "rhs": B}, A + B),
        ("sub", {"lhs": A, "rhs": B}, A - B),
        ("eltwise_mult", {"lhs": A, "rhs": 2.0}, A * 2),
        ("div", {"lhs": A, "rhs": B}, A / B),
        ("reshape", {"tensor": A, "shape": (4,)}, A.reshape(4)),
        ("concatenate", {"tensors": [A, B], "axis": 1}, np.concatenate([A, B], 1)),
        ("repeat", {"t": A, "repeats": 2, "axis": 0}, A.repeat(2, 0)),
        ("tensordot", {"A": A, "B": B, "axes": 1}, A @ B),
    ],
)
def test_functions_of_tensors(name: str, given: dict[str, Any], due: Any) -> None:
    def as_tensor(value: Any) -> Any:
        if isinstance(value, list):
            return [as_tensor(each) for each in value]
        return tensor.from_numpy(value) if isinstance(value, np.ndarray) else value

    found = getattr(tensor, name)(**{key: as_tensor(value) for key, value in given.items()})
    np.testing.assert_allclose(found.numpy(), due, rtol=1e-6)


def test_results_go_where_they_are_wanted() -> None:
    x, y, ret = tensor.from_numpy(A), tensor.from_numpy(B), tensor.zeros((2, 2))
    assert tensor.add(x, y, ret) is ret
    np.testing.assert_array_equal(ret.numpy(), A + B)
    np.testing.assert_array_equal(tensor.einsum("ij,jk->ik", x, y).numpy(), A @ B)
    assert tensor.PlaceHolder is tensor.Tensor


def test_functions_of_the_tape() -> None:
    x, y = tensor.from_numpy(A), tensor.from_numpy(B)
    x.requires_grad = True
    found = autograd.add(a=autograd.mul(x=x, y=y), b=autograd.sub(a=x, b=autograd.div(a=x, b=y)))
    np.testing.assert_allclose(autograd.gradients(weft.sum(found))[x].numpy(), B + 1 - 1 / B, rtol=1e-6)
    assert autograd.less(x=x, y=y).tolist() == (A < B).tolist()
    assert autograd.greater(x=x, y=y).tolist() == (A > B).tolist()
    assert autograd.equal(x=x, y=y).tolist() == (A == B).tolist()
    np.testing.assert_allclose(autograd.matmul(x=x, w=y).numpy(), A @ B, rtol=1e-6)
    np.testing.assert_allclose(autograd.pow(a=x, b=2.0).numpy(), A * A, rtol=1e-6)
    for name in ("abs", "exp", "sign"):
        np.testing.assert_allclose(getattr(autograd, name)(a=x).numpy(), getattr(np, name)(A), rtol=1e-6)


def test_layers_that_the_tape_names() -> None:
    assert autograd.Conv2d is layer.Conv2d  # type: ignore[attr-defined]
    assert autograd.Linear is layer.Linear  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="has no attribute 'Lienar'"):
        _ = autograd.Lienar  # type: ignore[attr-defined]


def test_whole_numbers_of_any_dtype_go_into_integers() -> None:
    y = tensor.Tensor((2, 3), dtype=tensor.int32)
    y.copy_from_numpy(np.eye(2, 3, dtype=np.float32))
    np.testing.assert_array_equal(y.numpy(), np.eye(2, 3))
    for wrong in (np.full((2, 3), 0.5), np.full((2, 3), np.nan), np.full((2, 3), 1e12), np.full((2, 3), 1j)):
        with pytest.raises(TypeError, match="do not go into a tensor of dtype int32"):
            y.copy_from_numpy(wrong)


def test_optimizers_check_devices() -> None:
    x, y = weft.ones(2), weft.ones(2, device="cpu:1")
    opt.SGD(0.1).device_check(x, x)
    with pytest.raises(ValueError, match="SGD: arrays on cpu:0 and on cpu:1"):
        opt.SGD(0.1).device_check(x, y)


@pytest.mark.parametrize("use_graph", [False, True], ids=["eager", "graph"])
def test_a_sequence_of_inputs_and_states_made_by_forward(use_graph: bool) -> None:
    class Chars(model.Model):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = layer.LSTM(4, 8)
            self.dense = layer.Linear(8, 4)
            self.optimizer = opt.SGD(0.1)

        def initialize(self, *inputs: Any) -> None:
            size = inputs[0][0].shape[0]
            self.hx, self.cx = tensor.zeros((size, 8)), tensor.zeros((size, 8))

        def forward(self, inputs: list[weft.NDArray]) -> Any:
            out, hx, cx = self.rnn(inputs, (self.hx, self.cx))
            self.hx.copy_data(hx)
            self.cx.copy_data(cx)
            return self.dense(weft.concatenate(out, axis=0))

        def train_one_batch(self, inputs: list[weft.NDArray], y: weft.NDArray) -> Any:
            out = self.forward(inputs)
            loss = autograd.softmax_cross_entropy(out, y)
            self.optimizer(loss)
            return out, loss

        def get_states(self) -> dict[str, Any]:
            return super().get_states() | {"hx": self.hx, "cx": self.cx}

    device.get_default_device().SetRandSeed(0)
    rng = np.random.default_rng(0)
    inputs = [tensor.from_numpy(np.eye(4, dtype=np.float32)[rng.integers(0, 4, 5)]) for _ in range(3)]
    labels = tensor.from_numpy(rng.integers(0, 4, 15))
    net = Chars()
    net.compile([inputs], is_train=True, use_graph=use_graph)
    losses = [float(net(inputs, labels)[1].item()) for _ in range(10)]
    assert losses[-1] < losses[0]
    assert net.hx.name == "hx"
    with pytest.raises(TypeError, match="a list of arrays"):
        net.compile([[]])


def test_a_graph_may_be_asked_for_in_a_word() -> None:
    net = model.Model()
    net.graph("True", "False")  # type: ignore[arg-type]
    assert (net.graph_mode, net.sequential) == (True, False)
    with pytest.raises(TypeError, match="use_graph is True or False, not 'yes'"):
        net.graph("yes")  # type: ignore[arg-type]


def test_tensors_know_devices_with_singas_methods() -> None:
    x = tensor.zeros((2,), "cpu:1")
    assert (x.device.id(), x.device.graph_enabled(), x.device) == (-1, False, weft.cpu(1))
    assert (x + 1).device == x.device
    assert {x.device: 1}[weft.cpu(1)] == 1


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "program"])
def test_numbers_of_numpy_leave_float32_as_it_is(recorded: bool) -> None:
    f, m = np.float64(1.5), tensor.zeros((2, 2))

    def results(x: weft.NDArray) -> list[weft.NDArray]:
        named = (tensor.add, tensor.sub, tensor.eltwise_mult, tensor.div, tensor.pow)
        tape = (autograd.add, autograd.sub, autograd.mul, autograd.div, autograd.pow)
        found = [function(x, f) for function in (*named, *tape)] + [autograd.add(f, x), tensor.div(f, x)]
        return [*found, tensor.mult(x, x, alpha=f), autograd.selu(x, gamma=f), autograd.hardsigmoid(x, f, f)]

    x = tensor.from_numpy(np.abs(A))
    found = (weft.program(results) if recorded else results)(x)
    assert {each.dtype for each in found} == {tensor.float32}
    np.testing.assert_allclose(found[3].numpy(), np.abs(A) / 1.5, rtol=1e-6)
    assert tensor.lt(x, np.float64(0.1)).dtype == tensor.lt(x, 0.1).dtype
    np.testing.assert_array_equal(tensor.axpy(f, x, m).numpy(), 1.5 * np.abs(A))


@pytest.mark.parametrize("name", ["mse_loss", "cross_entropy", "binary_cross_entropy"])
def test_losses_of_integer_labels_are_of_the_dtype_of_what_was_predicted(name: str) -> None:
    p, labels = tensor.from_numpy(np.array([[0.25, 0.75], [0.5, 0.5]], np.float32)), np.array([[0, 1], [1, 0]])
    loss = getattr(autograd, name)
    for dtype in (np.int32, np.bool_):
        found = loss(p, weft.asarray(labels.astype(dtype)))
        assert found.dtype == tensor.float32
        np.testing.assert_array_equal(found.numpy(), loss(p, tensor.from_numpy(labels.astype(np.float32))).numpy())
    x, t = (weft.symbol.Variable(each, shape=(2, 2)) for each in "xt")
    assert loss(x, t).list_arguments() == loss(x, t.astype(np.int32)).list_arguments()  # dtypes are still to come


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("name", ["cross_entropy", "binary_cross_entropy"])
def test_losses_of_certain_predictions_are_numbers(name: str, dtype: Any) -> None:
    certain = weft.asarray(np.array([[0, 1], [1, 0]], dtype))
    loss = getattr(autograd, name)
    value, gradient = weft.value_and_grad(lambda x: loss(x, certain).sum())(certain)
    assert value.item() == pytest.approx(0, abs=1e-3)
    assert np.isfinite(gradient.numpy()).all()
    assert np.isinf(autograd.cross_entropy(1 - certain, certain).item())  # what is impossible has come about
