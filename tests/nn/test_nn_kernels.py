"""Kernels against their definitions, and against PyTorch where it is installed; eager, replayed and as symbols."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import weft
from nn import definitions
from weft import nn
from weft.symbol import Variable

TOLERANCE = {"float32": {"rtol": 2e-5, "atol": 2e-5}, "float64": {"rtol": 1e-12, "atol": 1e-12}}


def _data(dtype: str, *shapes: tuple[int, ...], seed: int = 5) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _close(found: Any, wanted: Any, dtype: str = "float64", **more: float) -> None:
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_allclose(found.numpy(), wanted, **{**TOLERANCE[dtype], **more})


CONVOLUTIONS: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 3, 8, 7), (4, 3, 3, 3), {}),
    ((2, 3, 8, 7), (4, 3, 3, 2), {"padding": 1, "stride": 2}),
    ((3, 4, 9, 9), (6, 2, 3, 3), {"groups": 2, "padding": (1, 2), "dilation": (2, 1)}),
    ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "padding": 1}),
    ((2, 2, 5, 5), (3, 2, 1, 1), {}),
    ((2, 2, 5, 5), (3, 2, 1, 1), {"stride": (2, 3)}),
    ((2, 2, 5, 4), (3, 2, 2, 3), {"padding": ((0, 2), (1, 0)), "stride": (1, 2)}),
    ((2, 3, 11), (4, 3, 4), {"stride": 3, "padding": 2}),
    ((1, 2, 4, 5, 4), (3, 2, 2, 3, 2), {"padding": 1, "stride": (1, 2, 1)}),
    ((0, 2, 5, 5), (3, 2, 3, 3), {}),
    ((70, 3, 12, 12), (20, 3, 5, 5), {}),
    # Few channels and rows of more than a vector: of one, of several, with and without what is left of either.
    ((3, 1, 18, 28), (20, 1, 5, 5), {}),
    ((3, 1, 16), (1, 1, 5), {}),
    ((2, 4, 7, 33), (13, 4, 3, 2), {"padding": ((2, 0), (3, 5)), "stride": (2, 1), "dilation": (1, 3)}),
    ((2, 2, 5, 6, 47), (9, 2, 2, 3, 4), {"padding": 1, "stride": (1, 2, 1), "dilation": (2, 1, 3)}),
    # Channels and filters beside what vectors have.
    ((5, 17, 12, 12), (50, 17, 3, 3), {"padding": 1}),
    ((5, 16, 11, 9), (15, 16, 3, 3), {"stride": 2}),
    ((3, 15, 6, 7, 8), (17, 15, 2, 2, 3), {"padding": ((0, 1), (1, 0), (1, 1)), "dilation": (1, 2, 1)}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "kernel", "given"), CONVOLUTIONS)
def test_conv(shape: Any, kernel: Any, given: Any, dtype: str) -> None:
    x, w, b = _data(dtype, shape, kernel, kernel[:1])
    wanted = definitions.conv(x[:3], w, b, **given)
    _close(nn.conv(x, w, b, **given)[:3], wanted, dtype)
    _close(nn.conv(x[:3], w, **given), definitions.conv(x[:3], w, **given), dtype)
    spatial = tuple(range(len(shape) - 1, 1, -1))
    turned = weft.asarray(np.ascontiguousarray(x.transpose(0, 1, *spatial))).transpose(0, 1, *spatial)  # other strides
    _close(nn.conv(turned, w, b, **given)[:3], wanted, dtype)


TRANSPOSED: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 3, 4, 5), (3, 2, 3, 3), {}),
    ((2, 4, 4, 5), (4, 3, 3, 2), {"stride": (2, 3), "padding": (1, 0), "output_padding": (1, 2), "groups": 2}),
    ((2, 2, 6), (2, 3, 3), {"dilation": 2, "padding": ((1, 2),)}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "kernel", "given"), TRANSPOSED)
def test_conv_transpose(shape: Any, kernel: Any, given: Any, dtype: str) -> None:
    x, w, b = _data(dtype, shape, kernel, (kernel[1] * given.get("groups", 1),))
    _close(nn.conv_transpose(x, w, b, **given), definitions.conv_transpose(x, w, b, **given), dtype)


POOLINGS: list[tuple[Any, Any, dict[str, Any]]] = [
    ((2, 3, 8, 6), 2, {}),
    ((2, 3, 7, 8), 3, {"stride": 2, "padding": 1}),
    ((2, 3, 7, 8), 3, {"stride": 2, "ceil_mode": True}),
    ((1, 2, 6, 6), (2, 3), {"stride": (3, 2), "padding": (1, 2), "ceil_mode": True}),
    ((1, 2, 5, 6), (3, 2), {"padding": ((0, 2), (1, 0)), "stride": 2}),
    ((2, 2, 9), 4, {"stride": 3, "padding": 1, "ceil_mode": True}),
    ((1, 2, 4, 5, 3), 2, {"stride": 1}),
    ((2, 3, 7, 7), 7, {}),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "kernel", "given"), POOLINGS)
def test_pooling(shape: Any, kernel: Any, given: Any, dtype: str) -> None:
    (x,) = _data(dtype, shape)
    assert np.array_equal(nn.max_pool(x, kernel, **given).numpy(), definitions.max_pool(x, kernel, **given))
    for include in (True, False):
        wanted = definitions.avg_pool(x, kernel, count_include_pad=include, **given)
        _close(nn.avg_pool(x, kernel, count_include_pad=include, **given), wanted, dtype)


def test_the_first_of_equal_elements_gets_the_gradient_and_nan_is_the_largest() -> None:
    x = np.array([[[1.0, 1.0, 2.0, 2.0, math.nan, 5.0, -math.inf, -math.inf]]])
    found, pull = weft.vjp(lambda x: nn.max_pool(x, 2), x)
    assert np.array_equal(found.numpy(), [[[1, 2, math.nan, -math.inf]]], equal_nan=True)
    assert pull(weft.ones((1, 1, 4)))[0].tolist() == [[[1, 0, 1, 0, 1, 0, 1, 0]]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [1, -1])
def test_batch_norm(dtype: str, axis: int) -> None:
    x, gamma, beta, mean = _data(dtype, (5, 3, 4, 3), (3,), (3,), (3,))
    x, variance = x * 3 + 7, np.abs(mean) + np.dtype(dtype).type(0.5)
    shape = (1, 3, 1, 1) if axis == 1 else (3,)
    gamma_, beta_, mean_, variance_ = (each.reshape(shape) for each in (gamma, beta, mean, variance))
    wanted = (x - mean_) / np.sqrt(variance_ + 1e-3) * gamma_ + beta_
    _close(
        nn.batch_norm(x, gamma, beta, mean, variance, eps=1e-3, axis=axis),
        wanted,
        dtype,
        atol=1e-4 if dtype == "float32" else 1e-12,
    )
    others = (0, 2, 3) if axis == 1 else (0, 1, 2)
    exact = x.astype("float64")
    y, centre, spread = nn.batch_norm_train(x, gamma, beta, axis=axis)
    _close(centre, exact.mean(others), dtype)
    _close(spread, exact.var(others), dtype)
    wanted = (exact - exact.mean(others, keepdims=True)) / np.sqrt(
        exact.var(others, keepdims=True) + 1e-5
    ) * gamma_ + beta_
    _close(y, wanted, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_layer_norm_and_softmax(dtype: str) -> None:
    x, gamma, beta, narrow = _data(dtype, (4, 3, 5), (5,), (5,), (3, 5))
    apart = x - x.mean(-1, keepdims=True)
    wanted = apart / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    _close(nn.layer_norm(x, gamma, beta), wanted * gamma + beta, dtype)
    wide = (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    _close(nn.layer_norm(x, narrow, narrow, axis=(1, 2)), wide * narrow + narrow, dtype)
    x[0, 0] += 1000
    for axis in (-1, 1, 0):
        powers = np.exp(x.astype("float64") - x.max(axis, keepdims=True))
        wanted = powers / powers.sum(axis, keepdims=True)
        _close(nn.softmax(x, axis), wanted, dtype)
        with np.errstate(divide="ignore"):
            logs = x - x.max(axis, keepdims=True) - np.log(powers.sum(axis, keepdims=True))
        _close(nn.log_softmax(x, axis), logs, dtype, rtol=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy(dtype: str) -> None:
    (x,) = _data(dtype, (6, 4))
    classes = np.array([0, 3, 1, 1, 2, 0], "int32")
    wanted = np.log(np.exp(x.astype("float64")).sum(1)) - x[np.arange(6), classes]
    rows = np.eye(4)[classes]
    _close(nn.cross_entropy(x, classes), wanted, dtype)
    for labels in (rows.astype(dtype), rows.astype("int64")):
        _close(nn.cross_entropy(x, labels), wanted, dtype)
    _close(nn.cross_entropy(x.reshape(3, 2, 4), classes.reshape(3, 2)), wanted.reshape(3, 2), dtype)
    for wrong in (4, -1):
        with pytest.raises(IndexError, match=f"no class {wrong} among 4"):
            nn.cross_entropy(x, np.array([0, 1, 2, 3, 0, wrong])).numpy()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations(dtype: str) -> None:
    x = np.concatenate(
        [_data(dtype, (40,))[0] * 4, np.array([0, -0.0, 30, -30, 800, -800, math.inf, -math.inf, math.nan], dtype)]
    )
    wide = x.astype("float64")
    with np.errstate(all="ignore"):
        normal = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in wide])
        wanted = {
            "relu": np.maximum(wide, 0),
            "leaky_relu": np.where(wide > 0, wide, 0.01 * wide),
            "elu": np.where(wide > 0, wide, np.expm1(wide)),
            "sigmoid": 1 / (1 + np.exp(-wide)),
            "softplus": np.where(wide > 50, wide, np.log1p(np.exp(wide))),
            "gelu": np.where(np.isneginf(wide), math.nan, wide * normal),
        }
    close = {"rtol": 2e-6 if dtype == "float32" else 1e-14, "atol": 1e-37}
    for name, values in wanted.items():
        found = getattr(nn, name)(x).numpy()
        if name == "gelu":
            found[np.isneginf(x)] = math.nan  # -inf times 0
        np.testing.assert_allclose(found, values, err_msg=name, **close)
        whole = np.stack([x, x])[:, ::2]
        view = getattr(nn, name)(weft.asarray(np.stack([x, x]))[:, ::2])
        again = getattr(nn, name)(whole)
        assert np.array_equal(view.numpy(), again.numpy(), equal_nan=True), name


def test_activations_are_exact_wherever_they_are_taken() -> None:
    """Near 0, where they bend, and where they vanish; numbers of which some have no vector of their own."""
    rng = np.random.default_rng(7)
    spans = [rng.uniform(-reach, reach, 4001) for reach in (1e-3, 1, 14, 86)]
    x = np.concatenate([*spans, 10.0 ** rng.uniform(-30, 0, 500), -(10.0 ** rng.uniform(-30, 0, 500))]).astype(
        "float32"
    )
    wide = x.astype("float64")
    smaller = np.array([0.5 * math.erfc(-each / math.sqrt(2)) for each in wide])
    density = np.exp(-wide * wide / 2) / math.sqrt(2 * math.pi)
    wanted = {
        "elu": np.where(wide > 0, wide, np.expm1(wide)),
        "sigmoid": 1 / (1 + np.exp(-wide)),
        "softplus": np.where(wide > 0, wide, 0) + np.log1p(np.exp(-abs(wide))),
        "gelu": wide * smaller,
    }
    for name, values in wanted.items():
        found = getattr(nn, name)(x).numpy()
        np.testing.assert_allclose(found, values, err_msg=name, rtol=1e-6, atol=1e-36)
    slope = weft.grad(lambda x: weft.sum(nn.gelu(x)))(weft.asarray(x)).numpy()
    np.testing.assert_allclose(slope, smaller + wide * density, rtol=1e-6, atol=3e-7)


def _step(mode: str, x: Any, h: Any, c: Any, each: Any) -> Any:
    """Return hidden state and cell after one step, by definition."""
    if mode == "lstm":
        return definitions.lstm_step(x, h, c, *each)
    if mode == "gru":
        return definitions.gru_step(x, h, *each), c
    z = x @ each[0].T + each[2] + h @ each[1].T + each[3]
    return (np.tanh(z) if mode == "tanh" else np.maximum(z, 0)), c


def _run(mode: str, x: Any, h: Any, c: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return what a bidirectional network gives, by definition."""
    y, ends, cells = x, [], []
    for number, layer in enumerate(weights):
        parts = []
        for way, each in enumerate(layer):
            a, b = h[2 * number + way], c[2 * number + way]
            states: list[Any] = [None] * len(y)
            for at in range(len(y))[:: 1 if way == 0 else -1]:
                a, b = _step(mode, y[at], a, b, each)
                states[at] = a
            parts.append(np.stack(states))
            ends.append(a)
            cells.append(b)
        y = np.concatenate(parts, -1)
    return y, np.stack(ends), np.stack(cells)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("mode", "gates"), [("lstm", 4), ("gru", 3), ("tanh", 1), ("relu", 1)])
