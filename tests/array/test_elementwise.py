"""Every element-wise function against NumPy's, over all dtypes."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import weft
from weft._ops import elementwise, parts, rounding
from weft._ops.ufuncs import MADE
from weft.ops import get_op

A = weft.asarray
DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
STANDARD = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_invert",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "ceil",
    "clip",
    "conj",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_divide",
    "greater",
    "greater_equal",
    "hypot",
    "imag",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "square",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]


def ufuncs(nin: int) -> list[str]:
    names = []
    for name in MADE:
        try:
            op = get_op(name)
        except KeyError:
            continue
        if op.ufunc is not None and op.ufunc.nin == nin and op.name == name:
            names.append(name)
    return names


def samples(dtype: str, size: int = 5) -> np.ndarray:
    values = np.random.default_rng(7).uniform(0.1, 5, size)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * values[::-1]
    return values.astype(dtype)


def expected_of(op: Any, operands: list[np.ndarray]) -> Any:
    with np.errstate(all="ignore"):
        return op.ufunc(*operands)


def check(op: Any, function: Any, operands: list[np.ndarray]) -> None:
    try:
        expected = expected_of(op, operands)
    except TypeError:
        with pytest.raises(TypeError):
            function(*map(A, operands))
        return
    result = function(*map(A, operands))
    results, wanted = (each if isinstance(each, tuple) else (each,) for each in (result, expected))
    for one, other in zip(results, wanted, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("name", STANDARD)
def test_the_standards_functions_are_there_with_its_signatures(name: str) -> None:
    parameters = list(inspect.signature(getattr(weft, name)).parameters.values())
    assert parameters[0].kind is inspect.Parameter.POSITIONAL_ONLY
    if name == "clip":
        assert [parameter.name for parameter in parameters[1:3]] == ["min", "max"]


@pytest.mark.parametrize("name", [*MADE, *parts.__all__, *rounding.__all__])
def test_functions_are_exported_and_documented(name: str) -> None:
    function = next(getattr(module, name) for module in (elementwise, parts, rounding) if hasattr(module, name))
    assert inspect.unwrap(getattr(weft, name)) is function  # which takes its arguments as NumPy's does, too
    assert ">>> weft." in function.__doc__
    assert function.__doc__.index("Parameters") < function.__doc__.index("Returns")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ufuncs(1))
def test_unary(name: str, dtype: str) -> None:
    for _ in range(2):  # the second time by a cached plan
        check(get_op(name), getattr(weft, name), [samples(dtype)])


@pytest.mark.parametrize(
    "dtypes",
    [(one, one) for one in DTYPES] + [("f4", "i8"), ("u8", "i8"), ("i1", "u1"), ("f8", "c8"), ("?", "i4")],
    ids="-".join,
)
@pytest.mark.parametrize("name", ufuncs(2))
def test_binary(name: str, dtypes: tuple[str, str]) -> None:
    for _ in range(2):
        check(get_op(name), getattr(weft, name), [samples(dtypes[0]), samples(dtypes[1])[::-1].copy()])


@pytest.mark.parametrize("layout", ["transposed", "stepped", "broadcast", "scalar", "empty"])
@pytest.mark.parametrize("name", ["add", "less", "hypot", "exp", "sqrt", "isnan"])
def test_layouts(name: str, layout: str) -> None:
    values = samples("f8", 24).reshape(4, 6)
    shown = {
        "transposed": lambda x: x.T,
        "stepped": lambda x: x[::-2, 1::2],
        "broadcast": lambda x: x[:, :1],
        "scalar": lambda x: x[0, 0],
        "empty": lambda x: x[:, :0],
    }[layout]
    x = shown(A(values))
    op = get_op(name)
    operands = [shown(values), shown(values)[..., :1] if layout != "scalar" else shown(values)][: op.ufunc.nin]
    others = [x, x[..., :1] if layout != "scalar" else x][: op.ufunc.nin]
    result = getattr(weft, name)(*others)
    np.testing.assert_array_equal(result.numpy(), op.ufunc(*operands))
    assert result.shape == np.shape(op.ufunc(*operands))


def test_parts() -> None:
    values = np.array([[1 + 2j, 3 - 4j]], "c8")
    x = A(values)
    for name in ("real", "imag"):
        part = getattr(weft, name)(x)
        assert part.dtype == "float32"
        np.testing.assert_array_equal(part.numpy(), getattr(values, name))
        np.testing.assert_array_equal(getattr(x, name).numpy(), getattr(values, name))
    weft.imag(x)[...] = 9
    assert x.tolist() == [[1 + 9j, 3 + 9j]]
    assert weft.imag(A(np.zeros((0, 2), "c8"))).shape == (0, 2)
    y = A([1, 2])
    assert weft.real(y) is y
    assert weft.imag(y).tolist() == [0, 0]
    np.testing.assert_array_equal(weft.angle(A(values)).numpy(), np.angle(values))
    assert weft.angle(A([-1]), deg=True).tolist() == [180]


@pytest.mark.parametrize("dtype", ["f4", "i4", "u1"])
@pytest.mark.parametrize("limits", [(1, 3), (None, 3), (1, None), (None, None), (3, 1), ("array", 3)], ids=str)
def test_clip(dtype: str, limits: tuple[Any, Any]) -> None:
    values = np.array([[0, 1, 2], [3, 4, 5]], dtype)
    low, high = (np.array([0, 1, 3], dtype) if each == "array" else each for each in limits)
    given = [A(each) if isinstance(each, np.ndarray) else each for each in (low, high)]
    result = weft.clip(A(values), *given)
    expected = np.clip(values, low, high)
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result.numpy(), expected)
    out = weft.zeros((2, 3), dtype=dtype)
    assert weft.clip(A(values), *given, out=out) is out
    np.testing.assert_array_equal(out.numpy(), expected)


def test_clip_promotes_keeps_nan_and_checks() -> None:
    assert weft.clip(A([1, 2, 3]), 1.5, 2.5).tolist() == [1.5, 2, 2.5]
    assert weft.clip(A([1, 2, 3]), A([1.5]), 2).dtype == "float64"
    assert np.isnan(weft.clip(A([np.nan]), 0.0, 1.0).item())
    x = A([5.0, 7.0])
    weft.clip(x, 0, 6, out=x)
    assert x.tolist() == [5, 6]
    assert weft.clip(A(np.full(2, 7, "u1")), 0, 300).tolist() == [7, 7]
    with pytest.raises(OverflowError, match="300"):
        weft.clip(A(np.zeros(2, "u1")), 300, 400)
    with pytest.raises(ValueError, match="broadcast"):
        weft.clip(A([1, 2]), A([1, 2, 3]), 5)


@pytest.mark.parametrize("decimals", [0, 2, -1])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c16", "i8", "u1"])
def test_round(dtype: str, decimals: int) -> None:
    values = np.array([0.5, 1.5, 12.345, 77.7]).astype(dtype)
    result = weft.round(A(values), decimals)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), np.round(values, decimals))


def test_tolerances_are_numbers() -> None:
    x = weft.asarray([1.0, 2.0])
    assert weft.isclose(x, x + 1e-3, weft.asarray(1e-2)).tolist() == [True, True]
    with pytest.raises(TypeError, match="tolerances"):
        weft.isclose(x, x, x)


def test_isclose_and_nan_to_num() -> None:
    one, other = np.array([1, np.nan, np.inf, 1.1]), np.array([1 + 1e-9, np.nan, np.inf, 1])
    for equal_nan in (False, True):
        result = weft.isclose(A(one), A(other), equal_nan=equal_nan)
        np.testing.assert_array_equal(result.numpy(), np.isclose(one, other, equal_nan=equal_nan))
    assert weft.isclose(A([1, 2]), 1, atol=1).tolist() == [True, True]
    values = np.array([np.nan, np.inf, -np.inf, 1])
    np.testing.assert_array_equal(
        weft.nan_to_num(A(values), nan=5, posinf=6).numpy(), np.nan_to_num(values, nan=5, posinf=6)
    )
