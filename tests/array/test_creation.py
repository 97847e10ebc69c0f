"""Arrays from values, shapes, ranges and other libraries."""

from __future__ import annotations

import array
import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import weft

DTYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


def same(x: weft.NDArray, expected: np.ndarray) -> None:
    assert x.dtype == expected.dtype
    assert x.shape == expected.shape
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize(
    "value",
    [
        1,
        1.5,
        2j,
        True,
        [],
        [[1, 2], [3, 4]],
        [1, 2.5],
        [1, 2j],
        ((1,), (2,)),
        range(3),
        np.arange(6).reshape(2, 3).T,
        np.arange(6)[::-2],
        np.float32(3),
        np.array(5),
        np.zeros((0, 3)),
        array.array("i", [1, 2]),
        bytearray(b"ab"),
        memoryview(b"ab"),
        np.arange(3).astype(">i4"),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", repr(value)),
)
def test_asarray_takes_what_numpy_takes(value: Any) -> None:
    expected = np.asarray(value)
    same(weft.asarray(value), expected.astype(expected.dtype.newbyteorder("=")))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1, [0, 1, 2], np.array([0.0, 1.7])], ids=str)
def test_asarray_casts(value: Any, dtype: str) -> None:
    same(weft.asarray(value, dtype=dtype), np.asarray(value).astype(dtype))


def test_asarray_copies_unless_told() -> None:
    source = np.zeros(3)
    copied, shared = weft.asarray(source), weft.asarray(source, copy=False)
    source[:] = 5
    assert copied.tolist() == [0, 0, 0]
    assert shared.tolist() == [5, 5, 5]
    shared += 1
    shared.wait_to_read()
    assert source.tolist() == [6, 6, 6]
    x = weft.zeros(2)
    assert weft.asarray(x) is x
    assert weft.asarray(x, copy=False) is x
    assert weft.asarray(x, copy=True) is not x
    assert weft.array(x) is not x
    assert weft.asarray(x, dtype="f4").dtype == "float32"
    for value in (1, [1], x):
        with pytest.raises(ValueError, match="copy"):
            weft.asarray(value, dtype="f4", copy=False)
    with pytest.raises(ValueError, match="copy"):
        weft.asarray(np.zeros(2), dtype="f4", copy=False)


def test_nested_arrays() -> None:
    x = weft.asarray([1, 2])
    assert weft.asarray([x, x + 1]).tolist() == [[1, 2], [2, 3]]
    assert weft.asarray([x[0], 5]).tolist() == [1, 5]


def test_bad_values() -> None:
    for value in ("text", ["a"], np.array(None), np.zeros(1, "M8[s]")):
        with pytest.raises(TypeError, match="no arrays of dtype"):
            weft.asarray(value)
    with pytest.raises(TypeError, match="no arrays of dtype"):
        weft.asarray(["1"], dtype="f8")
    with pytest.raises(OverflowError):
        weft.asarray([300], dtype="u1")
    with pytest.raises(OverflowError):
        weft.asarray(2**70, dtype="i8")
    with pytest.raises(TypeError, match="complex"):
        weft.asarray([1j], dtype="f8")
    with pytest.raises(ValueError):
        weft.asarray([[1], [1, 2]])
    with pytest.raises(ValueError, match="gpu"):
        weft.asarray(1, device="gpu:0")


@pytest.mark.parametrize("dtype", [None, *DTYPES])
@pytest.mark.parametrize("shape", [(), 3, (2, 3), (0, 2), [2]], ids=str)
def test_filled(shape: Any, dtype: str | None) -> None:
    for name in ("zeros", "ones"):
        same(getattr(weft, name)(shape, dtype=dtype), getattr(np, name)(shape, dtype=dtype))
        same(getattr(weft, name)(shape, dtype), getattr(np, name)(shape, dtype))
    same(weft.full(shape, 3, dtype=dtype), np.full(shape, 3, dtype=dtype))
    found = weft.empty(shape, dtype=dtype)
    assert (found.shape, found.dtype) == (np.empty(shape).shape, np.dtype(dtype))


@pytest.mark.parametrize("value", [True, 3, 2.5, 1j, float("nan"), -0.0])
def test_full_takes_the_values_dtype(value: complex) -> None:
    result = weft.full(2, value)
    same(result, np.full(2, value))
    assert result.numpy().tobytes() == np.full(2, value).tobytes()