def test_cells_and_sequences(mode: str, gates: int, dtype: str) -> None:
    x, h, c = _data(dtype, (4, 3, 2), (4, 3, 5), (4, 3, 5))

    def parameters(wide: int, seed: int) -> list[Any]:
        return _data(dtype, (gates * 5, wide), (gates * 5, 5), (gates * 5,), (gates * 5,), seed=seed)

    weights = [[parameters(2, 1), parameters(2, 2)], [parameters(10, 3), parameters(10, 4)]]
    more = {"c0": c} if mode == "lstm" else {}
    found = nn.rnn(x, h, weights, mode=mode, bidirectional=True, **more)
    for ours, theirs in zip(found, _run(mode, x, h, c, weights), strict=False):
        _close(ours, theirs, dtype)
    one = weights[0][0]
    wanted = _step(mode, x[0], h[0], c[0], one)
    if mode == "lstm":
        for ours, theirs in zip(nn.lstm_cell(x[0], h[0], c[0], *one), wanted, strict=True):
            _close(ours, theirs, dtype)
    else:
        cell = nn.gru_cell(x[0], h[0], *one) if mode == "gru" else nn.rnn_cell(x[0], h[0], *one, activation=mode)
        _close(cell, wanted[0], dtype)


def test_dense_embedding_and_lrn() -> None:
    x, w, b = _data("float64", (2, 3, 4), (5, 4), (5,))
    _close(nn.dense(x, w, b), x @ w.T + b)
    _close(nn.dense(x.reshape(2, 2, 6)[:, :, :2], w, flatten=True), x.reshape(2, 2, 6)[:, :, :2].reshape(2, 4) @ w.T)
    indices = np.array([[0, 4], [4, 2]], "int16")
    _close(nn.embedding(indices, w), w[indices])
    for wrong in (5, -1):
        with pytest.raises(IndexError, match=f"no row {wrong} among 5"):
            nn.embedding([0, wrong], w).numpy()
    (x,) = _data("float64", (2, 7, 3))
    for size in (1, 4, 5, 20):
        squares = np.pad(x**2, ((0, 0), (size // 2, (size - 1) // 2), (0, 0)))
        total = np.stack([squares[:, at : at + size].sum(1) for at in range(7)], 1)
        _close(nn.lrn(x, size, alpha=0.3, beta=0.6, k=1.5), x / (1.5 + 0.3 / size * total) ** 0.6)


def test_dropout_draws_anew_at_every_replay_what_eager_calls_draw() -> None:
    def draws(drop: Any, rng: weft.random.Generator) -> list[Any]:
        return [drop(rng, weft.ones((40, 50), dtype="float32")).numpy() for _ in range(3)]

    def drop(rng: weft.random.Generator, x: weft.NDArray) -> weft.NDArray:
        return nn.dropout(x, 0.25, rng)

    eager = draws(drop, weft.random.default_rng(3))
    rng = weft.random.default_rng(3)
    step = weft.program(lambda x: nn.dropout(x, 0.25, rng))
    replayed = draws(lambda _, x: step(x), rng)
    for ours, theirs in zip(replayed, eager, strict=True):
        assert np.array_equal(ours, theirs)
    assert not np.array_equal(eager[0], eager[1])
    assert set(np.unique(eager[0])) == {np.float32(0), np.float32(4 / 3)}
    assert abs(eager[0].mean() - 1) < 0.05
    x = weft.ones((40, 50))
    x.requires_grad = True
    y = nn.dropout(x, 0.5, rng)
    assert np.array_equal(weft.autograd.gradients(y.sum())[x].numpy(), y.numpy())
    masked = nn.dropout(Variable("x"), 0.25, Variable("state"))
    state = weft.random.default_rng(3)._state
    assert np.array_equal(masked.eval(x=weft.ones((40, 50), dtype="float32"), state=state)[0].numpy(), eager[0])


def _network(x: Any, w1: Any, b1: Any, g: Any, b: Any, w2: Any, labels: Any) -> Any:
    y = nn.relu(nn.conv(x, w1, b1, padding=1))
    y, _, _ = nn.batch_norm_train(y, g, b)
    y = nn.avg_pool(nn.max_pool(y, 2), 3, stride=1, padding=1)
    return nn.cross_entropy(nn.dense(y, w2, flatten=True), labels).sum()


def _operands() -> dict[str, Any]:
    x, w1, b1, g, b, w2 = _data("float32", (6, 2, 8, 8), (4, 2, 3, 3), (4,), (4,), (4,), (5, 64))
    return {"x": x, "w1": w1, "b1": b1, "g": g, "b": b, "w2": w2, "labels": np.array([0, 1, 2, 3, 4, 0])}


def test_programs_give_what_eager_calls_give_bit_for_bit_at_every_worker_count() -> None:
    grads = weft.value_and_grad(_network, argnums=tuple(range(6)))
    results: list[list[bytes]] = []
    for workers in (1, 2, 4):
        with weft.Engine(workers=workers) as engine:
            arrays = [weft.asarray(x, engine=engine) for x in _operands().values()]
            step = weft.program(grads)
            for run in (grads, step, step):
                loss, found = run(*arrays)
                results.append([each.numpy().tobytes() for each in (loss, *found)])
    assert all(each == results[0] for each in results)


def test_symbols_of_unknown_shapes_have_the_tapes_gradients() -> None:
    values = _operands()
    loss = _network(*map(Variable, values))
    names = list(values)[:6]
    wanted, grads = weft.value_and_grad(_network, argnums=tuple(range(6)))(*map(weft.asarray, values.values()))
    _close(loss.eval(**values)[0], wanted.numpy(), "float32")
    for ours, theirs in zip(loss.gradient(names).eval(**values), grads, strict=True):
        _close(ours, theirs.numpy(), "float32", atol=1e-5)


def test_shapes_of_parameters_follow_from_data() -> None:
    x = Variable("x")
    y = nn.conv(x, Variable("w"), Variable("b"), filters=8, kernel=3, groups=2, padding=1)
    y = nn.batch_norm(nn.max_pool(y, 2), *(Variable(name) for name in ("gamma", "beta", "mean", "variance")))
    y = nn.conv_transpose(y, Variable("v"), filters=6, kernel=(2, 2), stride=2)
    y = nn.layer_norm(nn.dense(y, Variable("u"), units=7, flatten=True), Variable("c"), Variable("d"))
    shapes, outs, _ = y.infer_shape(x=(5, 4, 10, 6))
    assert dict(zip(y.list_arguments(), shapes, strict=True)) == {
        "x": (5, 4, 10, 6), "w": (8, 2, 3, 3), "b": (8,), "gamma": (8,), "beta": (8,), "mean": (8,), "variance": (8,),
        "v": (8, 6, 2, 2), "u": (7, 360), "c": (7,), "d": (7,),
    }  # fmt: skip
    assert outs == [(5, 7)]
    assert y.infer_shape_partial(w=(8, 2, 3, 3))[0][0] == (None, 4, None, None)
    assert set(y.infer_type(w="float64")[0]) == {np.dtype("float64")}
    assert weft.symbol.load_json(y.tojson()).infer_shape(x=(5, 4, 10, 6)) == (shapes, outs, [])
    with pytest.raises(weft.errors.ShapeError, match=r"nn.conv.*\(9, 2, 3, 3\)"):
        y.infer_shape(x=(5, 4, 10, 6), w=(9, 2, 3, 3))


def test_data_in_other_layouts_are_laid_out_once() -> None:
    x, w, v = _data("float32", (2, 8, 6, 6), (4, 8, 3, 3), (2, 4, 1, 1))
    y = nn.conv(nn.max_pool(nn.relu(nn.conv(Variable("x"), Variable("w"))), 2), Variable("v"))
    wanted = y.eval(x=x, w=w, v=v)[0].numpy()
    blocked = x.reshape(2, 2, 4, 6, 6).transpose(0, 1, 3, 4, 2)
    for layout, op, given in (
        ("NHWC", "permute_dims", x.transpose(0, 2, 3, 1)),
        ("NCHW4c", "layout_transform", blocked),
    ):
        graph = weft.graph.correct_layout(weft.graph.Graph(y), {"x": layout})
        names = [node.op.name for node in graph.indexed_graph().nodes if node.op]
        assert names == [op, "nn.conv", "nn.relu", "nn.max_pool", "nn.conv"]
        found = graph.symbol.eval(x=np.ascontiguousarray(given), w=w, v=v)[0].numpy()
        assert np.array_equal(found, wanted)
    with pytest.raises(ValueError, match=r"'NCHw' is no layout"):
        weft.graph.correct_layout(weft.graph.Graph(y), {"x": "NCHw"})


_ONES = weft.ones((1, 4, 5, 5))
_WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: nn.conv(_ones(1, 4, 3, 3), _ones(2, 4, 5, 5)), weft.errors.ShapeError, r"nn.conv: a kernel of \(5, 5\).*lengths \(3, 3\)"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), dilation=3), weft.errors.ShapeError, r"dilation \(3, 3\)"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), stride=0), ValueError, r"nn.conv: stride is at least 1.* not 0"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), dilation=0), ValueError, "nn.conv: dilation is at least 1"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), padding=-1), ValueError, "nn.conv: padding is at least 0"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), stride=(1, 1, 1)), ValueError, "3 numbers for 2 spatial axes"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), stride=1.5), TypeError, "stride is a whole number"),
    (lambda: nn.conv(_ONES, _ones(2, 1, 3, 3), groups=3), weft.errors.ShapeError, "4 channels and 2 filters.* 3 groups"),
    (lambda: nn.conv(_ONES, _ones(2, 1, 3, 3), groups=0), ValueError, "groups is a number of at least 1"),
    (lambda: nn.conv(_ONES, _ones(2, 3, 3, 3)), weft.errors.ShapeError, r"weight of shape \(2, 3, 3, 3\)"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3)), weft.errors.ShapeError, r"x of shape \(1, 4, 5, 5\), weight of shape \(2, 4, 3\)"),
    (lambda: nn.conv(_ones(2, 3), _ones(2, 3)), weft.errors.ShapeError, "1 to 3 spatial dimensions"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), _ones(3)), weft.errors.ShapeError, r"bias is to have shape \(2,\)"),
    (lambda: nn.conv(weft.ones((1, 1, 3), dtype="int32"), _ones(1, 1, 1)), TypeError, "nn.conv: x has dtype int32"),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), filters=3), weft.errors.ShapeError, "filters=3"),
    (lambda: nn.conv_transpose(_ONES, _ones(4, 2, 2, 2), output_padding=1), ValueError, "output_padding 1"),
    (lambda: nn.conv_transpose(_ONES, _ones(4, 2, 2, 2), padding=4), weft.errors.ShapeError, "too much padding"),
    (lambda: nn.conv_transpose(_ONES, _ones(3, 2, 2, 2)), weft.errors.ShapeError, "4 channels ask for weights"),
    (lambda: nn.max_pool(_ONES, 6), weft.errors.ShapeError, r"nn.max_pool: a kernel of \(6, 6\)"),
    (lambda: nn.max_pool(_ONES, 2, stride=0), ValueError, "stride is at least 1"),
    (lambda: nn.avg_pool(_ONES, 2, padding=2), ValueError, "padding 2 is to be smaller than the kernel 2"),
    (lambda: nn.avg_pool(_ones(3, 3), 2), weft.errors.ShapeError, r"got x of shape \(3, 3\)"),
    (lambda: nn.batch_norm(_ONES, *[_ones(3)] * 4), weft.errors.ShapeError, r"gamma is to have shape \(4,\)"),
    (lambda: nn.batch_norm_train(_ONES, _ones(4), _ones(5)), weft.errors.ShapeError, "beta"),
    (lambda: nn.batch_norm_train(_ones(0, 2), _ones(2), _ones(2)), weft.errors.ShapeError, "no elements"),
    (lambda: nn.layer_norm(_ONES, _ones(4), _ones(5)), weft.errors.ShapeError, "gamma"),
    (lambda: nn.softmax(_ones(2, 0)), weft.errors.ShapeError, "nothing along axis -1"),
    (lambda: nn.softmax(_ones(2), axis=1), ValueError, "axis 1 is out of bounds"),
    (lambda: nn.cross_entropy(_ones(2, 3), [1, 2, 0]), weft.errors.ShapeError, r"classes of shape \(2,\)"),
    (lambda: nn.cross_entropy(_ones(2, 3), [1.0, 2.0]), TypeError, "classes are integers"),
    (lambda: nn.dense(_ones(2, 3), _ones(4, 5)), weft.errors.ShapeError, "data of 3 features"),
    (lambda: nn.embedding([0.0], _ones(2, 3)), TypeError, "indices are integers"),
    (lambda: nn.lrn(_ONES, 0), ValueError, "size is a number of channels"),
    (lambda: nn.dropout(_ONES, 1.0, weft.random.default_rng(1)), ValueError, "rate is at least 0 and less than 1, not 1.0"),
    (lambda: nn.dropout(_ONES, 0.5, np.random.default_rng(1)), TypeError, "generator is a weft.random.Generator"),
    (lambda: nn.rnn(_ones(2, 3, 4), _ones(1, 3, 2), [], mode="rnn"), ValueError, "mode is one of lstm, gru, tanh, relu, not 'rnn'"),
    (lambda: nn.rnn(_ones(2, 3, 4), _ones(1, 3, 2), [(_ones(8, 4), _ones(8, 2), None, None)]), ValueError, "c0= is given"),
    (lambda: nn.rnn(_ones(2, 3, 4), _ones(2, 3, 2), [(_ones(2, 4), _ones(2, 2), None, None)], mode="tanh"), weft.errors.ShapeError, "1 layers"),
    (lambda: nn.rnn(_ones(2, 3, 4), _ones(1, 3, 2), [(_ones(2, 4), _ones(2, 2))], mode="tanh"), TypeError, "each layer has"),
    (lambda: nn.lstm_cell(_ones(2, 3), _ones(2, 2), _ones(2, 2), _ones(6, 3), _ones(6, 2)), weft.errors.ShapeError, "4 times as wide"),
    (lambda: nn.rnn_cell(_ones(2, 3), _ones(2, 2), _ones(2, 3), _ones(2, 2), activation="elu"), ValueError, "'tanh' or 'relu', not 'elu'"),
]  # fmt: skip


