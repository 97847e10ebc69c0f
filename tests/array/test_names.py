"""Names as a script for NumPy uses them."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

import weft

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
DTYPES += ["float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_scalar_types(name: str) -> None:
    kind = getattr(weft, name)
    assert kind is getattr(np, name)
    assert kind(1) == 1
    assert (kind == None) is False  # noqa: E711 - a dtype of NumPy's equals None, which stands for float64
    assert weft.zeros(2, dtype=kind).dtype == kind


def test_a_name_that_only_numpy_has() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'polyfit': np.polyfit\(x\) takes NDArrays"):
        weft.polyfit  # noqa: B018
    for name in ("errstate", "set_printoptions", "nditer"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': it is NumPy's alone, numpy.{name}$"):
            getattr(weft, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        weft.nonsense  # noqa: B018


def test_what_to_write_for_a_name_of_numpys() -> None:
    with pytest.raises(AttributeError, match=r"'vectorize': write the function with operators and weft\.where"):
        weft.vectorize  # noqa: B018
    with pytest.raises(AttributeError, match=r"'jit': write weft\.program\(function\)"):
        weft.jit  # noqa: B018


@pytest.mark.parametrize("dtype", ["?", "i4", "f2", "f8", "c16"])
def test_functions_that_scripts_call(dtype: str) -> None:
    a = np.array([[0, 1, 2], [3, 0, 5]]).astype(dtype)
    if a.dtype.kind in "fc":
        a[0, 0], a[1, 1] = np.inf, -np.inf
    if a.dtype.kind == "c":
        a[1, 2] += 1j
    x, mask = weft.asarray(a), a[0] != 0
    for name in ("shape", "ndim", "size", "iscomplexobj", "isrealobj", "isreal", "iscomplex"):
        np.testing.assert_array_equal(getattr(weft, name)(x), getattr(np, name)(a), name)
    for name in ("isposinf", "isneginf"):
        if dtype[0] == "c":
            with pytest.raises(TypeError, match=f"{name}.*complex128"):
                getattr(weft, name)(x)
        else:
            np.testing.assert_array_equal(getattr(weft, name)(x), getattr(np, name)(a), name)
    assert weft.size(x, 1) == np.size(a, 1)
    np.testing.assert_array_equal(weft.extract(x, x), np.extract(a, a))
    for axis in (None, 1, -1):
        np.testing.assert_array_equal(weft.compress(mask, x, axis), np.compress(mask, a, axis))
    np.testing.assert_array_equal(weft.compress(weft.asarray([True]), x, axis=0), np.compress([True], a, axis=0))
    for other in (a, a[:1], a[:, :2], a[0]):
        assert bool(weft.array_equiv(x, other)) == np.array_equiv(a, other)
    if dtype != "?":
        np.testing.assert_array_equal(weft.around(x, 1), np.around(a, 1))
    for shape in ((3,), (2, 4), (3, 2, -1), (0, 0, 1), (-1, 2)):
        np.testing.assert_array_equal(weft.tri(*shape, dtype=dtype), np.tri(*shape, dtype=dtype))


def test_positions_that_scripts_ask_for() -> None:
    for shape in ((2, 3), (4,), (), (0, 2)):
        np.testing.assert_array_equal(weft.indices(shape), np.indices(shape))
        assert weft.indices(shape, "f4").dtype == np.float32
        for ours, theirs in zip(weft.indices(shape, sparse=True), np.indices(shape, sparse=True), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    for ours, theirs in zip(weft.diag_indices(3, 3), np.diag_indices(3, 3), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(weft.errors.ArgumentValueError, match="1-d"):
        weft.compress([[True]], [1])


@pytest.mark.parametrize("name", ["at", "backward", "detach", "grad", "requires_grad_", "zero_grad"])
def test_what_to_write_for_a_method_of_others_arrays(name: str) -> None:
    x = weft.ones(2)
    assert not hasattr(x, name)
    assert name not in dir(x)
    with pytest.raises(AttributeError, match=rf"'NDArray' object has no attribute '{name}': .*[a-z]") as told:
        getattr(x, name)
    assert told.value.obj is x
    with pytest.raises(AttributeError, match=f"type object 'NDArray' has no attribute '{name}'"):
        getattr(weft.NDArray, name)


def test_arrays_are_hashed_by_identity() -> None:
    x, y = weft.ones(2), weft.ones(2)
    assert {x: 1, y: 2}[x] == 1
    assert len({x, y, x}) == 2


def test_arrays_are_gathered() -> None:
    async def main() -> list[Any]:
        x, y = weft.ones(3) + 1, weft.ones(2) * 3
        return [each.tolist() for each in await asyncio.gather(x, y, x)]

    assert asyncio.run(main()) == [[2, 2, 2], [3, 3], [2, 2, 2]]


def test_several_arrays_are_awaited() -> None:
    async def main() -> list[float]:
        x, y = weft.ones(3) + 1, weft.ones(2) * 3
        await weft.wait_async(x, y)
        return [*x.tolist(), *y.tolist()]

    assert asyncio.run(main()) == [2, 2, 2, 3, 3]


def test_several_failures_are_awaited() -> None:
    def fail(text: str) -> weft.NDArray:
        x = weft.zeros(2)

        def raises(_: object) -> None:
            raise ValueError(text)

        weft._core.push_compute(raises, (), (), (x,), name="raises")
        return x

    async def main() -> None:
        await weft.wait_async(fail("one"), weft.ones(2), fail("two"))

    with pytest.raises(ExceptionGroup) as caught:
        asyncio.run(main())
    assert [str(error) for error in caught.value.exceptions] == ["one", "two"]
    with pytest.raises(TypeError, match="what to wait for"):
        asyncio.run(weft.wait_async())


def test_the_older_protocol_describes_the_memory() -> None:
    class Only:
        def __init__(self, x: weft.NDArray) -> None:
            self.kept = x
            self.__array_interface__ = x.__array_interface__

    x = weft.asarray([[1, 2, 3], [4, 5, 6]], dtype="int16") * 2
    found = np.asarray(Only(x))
    assert found.tolist() == [[2, 4, 6], [8, 10, 12]]
    assert not found.flags.writeable
    assert np.asarray(Only(x[:, ::2])).tolist() == [[2, 6], [8, 12]]


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("other", DTYPES)
def test_numpys_scalars_count_as_arrays_do(name: str, other: str) -> None:
    values = np.array([1, 0, 3], name)
    scalar = np.dtype(other).type(2)
    expected = values * scalar
    for found in (weft.asarray(values) * scalar, scalar * weft.asarray(values)):
        assert found.dtype == expected.dtype
        assert np.array_equal(found.numpy(), expected)