def test_full_of_arrays_and_bad_values() -> None:
    assert weft.full((2, 2), weft.asarray([1, 2])).tolist() == [[1, 2], [1, 2]]
    assert weft.full(2, np.float32(1.5)).dtype == "float32"
    assert weft.full(2, 1.7, dtype=int).tolist() == [1, 1]
    for value, error in [(300, OverflowError), (1j, TypeError), (float("nan"), ValueError)]:
        with pytest.raises(error):
            weft.full(2, value, dtype="u1")
    with pytest.raises(ValueError, match="negative"):
        weft.zeros((2, -1))
    with pytest.raises(ValueError, match="broadcast"):
        weft.full(3, weft.asarray([1, 2]))
    with pytest.raises(TypeError):
        weft.zeros("ab")
    for shape in (2**62, (2**40, 2**40), 2**70):
        with pytest.raises(ValueError, match="too big"):
            weft.zeros(shape)


def test_like() -> None:
    x = weft.asarray(np.ones((2, 3), "f4"))
    for name, expected in [("zeros_like", 0), ("ones_like", 1)]:
        same(getattr(weft, name)(x), np.full((2, 3), expected, "f4"))
        same(getattr(weft, name)(x, dtype="i2"), np.full((2, 3), expected, "i2"))
    same(weft.full_like(x, 7), np.full((2, 3), 7, "f4"))
    assert weft.empty_like(x, dtype=bool).dtype == "bool"
    with weft.Engine(workers=1) as engine:
        assert weft.zeros_like(weft.zeros(1, engine=engine)).engine is engine


RANGES: list[tuple[Any, ...]] = [
    (5,),
    (0,),
    (-3,),
    (2, 9),
    (2, 9, 3),
    (9, 2, -2),
    (9, 2),
    (0, 1, 0.1),
    (1.5,),
    (0, 10**16, 10**15),
    (1, 1.3, 0.1),
    (5, 0, -0.5),
    (0, 5e-324, 1e300),
]


@pytest.mark.parametrize("ends", RANGES, ids=str)
@pytest.mark.parametrize("dtype", [None, "f4", "i8", "c8"])
def test_arange(ends: tuple[Any, ...], dtype: str | None) -> None:
    try:
        expected = np.arange(*ends, dtype=dtype)
    except ValueError:
        with pytest.raises(ValueError):
            weft.arange(*ends, dtype=dtype).wait_to_read()
        return
    same(weft.arange(*ends, dtype=dtype), expected)


def test_arange_checks() -> None:
    assert weft.arange(np.int64(3), weft.asarray(5)).tolist() == [3, 4]
    assert weft.arange(2, dtype=bool).tolist() == [False, True]
    for zero in (0, 0.0):
        with pytest.raises(ZeroDivisionError, match="step"):
            weft.arange(1, 2, zero)
    for end in (10**20, 1e30, math.inf, -math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^arange: from 0 to .* no array has so many"):
            weft.arange(end)
    for value in ("a", None, 1j):
        with pytest.raises(TypeError):
            weft.arange(value)
    with pytest.raises(TypeError, match="length 2"):
        weft.arange(3, dtype=bool)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "of None: write weft.nan"),
        ({1, 2}, "of the class set: write list(x)"),
        ({1: 2}, "of the class dict: write list(x.values())"),
        ((i for i in range(3)), "of the class generator: write list(x)"),
        (Fraction(1, 2), "of the class Fraction: write float(x)"),
        (object(), "of the class object: write its numbers"),
        ([1.0, None], "of None: write weft.nan"),
        ([[1, Fraction(1, 2)]], "of the class Fraction: write float(x)"),
        ([1.0, 2**64], "of an integer of more than 64 bits: write float(x)"),
    ],
    ids=lambda x: type(x).__name__,
)
@pytest.mark.parametrize("make", [weft.asarray, weft.sum, lambda x: weft.full(2, x)])
def test_what_is_no_array_is_told_with_what_to_write(make: Any, value: object, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)):
        make(value)


