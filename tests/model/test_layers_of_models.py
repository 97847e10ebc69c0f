"""Layers: shapes, parameters by name, what they compute against NumPy; operators of `weft.autograd` by name."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd, device, initializer, layer, opt, tensor
from weft._singa import operator_table
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError, WeftError

RNG = np.random.default_rng(5)


def f4(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


def zeros(*shape: int) -> weft.NDArray:
    return weft.zeros(shape, np.float32)


IMAGES = (2, 4, 9, 8)
SHAPES: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], dict[str, tuple[int, ...]]]] = {
    "Linear": (lambda: layer.Linear(3), (2, 5), (2, 3), {"W": (5, 3), "b": (3,)}),
    "Linear, old": (lambda: layer.Linear(5, 3, bias=False), (2, 5), (2, 3), {"W": (5, 3)}),
    "Gemm": (lambda: layer.Gemm(3, alpha=2.0), (2, 5), (2, 3), {"W": (3, 5), "b": (1, 3)}),
    "Conv2d": (lambda: layer.Conv2d(6, 3), IMAGES, (2, 6, 7, 6), {"W": (6, 4, 3, 3), "b": (6,)}),
    "Conv2d, old": (lambda: layer.Conv2d(4, 6, 3, 2, 1), IMAGES, (2, 6, 5, 4), {"W": (6, 4, 3, 3), "b": (6,)}),
    "Conv2d, groups": (lambda: layer.Conv2d(6, (3, 1), group=2, bias=False), IMAGES, (2, 6, 7, 8), {"W": (6, 2, 3, 1)}),
    "Conv2d, dilated": (lambda: layer.Conv2d(1, 3, dilation=2), IMAGES, (2, 1, 5, 4), {"W": (1, 4, 3, 3), "b": (1,)}),
    "Conv2d, same": (
        lambda: layer.Conv2d(1, 4, stride=2, pad_mode="SAME_LOWER", bias=False),
        IMAGES,
        (2, 1, 5, 4),
        {"W": (1, 4, 4, 4)},
    ),
    "Conv2d, sides": (
        lambda: layer.Conv2d(1, 3, padding=(0, 1, 2, 3), bias=False),
        IMAGES,
        (2, 1, 8, 11),
        {"W": (1, 4, 3, 3)},
    ),
    "SeparableConv2d": (
        lambda: layer.SeparableConv2d(6, 3),
        IMAGES,
        (2, 6, 7, 6),
        {"depthwise_conv.W": (4, 1, 3, 3), "point_conv.W": (6, 4, 1, 1)},
    ),
    "BatchNorm2d": (lambda: layer.BatchNorm2d(), IMAGES, IMAGES, {"scale": (4,), "bias": (4,)}),
    "MaxPool2d": (lambda: layer.MaxPool2d(2), IMAGES, (2, 4, 4, 4), {}),
    "AvgPool2d": (lambda: layer.AvgPool2d(3, 2, pad_mode="SAME_UPPER"), IMAGES, (2, 4, 5, 4), {}),
    "MaxPool1d": (lambda: layer.MaxPool1d(2), (2, 4, 1, 8), (2, 4, 1, 4), {}),
    "AvgPool1d": (lambda: layer.AvgPool1d(2, 1), (2, 4, 1, 8), (2, 4, 1, 7), {}),
    "Flatten": (lambda: layer.Flatten(), IMAGES, (2, 288), {}),
    "SoftMax": (lambda: layer.SoftMax(), (2, 5), (2, 5), {}),
    "Sigmoid": (lambda: layer.Sigmoid(), (2, 5), (2, 5), {}),
    "Dropout": (lambda: layer.Dropout(), (2, 5), (2, 5), {}),
}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_and_parameters(case: str) -> None:
    make, given, expected, parameters = SHAPES[case]
    made = make()
    assert made(weft.asarray(f4(*given))).shape == expected
    assert {name: value.shape for name, value in made.get_params().items()} == parameters
    assert all(value.dtype == np.float32 for value in made.get_params().values())
    if parameters:
        with pytest.raises(ShapeError, match=r"takes .* and was given the shape \(3, 7"):
            made(zeros(3, 7, 1, 1) if len(given) == 4 else zeros(3, 7))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: layer.Conv2d(3, 2, activation="TANH"), "activation is"),
        (lambda: layer.Conv2d(3, 2, group=2), "3 kernels do not fall into 2 groups"),
        (lambda: layer.Conv2d(3, 2, colour=1), "no option 'colour'"),
        (lambda: layer.Conv2d(3, (1, 2, 3)), "kernel_size is a number"),
        (lambda: layer.MaxPool2d(2, pad_mode="SAME"), "pad_mode is"),
        (lambda: layer.Dropout(1.0), "from 0 to less than 1"),
        (lambda: layer.BatchNorm2d(momentum=2), "momentum is between"),
        (lambda: layer.LSTM(2, 3, nonlinearity="relu"), "nonlinearity is 'tanh'"),
        (lambda: layer.CudnnRNN(2, rnn_mode="elman"), "rnn_mode is"),
        (lambda: layer.Linear(0), "out_features is a whole number of at least 1, not 0"),
        (lambda: layer.Linear("ten"), "out_features is a whole number of at least 1, not 'ten'"),
        (lambda: layer.Linear(-4, 3), "in_features is a whole number of at least 1, not -4"),
        (lambda: layer.MaxPool2d(0), "kernel_size is at least 1, not 0"),
        (lambda: layer.MaxPool2d("ab", 2), "kernel_size is a number, or one for rows and one for columns, not 'ab'"),
        (lambda: layer.Conv2d(1, 20, 5, stride=(1, -1)), r"stride is at least 1, not \(1, -1\)"),
        (lambda: layer.Conv2d(1, 20, 2.5), "kernel_size is a number"),
        (lambda: layer.Linear(3)(weft.ones(())), "takes rows"),
        (lambda: layer.Linear(3)(3), "Linear is called with arrays, and was given 3"),
        (lambda: layer.MaxPool2d(2)([3]), "is called with arrays"),
        (lambda: layer.SoftMaxCrossEntropy()(weft.ones((2, 3)), None), "is called with arrays, and was given None"),
        (lambda: layer.RNN(3, 3)(3, None), "RNN takes a list of steps"),
        (lambda: layer.RNN(3, 3)([3], None), "takes steps .* that are arrays"),
        (lambda: initializer.he_normal(3), "an initializer overwrites a tensor, and was given 3"),
        (lambda: initializer.eye("x"), "an initializer overwrites a tensor"),
        (lambda: initializer.gaussian(tensor.Tensor((2, 2)), "a"), "fan_in is a number"),
        (lambda: device.get_default_device().SetRandSeed("x"), "a seed is a whole number of at least 0, not 'x'"),
        (lambda: device.get_default_device().SetRandSeed(-1), "a seed is a whole number"),
        (lambda: device.get_default_device().SetSkipIteration("x"), "a number of iterations"),
        (lambda: device.get_default_device().Exec(print, 3), "Exec takes lists"),
        (lambda: device.get_default_device().Exec(print, [3]), "hold arrays and variables, not 3"),
        (lambda: setattr(weft.ones(2), "requires_grad", "x"), "requires_grad is True or False, not 'x'"),
        (lambda: setattr(autograd, "training", 3), "training is True or False, not 3"),
        (lambda: tensor.Tensor((2,), requires_grad="x"), "requires_grad is True or False"),
        (lambda: layer.Linear(4, 3)(weft.ones((2, 5))), r"takes rows of 4.*\(2, 5\).*\(4, 3\)"),
    ],
)
def test_mistakes(make: Any, said: str) -> None:
    with pytest.raises(WeftError, match=said) as caught:
        make()
    assert isinstance(caught.value, TypeError | ValueError)


@pytest.mark.parametrize(
    "make",
    [
        lambda many: layer.Linear(3)(many),
        lambda many: layer.RNN(3, 3)(many, None),
        lambda many: layer.MaxPool2d(str(many)),
        lambda many: weft.ones((2, 3)).sum(axis=str(many)),
        lambda many: weft.zeros(str(many)),
    ],
)
def test_a_message_about_a_large_value_is_short(make: Any) -> None:
    with pytest.raises(WeftError) as caught:
        make(list(range(10_000)))
    assert "..." in str(caught.value)
    assert len(str(caught.value)) < 400


def test_normalisation_keeps_running_averages() -> None:
    norm, x = layer.BatchNorm2d(momentum=0.75), f4(6, 3, 2, 2) * 2 + 1
    norm(weft.asarray(x))
    assert norm.running_mean.tolist() == [0.0] * 3
    autograd.training = True
    try:
        y = norm(weft.asarray(x)).numpy()
    finally:
        autograd.training = False
        weft._tape.modes.LISTENING.set(None)
    mean, variance = x.mean(axis=(0, 2, 3)), x.var(axis=(0, 2, 3), ddof=1)
    np.testing.assert_allclose(y.mean(axis=(0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(y.std(axis=(0, 2, 3)), 1, atol=1e-4)
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.75 * mean, rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.25 + 0.75 * variance, rtol=1e-5)


@pytest.mark.parametrize("recorded", [False, True])
def test_averages_follow_once_where_a_batch_is_computed_again(recorded: bool) -> None:
    x, averages = weft.asarray(np.random.default_rng(1).normal(size=(4, 3))), []
    for wrap in (weft.checkpoint, lambda fn: fn):
        norm = layer.BatchNorm2d()
        norm(x)
        forward = wrap(norm.forward)

        def step(x: Any, forward: Any = forward, norm: Any = norm) -> Any:
            return autograd.gradients((forward(x) ** 3).sum())[norm.scale]

        with weft._core.Scope((weft._tape.modes.TRAINING, True)):
            (weft.program(step, static_argnames=("forward", "norm")) if recorded else step)(x)
        averages.append((norm.running_mean.tolist(), norm.running_var.tolist()))
    assert averages[0] == averages[1]


def test_averages_of_a_batch_that_failed_are_those_of_before() -> None:
    x, norm = weft.asarray(np.random.default_rng(1).normal(size=(4, 3))), layer.BatchNorm2d()

    def fail() -> None:
        raise KeyError("no batch")

    with weft._core.Scope((weft._tape.modes.TRAINING, True)):
        norm(x)
        kept = norm.running_mean.tolist(), norm.running_var.tolist()
        weft.get_engine().push(fail, mutate_vars=[x])
        norm(x)
    with pytest.raises(KeyError, match="no batch"):
        norm.running_mean.tolist()
    weft.recover(norm.running_mean, norm.running_var)
    assert (norm.running_mean.tolist(), norm.running_var.tolist()) == kept


def lstm_by_numpy(x: Any, h: Any, c: Any, p: dict[str, Any]) -> tuple[Any, Any, Any]:
    def gate(name: str, xt: Any, h: Any) -> Any:
        return xt @ p[f"Wx_{name}"] + p[f"Bx_{name}"] + h @ p[f"Wh_{name}"] + p[f"Bh_{name}"]

    def sigmoid(z: Any) -> Any:
        return 1 / (1 + np.exp(-z))

    out = []
    for xt in x:
        i, f, o = (sigmoid(gate(name, xt, h)) for name in "ifo")
        c = f * c + i * np.tanh(gate("g", xt, h))
        h = o * np.tanh(c)
        out.append(h)
    return np.stack(out), h, c


@pytest.mark.parametrize("form", ["list", "array", "batch first"])
def test_lstm(form: str) -> None:
    x, h0, c0 = f4(5, 2, 3), f4(2, 4), f4(2, 4)
    lstm = layer.LSTM(3, 4, batch_first=form == "batch first")
    given: Any = weft.asarray(x.transpose(1, 0, 2) if form == "batch first" else x)
    out, h, c = lstm([given[t] for t in range(5)] if form == "list" else given, (weft.asarray(h0), weft.asarray(c0)))
    expected = lstm_by_numpy(x, h0, c0, {name: value.numpy() for name, value in lstm.get_params().items()})
    found = np.stack([step.numpy() for step in out]) if form == "list" else out.numpy()
    np.testing.assert_allclose(
        found.transpose(1, 0, 2) if form == "batch first" else found, expected[0], rtol=2e-5, atol=1e-6
    )
    np.testing.assert_allclose(h.numpy(), expected[1], rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(c.numpy(), expected[2], rtol=2e-5, atol=1e-6)
    assert len(lstm.get_params()) == 16


def test_rnn_of_two_layers_both_ways() -> None:
    rnn, x = layer.RNN(3, 4, num_layers=2, bidirectional=True), f4(5, 2, 3)
    out, h = rnn(weft.asarray(x), zeros(4, 2, 4))
    assert (out.shape, h.shape) == ((5, 2, 8), (4, 2, 4))
    p = {name: value.numpy() for name, value in rnn.get_params().items()}
    y = x
    for number in ("", "_l1"):
        ways = []
        for way in ("", "_reverse"):
            state, steps = np.zeros((2, 4), np.float32), []
            for xt in y[::-1] if way else y:
                state = np.tanh(xt @ p[f"Wx{number}{way}"] + state @ p[f"Wh{number}{way}"] + p[f"b{number}{way}"])
                steps.append(state)
            ways.append(np.stack(steps[::-1] if way else steps))
        y = np.concatenate(ways, axis=-1)
    np.testing.assert_allclose(out.numpy(), y, rtol=2e-4, atol=2e-5)  # of weights as large as 1


@pytest.mark.parametrize("mode", ["lstm", "gru", "vanilla", "relu"])
def test_masked_sequences_end_where_they_end(mode: str) -> None:
    x = f4(2, 5, 3)
    options: dict[str, Any] = {"rnn_mode": mode, "bidirectional": True}
    whole = layer.CudnnRNN(4, **options, use_mask=True)
    last = layer.CudnnRNN(4, **options, use_mask=True, return_sequences=False)
    lengths = weft.asarray(np.array([5, 3], np.int32))
    out = whole(weft.asarray(x), seq_lengths=lengths).numpy()
    last(weft.asarray(x), seq_lengths=lengths)
    for each in (last, short := layer.CudnnRNN(4, **options)):
        each(weft.asarray(x), **({"seq_lengths": lengths} if each is last else {}))
        each.set_params({name: value.numpy() for name, value in whole.get_params().items()})
    np.testing.assert_allclose(out[1:, :3], short(weft.asarray(x[1:, :3])).numpy(), rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(out[1, 3:], 0)
    np.testing.assert_array_equal(last(weft.asarray(x), seq_lengths=lengths).numpy()[1], out[1, 2])
    with pytest.raises(ArgumentTypeError, match="seq_lengths are given with use_mask=True"):
        whole(weft.asarray(x))


def test_layers_in_containers_have_names() -> None:
    class Stack(layer.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = [layer.Linear(3), layer.ReLU(), layer.Linear(2, bias=False)]
            self.register_layers(layer.Linear(4), layer.Linear(5))

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = block(x)
            return x

    stack = Stack()
    stack(zeros(1, 2))
    assert list(stack.get_params()) == ["blocks.0.W", "blocks.0.b", "blocks.2.W"]
    assert [path for path, _ in stack.named_layers()] == [
        "",
        "blocks.0",
        "blocks.1",
        "blocks.2",
        "Linear_0",
        "Linear_1",
    ]


def test_embedding() -> None:
    rows = layer.Embedding(5, 2)
    values = f4(5, 2)
    rows.from_pretrained(values)
    np.testing.assert_array_equal(rows(weft.asarray([[4, 0]])).numpy(), values[[[4, 0]]])
    assert not rows.get_params()
    with pytest.raises(IndexError, match="no row 5 among 5"):
        rows(weft.asarray([5])).numpy()


def test_initializers() -> None:
    device.get_default_device().SetRandSeed(7)
    for name in initializer.__all__:
        w = tensor.Tensor((60, 40))
        getattr(initializer, name)(w, *((60, 40) if name == "gaussian" else ()))
        values = w.numpy()
        assert 0 < values.std() < 0.5, name
        if name == "orthogonal":
            np.testing.assert_allclose(values.T @ values, np.eye(40), atol=1e-5)
    with pytest.raises(ArgumentValueError, match=r"eye fills matrices.*\(3,\)"):
        initializer.eye(tensor.Tensor((3,)))
    first = tensor.Tensor((4,)).gaussian(0.0, 1.0).numpy()
    device.get_default_device().SetRandSeed(9)
    again = [tensor.Tensor((4,)).gaussian(0.0, 1.0).numpy()]
    device.get_default_device().SetRandSeed(9)
    np.testing.assert_array_equal(again[0], tensor.Tensor((4,)).gaussian(0.0, 1.0).numpy())
    assert not np.array_equal(first, again[0])


# Operators.

X, Y = f4(3, 4), np.abs(f4(3, 4)) + 0.5
OPERATORS: dict[str, tuple[Any, Any]] = {
    "leakyrelu": (lambda x, y: autograd.leakyrelu(x, 0.1), lambda x, y: np.where(x > 0, x, 0.1 * x)),
    "prelu": (lambda x, y: autograd.prelu(x, y[0]), lambda x, y: np.where(x > 0, x, y[0] * x)),
    "elu": (lambda x, y: autograd.elu(x), lambda x, y: np.where(x > 0, x, np.expm1(x))),
    "selu": (lambda x, y: autograd.selu(x), lambda x, y: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x))),
    "hardsigmoid": (lambda x, y: autograd.hardsigmoid(x), lambda x, y: np.clip(0.2 * x + 0.5, 0, 1)),
    "softplus": (lambda x, y: autograd.softplus(x), lambda x, y: np.log1p(np.exp(x))),
    "softsign": (lambda x, y: autograd.softsign(x), lambda x, y: x / (1 + abs(x))),
    "clip": (lambda x, y: autograd.clip(x, -0.3, 0.4), lambda x, y: np.clip(x, -0.3, 0.4)),
    "mean": (lambda x, y: autograd.mean(x, y), lambda x, y: (x + y) / 2),
    "max": (lambda x, y: autograd.max(x, y, -x), lambda x, y: np.maximum(np.maximum(x, y), -x)),
    "min": (lambda x, y: autograd.min(x, y), np.minimum),
    "pow": (lambda x, y: autograd.pow(y, x), lambda x, y: y**x),
    "gemm": (lambda x, y: autograd.gemm(x, y, x @ y.T, 2.0, 0.5, 0, 1), lambda x, y: 2.5 * (x @ y.T)),
    "cossim": (
        lambda x, y: autograd.cossim(x, y),
        lambda x, y: (x * y).sum(1) / np.sqrt((x * x).sum(1) * (y * y).sum(1)),
    ),
    "softmax": (lambda x, y: autograd.softmax(x), lambda x, y: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
    "erf": (lambda x, y: autograd.erf(x), lambda x, y: np.vectorize(__import__("math").erf)(x)),
    "reduce_mean": (lambda x, y: autograd.reduce_mean(x, [0], 0), lambda x, y: x.mean(0)),
    "reduce_sum": (lambda x, y: autograd.reduce_sum(x), lambda x, y: x.sum(keepdims=True)),
    "gather": (lambda x, y: autograd.gather(x, 1, [3, -1]), lambda x, y: x[:, [3, 3]]),
    "tile": (lambda x, y: autograd.tile(x, [2, 1]), lambda x, y: np.tile(x, (2, 1))),
    "expand": (lambda x, y: autograd.expand(x[:1], [5, 4]), lambda x, y: np.broadcast_to(x[:1], (5, 4))),
    "pad": (lambda x, y: autograd.pad(x, "edge", [0, 1, 1, 0]), lambda x, y: np.pad(x, ((0, 1), (1, 0)), mode="edge")),
    "upsample": (lambda x, y: autograd.upsample(x, "nearest", [1, 2]), lambda x, y: np.repeat(x, 2, 1)),
    "slice": (lambda x, y: autograd.slice(x, [0, 3], [3, 0], [0, 1], [2, -1]), lambda x, y: x[0:3:2, 3:0:-1]),
    "split": (lambda x, y: autograd.split(x, 1, [1, 3])[1], lambda x, y: x[:, 1:]),
    "squeeze": (lambda x, y: autograd.squeeze(autograd.unsqueeze(x, [0, 2])), lambda x, y: x),
    "depth": (
        lambda x, y: autograd.space_to_depth(
            autograd.depth_to_space(x.reshape(1, 12, 1, 1)[:, :4], 2, "CRD"), 2, "DCR"
        ),
        lambda x, y: x.reshape(1, 12, 1, 1)[:, :4],
    ),
    "ranking_loss": (lambda x, y: autograd.ranking_loss(x, y), lambda x, y: [np.maximum(y - x + 0.2, 0).sum() / 3]),
    "mse_loss": (lambda x, y: autograd.mse_loss(x, y), lambda x, y: [((x - y) ** 2).mean()]),
    "globalaveragepool": (
        lambda x, y: autograd.globalaveragepool(x.reshape(1, 3, 2, 2)),
        lambda x, y: x.mean(1).reshape(1, 3, 1, 1),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_against_numpy_and_their_gradients(name: str) -> None:
    function, expected = OPERATORS[name]
    x, y = weft.asarray(X.astype(np.float64)), weft.asarray(Y.astype(np.float64))
    np.testing.assert_allclose(function(x, y).numpy(), expected(x.numpy(), y.numpy()), rtol=1e-6, atol=1e-9)

    def total(x: Any) -> Any:
        found = function(x, y)
        return weft.sum(found * found)

    found, direction, step = weft.grad(total)(x), weft.asarray(np.random.default_rng(1).normal(size=X.shape)), 1e-6
    slope = (total(x + step * direction).item() - total(x - step * direction).item()) / (2 * step)
    np.testing.assert_allclose(weft.sum(found * direction).item(), slope, rtol=1e-4, atol=1e-6)


def test_operators_on_integers_and_conditions() -> None:
    x = weft.asarray([2.5, -0.5, 0.0])
    assert autograd.round(x).tolist() == [3.0, -1.0, 0.0]
    assert autograd.rounde(x).tolist() == [2.0, 0.0, 0.0]
    assert autograd._and(x, x).tolist() == [1.0, 1.0, 0.0]
    assert autograd._not(x).tolist() == [0.0, 0.0, 1.0]
    assert autograd._xor(x, 1 - autograd._not(x)).tolist() == [0.0, 0.0, 0.0]
    assert autograd.shape(x).tolist() == [3]
    assert autograd.nonzero(x).tolist() == [[0, 1]]
    assert autograd.where(x, -x, [1, 0, 1]).tolist() == [2.5, 0.5, 0.0]


def test_classes_call_their_functions() -> None:
    for name in operator_table.__all__:
        made: Any = getattr(autograd, name)
        assert issubclass(made, autograd.Operator), name
        known = inspect.signature(made._function).parameters
        assert set(made._settings) <= set(known), name
    assert autograd.Clip(0, 1)(weft.asarray([-1.0, 2.0])).tolist() == [0.0, 1.0]
    assert autograd.Concat(0)(weft.ones(1), weft.zeros(1)).tolist() == [1.0, 0.0]
    assert autograd.SoftMaxCrossEntropy(weft.asarray([0]))(weft.zeros((1, 2))).shape == (1,)
    with pytest.raises(TypeError, match=r"Clip takes min, max, and was given 'low'"):
        autograd.Clip(low=1)


def test_graphs_of_a_device() -> None:
    dev, x, y = device.get_default_device(), weft.zeros(2), weft.ones(2)
    dev.EnableGraph(True)
    assert dev.graph_enabled()
    x += y
    dev.Exec(lambda: np.multiply(x, 2, out=np.asarray(x)), [], [x], "twice")
    dev.EnableGraph(False)
    assert x.tolist() == [0.0, 0.0]
    dev.RunGraph()
    dev.RunGraph(sequential=True)
    dev.Sync()
    assert x.tolist() == [6.0, 6.0]
    dev.ResetGraph()
    dev.RunGraph()
    assert x.tolist() == [6.0, 6.0]
    dev.Exec(lambda: np.add(x, y, out=np.asarray(x)), [y], [x], use_rand_generator=True)
    assert x.tolist() == [7.0, 7.0]
    with pytest.raises(ArgumentTypeError, match="Exec takes a function"):
        dev.Exec(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentValueError, match="0, 1 or 2"):
        dev.SetVerbosity(3)


def test_rows_and_columns_of_tensors() -> None:
    t = tensor.from_numpy(np.ones((2, 3), np.float32))
    column, row = weft.asarray(np.float32([1, 2])), weft.asarray(np.float32([1, 2, 4]))
    t.add_column(column)
    t.mult_row(row)
    assert t.tolist() == [[2, 4, 8], [3, 6, 12]]
    t.div_column(column)
    t.div_row(row)
    t.mult_column(column)
    t.add_row(row)
    assert t.tolist() == [[3, 4, 6], [4, 5, 7]]
    with pytest.raises(ShapeError, match=r"\(3,\) is no column of a tensor of shape \(2, 3\)"):
        t.add_column(row)
    assert t.to_type("float") is t
    assert t.to_type("int") is t
    assert (t.dtype, t.tolist()) == (np.int32, [[3, 4, 6], [4, 5, 7]])


def test_an_operator_may_be_named() -> None:
    class Doubled(autograd.Operation):
        def __init__(self) -> None:
            super().__init__("doubled")

        def forward(self, x: Any) -> Any:
            return x * 2

        def backward(self, dy: Any) -> Any:
            return (dy, dy)

    x = weft.ones(2)
    x.requires_grad = True
    with pytest.raises(weft.errors.GradientError, match=r"doubled\(\).*2 gradients for 1 inputs"):
        autograd.gradients(Doubled()(x).sum())


def test_tensors() -> None:
    t = tensor.Tensor((2, 3), stores_grad=True, name="t")
    t.copy_from_numpy(np.arange(6.0))
    t.copy_from_numpy(np.array([9.0]), offset=5)
    assert t.tolist() == [[0, 1, 2], [3, 4, 9]]
    assert (t.clone().tolist(), t.as_type("int").dtype) == (t.tolist(), np.int32)
    assert t.requires_grad
    assert not tensor.Tensor((2,)).requires_grad
    loss = tensor.sum(t * t)
    ((parameter, gradient),) = autograd.backward(loss)
    assert parameter is t
    np.testing.assert_array_equal(gradient.numpy(), 2 * t.numpy())
    assert isinstance(t + 1, weft.NDArray)
    assert weft.tanh(t).shape == t[0:2].shape == weft.transpose(t).T.shape
    opt.SGD(0.5).update(t, gradient)
    assert t.tolist() == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(TypeError, match=r"made by weft\.asarray"):
        weft.NDArray(t)
