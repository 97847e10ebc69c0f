"""Kernels of element-wise functions against NumPy: compiled as C++ for the host, where there is no GPU.

What IEEE 754 or C defines exactly is compared bit for bit; functions that libraries approximate, to 4 units in the last
place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import weft
from conftest import write_script
from weft._cuda.expressions import expression
from weft._cuda.sources import OPTIONS

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(0)
#: Of each kind one narrow and one wide dtype; the expressions are the same for the others.
DTYPES = ["bool", "int8", "uint16", "int64", "uint64", "float16", "float32", "float64", "complex64"]
#: Functions that IEEE 754 does not define.
APPROXIMATE = frozenset(
    [
        "exp",
        "exp2",
        "expm1",
        "log",
        "log2",
        "log10",
        "log1p",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "arcsin",
        "arccos",
        "arctan",
        "arcsinh",
        "arccosh",
        "arctanh",
        "cbrt",
        "power",
        "arctan2",
        "hypot",
        "logaddexp",
        "logaddexp2",
        "float_power",
    ]
)
ULPS = 4
#: Of complex results: relative to the larger part, as products of parts cancel.
EPSILONS = 8


def kernels() -> list[tuple[str, tuple[str, ...]]]:
    """Every op with the dtypes for which it has a kernel."""
    found = []
    for name in weft.ops.list_ops():
        ufunc = weft.ops.get_op(name).ufunc
        for kind in DTYPES if ufunc is not None and ufunc.nout == 1 else ():
            dtypes = (np.dtype(kind),) * ufunc.nin
            takes = any(signature.split("->")[0] == "".join(each.char for each in dtypes) for signature in ufunc.types)
            if takes and expression(ufunc.__name__, dtypes) is not None:
                found.append((name, tuple(map(str, dtypes))))
    return found


def operand(dtype: str, seed: int) -> np.ndarray[Any, Any]:
    """Values of all sorts, with all that is special about the dtype."""
    rng, kind = np.random.default_rng(seed), np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, 60).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        special = [limits.min, limits.max, 0, 1, 2, 3, limits.max // 2]
        small = rng.integers(0 if kind == "u" else -9, 9, 40)
        values = np.concatenate([np.array(special, dtype), small.astype(dtype), rng.integers(0, 70, 13).astype(dtype)])
        return rng.permutation(values)
    if kind == "c":
        parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 30.0, -30.0, np.inf, -np.inf, np.nan]
        values = np.empty((len(parts), len(parts)), "complex128")
        values.real, values.imag = np.array(parts)[:, None], parts
        near_one = np.exp(1j * rng.uniform(-3, 3, 20)) * (1 + 1e-6 * rng.normal(size=20))
        normal = 10.0 ** rng.uniform(-3, 1, 40) * np.exp(1j * rng.uniform(-3, 3, 40))
        return rng.permutation(np.concatenate([values.ravel(), near_one, normal])).astype(dtype)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, 3.0, -3.0]
    values = np.concatenate([special, rng.normal(size=30), rng.uniform(0, 1, 10), rng.uniform(-20, 20, 9)])
    return rng.permutation(values).astype(dtype)


def assert_same(name: str, found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    if name in APPROXIMATE and wanted.dtype.kind == "f":
        assert np.array_equal(np.isnan(found), np.isnan(wanted))
        close = np.isfinite(wanted)
        assert np.array_equal(found[~close & ~np.isnan(wanted)], wanted[~close & ~np.isnan(wanted)])
        np.testing.assert_array_max_ulp(found[close], wanted[close], ULPS)
    elif wanted.dtype.kind == "c":
        assert_same_complex(found, wanted)
    else:
        np.testing.assert_array_equal(found, wanted)
        if wanted.dtype.kind == "f":
            numbers = ~np.isnan(wanted)
            assert np.array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))


def assert_same_complex(found: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> None:
    """Parts are NaN, infinite, or zero of a sign where NumPy's are, and close to them elsewhere."""
    size = np.where(np.isfinite(wanted), np.abs(wanted), 0)
    for one, other in ((found.real, wanted.real), (found.imag, wanted.imag)):
        finite = np.isfinite(other)
        assert np.array_equal(np.isnan(one), np.isnan(other))
        assert np.array_equal(one[~finite & ~np.isnan(other)], other[~finite & ~np.isnan(other)])
        one, other, largest = one[finite], other[finite], size[finite]  # noqa: PLW2901 - what is left to compare
        bound = EPSILONS * np.finfo(other.dtype).eps * np.maximum(largest, np.abs(other))
        assert (np.abs(one - other) <= bound).all()
        zeros = (one == 0) & (other == 0)
        assert np.array_equal(np.signbit(one[zeros]), np.signbit(other[zeros]))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtypes"), kernels(), ids=lambda case: case if isinstance(case, str) else case[0])
