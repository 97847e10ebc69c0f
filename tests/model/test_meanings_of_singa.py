"""What SINGA's names mean where other libraries mean something else: averages, padding, flags, shapes, numbers."""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from learning import MODES, Trained

import weft
from weft import autograd, device, layer, opt, tensor
from weft.errors import GradientError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(5)


def f4(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def training(function: Callable[[], Any]) -> Any:
    """Return what a function returns while layers train."""

    def run() -> Any:
        autograd.training = True
        return function()

    return contextvars.copy_context().run(run)


# Silent differences.


def test_momentum_of_batch_norm_is_the_share_of_the_batch() -> None:
    x = np.full((2, 1, 2, 2), 10, np.float32)
    x[0] = 6
    norm = layer.BatchNorm2d(momentum=0.9)
    training(lambda: norm(tensor.from_numpy(x)))
    np.testing.assert_allclose(norm.running_mean.numpy(), [7.2], rtol=1e-6)
    np.testing.assert_allclose(norm.running_var.numpy(), [0.1 + 0.9 * x.var(ddof=1)], rtol=1e-6)


@pytest.mark.parametrize("padding", [1, (1, 1), (0, 1, 1, 0)], ids=str)
def test_means_of_windows_leave_padding_out(padding: Any) -> None:
    pool = layer.AvgPool2d(3, 2, padding)
    found = pool(tensor.ones((1, 1, 5, 5)))
    np.testing.assert_allclose(found.numpy(), np.ones(found.shape), rtol=1e-6)
    x = tensor.ones((1, 1, 5, 5))
    x.stores_grad = True
    assert float(autograd.gradients(weft.sum(pool(x)))[x].sum()) == pytest.approx(found.size)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_inputs_that_require_gradients_are_not_trained(mode: str) -> None:
    class Net(Trained):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.loss = layer.Linear(1), layer.MeanSquareError()

        def forward(self, x: Any) -> Any:
            return self.dense(x)

    x = tensor.Tensor(data=np.ones((2, 3), np.float32), requires_grad=True)
    net = Net()
    net.set_optimizer(opt.SGD(0.1))
    net.compile([x], **MODES[mode])
    before = net.dense.W.numpy()
    for _ in range(3):
        net(x, tensor.zeros((2, 1)))
    assert (x.tolist(), x.requires_grad, x.stores_grad) == ([[1.0] * 3] * 2, True, False)
    assert not np.array_equal(net.dense.W.numpy(), before)


def test_gradients_that_nobody_stores_are_found_by_name() -> None:
    x = tensor.Tensor(data=np.ones((2, 3), np.float32), requires_grad=True)
    w = tensor.Tensor(data=np.ones((3, 1), np.float32), stores_grad=True)

    def loss() -> Any:
        return weft.sum(autograd.matmul(x, w))

    assert [p is w for p, _ in autograd.backward(loss())] == [True]
    found = autograd.gradients(loss())
    assert (list(found) == [w], len(found), x in found, id(w) in found) == (True, 1, True, True)
    np.testing.assert_array_equal(found[x].numpy(), np.ones((2, 3)))
    np.testing.assert_array_equal(found[id(w)].numpy(), np.full((3, 1), 2.0))
    with pytest.raises(KeyError, match="name the array itself"):
        found[7]
    opt.SGD(0.5).apply_gradients(found)
    assert (x.tolist(), w.tolist()) == ([[1.0] * 3] * 2, [[0.0]] * 3)


def test_flags_of_gradients() -> None:
    w = tensor.Tensor((2,), stores_grad=True)
    assert (w.requires_grad, w.stores_grad) == (True, True)
    w.stores_grad = False
    assert (w.requires_grad, w.stores_grad) == (True, False)
    with pytest.raises(GradientError, match="there is nothing to update"):
        opt.SGD(0.1)(weft.sum(w * w))
    w.stores_grad = True
    w.requires_grad = False
    assert (w.requires_grad, w.stores_grad) == (False, False)
    w.stores_grad = False
    assert not w.requires_grad
    w.requires_grad = True  # as of any array
    assert w.stores_grad
    x = tensor.Tensor((2,), requires_grad=True)
    assert [(y.requires_grad, y.stores_grad) for y in (x.clone(), w.clone())] == [(True, False), (True, True)]
    assert (x.to_type("half").stores_grad, w.to_type("half").stores_grad) == (False, True)


def test_a_recorded_step_hears_of_the_flag() -> None:
    w, v = (tensor.Tensor(data=np.ones(2, np.float32), stores_grad=True) for _ in range(2))
    descent = opt.SGD(0.5)

    @weft.program
    def step() -> weft.NDArray:
        loss = weft.sum(w * v)
        descent(loss)
        return loss

    step()
    v.stores_grad = False
    step()
    assert (w.tolist(), v.tolist()) == ([0.25, 0.25], [0.5, 0.5])


def test_a_tensor_is_of_the_dtype_that_it_was_given() -> None:
    wide = np.linspace(0, 1, 3)
    assert tensor.Tensor(data=wide).dtype == tensor.float32
    assert tensor.Tensor(data=wide, dtype=tensor.float16).dtype == tensor.float16
    assert tensor.Tensor(data=wide * 2, dtype=tensor.int32).tolist() == [0, 1, 2]
    assert tensor.Tensor(data=np.arange(3), dtype="float").dtype == tensor.float32
    kept = tensor.Tensor(data=weft.asarray([1, 2]))
    assert kept.dtype == np.int64
    assert tensor.Tensor(data=kept, dtype=tensor.int32).dtype == tensor.int32
    dense = layer.Linear(2)
    dense(tensor.Tensor(data=np.ones((2, 3))))
    assert dense.W.dtype == tensor.float32


# In place.


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "program"])
def test_operators_in_place_change_parameters_while_layers_train(recorded: bool) -> None:
    p = tensor.Tensor(data=np.full(2, 3.0, np.float32), stores_grad=True)

    def synchronize() -> weft.NDArray:
        p.__iadd__(tensor.ones((2,)))
        p.__isub__(2.0)
        p.__imul__(4)
        p.__itruediv__(2)
        return weft.sum(p * p)

    run = weft.program(synchronize) if recorded else synchronize
    loss = training(run)
    assert (p.tolist(), p.stores_grad, loss.tolist()) == ([4.0, 4.0], True, 32.0)
    assert autograd.gradients(loss)[p].tolist() == [8.0, 8.0]
    w = weft.ones(2)
    w.requires_grad = True
    with pytest.raises(GradientError, match="would overwrite"):
        w += 1.0  # an array of weft's keeps its values
    stale = weft.sum(p * p)
    p /= 2
    with pytest.raises(GradientError, match="overwritten"):
        autograd.gradients(stale)


