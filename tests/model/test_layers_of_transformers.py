"""Layers of today's networks: what they compute against NumPy, their gradients, and models of them in every mode."""

from __future__ import annotations

import contextvars
from typing import Any

import numpy as np
import pytest

import weft
from weft import autograd, layer, model, opt, tensor
from weft.errors import ArgumentTypeError, ArgumentValueError, ModelError, ShapeError

RNG = np.random.default_rng(11)
X = RNG.normal(size=(3, 4, 5, 6))


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attended(q: Any, k: Any, v: Any, allowed: Any = 1, scale: float | None = None) -> Any:
    products = q @ np.swapaxes(k, -1, -2) * (1 / np.sqrt(q.shape[-1]) if scale is None else scale)
    return softmax(np.where(allowed, products, -1e300)) @ v


def normal(x: Any, axes: Any, eps: float) -> Any:
    apart = x - x.mean(axis=axes, keepdims=True)
    return apart / np.sqrt((apart**2).mean(axis=axes, keepdims=True) + eps)


def windows(x: Any, to: tuple[int, int]) -> Any:
    rows, columns = x.shape[2:]
    found = np.empty((*x.shape[:2], *to))
    for i in range(to[0]):
        for j in range(to[1]):
            high = slice(i * rows // to[0], -(-(i + 1) * rows // to[0]))
            wide = slice(j * columns // to[1], -(-(j + 1) * columns // to[1]))
            found[:, :, i, j] = x[:, :, high, wide].mean(axis=(2, 3))
    return found


def close(found: weft.NDArray, wanted: Any) -> None:
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("mask", ["none", "booleans", "numbers"])
def test_attention(mask: str, causal: bool) -> None:
    q, k, v = RNG.normal(size=(2, 3, 5, 4)), RNG.normal(size=(2, 1, 5, 4)), RNG.normal(size=(1, 3, 5, 7))
    given = {
        "none": None,
        "booleans": np.arange(5) != RNG.integers(1, 5, (2, 1, 5, 1)),
        "numbers": RNG.normal(size=(5, 5)),
    }[mask]
    allowed = np.tri(5, dtype=bool) if causal else np.ones((5, 5), bool)
    products = q @ np.swapaxes(k, -1, -2) / 2
    if mask == "booleans":
        allowed = allowed & given
    wanted = softmax(np.where(allowed, products + (given if mask == "numbers" else 0), -1e300)) @ v
    close(weft.nn.scaled_dot_product_attention(q, k, v, given, is_causal=causal), wanted)


def test_attention_of_symbols_and_its_mistakes() -> None:
    q = RNG.normal(size=(5, 4))
    net = weft.nn.scaled_dot_product_attention(*(weft.symbol.Variable(name) for name in "qkv"), is_causal=True)
    (found,) = net.eval(q=weft.asarray(q), k=weft.asarray(q), v=weft.asarray(q))
    close(found, attended(q, q, q, np.tri(5, dtype=bool)))
    close(weft.nn.scaled_dot_product_attention(q, q, q, scale=2.0), attended(q, q, q, scale=2.0))
    blind = weft.nn.scaled_dot_product_attention(q, q, q, np.zeros((5, 5), bool))
    close(blind, np.broadcast_to(q.mean(axis=0), q.shape))
    with pytest.raises(ShapeError, match=r"\(5, 4\), \(5, 3\) and \(5, 4\)"):
        weft.nn.scaled_dot_product_attention(q, q[:, :3], q)
    with pytest.raises(ArgumentTypeError, match="dropout needs a generator"):
        weft.nn.scaled_dot_product_attention(q, q, q, dropout=0.5)


def filled(made: layer.Layer, *inputs: Any, **options: Any) -> dict[str, Any]:
    """Make the parameters, fill them at random, and return them."""
    made(*map(weft.asarray, inputs), **options)
    values = {name: RNG.normal(size=value.shape) for name, value in made.get_params().items()}
    made.set_params(values)
    return values


def across(v: Any) -> Any:
    return v.reshape(-1, 1, 1)


def test_layer_norm_and_group_norm() -> None:
    norm = layer.LayerNorm(eps=1e-3)
    p = filled(norm, X)
    close(norm(weft.asarray(X)), normal(X, -1, 1e-3) * p["scale"] + p["bias"])
    norm = layer.LayerNorm((5, 6), bias=False)
    p = filled(norm, X)
    close(norm(weft.asarray(X)), normal(X, (2, 3), 1e-5) * p["scale"])
    for groups in (1, 2, 4):
        group = layer.GroupNorm(groups, 4)
        p = filled(group, X)
        wanted = normal(X.reshape(3, groups, -1), -1, 1e-5).reshape(X.shape)
        close(group(weft.asarray(X)), wanted * across(p["scale"]) + across(p["bias"]))


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3)], ids=str)
def test_batch_norm_of_rows(shape: tuple[int, ...]) -> None:
    x, norm = RNG.normal(size=shape), layer.BatchNorm1d(momentum=0.8, eps=1e-3)
    p = filled(norm, x)
    over = (0, *range(2, x.ndim))
    along = (1, 4) + (1,) * (x.ndim - 2)

    def trained() -> weft.NDArray:
        autograd.training = True
        return norm(weft.asarray(x))  # type: ignore[no-any-return] # an array

    found = contextvars.copy_context().run(trained)
    close(found, normal(x, over, 1e-3) * p["scale"].reshape(along) + p["bias"].reshape(along))
    close(norm.running_mean, 0.8 * x.mean(axis=over))
    close(norm.running_var, 0.2 + 0.8 * x.var(axis=over, ddof=1))
    with pytest.raises(ShapeError, match=r"\(N, C\) or \(N, C, L\)"):
        norm(weft.ones((2, 4, 3, 3)))


