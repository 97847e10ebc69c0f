"""Functions that are no ufuncs, and creation, by kernels: against NumPy, without CuPy."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("fake_cuda", "no_cupy")

DEVICE = weft.gpu(0)


@pytest.fixture
def no_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse what is not a kernel."""

    def refuse(*_args: object, **_options: object) -> None:
        raise AssertionError("this op has no kernel")

    monkeypatch.setattr("weft._call.destinations.push_compute", refuse)
    monkeypatch.setattr("weft._cuda.hosted.push_compute", refuse)


def there(x: Any) -> Any:
    return weft.asarray(x, device=DEVICE)


def same(found: Any, wanted: Any) -> None:
    assert found.device == DEVICE
    host, wanted = found.numpy(), np.asarray(wanted)
    assert (host.dtype, host.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_array_equal(host, wanted)
    if wanted.dtype.kind == "f":
        assert np.array_equal(np.signbit(host), np.signbit(wanted))


def test_where_chooses_broadcasts_and_casts() -> None:
    rng = np.random.default_rng(0)
    mask, a, b = rng.random((4, 1, 3)) < 0.5, rng.normal(size=(5, 3)).astype("f4"), rng.integers(0, 9, (4, 5, 1))
    same(weft.where(there(mask), there(a), there(b)), np.where(mask, a, b))
    same(weft.where(there(mask), there(a), 0), np.where(mask, a, np.float32(0)))
    same(weft.where(there(mask), 1.5, there(a)), np.where(mask, np.float32(1.5), a))
    same(weft.where(there(mask), True, False), np.where(mask, True, False))
    same(weft.where(there(b), there(a), there(a + 1j)), np.where(b, a, a + 1j))
    same(weft.where(there(mask[:0]), there(a), 1), np.where(mask[:0], a, np.float32(1)))
    small = b.astype("i1")
    same(weft.where(there(mask), there(small), 300), np.where(mask, small, 300))


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float32", "complex128"])
def test_clip(dtype: str) -> None:
    x = np.arange(-6, 6).astype(dtype) if dtype != "complex128" else np.arange(-6, 6) + 1j
    low, high = np.full(12, 1, dtype), np.linspace(0, 4, 12).astype(dtype)
    if dtype == "float32":
        x[3], high[7], x[5] = np.nan, np.nan, -0.0
    same(weft.clip(there(x), there(low), there(high)), np.clip(x, low, high))
    if dtype != "complex128":
        same(weft.clip(there(x), 0, 3), np.clip(x, np.array(0, dtype), np.array(3, dtype)))
    y = there(x)
    assert weft.clip(y, 0, 3, out=y) is y


def test_results_of_two() -> None:
    rng = np.random.default_rng(1)
    for a, b in (
        (rng.integers(-20, 20, 30), rng.integers(-5, 5, 30)),
        (rng.normal(size=30) * 9, np.r_[rng.normal(size=27), 0.0, np.inf, np.nan]),
    ):
        with np.errstate(all="ignore"):
            wanted = np.divmod(a, b)
            by_number = np.divmod(a, 3)
        for found, each in zip(weft.divmod(there(a), there(b)), wanted, strict=True):
            same(found, each)
        for found, each in zip(divmod(there(a), 3), by_number, strict=True):
            same(found, each)
    x = np.array([1.5, -2.25, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e-310, 7.0])
    for function in ("modf", "frexp"):
        for found, each in zip(getattr(weft, function)(there(x)), getattr(np, function)(x), strict=True):
            same(found, each)
    powers = np.arange(9) * 300 - 1200
    with np.errstate(all="ignore"):
        same(weft.ldexp(there(x), there(powers)), np.ldexp(x, powers))


def test_angles_and_parts() -> None:
    z = np.array([1 + 1j, -1 + 0j, complex(-1, -0.0), 1j, 0j, complex(np.nan, 1), complex(np.inf, -np.inf)])
    for deg in (False, True):
        found = weft.angle(there(z), deg=deg).numpy()
        np.testing.assert_array_max_ulp(found[~np.isnan(found)], np.angle(z, deg)[~np.isnan(found)], 2)
    same(weft.angle(there([-1.0, 1.0, 0.0])), np.angle(np.array([-1.0, 1.0, 0.0])))
    same(weft.angle(there([-1, 1])), np.angle(np.array([-1, 1])))
    same(weft.real(there(z)), z.real)
    same(weft.imag(there(z)), z.imag)
    same(weft.abs(there(z[:5])), np.abs(z[:5]))


def test_rounding() -> None:
    x = np.array([0.5, 1.5, -2.675, 123.456, 1e300, np.nan, np.inf, -0.2])
    for decimals in (0, 2, -1):
        for dtype in ("float32", "float64"):
            with np.errstate(all="ignore"):
                each = x.astype(dtype)
                same(weft.round(there(each), decimals), np.round(each, decimals))
        same(weft.round(there(x[:4] + 2.345j), decimals), np.round(x[:4] + 2.345j, decimals))
    same(weft.round(there([15, 25]), 1), np.round([15, 25], 1))
    halves = np.arange(1 << 16, dtype="uint16").view("float16")
    for decimals in (-2, 1, 5):
        with np.errstate(all="ignore"):
            same(weft.round(there(halves), decimals), np.round(halves, decimals))


def test_what_is_close_and_what_is_no_number() -> None:
    a = np.array([1.0, 1.0 + 1e-9, np.nan, np.inf, -np.inf, 0.0, 2.0])
    b = np.array([1.0, 1.0, np.nan, np.inf, np.inf, 1e-9, 2.1])
    for options in ({}, {"equal_nan": True}, {"rtol": 0.5, "atol": 0.0}):
        same(weft.isclose(there(a), there(b), **options), np.isclose(a, b, **options))
    same(weft.isclose(there([1, 2]), there([1, 3])), np.isclose([1, 2], [1, 3]))
    same(weft.nan_to_num(there(a)), np.nan_to_num(a))
    same(weft.nan_to_num(there(a), nan=7.0, posinf=8.0, neginf=9.0), np.nan_to_num(a, nan=7.0, posinf=8.0, neginf=9.0))
    same(weft.nan_to_num(there(a.astype("f4") + 1j)), np.nan_to_num(a.astype("f4") + 1j))
    same(weft.nan_to_num(there([1, 2])), np.array([1, 2]))


@pytest.mark.parametrize("k", [-2, 0, 1, 9])
@pytest.mark.parametrize("function", ["tril", "triu"])
def test_triangles(function: str, k: int) -> None:
    x = np.arange(2.0 * 4 * 5).reshape(2, 4, 5)
    same(getattr(weft, function)(there(x), k=k), getattr(np, function)(x, k))
    same(getattr(weft, function)(there(x)[:, ::2, ::-1], k=k), getattr(np, function)(x[:, ::2, ::-1], k))
    same(getattr(weft, function)(there(x[0] > 3), k=k), getattr(np, function)(x[0] > 3, k))


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, **o: xp.arange(0, 10, 3, **o),
        lambda xp, **o: xp.arange(5, **o),
        lambda xp, **o: xp.arange(1.0, 2.0, 0.1, **o),
        lambda xp, **o: xp.arange(0.1, 300, 0.7, dtype="float32", **o),
        lambda xp, **o: xp.arange(9, -9, -2, dtype="int8", **o),
        lambda xp, **o: xp.arange(2**63, 2**63 + 9, 2, dtype="uint64", **o),
        lambda xp, **o: xp.arange(0, 2, dtype="bool", **o),
        lambda xp, **o: xp.arange(0, 3, 0.25, dtype="complex64", **o),
        lambda xp, **o: xp.arange(3, 3, **o),
        lambda xp, **o: xp.arange(3, 4, 5, **o),
        lambda xp, **o: xp.linspace(0, 1, 7, **o),
        lambda xp, **o: xp.linspace(-3.3, 9.1, 1001, **o),
        lambda xp, **o: xp.linspace(5, -5, 8, endpoint=False, dtype="float32", **o),
        lambda xp, **o: xp.linspace(-7, 7, 6, dtype="int32", **o),
        lambda xp, **o: xp.linspace(2, 3, 1, **o),
        lambda xp, **o: xp.linspace(2, 2, 3, dtype="complex128", **o),
        lambda xp, **o: xp.linspace(2, 3, 0, **o),
        lambda xp, **o: xp.eye(3, **o),
        lambda xp, **o: xp.eye(3, 5, k=2, dtype="int16", **o),
        lambda xp, **o: xp.eye(5, 3, k=-1, dtype="bool", **o),
        lambda xp, **o: xp.eye(2, 3, k=7, **o),
        lambda xp, **o: xp.full((2, 3), 2.5, **o),
        lambda xp, **o: xp.ones(3, dtype="complex64", **o),
    ],
)
def test_arrays_are_made_where_they_belong(call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object) -> None:
        raise AssertionError("nothing is to be copied there")

    monkeypatch.setattr("weft._call.devices.copy_elements", refuse)
    same(call(weft, device=DEVICE), call(np))


def test_what_is_no_kernel_says_so() -> None:
    with pytest.raises(AssertionError, match="no kernel"):
        weft.sort(there([2, 1]))


def test_values_of_views_are_brought_together_before_they_travel() -> None:
    host = np.arange(4000.0).reshape(40, 100)
    x = there(host)
    same(x[:, 7], host[:, 7])
    same(x[::3, ::-5], host[::3, ::-5])
    same(x.T, host.T)
    same(x[5:5, ::7], host[5:5, ::7])
    same(weft.broadcast_to(x[::2, 3:4], (20, 50)), np.broadcast_to(host[::2, 3:4], (20, 50)))


def test_the_room_of_the_backend_names_no_op() -> None:
    ops = set(weft.ops.list_ops()) - {"where"}  # a keyword of NumPy's, too
    room = Path(weft.__file__).parent / "_cuda"
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in room.glob("*.py")}
    named = {
        (path.name, node.value)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in ops
    }
    assert named == set()