def test_what_is_assigned_to_data_overwrites_the_elements() -> None:
    p = tensor.Tensor(data=np.ones(2, np.float32), stores_grad=True)

    def add() -> None:
        p.data += tensor.ones((2,))

    training(add)
    assert p.tolist() == [2.0, 2.0]
    p.data = weft.asarray([5.0, 6.0])
    assert (p.tolist(), p.dtype, p.stores_grad) == ([5.0, 6.0], tensor.float32, True)


# A model that nobody compiles.


class Regression(Trained):
    def __init__(self) -> None:
        super().__init__()
        self.dense, self.out, self.loss = layer.Linear(4), layer.Linear(1), layer.MeanSquareError()

    def forward(self, x: Any) -> Any:
        return self.out(autograd.relu(self.dense(x)))


def test_a_model_that_is_called_before_compile_runs_eagerly() -> None:
    x, y = tensor.from_numpy(f4(8, 3)), tensor.from_numpy(f4(8, 1))

    def learn(compiled: bool) -> tuple[Regression, list[float]]:
        device.get_default_device().SetRandSeed(3)
        net = Regression()
        net.set_optimizer(opt.SGD(0.1, momentum=0.9))
        if compiled:
            net.compile([x], is_train=True, use_graph=False)
        return net, [float(net(x, y)[1]) for _ in range(4)]

    (net, found), (other, due) = learn(compiled=False), learn(compiled=True)
    assert found == due
    assert net.programs == ()
    assert list(net.get_params()) == list(other.get_params())
    assert list(net.optimizer.get_states()["moments"]) == list(other.optimizer.get_states()["moments"])
    net.compile([x], use_graph=True)  # what was learned stays, and what the optimizer keeps
    assert float(net(x, y)[1]) == pytest.approx(float(other(x, y)[1]), rel=1e-6)
    assert len(net.programs) == 1


