"""Python callables on CUDA arrays: on the stream of their op, on views of the arrays' memory, with CuPy or without."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, address_of
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)


@pytest.fixture
def cupy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A CuPy for memory that is the host's."""
    source = Path(__file__).with_name("cupy_on_host.py").read_text(encoding="utf-8")
    (tmp_path / "cupy.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("cupy")
    weft.wait_all(SOON)
    del sys.modules["cupy"]


def test_functions_without_a_kernel_run_on_views(cupy: Any) -> None:
    host = np.random.default_rng(5).random((4, 6))
    x = weft.asarray(host, device=DEVICE)
    total = x.sum(axis=0)
    assert total.device == DEVICE
    np.testing.assert_array_equal(total.numpy(), host.sum(axis=0))
    np.testing.assert_array_equal(weft.matmul(x.T, x).numpy(), host.T @ host)
    np.testing.assert_array_equal(weft.where(x > 0.5, x, -x).numpy(), np.where(host > 0.5, host, -host))
    np.testing.assert_array_equal(x[weft.asarray([2, 0], device=DEVICE)].numpy(), host[[2, 0]])
    np.testing.assert_array_equal(weft.concat([x, x], axis=1).numpy(), np.concatenate([host, host], axis=1))
    np.testing.assert_array_equal(weft.gcd(weft.asarray([4, 6], device=DEVICE), 4).numpy(), [4, 2])
    assert len({stream for stream, device in cupy.seen}) >= 1
    assert {device for _, device in cupy.seen} == {0}
    assert cupy.current == []


def test_pushed_callables_run_on_the_ops_stream(cupy: Any) -> None:
    engine = weft.get_engine()
    x, y = weft.arange(4.0, device=DEVICE), weft.empty(4, device=DEVICE)
    found: list[Any] = []

    def double() -> None:
        found.append((weft.cuda.current_stream(), list(cupy.current)))
        y._values()[...] = x._values() * 2

    engine.push(double, [x], [y])
    assert (y + 1).tolist() == [1.0, 3.0, 5.0, 7.0]
    (device, stream), current = found[0]
    assert device == DEVICE
    assert current == [(stream, 0)]
    assert weft.cuda.current_stream() is None


def test_tasks_get_cupy_arrays(cupy: Any) -> None:
    @weft.task
    def scale(out: weft.Overwrite, x: weft.Read, by: float) -> None:
        assert cupy.current
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


def test_without_cupy_ops_say_what_is_missing() -> None:
    assert "cupy" not in sys.modules
    x = weft.ones(3, device=DEVICE)
    with pytest.raises(errors.CudaUnavailableError, match=r"CuPy cannot be imported .* pip install cupy-cuda12x"):
        x.sum().item()
    x += 1
    assert x.tolist() == [2.0, 2.0, 2.0]


def test_native_functions_take_arrays_of_the_host(native: Any) -> None:
    x = weft.ones(3, device=DEVICE)
    with pytest.raises(errors.ArgumentValueError, match="the array is on cuda:0 and the op runs on the CPU"):
        weft.get_engine().push_native(address_of(native.succeed), mutate_vars=[x])
