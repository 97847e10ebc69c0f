"""Operators on CUDA arrays: the same as NumPy's, and without a line of Python once their kernels are known."""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from computes import REPLACED

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import RunScript

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.lt,
    operator.eq,
    operator.ge,
]


def there(x: Any) -> Any:
    return weft.asarray(x, device=DEVICE)


def same(found: Any, wanted: np.ndarray[Any, Any]) -> None:
    assert isinstance(found, weft.NDArray)
    assert found.device == DEVICE
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.numpy(), wanted)


def calls_of_python(run: Callable[[], object]) -> list[str]:
    """The functions in Python that are called while `run` runs, itself left out."""
    called: list[str] = []

    def note(frame: Any, event: str, _argument: object) -> None:
        if event == "call":
            called.append(frame.f_code.co_qualname if hasattr(frame.f_code, "co_qualname") else frame.f_code.co_name)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return called[1:]


@pytest.mark.slow
@pytest.mark.parametrize("function", BINARY, ids=lambda function: function.__name__)
def test_operators_compute_what_numpy_does(function: Callable[[Any, Any], Any]) -> None:
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(4, 5)).astype("f4") * 9, rng.normal(size=5).astype("f4")
    wide = rng.integers(1, 9, (4, 5))
    x, y, z = there(a), there(b), there(wide)
    for _ in range(3):  # by Python, then by what it has left
        same(function(x, y), function(a, b))
        same(function(y, x), function(b, a))
        same(function(x[:, ::2], 2), function(a[:, ::2], np.float32(2)))
        same(function(2.5, x), function(np.float32(2.5), a))
        same(function(x, z), function(a, wide))
        same(function(z, x), function(wide, a))
        same(function(z, 3), function(wide, 3))


def test_operators_in_place_and_of_one_operand() -> None:
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4)
    x, y = there(a.copy()), there(b)
    for _ in range(3):
        x += y
        a += b
        x *= 2.0
        a *= 2.0
        x -= x[::-1]
        a -= a[::-1].copy()
        same(x, a)
        same(-x, -a)
        same(abs(x), abs(a))
        same(+x, +a)
        same(~y, ~b)
        same(y << 2, b << 2)
        same((y & 3) ^ (y | 1), (b & 3) ^ (b | 1))


def test_no_line_of_python_runs_once_kernels_are_known() -> None:
    x, y, z = there(np.ones(3, "f4")), there(np.ones(3, "f4")), there(np.ones(3))

    def compute() -> None:
        nonlocal x
        _ = x + y, x * 2.0, 1 - x, x < y, -x, x / y, x + z, z * x
        x += y
        x -= 1

    for _ in range(2):  # by Python, then by what it has left
        compute()
    assert calls_of_python(compute) == []
    kernel = weft.cuda.RawKernel('extern "C" __global__ void f(const float* a, float* b, float c, int d) {}', "f")

    def launch() -> None:
        kernel(1, (32, 1), (weft.Read(x), weft.Mutate(y), 1.5, 7))

    launch()
    assert calls_of_python(launch) == []


def test_what_an_operator_does_not_take_is_told_as_before() -> None:
    x = there(np.ones(3, "f4"))
    _ = x + x
    with pytest.raises(ValueError, match=r"cuda:1|same device|to_device"):
        x + weft.ones(3, dtype="float32", device="cuda:1")
    with pytest.raises(ValueError, match=r"CPU|to_device"):
        x + weft.ones(3, dtype="float32")
    with pytest.raises(ValueError, match="broadcast"):
        x + there(np.ones(4, "f4"))
    with pytest.raises(ValueError, match="broadcast"):
        x += there(np.ones((2, 3), "f4"))
    with pytest.raises(TypeError):
        x + object()
    broadcast = weft.broadcast_to(there(np.ones(1, "f4")), (3,))
    with pytest.raises(ValueError, match=r"broadcast|read-only"):
        broadcast += x
    same(x + x, np.full(3, 2, "f4"))


def test_a_dtype_that_was_asked_for_once_is_not_that_of_the_operator() -> None:
    x, y = there(np.arange(4, dtype="u2")), there(np.arange(4, dtype="f8"))
    for _ in range(2):
        assert weft.subtract(x, y, dtype="float32").dtype == weft.float32
        assert (x - y).dtype == weft.float64


def test_operators_run_what_was_registered_after_their_kernels(
    script: RunScript, fake_cuda: dict[str, str], cupy: object
) -> None:
    del cupy  # it lies beside the script
    done = script(REPLACED.format(device="gpu", kind="cuda"), **fake_cuda)
    assert done.returncode == 0, done.stderr