def test_a_model_around_a_model_needs_no_compile() -> None:
    class Wrapped(Trained):
        def __init__(self, inner: Regression) -> None:
            super().__init__()
            self.inner, self.loss = inner, inner.loss

        def compile(self, *inputs: Any, **options: Any) -> None:
            self.inner.compile(*inputs, **options)

        def forward(self, x: Any) -> Any:
            return self.inner.forward(x)

    x, y = tensor.from_numpy(f4(8, 3)), tensor.from_numpy(f4(8, 1))
    net = Wrapped(Regression())
    net.set_optimizer(opt.SGD(0.1))
    net.compile([x], is_train=True, use_graph=True)
    losses = [float(net(x, y)[1]) for _ in range(3)]
    assert losses[2] < losses[0]
    net.eval()
    assert net(x).shape == (8, 1)


# Recurrent layers.


def test_first_values_of_recurrent_layers() -> None:
    x, h = tensor.ones((4, 2, 50)), tensor.zeros((2, 60))
    rnn, lstm, fused = layer.RNN(50, 60), layer.LSTM(50, 60), layer.CudnnRNN(60)
    rnn(x, h)
    lstm(x, (h, h))
    fused(x)
    for net, deviation in ((rnn, 1.0), (lstm, 0.01)):
        for name, value in net.get_params().items():
            if value.ndim == 1:
                assert not value.numpy().any(), name
            else:
                assert np.std(value.numpy()) == pytest.approx(deviation, rel=0.1), name
    limit = 60**-0.5
    assert 0.9 * limit < float(weft.max(weft.abs(fused.W_h))) <= limit


def test_states_and_sequences_of_recurrent_layers_broadcast() -> None:
    x, h, c = f4(3, 2, 4), f4(2, 5), f4(2, 1)
    lstm = layer.LSTM(4, 5)
    found = lstm(tensor.from_numpy(x), (tensor.from_numpy(h), tensor.from_numpy(c)))
    due = lstm(tensor.from_numpy(x), (tensor.from_numpy(h), tensor.from_numpy(np.repeat(c, 5, 1))))
    np.testing.assert_allclose(found[0].numpy(), due[0].numpy(), rtol=1e-6)
    steps = [tensor.from_numpy(x[0][:1])] * 2  # one sequence, two states
    out, last, cell = lstm(steps, (tensor.from_numpy(h), tensor.zeros((2, 5))))
    alone = [lstm(steps, (tensor.from_numpy(h[at : at + 1]), tensor.zeros((1, 5))))[1].numpy() for at in range(len(h))]
    assert (len(out), cell.shape) == (2, (2, 5))
    np.testing.assert_allclose(last.numpy(), np.concatenate(alone), rtol=1e-5)
    rnn = layer.RNN(4, 5)
    assert rnn(tensor.from_numpy(x), tensor.from_numpy(h[:1]))[1].shape == (2, 5)
    with pytest.raises(ShapeError, match=r"h0 has the shape \(2, 1\)"):
        rnn(tensor.from_numpy(x), tensor.from_numpy(c))
    with pytest.raises(ShapeError, match=r"c0 has the shape \(3, 5\)"):
        lstm(tensor.from_numpy(x), (tensor.from_numpy(h), tensor.zeros((3, 5))))


# Shapes and numbers.


@pytest.mark.parametrize(
    ("repeats", "due"), [(3, (3, 1, 1)), ([2], (2, 1, 1)), ([1, 2], (1, 2, 1)), ([2, 1, 1, 3], (2, 1, 1, 3))], ids=str
)
def test_tile_counts_from_the_first_axis(repeats: Any, due: tuple[int, ...]) -> None:
    x = f4(2, 3, 1)
    found = autograd.tile(tensor.from_numpy(x), repeats)
    np.testing.assert_array_equal(found.numpy(), np.tile(x, due))


