"""Reductions, and products of small matrices, on CUDA devices: the kernels of weft's, without CuPy."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import weft
from weft._cuda import totals

DEVICE = weft.gpu(0)

#: Shapes and axes: one row, long rows in several stages, columns, axes in the middle, none.
SHAPES = [((20_000,), None), ((3, 400, 5), 1), ((300, 7), 0), ((3, 4, 6), (1, 2)), ((), None), ((5,), ())]


@pytest.fixture(autouse=True)
def without_cupy(fake_cuda: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - for the driver
    monkeypatch.setitem(sys.modules, "cupy", None)


def host(dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(7)
    return np.asarray(rng.random(shape) * 0.02 + 0.99 if dtype.startswith("f") else rng.integers(0, 3, shape)).astype(
        dtype
    )


@pytest.mark.parametrize(
    ("name", "dtype", "tolerance"),
    [
        *(("sum", dtype, tolerance) for dtype, tolerance in [("float32", 1e-6), ("float16", 1e-3), ("bool", 0)]),
        *(("prod", dtype, tolerance) for dtype, tolerance in [("float64", 1e-12), ("int8", 0)]),
        *(("max", "float16", 0), ("min", "uint64", 0)),
        *(("mean", dtype, tolerance) for dtype, tolerance in [("float16", 1e-3), ("int32", 1e-12)]),
    ],
)
def test_reductions_give_what_numpys_do(name: str, dtype: str, tolerance: float) -> None:
    for shape, axis in SHAPES:
        x = host(dtype, shape)
        found: Any = getattr(weft, name)(weft.asarray(x, device=DEVICE), axis=axis)
        wanted = getattr(np, name)(x.astype("float64") if x.dtype.kind == "f" else x, axis=axis)
        assert found.dtype == getattr(weft, name)(weft.asarray(x), axis=axis).dtype
        np.testing.assert_allclose(found.numpy(), wanted.astype(found.dtype), rtol=tolerance)


def test_extrema_pass_nan_on_and_bits_follow_from_the_shape() -> None:
    x = np.ones(5_000, "float64")
    x[4_321] = np.nan
    assert np.isnan(weft.max(weft.asarray(x, device=DEVICE)).numpy())
    values = host("float64", (5_000,))
    sums = {weft.sum(weft.asarray(values, device=DEVICE)).numpy().tobytes() for _ in range(3)}
    assert len(sums) == 1


def test_reductions_are_steps_of_programs() -> None:
    x = weft.asarray(host("float64", (1_000, 4)), device=DEVICE)

    @weft.program
    def normed(x: weft.NDArray) -> weft.NDArray:
        return (x - weft.mean(x, axis=0)) / weft.max(x)

    wanted = ((x - weft.mean(x, axis=0)) / weft.max(x)).numpy()
    for _ in range(4):
        np.testing.assert_array_equal(normed(x).numpy(), wanted)


@pytest.mark.parametrize(
    "misfit",
    [
        lambda x: weft.sum(x[:, ::2]),
        lambda x: weft.sum(x, axis=(0, 2)),
        lambda x: weft.sum(x, initial=1.0),
        lambda x: weft.sum(x, where=x > 0),
        lambda x: weft.sum(x, dtype="complex128"),
    ],
)
def test_what_has_no_kernel_goes_to_cupy(misfit: Any) -> None:
    x = weft.asarray(host("float64", (2, 3, 4)), device=DEVICE)
    with pytest.raises(weft.errors.CudaUnavailableError, match="CuPy cannot be imported"):
        misfit(x).wait_to_read()


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-5), ("float16", 2e-3), ("int8", 0)])
def test_products_of_small_matrices_need_no_cupy(dtype: str, tolerance: float) -> None:
    a, b = host(dtype, (7, 30)), host(dtype, (30, 9))
    on = [weft.asarray(x, device=DEVICE) for x in (a, b)]
    wide = [x.astype("float64") if x.dtype.kind == "f" else x for x in (a, b)]
    for found, wanted in [
        (on[0] @ on[1], wide[0] @ wide[1]),
        (on[1].T @ on[0].T, wide[1].T @ wide[0].T),
        (on[0] @ on[1].T[2].copy(), wide[0] @ wide[1].T[2]),
        (on[0][1] @ on[1], wide[0][1] @ wide[1]),
        (on[0][1] @ on[0][2], wide[0][1] @ wide[0][2]),
    ]:
        assert found.dtype == dtype
        np.testing.assert_allclose(found.numpy(), wanted.astype(dtype), rtol=tolerance)
    with pytest.raises(weft.errors.CudaUnavailableError, match="CuPy cannot be imported"):
        weft.matmul(weft.ones((100, 100), device=DEVICE), weft.ones((100, 100), device=DEVICE)).wait_to_read()
    with pytest.raises(weft.errors.CudaUnavailableError, match="CuPy cannot be imported"):
        weft.matmul(on[0][:, ::2], on[1][::2]).wait_to_read()


def test_every_function_has_a_source() -> None:
    double = np.dtype(np.float64)
    for name in ("sum", "prod", "max", "min", "mean"):
        stated = weft.ops.get_op(name).attribute("kernels")
        assert f"void {name}_rows(const double* x" in totals.source(stated, double, double, double)
