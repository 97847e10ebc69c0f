"""Python callables on CUDA arrays: on the stream of their op, on views of the arrays' memory, with CuPy or without."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import weft
from conftest import SOON, address_of
from weft import errors
from weft._cuda.streams import on

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)


def test_functions_without_a_kernel_run_on_views(cupy: Any) -> None:
    host = np.random.default_rng(5).random((4, 6))
    x = weft.asarray(host, device=DEVICE)
    total = weft.cumulative_sum(x, axis=0)
    assert total.device == DEVICE
    np.testing.assert_array_equal(total.numpy(), np.cumsum(host, axis=0))
    np.testing.assert_array_equal(weft.matmul(x[:, ::2].T, x).numpy(), host[:, ::2].T @ host)
    np.testing.assert_array_equal(weft.where(x > 0.5, x, -x).numpy(), np.where(host > 0.5, host, -host))
    np.testing.assert_array_equal(x[weft.asarray([2, 0], device=DEVICE)].numpy(), host[[2, 0]])
    np.testing.assert_array_equal(weft.concat([x, x], axis=1).numpy(), np.concatenate([host, host], axis=1))
    np.testing.assert_array_equal(weft.gcd(weft.asarray([4, 6], device=DEVICE), 4).numpy(), [4, 2])
    assert len({stream for stream, device in cupy.seen}) >= 1
    assert {device for _, device in cupy.seen} == {0}
    assert cupy.current() == []


A = np.random.default_rng(3).random((4, 5))
WITH_NAN = np.where(A > 0.9, np.nan, A)
INTEGERS, COMPLEX = (A * 9).astype("int64") + 1, A + 1j * A[::-1]
POSITIVE = A[:, :4] @ A[:, :4].T + 4 * np.eye(4)


@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.sum(where=x > 0.5),
        lambda x: weft.sum(x, axis=0, initial=3.0),
        lambda x: (x.max(axis=1), x.min(), weft.max(x, axis=0, where=x > 0.5, initial=0.1)),
        lambda x: ((x > 0.1).all(axis=1), (x > 0.9).any(), weft.any(x, axis=0)),
        lambda x: (x.mean(axis=0), weft.mean(x, where=x > 0.5), x.astype("float32").mean()),
        lambda x: (x.std(axis=1), weft.var(x, correction=1), weft.var(x, where=x > 0.5, axis=0)),
        lambda x: (weft.count_nonzero(x > 0.3, axis=0), weft.count_nonzero(x)),
        lambda x: (weft.cumulative_sum(x, axis=1), weft.cumulative_prod(x, axis=0, include_initial=True)),
        lambda x: (weft.argmax(x, axis=1), weft.ptp(x, axis=0), weft.median(x, axis=0), weft.quantile(x, [0.1, 0.5])),
        lambda x: (weft.sort(x, axis=0), weft.sort(x.T, descending=True), weft.argsort(x, descending=True)),
        lambda x: (weft.lexsort([x, -x]), weft.partition(x, 2), weft.searchsorted(weft.sort(x[0]), x)),
        lambda x: (weft.cov(x), weft.corrcoef(x), weft.average(x, axis=0, weights=x)),
        lambda x: (
            weft.vecdot(x, x),
            weft.einsum("ij,kj->ik", x, x),
            weft.tensordot(x, x),
            weft.cross(x[:, :3], x[:, 1:4]),
        ),
        lambda x: (weft.linalg.vector_norm(x), weft.linalg.vector_norm(x, axis=0, ord=3), weft.linalg.matrix_norm(x)),
        lambda x: (weft.linalg.svdvals(x), weft.linalg.matrix_rank(x), weft.linalg.pinv(x), weft.linalg.qr(x)[1]),
        lambda x: (weft.divmod(x, 0.3), weft.modf(x * 9), weft.frexp(x), weft.spacing(x)),
        lambda x: weft.gcd((x * 9).astype("int64"), 6, where=x > 0.5, out=weft.zeros_like(x, dtype="int64")),
        lambda x: (weft.fft.fft(x), weft.fft.irfft(x.astype("complex128")), weft.fft.rfftn(x)),
        lambda x: (weft.pad(x, 1), weft.tile(x, (2, 1)), weft.repeat(x, [1, 2, 3, 4], axis=0), weft.roll(x, 1)),
        lambda x: (weft.clip(x, 0.2, x), weft.round(x, 2), weft.isclose(x, 0.5, rtol=0.5), weft.where(x > 0.5, 1, x)),
        lambda x: (weft.tril(x), weft.trace(x), weft.diff(x, n=2), weft.flip(x), weft.stack([x, x], axis=1)),
    ],
)
def test_what_cupy_computes_is_what_the_cpu_does(compute: Any) -> None:
    _same(compute(weft.asarray(A, device=DEVICE)), compute(weft.asarray(A)))


@pytest.mark.usefixtures("cupy")
def test_nan_is_passed_and_integers_and_complex_numbers_are_taken() -> None:
    for device in (None, DEVICE):
        n, i, z = (weft.asarray(each, device=device) for each in (WITH_NAN, INTEGERS, COMPLEX))
        found = (
            *(weft.nanmax(n, axis=0), weft.nanmin(n), weft.nanmean(n, axis=1), weft.nanstd(n), weft.nansum(n)),
            *(weft.nanmedian(n), weft.nanargmax(n, axis=1), weft.nanmax(i), weft.nanmean(i), weft.nan_to_num(n)),
            *(i.sum(), i.mean(), i.max(axis=0), weft.vecdot(i, i), i.std(), weft.linalg.vector_norm(i)),
            *(z.sum(), z.mean(axis=0), z.std(), weft.vecdot(z, z), weft.exp(z), z / z, weft.angle(z), weft.cov(z)),
        )
        if device is None:
            wanted = found
    _same(found, wanted)


@pytest.mark.usefixtures("cupy")
def test_arrays_are_sorted_in_place() -> None:
    x = weft.asarray(A, device=DEVICE)
    x[:, ::2].sort(axis=0)
    wanted = A.copy()
    wanted[:, ::2].sort(axis=0)
    np.testing.assert_array_equal(x.numpy(), wanted)


@pytest.mark.usefixtures("cupy")
def test_decompositions_are_those_of_the_cpu() -> None:
    p, q = weft.asarray(POSITIVE, device=DEVICE), weft.asarray(POSITIVE)
    for name in ("cholesky", "inv", "det", "slogdet", "eigvalsh"):
        _same(getattr(weft.linalg, name)(p), getattr(weft.linalg, name)(q))
    _same(weft.linalg.cholesky(p, upper=True), weft.linalg.cholesky(q, upper=True))
    _same(weft.linalg.solve(p, p[0]), weft.linalg.solve(q, q[0]))


@pytest.mark.usefixtures("cupy")
def test_what_cupy_cannot_compute_names_the_op_and_the_way_out() -> None:
    x = weft.asarray(WITH_NAN, device=DEVICE)
    message = r"op 'quantile' cannot be computed on a CUDA device, .*nanquantile.* to the CPU by x.to_device\('cpu'\)"
    with pytest.raises(errors.ArgumentTypeError, match=message):
        weft.nanquantile(x, 0.5).wait_to_read(SOON)


def _same(found: Any, wanted: Any) -> None:
    if isinstance(found, tuple):
        for one, other in zip(found, wanted, strict=True):
            _same(one, other)
        return
    assert found.device == DEVICE
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-6 if wanted.dtype.itemsize == 4 else 1e-9)


def test_pushed_callables_run_on_the_ops_stream(cupy: Any) -> None:
    engine = weft.get_engine()
    x, y = weft.arange(4.0, device=DEVICE), weft.empty(4, device=DEVICE)
    found: list[Any] = []

    def double() -> None:
        found.append((weft.cuda.current_stream(), cupy.current()))
        y._values()[...] = x._values() * 2

    engine.push(double, [x], [y])
    assert (y + 1).tolist() == [1.0, 3.0, 5.0, 7.0]
    (device, stream), current = found[0]
    assert device == DEVICE
    assert current == [(stream, 0)]
    assert weft.cuda.current_stream() is None


def test_a_stream_is_made_cupys_once_for_each_thread(cupy: Any) -> None:
    with on(0, 4096) as first, on(0, 4096) as nested:
        assert nested is not first
    with on(0, 4096) as again:
        assert again in {first, nested}
    with on(0, 8192) as other:
        assert other not in {first, nested}
        assert cupy.current() == [(8192, 0)]
    assert cupy.current() == []


def test_tasks_get_cupy_arrays(cupy: Any) -> None:
    @weft.task
    def scale(out: weft.Overwrite, x: weft.Read, by: float) -> None:
        assert cupy.current()
        np.multiply(x, by, out=out)

    x, y = weft.ones((2, 3), device=DEVICE), weft.empty((2, 3), device=DEVICE)
    scale(y, x, 3.0)
    scale(x, y, 2.0)
    assert (x + y).tolist() == [[9.0] * 3] * 2


@pytest.mark.usefixtures("cupy")
def test_failures_of_callables_are_told_with_the_op() -> None:
    x = weft.ones(3, device=DEVICE)

    def fail() -> None:
        raise LookupError("no such thing")

    weft.get_engine().push(fail, (), [x], name="search")
    with pytest.raises(LookupError, match="no such thing") as caught:
        (x + 1).wait_to_read(SOON)
    assert caught.value.__notes__[0].startswith("weft: op 'search' pushed at ")


def test_without_cupy_ops_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)  # as if it were not installed
    x = weft.ones(3, device=DEVICE)
    with pytest.raises(errors.CudaUnavailableError, match=r"CuPy cannot be imported .* pip install cupy-cuda13x"):
        weft.sort(x).wait_to_read(SOON)
    x += 1
    assert x.tolist() == [2.0, 2.0, 2.0]  # and its ops have ended


def test_native_functions_take_arrays_of_the_host(native: Any) -> None:
    x = weft.ones(3, device=DEVICE)
    with pytest.raises(errors.ArgumentValueError, match="the array is on cuda:0 and the op runs on the CPU"):
        weft.get_engine().push_native(address_of(native.succeed), mutate_vars=[x])