def test_averages_of_one_dimension_are_numbers() -> None:
    found = tensor.average(tensor.from_numpy(np.arange(4.0)))
    assert (type(found), found, f"{found:f}") == (float, 1.5, "1.500000")
    assert tensor.average(tensor.ones((2, 3)), 0).shape == (3,)  # type: ignore[union-attr] # an array


def test_channels_may_be_last_by_either_name() -> None:
    x = tensor.from_numpy(f4(2, 3, 4, 5))
    for name in ("channels_last", "channel_last"):
        assert autograd.globalaveragepool(x, name).shape == (2, 1, 1, 5)
    with pytest.raises(ValueError, match="data_format is"):
        autograd.globalaveragepool(x, "last")


@pytest.mark.parametrize("depth", [4, 4.0, np.array([4.0]), np.array(4, np.int32)], ids=repr)
def test_depths_of_onnx(depth: Any) -> None:
    assert autograd.onehot(-1, weft.asarray([0, 3]), depth, [0, 1]).numpy().tolist() == [[1, 0, 0, 0], [0, 0, 0, 1]]


def test_comparisons_are_numbers() -> None:
    a, b = tensor.from_numpy(f4(3, 3)), tensor.from_numpy(f4(3, 3))
    more, less = tensor.gt(a, b), tensor.lt(a, 0.0)
    due = (a.numpy() > b.numpy()).astype("f4"), (a.numpy() < 0).astype("f4")
    np.testing.assert_array_equal((more + less).numpy(), due[0] + due[1])
    np.testing.assert_array_equal((1.0 - more - less).numpy(), 1 - due[0] - due[1])
    for found in (more, -less, tensor.le(a, b), tensor.ge(a, 1), tensor.eq(a, b), autograd.less(a, b)):
        assert found.dtype == tensor.float32
    for function in (autograd.greater, autograd.equal):
        assert function(a.as_type("half"), 0.0).dtype == tensor.float16
    assert tensor.lt(weft.asarray([1, 2]), 2).tolist() == [1.0, 0.0]
    assert (a < b).dtype == np.bool_  # an operator is NumPy's


# Results.


@pytest.mark.parametrize("mode", MODES)
def test_results_of_models_have_the_methods_of_tensors(mode: str) -> None:
    class Keeping(Regression):
        def forward(self, x: Any) -> Any:
            self.last = super().forward(x)
            return self.last

    x, y = tensor.from_numpy(f4(8, 3)), tensor.from_numpy(f4(8, 1))
    net = Keeping()
    net.set_optimizer(opt.SGD(0.1))
    net.compile([x], **MODES[mode])
    out, loss = net(x, y)
    assert (type(out), type(loss)) == (tensor.Tensor, tensor.Tensor)
    kept = out.data.numpy()
    np.testing.assert_array_equal(out.to_host().as_type("float").numpy(), kept)
    out.set_value(0.0)
    net(x, y)
    assert out.tolist() == [[0.0]] * 8
    net.last = out
    assert list(net.get_states()) == ["dense.W", "dense.b", "out.W", "out.b"]
    net.eval()
    evaluated = net(x)
    assert (evaluated.device.id(), evaluated.name, evaluated.is_dummy()) == (-1, None, True)


def test_a_result_that_is_known_to_the_tape_goes_on_from_there() -> None:
    class Loss(Trained):
        def __init__(self) -> None:
            super().__init__()
            self.dense = layer.Linear(1)

        def forward(self, x: Any) -> Any:
            return self.dense(x)

        def train_one_batch(self, x: Any) -> Any:  # type: ignore[override] # without labels
            return weft.sum(self.forward(x))

    x = tensor.from_numpy(f4(8, 3))
    net = Loss()
    net.compile([x])
    found = autograd.gradients(net(x) * 2.0)
    np.testing.assert_allclose(found[net.dense.W].numpy(), 2 * x.numpy().sum(0)[:, None], rtol=1e-5)
