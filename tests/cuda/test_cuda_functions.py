"""Functions that are no ufuncs, and creation, by kernels: against NumPy, without CuPy."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import write_script
from weft._cuda import products, totals
from weft._cuda.expressions import expression
from weft._cuda.fused import source
from weft._cuda.launch import Reduction
from weft._cuda.sources import Elementwise

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


def neighbours() -> str:
    """A kernel of several functions, over half precision, booleans and complex numbers."""
    half, double, pair, truth = map(np.dtype, ("float16", "float64", "complex128", "bool"))
    parts = (
        (
            Elementwise("multiply", "a * b", (half,) * 2, half, (half,) * 2, half),
            ("slot", 0),
            (("array", 0), ("scalar", 0)),
        ),
        (Elementwise("copy", "a", (half,), double, (half,), half), ("slot", 1), (("slot", 0),)),
        (
            Elementwise("greater", "a > b", (double,) * 2, truth, (double,) * 2, truth),
            ("array", 1),
            (("slot", 1), ("array", 2)),
        ),
        (
            Elementwise("add", expression("add", (pair, pair)) or "", (double, pair), pair, (pair,) * 2, pair),
            ("array", 3),
            (("slot", 1), ("array", 3)),
        ),
    )
    found = source(parts, (half, truth, double, pair))
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_sources_compile_for_gpus(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Elementwise] = []

    def keep(name: str, body: str, *rest: Any, **options: bool) -> None:
        made.append(Elementwise(name, body, *rest, **options))
        raise NotImplementedError

    monkeypatch.setattr("weft._cuda.functions.kernels", keep)
    for dtype in ("int16", "float32", "complex128"):
        x = weft.ones((3, 3), dtype=dtype, device=DEVICE)
        for call in (
            lambda x=x: weft.where(x, x, 0),
            lambda x=x: weft.clip(x, x, 1),
            lambda x=x: weft.angle(x, deg=True),
            lambda x=x: weft.nan_to_num(x),
            lambda x=x: weft.round(x, 2),
            lambda x=x: weft.isclose(x, x, equal_nan=True),
            lambda x=x: weft.tril(x),
            lambda x=x: weft.arange(9, dtype=x.dtype, device=DEVICE),
            lambda x=x: weft.linspace(0, 1, dtype=x.dtype, device=DEVICE),
        ):
            with contextlib.suppress(NotImplementedError, AssertionError):
                call()
    assert len(made) > 20
    sources = [each.source(strided=bool(at % 2), scalars=0) for at, each in enumerate(made)]
    sources.append(neighbours())
    bits, half, single, double = map(np.dtype, ("bool", "float16", "float32", "float64"))
    for stated in [each for each in weft.ops.attribute_map("kernels").values() if isinstance(each, Reduction)]:
        sources += [
            totals.source(stated, half, single, half, divided=stated.divided),
            totals.source(stated, double, double, double, divided=stated.divided),
            totals.source(stated, bits, np.dtype(np.int64), np.dtype(np.int64)),
        ]
    sources += [products.source(dtype) for dtype in (half, single, double, np.dtype(np.int8))]
    data = tmp_path / "sources.json"
    data.write_text(json.dumps(sources))
    script = """
        import json, sys
        from weft._cuda import nvrtc, sources

        for at, text in enumerate(json.load(open(sys.argv[1]))):
            capability = ((8, 0), (9, 0))[at % 2]
            assert nvrtc.build("kernel", text, capability, sources.OPTIONS)[:4] == b"\\x7fELF"
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    command = [sys.executable, str(write_script(tmp_path, script)), str(data)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


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