@pytest.mark.parametrize(
    "use",
    [
        weft.asarray,
        weft.sum,
        lambda x: weft.ones(3) + x,
        lambda x: np.add(weft.ones(3), x),
        lambda x: np.concatenate([weft.ones(3), x]),
        lambda x: weft.ones(3).copyfrom(x),
        lambda x: weft.ones(3) * x[1],
        lambda x: weft.sum(weft.ones(3), where=x > 0),
    ],
)
def test_masked_elements_are_refused(use: Any) -> None:
    x = np.ma.array([1.0, 2.0, 3.0], mask=[False, True, False])
    with pytest.raises(TypeError, match=r"masked elements: write x\.filled\(weft\.nan\)"):
        use(x)
    assert weft.sum(x.compressed()).item() == 4.0
    assert weft.sum(np.ma.array([1.0, 2.0])).item() == 3.0  # none is masked


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", [None, "f4", "i8"])
@pytest.mark.parametrize("arguments", [(0, 1, 5), (1, -1, 4), (0, 10, 1), (0, 1, 0), (3, 3, 3)], ids=str)
def test_linspace(arguments: tuple[int, int, int], dtype: str | None, endpoint: bool) -> None:
    same(
        weft.linspace(*arguments, dtype=dtype, endpoint=endpoint),
        np.linspace(*arguments, dtype=dtype, endpoint=endpoint),
    )


def test_linspace_checks() -> None:
    assert weft.linspace(0, 1j, 2).dtype == "complex128"
    assert weft.linspace(0, 1).shape == (50,)
    with pytest.raises(ValueError, match="-1"):
        weft.linspace(0, 1, -1)
    with pytest.raises(TypeError):
        weft.linspace(0, 1, 2.5)


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 5])
@pytest.mark.parametrize("shape", [(3, None), (2, 4), (4, 2), (0, 3)], ids=str)
def test_eye(shape: tuple[int, int | None], k: int) -> None:
    same(weft.eye(*shape, k=k), np.eye(*shape, k=k))
    same(weft.eye(*shape, k=k, dtype="i2"), np.eye(*shape, k=k, dtype="i2"))


def test_identity_and_negative_eye() -> None:
    same(weft.identity(3), np.identity(3))
    with pytest.raises(ValueError, match="negative"):
        weft.eye(-1)


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(count: int, indexing: Any) -> None:
    values = [np.arange(2), np.arange(3.0), np.array(7)][:count]
    results = weft.meshgrid(*map(weft.asarray, values), indexing=indexing)
    assert type(results) is list
    for one, other in zip(results, np.meshgrid(*values, indexing=indexing), strict=True):
        same(one, other)


def test_meshgrid_checks() -> None:
    with pytest.raises(ValueError, match="indexing"):
        weft.meshgrid(weft.zeros(2), indexing="yx")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"\(2, 2\)"):
        weft.meshgrid(weft.zeros((2, 2)))


@pytest.mark.parametrize("k", [-1, 0, 2])
@pytest.mark.parametrize("name", ["tril", "triu"])
def test_triangles(name: str, k: int) -> None:
    values = np.arange(24).reshape(2, 3, 4)
    same(getattr(weft, name)(weft.asarray(values), k=k), getattr(np, name)(values, k))
    with pytest.raises(ValueError, match=r"\(3,\)"):
        getattr(weft, name)(weft.zeros(3))


def test_from_dlpack() -> None:
    source = np.arange(3.0)
    shared, copied = weft.from_dlpack(source), weft.from_dlpack(source, copy=True)
    source[0] = 9
    assert shared.tolist() == [9, 1, 2]
    assert copied.tolist() == [0, 1, 2]
    x = weft.zeros(2)
    weft.from_dlpack(x)[0] = 1
    assert x.tolist() == [1, 0]
    source.flags.writeable = False
    assert weft.from_dlpack(source).readonly
    assert weft.from_dlpack(np.ones(1, "f2")).dtype == weft.float16


def test_devices() -> None:
    one = weft.cpu(1)
    x = weft.zeros(2, device=one)
    assert x.device == one
    assert weft.zeros(2).device == weft.cpu(0)
    assert weft.zeros_like(x, device=x.device).device == one
    moved = weft.ones(2).to_device("cpu:1")
    assert moved.device == one
    assert moved.to_device(one) is moved
    assert moved.to_device(weft.cpu(0)).device == weft.cpu(0)
    assert moved.tolist() == [1, 1]
    assert weft.asarray(moved, device="cpu:0").device == weft.cpu(0)
    for device in ("cpu:x", "gpu"):
        with pytest.raises(ValueError):
            moved.to_device(device)
    with pytest.raises(TypeError):
        moved.to_device(3)  # type: ignore[arg-type]
