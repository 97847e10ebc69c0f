"""MXNet's steps of optimizers, draws and functions of two arrays, as scripts call them."""

from typing import Any

import numpy as np
import pytest

import weft
import weft.mxnet as mx
import weft.mxnet.ndarray as nd
from weft.errors import ArgumentTypeError, ArgumentValueError

draw = np.random.default_rng(11)


def step(op: str, weight: np.ndarray, grad: np.ndarray, *states: np.ndarray, **settings: Any) -> list[np.ndarray]:
    """Make a step twice, in place, and return the weight and the states."""
    arrays = [nd.array(each, dtype=each.dtype) for each in (weight, grad, *states)]
    for _ in range(2):
        getattr(nd, op)(*arrays, out=arrays[0], **settings)
    return [arrays[0].numpy(), *(each.numpy() for each in arrays[2:])]


def test_steps_of_optimizers() -> None:
    w, g = draw.normal(size=(2, 50)).astype("f")
    zero = np.zeros_like(w)
    common: dict[str, Any] = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5, "clip_gradient": 0.4}
    h = np.clip(g * 0.5, -0.4, 0.4)

    wanted = w
    for _ in range(2):
        wanted = wanted - 0.1 * (h + 0.01 * wanted)
    np.testing.assert_allclose(step("sgd_update", w, g, **common)[0], wanted, rtol=1e-5, atol=1e-6)

    wanted, mom = w, zero
    for _ in range(2):
        mom = 0.9 * mom - 0.1 * (h + 0.01 * wanted)
        wanted = wanted + mom
    found = step("sgd_mom_update", w, g, zero, momentum=0.9, **common)
    np.testing.assert_allclose(found, [wanted, mom], rtol=1e-5, atol=1e-6)

    wanted, mom = w, zero
    for _ in range(2):
        moved = 0.1 * (h + 0.01 * wanted)
        mom = 0.9 * mom - moved
        wanted = wanted + 0.9 * mom - moved
    found = step("nag_mom_update", w, g, zero, momentum=0.9, **common)
    np.testing.assert_allclose(found, [wanted, mom], rtol=1e-5, atol=1e-6)

    wanted, mean, var = w, zero, zero
    for _ in range(2):
        slope = np.clip(g * 0.5 + 0.01 * wanted, -0.4, 0.4)
        mean, var = 0.9 * mean + 0.1 * slope, 0.999 * var + 0.001 * slope**2
        wanted = wanted - 0.1 * mean / (np.sqrt(var) + 1e-8)
    found = step("adam_update", w, g, zero, zero, **common)
    np.testing.assert_allclose(found, [wanted, mean, var], rtol=1e-4, atol=1e-6)

    wanted, n = w, zero
    for _ in range(2):
        slope = np.clip(g * 0.5 + 0.01 * wanted, -0.4, 0.4)
        n = 0.95 * n + 0.05 * slope**2
        wanted = np.clip(wanted - 0.1 * slope / np.sqrt(n + 1e-8), -1, 1)
    found = step("rmsprop_update", w, g, zero, clip_weights=1.0, **common)
    np.testing.assert_allclose(found, [wanted, n], rtol=1e-4, atol=1e-6)


def test_other_steps_go_down() -> None:
    w = draw.normal(size=20).astype("f")
    zero = np.zeros_like(w)
    for op, states, settings in (
        ("signsgd_update", 0, {"lr": 0.1}),
        ("signum_update", 1, {"lr": 0.1, "momentum": 0.5}),
        ("rmspropalex_update", 3, {"lr": 0.1}),
        ("ftml_update", 3, {"lr": 0.1, "t": 1}),
    ):
        found = step(op, w, w, *[zero] * states, **settings)[0]
        assert (found**2).sum() < (w**2).sum(), op
    z, n = np.full_like(w, 0.5), np.full_like(w, 0.3)
    found = nd.ftrl_update(*map(nd.array, (w, w, z, n)), lr=0.1, lamda1=0.01, beta=1.0, wd=0.1).numpy()
    new_z = z + w - (np.sqrt(n + w * w) - np.sqrt(n)) * w / 0.1
    wanted = (np.sign(new_z) * 0.01 - new_z) / ((1 + np.sqrt(n + w * w)) / 0.1 + 0.1) * (abs(new_z) > 0.01)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)


def test_without_out_the_weight_stays() -> None:
    w, mom = nd.ones(3), nd.zeros(3)
    found = nd.sgd_mom_update(w, nd.ones(3), mom, lr=0.5)
    assert (w.tolist(), mom.tolist(), found.tolist()) == ([1] * 3, [-0.5] * 3, [0.5] * 3)


def test_half_weights_have_a_single_copy() -> None:
    half, whole = nd.ones(3, dtype="float16"), nd.ones(3)
    for _ in range(3):
        nd.mp_sgd_update(half, nd.ones(3, dtype="float16"), whole, lr=1e-4, out=half)
    np.testing.assert_allclose(whole, 1 - 3e-4, rtol=1e-6)
    assert half.dtype == np.float16