def _ones(*shape: int) -> weft.NDArray:
    return weft.ones(shape)


@pytest.mark.parametrize(("call", "error", "message"), _WRONG)
def test_bad_input(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize(("call", "shape"), [
    (lambda: nn.conv(_ones(1, 4, 3, 3), _ones(2, 4, 5, 5), padding=1), (1, 2, 1, 1)),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), dilation=2), (1, 2, 1, 1)),
    (lambda: nn.conv(_ONES, _ones(2, 4, 3, 3), stride=1), (1, 2, 3, 3)),
    (lambda: nn.conv(_ONES, _ones(2, 2, 3, 3), groups=2), (1, 2, 3, 3)),
    (lambda: nn.conv_transpose(_ONES, _ones(4, 2, 2, 2), stride=2, output_padding=1), (1, 2, 11, 11)),
    (lambda: nn.max_pool(_ONES, 5), (1, 4, 1, 1)),
    (lambda: nn.avg_pool(_ONES, 3, padding=1), (1, 4, 2, 2)),
    (lambda: nn.batch_norm(_ONES, *[_ones(4)] * 4), (1, 4, 5, 5)),
    (lambda: nn.layer_norm(_ONES, _ones(5), _ones(5)), (1, 4, 5, 5)),
    (lambda: nn.softmax(_ones(0, 2)), (0, 2)),
    (lambda: nn.cross_entropy(_ones(2, 3), [1, 2]), (2,)),
    (lambda: nn.dense(_ones(2, 3), _ones(4, 3)), (2, 4)),
    (lambda: nn.embedding([0], _ones(2, 3)), (1, 3)),
    (lambda: nn.dropout(_ONES, 0.0, weft.random.default_rng(1)), (1, 4, 5, 5)),
    (lambda: nn.rnn(_ones(2, 3, 4), _ones(1, 3, 2), [(_ones(2, 4), _ones(2, 2), None, None)], mode="tanh")[0], (2, 3, 2)),
])  # fmt: skip
def test_what_is_just_right_passes(call: Any, shape: tuple[int, ...]) -> None:
    found = call()
    assert found.shape == shape
    assert np.isfinite(found.numpy()).all()