def test_kernels_compute_what_numpy_does(name: str, dtypes: tuple[str, ...]) -> None:
    op = weft.ops.get_op(name)
    assert op.ufunc is not None
    operands = [operand(dtype, seed) for seed, dtype in enumerate(dtypes)]
    if op.ufunc.__name__ == "power" and operands[0].dtype.kind in "iu":
        operands[1] = np.abs(operands[1]).astype(f"uint{8 * operands[1].itemsize}")  # others are refused
        if operands[0].dtype.kind == "i":
            operands[0] = operands[0].astype(operands[1].dtype)
    if op.ufunc.__name__ == "reciprocal" and operands[0].dtype.kind in "iu":
        operands[0] = operands[0][operands[0] != 0]  # there is no integer that it could be
    with np.errstate(all="ignore"):
        wanted = op.ufunc(*operands)
    result = op(*(weft.asarray(each, device=DEVICE) for each in operands))
    assert isinstance(result, weft.NDArray)
    assert result.device == DEVICE
    distance = op.ufunc is np.absolute and operands[0].dtype.kind == "c"
    assert_same("hypot" if distance else op.ufunc.__name__, result.numpy(), wanted)


def test_there_are_kernels_of_what_arithmetic_needs() -> None:
    found = {name for name, _ in kernels()}
    lacking = {name for name in weft.ops.list_ops() if weft.ops.get_op(name).ufunc is not None} - found
    assert lacking == {"divmod", "frexp", "modf", "ldexp"}, "those of two results, or of two kinds of operands"
    assert {"add", "multiply", "floor_divide", "remainder", "maximum", "sign", "exp", "less", "bitwise_and"} <= found
    assert len(kernels()) > 250


@pytest.mark.parametrize("from_", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("to", ["bool", "int16", "uint8", "float16", "float32", "float64", "complex128"])
def test_casts(from_: str, to: str) -> None:
    if from_ == "complex64" and to not in ("bool", "complex128"):
        with pytest.raises(TypeError, match="real"):
            weft.ones(3, dtype=from_, device=DEVICE).astype(to)
        return
    host = np.array([0, 1, 1, 100]).astype(from_)
    x = weft.asarray(host, device=DEVICE).astype(to)
    assert x.device == DEVICE
    np.testing.assert_array_equal(x.numpy(), host.astype(to))


@pytest.mark.parametrize("scalar", [2, 2.5, True])
def test_scalars_take_the_arrays_dtype(scalar: float) -> None:
    for dtype in ("float32", "int32"):
        host = np.arange(1, 6, dtype=dtype)
        x = weft.asarray(host, device=DEVICE)
        for wanted, found in (
            (host + scalar, x + scalar),
            (scalar - host, scalar - x),
            (host * scalar, x * scalar),
            (host < scalar, x < scalar),
            (np.maximum(host, scalar), weft.maximum(x, scalar)),
        ):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found.numpy(), wanted)


