"""Each gradient rule against finite differences; and none is missing."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import weft
from gradient.cases import CASES, Case
from gradient.kernel_cases import KERNELS
from weft._tape.pytree import flatten

_STEP = 1e-6
_ALL = CASES | KERNELS
_LISTED = list(
    {id(case): (f"{name}-{at}", case) for name in reversed(_ALL) for at, case in enumerate(_ALL[name])}.values()
)[::-1]
#: Ops that only rules, the tape and passes make, which their tests reach.
_INNER = {
    "broadcast_like", "cast_like", "copy_to", "ones_like", "concat_part", "functional", "fused", "layout_transform", "matmul_left", "matmul_right", "quantile_follow", "quantile_gradient",
    "reshape_like", "sum_like", "tape.identity", "tape.patch", "tape.view", "zeros_like", "cond", "scan",
    "function", "operator", "pullback", "all_gather", "all_reduce", "all_to_all", "broadcast_from", "reduce_scatter",
}  # fmt: skip

_LISTING = """
import weft
for name in weft.ops.list_ops():
    op = weft.ops.get_op(name)
    rule, reads = op.attribute("gradient", "gradient" in op.attributes), op.attribute("gradient_reads", 0)
    print(name, "rule" if rule else "none" if reads is None else "missing")
"""


def test_every_op_has_a_rule_or_a_reason_to_have_none() -> None:
    run = subprocess.run([sys.executable, "-c", _LISTING], capture_output=True, text=True, check=True)
    said = dict(line.split() for line in run.stdout.splitlines())
    missing = [name for name, what in said.items() if what == "missing"]
    assert not missing, (
        f"give these a rule beside the op (`gradient_of`), or say that there is none (`no_gradient`): {missing}"
    )
    checked = _ALL.keys() | _INNER
    unchecked = [name for name, what in said.items() if what == "rule" and name not in checked]
    assert not unchecked, f"these have a rule, and no case in tests/gradient/cases.py: {unchecked}"


def _weights(shape: Any, dtype: np.dtype[Any], seed: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(seed)
    found: np.ndarray[Any, Any] = rng.standard_normal(shape)
    return (found + 1j * rng.standard_normal(shape)) if dtype.kind == "c" else found


def _inner(a: Any, b: Any) -> float:
    """Return the real inner product of two lists of arrays."""
    return float(sum(np.real(np.vdot(x, y)) for x, y in zip(a, b, strict=True)))


def _laid(x: np.ndarray[Any, Any]) -> weft.NDArray:
    """Return an array with the strides of `x`."""
    return weft.asarray(x, copy=False) if x.flags.writeable else weft.asarray(x)


def _values(tree: Any) -> list[np.ndarray[Any, Any]]:
    return [x.numpy() for x in flatten(tree)[0]]


def _pull(case: Case, operands: Any, seed: int) -> tuple[Any, Any]:
    y, pull = weft.vjp(case.function, *map(_laid, operands))
    weights = [_weights(x.shape, x.dtype, seed + at) for at, x in enumerate(flatten(y)[0])]
    return weights, pull(flatten(y)[1]([weft.asarray(w) for w in weights]))


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in _LISTED])
def test_first_derivatives(case: Case) -> None:
    weights, gradients = _pull(case, case.operands, 3)
    for x, gradient in zip(case.operands, gradients, strict=True):
        assert gradient.shape == x.shape
        assert gradient.dtype == x.dtype
    moves = [_weights(x.shape, x.dtype, 11 + at) for at, x in enumerate(case.operands)]

    def loss(scale: float) -> float:
        operands = [weft.asarray(x + scale * move) for x, move in zip(case.operands, moves, strict=True)]
        return _inner(weights, _values(case.function(*operands)))

    wanted = (loss(_STEP) - loss(-_STEP)) / (2 * _STEP)
    assert _inner(_values(list(gradients)), moves) == pytest.approx(wanted, rel=2e-6, abs=2e-7)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in _LISTED if case.second])
def test_second_derivatives(case: Case) -> None:
    """The gradient of a gradient, in one direction, against differences of gradients."""
    along = [_weights(x.shape, x.dtype, 17 + at) for at, x in enumerate(case.operands)]
    moves = [_weights(x.shape, x.dtype, 23 + at) for at, x in enumerate(case.operands)]

    def slope(*operands: Any) -> Any:
        y, pull = weft.vjp(case.function, *operands)
        leaves, build = flatten(y)
        found = pull(build([weft.asarray(_weights(x.shape, x.dtype, 3 + at)) for at, x in enumerate(leaves)]))
        total = 0.0
        for gradient, direction in zip(found, along, strict=True):
            total = total + weft.sum(weft.real(weft.conj(gradient) * weft.asarray(direction)))
        return total

    gradients = weft.grad(slope, argnums=tuple(range(len(case.operands))))(*map(_laid, case.operands))

    def value(scale: float) -> float:
        found: float = slope(
            *(weft.asarray(x + scale * move) for x, move in zip(case.operands, moves, strict=True))
        ).item()
        return found

    wanted = (value(_STEP) - value(-_STEP)) / (2 * _STEP)
    assert _inner(_values(list(gradients)), moves) == pytest.approx(wanted, rel=2e-5, abs=2e-6)


INTEGERS: dict[str, Any] = {
    "atan2": weft.atan2,
    "hypot": weft.hypot,
    "divide": weft.divide,
    "pow": lambda x, y: weft.pow(x / 20, y),
    "vecdot": weft.vecdot,
    "interp": lambda x, y: weft.interp(x, weft.asarray([0.0, 18.0, 40.0]), y),
    "interp at integers": lambda x, y: weft.interp(y, weft.asarray([0.0, 18.0, 40.0]), x),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_beside_an_operand_do_not_spoil_its_gradient(name: str, dtype: str) -> None:
    x, y = weft.asarray([21.5, 17.25, 19.0]), np.array([20, 100, 17])
    function = INTEGERS[name]
    for first in (True, False):

        def loss(x: Any, y: Any, first: bool = first) -> Any:
            return weft.sum(function(x, y) if first or name.startswith("interp") else function(y, x) * 1.0)

        whole = weft.asarray(y.astype(dtype))
        found, wanted = (weft.grad(loss)(x, each).numpy() for each in (whole, whole.astype("float64")))
        np.testing.assert_allclose(found, wanted, rtol=1e-2 if name == "pow" else 1e-12)


def test_complex_numbers_beside_integers_have_the_gradient_of_their_product() -> None:
    z, n = weft.asarray([1 + 2j, 3 - 1j]), weft.asarray([2, 3])
    assert weft.grad(lambda z: weft.real(weft.vecdot(z, n)))(z).tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", ["mean", "var", "nanmean", "nanvar"])
def test_means_of_many_numbers_in_half_precision_have_gradients(name: str) -> None:
    values = np.resize(np.array([-1.0, 0.5, 2.0]), 70_000)  # more than half precision counts

    def gradient(dtype: str) -> np.ndarray[Any, Any]:
        found = weft.grad(lambda x: getattr(weft, name)(x) * 1000)(weft.asarray(values, dtype=dtype))
        assert found.dtype == dtype
        return found.numpy()

    np.testing.assert_allclose(gradient("float16"), gradient("float64"), rtol=5e-3, atol=1e-4)