@pytest.mark.parametrize("to", [1, (5, 3), (2, 4), (7, 6), (5, 6)], ids=str)
def test_adaptive_pooling(to: Any) -> None:
    size = (to, to) if isinstance(to, int) else to
    close(layer.AdaptiveAvgPool2d(to)(weft.asarray(X)), windows(X, size))


def heads(x: Any, w: Any, b: Any) -> Any:
    y = x @ w + b
    return y.reshape(*y.shape[:2], 2, -1).transpose(0, 2, 1, 3)


def test_attention_of_several_heads() -> None:
    x, y = RNG.normal(size=(2, 5, 6)), RNG.normal(size=(2, 3, 6))
    mask = np.arange(5) < np.asarray([5, 2]).reshape(2, 1, 1, 1)
    made = layer.MultiHeadAttention(6, 2)
    p = filled(made, y)
    found = attended(*(heads(each, p[f"{n}.W"], p[f"{n}.b"]) for n, each in (("q", y), ("k", x), ("v", x))), mask)
    wanted = found.transpose(0, 2, 1, 3).reshape(2, 3, 6) @ p["out.W"] + p["out.b"]
    close(made(weft.asarray(y), weft.asarray(x), mask=weft.asarray(mask)), wanted)


@pytest.mark.parametrize(
    ("make", "x"),
    [
        (lambda: layer.LayerNorm((5, 6)), X),
        (lambda: layer.GroupNorm(2), X),
        (lambda: layer.AdaptiveAvgPool2d((2, 4)), X),
        (lambda: layer.MultiHeadAttention(2), RNG.normal(size=(2, 3, 4))),
        (lambda: layer.GELU("tanh"), X),
        (lambda: layer.Tanh(), X),
    ],
    ids=["layer norm", "group norm", "pool", "attention", "gelu", "tanh"],
)
def test_gradients_are_those_of_finite_differences(make: Any, x: Any) -> None:
    made = make()
    filled(made, x)
    data, weights = weft.asarray(x), weft.asarray(RNG.normal(size=made(weft.asarray(x)).shape))
    data.requires_grad = True
    leaves = [data, *made.get_params().values()]
    found = autograd.gradients(weft.sum(made(data) * weights))
    for leaf in leaves:
        at = tuple(int(RNG.integers(n)) for n in leaf.shape)
        sums = []
        for move in (1e-5, -2e-5):
            with autograd.no_grad():
                leaf[at] += move
                sums.append(float(weft.sum(made(data) * weights)))
        with autograd.no_grad():
            leaf[at] += 1e-5
        assert found[leaf][at].item() == pytest.approx((sums[0] - sums[1]) / 2e-5, rel=1e-5, abs=1e-7)


class Block(layer.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.attend = layer.LayerNorm(), layer.MultiHeadAttention(2, dropout=0.1)
        self.feed = layer.Sequential(layer.LayerNorm(8), layer.Linear(16), layer.GELU(), layer.Linear(8))

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.norm1(x), is_causal=True)
        return x + self.feed(x)