def test_operands_are_cast_broadcast_and_chosen() -> None:
    rng = np.random.default_rng(3)
    a, b, mask = rng.integers(-9, 9, (4, 1, 3)), rng.normal(size=(5, 3)).astype("f4"), rng.random((4, 5, 3)) < 0.5
    x, y, m = (weft.asarray(each, device=DEVICE) for each in (a, b, mask))
    np.testing.assert_array_equal((x + y).numpy(), a + b)
    np.testing.assert_array_equal(
        weft.multiply(x, y, dtype="float32").numpy(), np.multiply(a, b, dtype="f4", casting="same_kind")
    )
    out, wanted = weft.ones((4, 5, 3), dtype="float32", device=DEVICE), np.ones((4, 5, 3), "f4")
    np.subtract(a, b, out=wanted, where=mask, casting="same_kind")
    assert weft.subtract(x, y, out=out, where=m) is out
    np.testing.assert_array_equal(out.numpy(), wanted)
    np.testing.assert_array_equal(weft.add(y.T, 1, out=out[0].T).numpy(), b.T + 1)


def test_overlapping_operands_are_read_first() -> None:
    host = np.arange(1000.0)
    x = weft.asarray(host, device=DEVICE)
    x[1:] += x[:-1]
    host[1:] += host[:-1].copy()
    np.testing.assert_array_equal(x.numpy(), host)
    x[::-1] *= x
    np.testing.assert_array_equal(x.numpy()[::-1], host[::-1] * host)


def test_integer_powers_that_could_be_negative() -> None:
    x = weft.asarray([1, 2, 3], device=DEVICE)
    assert (x**3).tolist() == [1, 8, 27]
    assert (
        x ** weft.asarray([2, 3, 4], dtype="uint8", device=DEVICE).astype("int64").astype("uint64").astype("float64")
    ).dtype == "float64"
    with pytest.raises(ValueError, match="Integers to negative integer powers are not allowed"):
        x**-1
    with pytest.raises(TypeError, match="exponents of an unsigned dtype"):
        x**x