def test_draws_of_distributions() -> None:
    mx.seed(4)
    shape = (20000,)
    for name, given, mean, spread in (
        ("uniform", (2, 4), 3, (1 / 3) ** 0.5),
        ("normal", (2, 3), 2, 3),
        ("gamma", (4, 0.5), 2, 1),
        ("exponential", (3,), 3, 3),
        ("poisson", (4,), 4, 2),
        ("negative_binomial", (3, 0.5), 3, 6**0.5),
        ("generalized_negative_binomial", (3, 0.5), 3, (3 + 0.5 * 9) ** 0.5),
        ("randint", (0, 5), 2, 2**0.5),
    ):
        found = getattr(nd.random, name)(*given, shape).numpy()
        assert (found.mean(), found.std()) == (pytest.approx(mean, rel=0.05), pytest.approx(spread, rel=0.05)), name
        composed = getattr(mx.sym.random, name)(*given, shape=(7,))
        assert composed.infer_shape()[1] == [(7,)]
        assert composed.eval()[0].shape == (7,)
        if name == "randint":
            continue
        rates = [nd.array([each, each]) for each in given]
        found = getattr(nd.random, name)(*rates, shape).numpy()
        assert found.shape == (2, *shape)
        assert found.mean() == pytest.approx(mean, rel=0.05), name
    assert nd.random.randn(2, 3, scale=2).shape == (2, 3)


def test_classes_and_rows_that_are_drawn() -> None:
    mx.seed(4)
    chances = nd.array([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])
    drawn, logs = nd.random.multinomial(chances, shape=4000, get_prob=True)
    assert drawn.dtype == np.int32
    assert np.bincount(drawn.numpy()[0], minlength=3) / 4000 == pytest.approx([0, 0.25, 0.75], abs=0.03)
    assert not drawn.numpy()[1].any()
    np.testing.assert_allclose(np.exp(logs.numpy()[0]), np.array([0, 0.25, 0.75])[drawn.numpy()[0]], rtol=1e-5)
    assert nd.random.multinomial(chances[0]).shape == (1,)
    rows = nd.random.shuffle(nd.array(np.arange(40).reshape((20, 2)))).numpy()
    assert sorted(rows[:, 0]) == list(range(0, 40, 2))
    assert (rows[:, 1] == rows[:, 0] + 1).all()


@pytest.mark.parametrize(
    ("name", "given", "text"),
    [
        ("normal", (0, -1), "scale is positive"),
        ("uniform", (3, 2), "low is at most high"),
        ("gamma", (0, 1), "alpha is positive"),
        ("poisson", (-1,), "lam is not negative"),
        ("randint", (5, 2), "low is at most high"),
    ],
)
def test_distributions_that_are_none(name: str, given: tuple[float, ...], text: str) -> None:
    with pytest.raises(ArgumentValueError, match=text):
        getattr(nd.random, name)(*given, shape=(2,))


def test_parameters_that_are_mixed() -> None:
    with pytest.raises(ArgumentTypeError, match="all are arrays"):
        nd.random.normal(nd.ones(2), 1.0, (2,))
    with pytest.raises(ArgumentTypeError, match="low, high"):
        nd.random.uniform(0, 1, (2,), "float32", None, None, 7)


def test_functions_of_two_arrays() -> None:
    a, b = nd.array([[1, 2, 3]]), nd.array([[2], [3]])
    x, y = a.numpy(), b.numpy()
    for name, function in (
        ("add", np.add), ("subtract", np.subtract), ("multiply", np.multiply), ("divide", np.divide),
        ("true_divide", np.divide), ("modulo", np.mod), ("power", np.power), ("maximum", np.maximum),
        ("minimum", np.minimum), ("equal", np.equal), ("not_equal", np.not_equal), ("greater", np.greater),
        ("greater_equal", np.greater_equal), ("lesser", np.less), ("lesser_equal", np.less_equal),
        ("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor),
    ):  # fmt: skip
        call = getattr(nd, name)
        for found, wanted in ((call(a, b), function(x, y)), (call(a, 2), function(x, 2)), (call(2, a), function(2, x))):
            np.testing.assert_allclose(found, wanted.astype("f"), rtol=1e-6)
            assert found.dtype == np.float32
    with pytest.raises(ArgumentTypeError, match="an array"):
        nd.add(1, 2)


def test_other_functions_of_scripts() -> None:
    assert nd.eye(2, 3, 1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert nd.linspace(0, 1, 5, endpoint=False).tolist() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8])
    assert nd.moveaxis(nd.ones((2, 3)), 0, 1).shape == (3, 2)
    assert [each.shape for each in nd.split_v2(nd.ones((6, 2)), 3)] == [(2, 2)] * 3
    assert [each.shape for each in nd.split_v2(nd.ones((6, 2)), (1, 4), axis=0)] == [(1, 2), (3, 2), (2, 2)]
    x = mx.sym.Variable("x")
    assert mx.sym.split_v2(x, (1, 4)).infer_shape(x=(6, 2))[1] == [(1, 2), (3, 2), (2, 2)]
    assert mx.sym.split_v2(x, 2, axis=1, squeeze_axis=True).infer_shape(x=(6, 2))[1] == [(6,), (6,)]
    assert mx.sym.eye(2).eval()[0].tolist() == [[1, 0], [0, 1]]
    assert mx.sym.linspace(1, 2, 3).eval()[0].tolist() == [1, 1.5, 2]
    assert nd.crop(nd.ones((4, 4)), begin=(0, 1), end=(2, 4)).shape == (2, 3)
    assert isinstance(nd.eye(2), weft.NDArray)