class Small(model.Model):
    """A transformer whose training uses all that steps are made of."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.blocks = layer.Embedding(11, 8), layer.Sequential(Block(), Block())
        self.out, self.loss, self.sums = layer.Linear(11), layer.SoftMaxCrossEntropy(), opt.GradientSum()

    def forward(self, x: Any) -> Any:
        return self.out(self.blocks(self.embed(x)))

    def train_one_batch(self, x: Any, y: Any, *, last: bool = True) -> Any:
        out = self.forward(x)
        loss = self.loss(out.reshape((-1, 11)), y.reshape(-1))
        self.sums.add(autograd.gradients(loss))
        if last:
            gradients, _ = opt.clip_grad_norm(self.sums.take(), 0.5)
            self.optimizer.apply_gradients(gradients)
            self.ema.update()
        return out, loss


def trained(mode: dict[str, bool]) -> tuple[list[float], list[bytes]]:
    weft.device.get_default_device().SetRandSeed(3)
    net, rng = Small(), np.random.default_rng(2)
    x, y = rng.integers(0, 11, (2, 4, 6)).astype(np.int32)
    rate = opt.WarmUp(opt.CosineDecay(0.01, 20), 2)
    net.set_optimizer(opt.ParamGroups({"*.b": opt.Adam(0.01), "*": opt.AdamW(rate)}))
    net.compile([x], **mode)
    net.ema = opt.EMA(net, 0.9)
    net.embed.freeze()
    losses = [float(net(x, y, last=bool(step % 2))[1]) for step in range(8)]
    states = {**net.get_states(), **{f"ema {name}": value for name, value in net.ema.averages.items()}}
    return losses, [value.numpy().tobytes() for value in states.values()]


def test_a_transformer_has_the_same_bits_eagerly_as_a_graph_and_one_by_one() -> None:
    eager = trained({"use_graph": False})
    assert eager[0][-1] < eager[0][0]
    assert trained({"use_graph": True}) == eager
    assert trained({"use_graph": True, "sequential": True}) == eager


def test_a_frozen_layer_stays_until_it_is_not() -> None:
    net = layer.Sequential(layer.Linear(3), layer.Tanh(), layer.Linear(1))
    with pytest.raises(ModelError, match="Linear has no parameters yet"):
        net.freeze()
    x = weft.asarray(RNG.normal(size=(4, 2)))
    net(x)
    before = {name: value.tolist() for name, value in net.get_states().items()}
    net[0].freeze()
    descent = opt.SGD(0.1)
    descent(weft.sum(net(x) ** 2))
    assert {name for name, value in net.get_states().items() if value.tolist() != before[name]} == {"2.W", "2.b"}
    net.unfreeze()
    descent(weft.sum(net(x) ** 2))
    assert net[0].W.tolist() != before["0.W"]
    assert list(net.get_params()) == list(before)


def test_parts_one_behind_the_other() -> None:
    first, last = layer.Linear(3), layer.Linear(2)
    net = layer.Sequential(first, weft.tanh)
    net.append(last)
    x = weft.ones((1, 4))
    assert net(x).tolist() == last(weft.tanh(first(x))).tolist()
    assert (list(net), len(net[:2]), net[-1]) == ([first, weft.tanh, last], 2, last)
    for wrong in (3, layer.ReLU):
        with pytest.raises(ArgumentTypeError, match="takes layers and functions"):
            layer.Sequential(wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="no parts"):
        layer.Sequential()(x)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: layer.GroupNorm(3)(weft.ones((2, 4, 5))), "4 channels do not fall into 3 groups"),
        (lambda: layer.GroupNorm(3, 4), "4 channels do not fall into 3 groups"),
        (lambda: layer.GroupNorm(0), "num_groups is a whole number of at least 1, not 0"),
        (lambda: layer.LayerNorm(7)(weft.ones((2, 4))), r"takes elements of the shape \(7,\)"),
        (lambda: layer.LayerNorm(()), "one axis at least"),
        (lambda: layer.GELU("sigmoid"), "approximate is 'none' or 'tanh'"),
        (lambda: layer.AdaptiveAvgPool2d(0), "output_size is at least 1"),
        (lambda: layer.AdaptiveAvgPool2d(2)(weft.ones((2, 3))), r"takes images"),
        (lambda: layer.MultiHeadAttention(8, 64), "8 features do not fall into 64 heads"),
        (lambda: layer.MultiHeadAttention(3)(weft.ones((1, 2, 4))), "4 features do not fall into 3 heads"),
        (lambda: layer.MultiHeadAttention(2)(weft.ones((2, 4))), r"takes sequences \(N, T, F\)"),
        (lambda: layer.MultiHeadAttention(2, dropout=1.0), "from 0 to less than 1"),
    ],
)
def test_mistakes(make: Any, said: str) -> None:
    with pytest.raises((ArgumentValueError, ShapeError), match=said):
        make()


def test_a_loss_is_a_number() -> None:
    assert float(layer.MeanSquareError()(tensor.ones((2, 2)), tensor.zeros((2, 2)))) == 1.0
    with pytest.raises(ArgumentTypeError, match="only 0-dimensional"):
        float(weft.ones(2))