#: Every kernel that weft writes: `sources()` gives their names and texts.
SOURCES = """
import numpy as np
import weft
from weft._cuda import functions, fused, products, totals
from weft._cuda.expressions import expression
from weft._cuda.launch import Reduction
from weft._cuda.sources import Elementwise


def of_ufuncs():
    # Each expression of each op once: dtypes that share it take turns, as the tests above compile it for all of them.
    for at, name in enumerate(weft.ops.list_ops()):
        ufunc, written = weft.ops.get_op(name).ufunc, {}
        for kind in ("bool", "int16", "uint32", "int64", "float16", "float32", "float64", "complex128"):
            if ufunc is None or ufunc.nout != 1:
                continue
            dtypes = (np.dtype(kind),) * ufunc.nin
            taken = [each for each in ufunc.types if each.split("->")[0] == "".join(each.char for each in dtypes)]
            body = expression(ufunc.__name__, dtypes)
            if taken and body is not None:
                result = weft.ops.as_dtype(taken[0][-1])
                alike = written.setdefault(body, [])
                alike.append(Elementwise(f"{name}_{kind}", body, dtypes, result, dtypes, result))
        yield from (alike[at % len(alike)] for alike in written.values())


def of_functions():
    asked = []

    class Loop:
        def push(self, *_):
            pass

    def kernels(name, body, inputs, output, computed, result, *, indexed=False):
        asked.append(Elementwise(f"weft_{name}", body, inputs, output, computed, result, indexed=indexed))
        return Loop()

    functions.kernels = kernels
    for kind in ("bool", "int32", "float16", "float64", "complex64"):
        x, chosen = weft.ones((2, 3), dtype=kind), weft.ones((2, 3), dtype="bool")
        for name, given, attributes in [
            ("where", (chosen, x, x), {}),
            ("clip", (x, x, x), {}),
            ("tril", (x,), {"k": 0}),
            ("nan_to_num", (x,), {"nan": 0.0, "posinf": None, "neginf": None}),
            *(("round", (x,), {"decimals": decimals}) for decimals in (-1, 0, 1)),
            *(("isclose", (x, x), {"rtol": 0.1, "atol": 0.1, "equal_nan": nan}) for nan in (False, True)),
            ("arange", (), {"start": 0, "stop": 6, "step": 1, "dtype": x.dtype}),
            ("linspace", (), {"start": 0, "stop": 1, "num": 6, "dtype": x.dtype, "endpoint": True}),
        ]:
            functions.push(weft.ops.get_op(name).attribute("kernels"), (chosen if name == "isclose" else x,), given, attributes)
    for kind, result in (("float32", "float32"), ("complex128", "float64")):
        for deg in (False, True):
            functions.push(weft.ops.get_op("angle").attribute("kernels"), (weft.ones(3, dtype=result),), (weft.ones(3, dtype=kind),), {"deg": deg})
    return asked


def of_rows():
    half, single, double, byte, number, pair, truth = (np.dtype(each) for each in ("f2", "f4", "f8", "i1", "u8", "c16", "?"))
    for stated in [each for each in weft.ops.attribute_map("kernels").values() if isinstance(each, Reduction)]:
        for given, total, result in [(half, single, half), (single,) * 3, (double,) * 3, (byte, number, number), (truth, number, number)]:
            yield f"{stated.name}_{given}", totals.source(stated, given, total, result, divided=stated.divided and result.kind == "f")
    for dtype in (half, double, byte, number):
        yield f"matmul_{dtype}", products.source(dtype)
    for dtype in (half, double, np.dtype("c8")):
        add = Elementwise("add", expression("add", (dtype,) * 2), (dtype,) * 2, dtype, (dtype,) * 2, dtype)
        steps = ((add, ("slot", 0), (("array", 0),) * 2), (add, ("array", 1), (("slot", 0), ("scalar", 0))))
        yield f"fused_{dtype}", fused.source(steps, (dtype,) * 2)
    steps = (
        (Elementwise("multiply", "a * b", (half,) * 2, half, (half,) * 2, half), ("slot", 0), (("array", 0), ("scalar", 0))),
        (Elementwise("copy", "a", (half,), double, (half,), half), ("slot", 1), (("slot", 0),)),
        (Elementwise("greater", "a > b", (double,) * 2, truth, (double,) * 2, truth), ("array", 1), (("slot", 1), ("array", 2))),
        (Elementwise("add", expression("add", (pair,) * 2), (double, pair), pair, (pair,) * 2, pair), ("array", 3), (("slot", 1), ("array", 3))),
    )
    yield "fused_of_many_dtypes", fused.source(steps, (half, truth, double, pair))


def sources():
    for at, kernel in enumerate([*of_ufuncs(), *of_functions()]):
        yield kernel.name, kernel.source(strided=bool(at // 2 % 2), scalars=at // 4 % 2 << (len(kernel.inputs) - 1))
    yield from of_rows()
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("major", [12, 13])
def test_sources_compile_for_gpus(tmp_path: Any, major: int) -> None:
    source = f"""
        import os
        from weft._cuda import nvrtc

        os.environ["WEFT_NVRTC_LIBRARY"] = next(path for path in nvrtc.libraries() if path.endswith("/libnvrtc.so.{major}"))
        from sources import sources  # beside this script

        known = list(sources())
        for at, capability in enumerate(((8, 0), (9, 0), (12, 0))):
            # One after the other in namespaces, as each compilation takes its time; the other half is the other compiler's.
            texts = [
                f'#line 1 "{{name}}"\\nnamespace of_{{number}} {{{{\\n{{text}}\\n}}}}\\n'.replace('extern "C" ', "")
                for number, (name, text) in enumerate(known[2 * at + {major % 2} :: 6])
            ]
            assert nvrtc.build("sources", "".join(texts), capability, {OPTIONS!r})[:4] == b"\\x7fELF"
        print(len(known))
    """
    (tmp_path / "sources.py").write_text(SOURCES, encoding="utf-8")
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    script = [sys.executable, str(write_script(tmp_path, source))]
    run = subprocess.run(script, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 220


def test_a_compiler_that_refuses_says_why() -> None:
    from weft._cuda.nvrtc import build

    with pytest.raises(weft.errors.KernelCompileError, match=r"(?s)'broken' cannot be compiled for sm_90: .*error"):
        build("broken", 'extern "C" __global__ void broken() { nonsense }', (9, 0))
