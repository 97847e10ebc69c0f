"""Dtypes, promotion, and casts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import weft

NAMES: list[str] = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]
PAIRS = list(itertools.product(NAMES, repeat=2))


@pytest.mark.parametrize("name", NAMES)
def test_constants_are_numpys_dtypes(name: str) -> None:
    dtype = getattr(weft, name)
    assert dtype == np.dtype(name)
    assert weft.zeros(1, dtype=dtype).dtype == dtype


@pytest.mark.parametrize("name", ["longdouble", "U3", "O", "M8[s]", ">f8", "V2"])
def test_other_dtypes_are_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match="weft has no arrays of dtype"):
        weft.zeros(1, dtype=name)


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_promotion_is_numpys(names: tuple[str, str]) -> None:
    one, other = (weft.zeros(2, dtype=name) for name in names)
    expected = np.result_type(*names)
    assert weft.result_type(one, other) == weft.result_type(*names) == weft.promote_types(*names) == expected
    assert (one * other).dtype == np.multiply(np.zeros(2, names[0]), np.zeros(2, names[1])).dtype


def test_scalars_give_way() -> None:
    assert weft.result_type(weft.float32, 1.5) == weft.float32
    assert weft.result_type(weft.asarray([1], dtype=weft.int8), 1) == weft.int8
    assert weft.result_type(weft.int8, 1.5) == weft.float64
    with pytest.raises(ValueError):
        weft.result_type()


def test_can_cast() -> None:
    assert weft.can_cast(weft.int32, weft.float64)
    assert not weft.can_cast(weft.zeros(1), weft.float32)
    assert weft.can_cast(weft.float64, weft.float32, "same_kind")


def test_limits() -> None:
    for name in ("float32", "float64"):
        found, expected = weft.finfo(name), np.finfo(name)
        assert (found.bits, found.eps, found.max, found.min) == (
            expected.bits,
            expected.eps,
            expected.max,
            expected.min,
        )
        assert found.smallest_normal == expected.smallest_normal
        assert found.dtype == np.dtype(name)
        assert all(type(value) is float for value in (found.eps, found.max, found.min, found.smallest_normal))
    assert weft.finfo(weft.complex64).dtype == weft.float32
    assert weft.iinfo(weft.zeros(1, dtype="u1")).max == 255
    assert (weft.iinfo("i8").bits, weft.iinfo("i8").min) == (64, -(2**63))
    with pytest.raises(ValueError, match="int64"):
        weft.finfo(weft.int64)
    with pytest.raises(ValueError, match="float64"):
        weft.iinfo(weft.float64)


def test_isdtype() -> None:
    assert weft.isdtype(weft.int8, "signed integer")
    assert weft.isdtype(weft.int8, ("real floating", weft.int8))
    assert not weft.isdtype(weft.bool, "numeric")
    with pytest.raises(ValueError):
        weft.isdtype(weft.int8, "no such kind")


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_astype(names: tuple[str, str]) -> None:
    values = np.array([0, 1, 2, 100], names[0])
    x = weft.asarray(values)
    source, target = np.dtype(names[0]), np.dtype(names[1])
    if source.kind == "c" and target.kind not in "cb":
        with pytest.raises(TypeError, match=names[1]):
            weft.astype(x, target)
        return
    result = weft.astype(x, target)
    assert result.dtype == target
    np.testing.assert_array_equal(result.numpy(), values.astype(target))


def test_astype_copies_unless_told() -> None:
    x = weft.zeros(2)
    assert weft.astype(x, x.dtype, copy=False) is x
    copied = weft.astype(x, x.dtype)
    copied += 1
    assert x.tolist() == [0, 0]
    assert x.astype(weft.float32, copy=False).dtype == weft.float32


def test_floating_point_errors_of_casts_are_silent() -> None:
    assert weft.asarray([np.nan, 1e300]).astype(weft.float32).tolist()[1] == np.inf
    weft.asarray([np.nan]).astype(weft.int8).wait_to_read()
