"""Half precision on the host, which is computed in single precision: the same numbers, rounded once, at NumPy's layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import nn

if TYPE_CHECKING:
    from collections.abc import Callable

RNG = np.random.default_rng(11)
#: Zeros, subnormal numbers, the largest one, infinities, NaN, and ordinary ones.
KINDS = np.array(
    [0, -0.0, 6e-8, -3e-6, 6e-5, 65504, -65504, np.inf, -np.inf, np.nan, 1, -1.5, 0.1, 2049, 333], np.float16
)


def halves(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float16)


@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide"])
def test_operators_give_the_bits_of_numpy(name: str) -> None:
    a, b = (np.ascontiguousarray(each) for each in np.meshgrid(KINDS, KINDS))
    a, b = np.tile(a, (3, 3)), np.tile(b, (3, 3))
    ours, numpys = getattr(weft, name), getattr(np, name)
    with np.errstate(all="ignore"):
        for x, y in (
            (a, b),
            (a.T, b),
            (a[::2, ::3], b[::2, ::3]),
            (a[:, ::-1], b[0]),
            (a, np.float16(0.3)),
            (a[:1, :3], b[:1, :3]),
        ):
            due = numpys(x, y)
            found = ours(weft.asarray(x), weft.asarray(y)).numpy()
            assert found.dtype == np.float16
            np.testing.assert_array_equal(found, due)
            known = ~np.isnan(due)
            np.testing.assert_array_equal(found[known].view(np.uint16), due[known].view(np.uint16))


def test_in_place_and_over_what_overlaps() -> None:
    x = weft.asarray(halves(1000))
    due = x.numpy()
    x += x
    due += due
    x[1:] += x[:-1]
    due[1:] += due[:-1]
    x[::2] *= x[1::2]
    due[::2] *= due[1::2]
    np.testing.assert_array_equal(x.numpy(), due)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_sums_and_running_sums(axis: int | None) -> None:
    x = halves(300, 70)
    np.testing.assert_array_equal(weft.sum(weft.asarray(x), axis=axis).numpy(), x.sum(axis=axis))
    np.testing.assert_array_equal(np.cumsum(weft.asarray(x), axis=axis).numpy(), np.cumsum(x, axis=axis))
    np.testing.assert_array_equal(weft.prod(weft.asarray(x[:4]), axis=axis).numpy(), x[:4].prod(axis=axis))


def test_casts_give_the_bits_of_numpy() -> None:
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = weft.asarray(every).astype(np.float32).numpy()
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    with np.errstate(invalid="ignore"):
        between = (every[:-1].astype(np.float32) + every[1:].astype(np.float32)) / 2  # ties, to be rounded to even
    for given in (wide, between, wide[::3], np.float32([1e9, -1e9, 65519.99, 65520, 1e-8, np.nan])):
        with np.errstate(over="ignore"):
            due = given.astype(np.float16)
        np.testing.assert_array_equal(weft.asarray(given).astype(np.float16).numpy(), due)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 7), (7, 3)),
        ((1, 9), (9, 1)),
        ((9,), (9, 4)),
        ((4, 9), (9,)),
        ((600,), (600,)),
        ((2, 3, 40, 9), (9, 5)),
        ((70, 5000), (5000, 9)),
    ],
    ids=str,
)
def test_products_are_rounded_once(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = halves(*a) / np.float16(8), halves(*b)
    for one, other in ((x, y), (np.asfortranarray(x), y), (x, np.asfortranarray(y)), (x[..., ::-1], y)):
        due = np.matmul(one.astype(np.float64), other.astype(np.float64))
        found = weft.matmul(weft.asarray(one), weft.asarray(other))
        assert found.dtype == np.float16
        np.testing.assert_allclose(found.numpy(), due, rtol=2e-3, atol=2e-3)


def grad_of(function: Callable[..., Any]) -> Callable[..., Any]:
    def found(*arrays: Any) -> Any:
        return weft.grad(lambda *given: weft.sum(function(*given)), argnums=tuple(range(len(arrays))))(*arrays)

    return found


IMAGES, KERNELS, ROWS = halves(2, 3, 9, 9), halves(4, 3, 3, 3), halves(6, 10)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "conv": (lambda x, w: nn.conv(x, w, padding=1), (IMAGES, KERNELS)),
    "conv_transpose": (nn.conv_transpose, (halves(2, 4, 5, 5), KERNELS)),
    "max_pool": (lambda x: nn.max_pool(x, 3, stride=2), (IMAGES,)),
    "avg_pool": (lambda x: nn.avg_pool(x, 2), (IMAGES,)),
    "batch_norm": (lambda x, s, b: nn.batch_norm_train(x, s, b)[0], (IMAGES, halves(3), halves(3))),
    "layer_norm": (nn.layer_norm, (ROWS, halves(10), halves(10))),
    "softmax": (lambda x: nn.softmax(x, -1), (ROWS,)),
    "cross_entropy": (lambda x: nn.cross_entropy(x, weft.asarray([0, 3, 9, 1, 2, 2])), (ROWS,)),
    "gelu": (nn.gelu, (ROWS,)),
    "relu": (nn.relu, (ROWS,)),
    "rnn": (
        lambda x, h, w, v: nn.rnn(x, h, [(w, v, None, None)], mode="gru")[0],
        (halves(4, 2, 5), halves(1, 2, 3), halves(9, 5), halves(9, 3)),
    ),
}


@pytest.mark.parametrize("recorded", [False, True], ids=["eager", "program"])
@pytest.mark.parametrize("name", CASES)
def test_kernels_of_networks(name: str, recorded: bool) -> None:
    function, given = CASES[name]
    for each in (function, grad_of(function)):
        run = weft.program(each) if recorded else each
        found = run(*map(weft.asarray, given))
        due = each(*(weft.asarray(x.astype(np.float32)) for x in given))
        for x, y in zip(*((z if isinstance(z, tuple) else (z,)) for z in (found, due)), strict=True):
            assert (x.dtype, y.dtype) == (np.float16, np.float32)
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-2, atol=2e-2)
