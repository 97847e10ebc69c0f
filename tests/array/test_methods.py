"""What NDArray has beside its operators: scalars, printing, copies, views, waiting."""

from __future__ import annotations

import asyncio
import copy
import gc
import inspect
import operator
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.ops import like_first, register_op

if TYPE_CHECKING:
    from conftest import Gate, MakeEngine

A = weft.asarray


@register_op("test_methods_fail", infer=like_first)
def fail(_out: np.ndarray, _x: np.ndarray) -> None:
    raise KeyError("on purpose")


def failed() -> weft.NDArray:
    result = fail(A([1, 2]))
    assert isinstance(result, weft.NDArray)
    return result


def test_everything_named_by_numpy_and_the_standard_is_there() -> None:
    standard = ["dtype", "device", "mT", "ndim", "shape", "size", "T", "to_device"]
    dunders = [
        "abs",
        "add",
        "and",
        "array_namespace",
        "bool",
        "complex",
        "dlpack",
        "dlpack_device",
        "eq",
        "float",
        "floordiv",
        "ge",
        "getitem",
        "gt",
        "index",
        "int",
        "invert",
        "le",
        "lshift",
        "lt",
        "matmul",
        "mod",
        "mul",
        "ne",
        "neg",
        "or",
        "pos",
        "pow",
        "rshift",
        "setitem",
        "sub",
        "truediv",
        "xor",
        "iadd",
        "radd",
        "imatmul",
        "rmatmul",
    ]
    methods = [
        "all",
        "any",
        "argmax",
        "argmin",
        "argsort",
        "astype",
        "clip",
        "conj",
        "conjugate",
        "copy",
        "cumprod",
        "cumsum",
        "diagonal",
        "dot",
        "fill",
        "flatten",
        "imag",
        "item",
        "itemsize",
        "max",
        "mean",
        "min",
        "nbytes",
        "nonzero",
        "prod",
        "ravel",
        "real",
        "repeat",
        "reshape",
        "round",
        "searchsorted",
        "sort",
        "squeeze",
        "std",
        "strides",
        "sum",
        "swapaxes",
        "take",
        "tobytes",
        "tolist",
        "trace",
        "transpose",
        "var",
        "numpy",
        "copyto",
        "copyfrom",
    ]
    for name in [*standard, *(f"__{each}__" for each in dunders), *methods]:
        assert hasattr(weft.NDArray, name), name


@pytest.mark.parametrize("value", [0, 1, -2.5, True, 1 + 2j, float("nan")])
def test_scalars(value: complex) -> None:
    x, expected = A(value), np.array(value)
    assert bool(x) is bool(value)
    assert complex(x) == complex(value) or value != value  # noqa: PLR0124 - NaN
    assert type(x.item()) is type(value)
    for convert in (int, float, operator.index):
        try:
            wanted = convert(expected)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                convert(x)
            continue
        assert convert(x) == wanted or value != value  # noqa: PLR0124 - NaN


def test_arrays_are_no_scalars() -> None:
    for shape in [(2,), (0,), (1, 2)]:
        with pytest.raises(ValueError, match="ambiguous"):
            bool(weft.zeros(shape))
    assert bool(A([[3]])) is True
    for convert in (int, complex, operator.index):
        with pytest.raises(TypeError):
            convert(A([1]))
    assert float(A([1])) == 1  # a loss of one element
    with pytest.raises(TypeError):
        operator.index(A(1.0))
    assert [10, 20][A(1)] == 20
    with pytest.raises(ValueError, match="size 1"):
        A([1, 2]).item()
    assert A([1, 2]).item(1) == 2
    assert A([[1, 2]]).item((0, 1)) == 2
    with pytest.raises(IndexError):
        A([1, 2]).item(5)


def test_sequences() -> None:
    x = A([[1, 2], [3, 4]])
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]]
    first, _ = x
    first += 10
    assert x.tolist() == [[11, 12], [3, 4]]
    assert 12 in x
    assert 5 not in x
    for use in (len, iter):
        with pytest.raises(TypeError):
            use(A(1))
    assert {x: 1}[x] == 1


@pytest.mark.parametrize(
    "values",
    [
        np.array([1.0, 2.5]),
        np.array([], "f4"),
        np.array(3),
        np.arange(6, dtype="i2").reshape(2, 3),
        np.array([True]),
        np.array([1 + 2j]),
        np.zeros((2, 0)),
        np.arange(2000.0),
        np.arange(24.0).reshape(2, 3, 4) / 7,
    ],
    ids=lambda values: f"{values.dtype}{values.shape}",
)
def test_printing(values: np.ndarray) -> None:
    x = A(values)
    assert str(x) == str(values)
    wanted = repr(values)
    assert "".join(repr(x).removeprefix("NDArray").split()) == "".join(wanted.removeprefix("array").split())
    lines = repr(x).splitlines()
    assert all(line.startswith(" " * len("NDArray(")) for line in lines[1:] if line)
    with np.printoptions(precision=2):
        assert str(x) == str(values)
    if not values.ndim:
        assert f"{x:>5}" == f"{values:>5}"


def test_values_for_python() -> None:
    x = A([[1, 2], [3, 4]])
    own = x.numpy()
    own += 1
    assert own.flags.writeable
    assert x.tolist() == [[1, 2], [3, 4]]
    assert x.T.tobytes() == np.array([[1, 3], [2, 4]]).tobytes()


def test_copyto() -> None:
    x = A([1.0, 2.0])
    target = weft.zeros((2, 2), dtype="f4")
    assert x.copyto(target) is target
    assert target.tolist() == [[1, 2], [1, 2]]
    host = np.zeros(2)
    assert x.copyto(host) is host
    assert host.tolist() == [1, 2]
    for dst, error in [
        (weft.zeros(2, dtype=int), TypeError),
        (np.zeros(2, int), TypeError),
        ([0, 0], TypeError),
        (weft.zeros(3), ValueError),
        (np.zeros(3), ValueError),
    ]:
        with pytest.raises(error):
            x.copyto(dst)


def test_copyfrom_and_fill() -> None:
    x = weft.zeros(2)
    source = np.array([1, 2])
    assert x.copyfrom(source) is x
    source[:] = 9
    assert x.tolist() == [1, 2]
    x.copyfrom(A([3]))
    assert x.tolist() == [3, 3]
    x.fill(7)
    assert x.tolist() == [7, 7]
    x.fill(np.float32(1.5))
    assert x.tolist() == [1.5, 1.5]
    with pytest.raises(ValueError, match="broadcast"):
        x.copyfrom([1, 2, 3])


def test_copies() -> None:
    x = A([1, 2])
    for made in (x.copy(), copy.copy(x), copy.deepcopy(x), x.flatten(), x.astype(x.dtype)):
        operator.iadd(made, 1)
        assert not made._shares_buffer(x)
    assert x.tolist() == [1, 2]


def test_views() -> None:
    values = np.arange(24).reshape(2, 3, 4)
    x = A(values)
    views: list[tuple[weft.NDArray, Any]] = [
        (x.T, values.T),
        (x.mT, values.swapaxes(-1, -2)),
        (x.reshape(4, -1), values.reshape(4, -1)),
        (x.reshape((6, 4)), values.reshape(6, 4)),
        (x.transpose(), values.T),
        (x.transpose(1, 0, 2), values.transpose(1, 0, 2)),
        (x.transpose((1, 0, 2)), values.transpose(1, 0, 2)),
        (x.swapaxes(0, 1), values.swapaxes(0, 1)),
        (x.ravel(), values.ravel()),
        (x[:1].squeeze(), values[:1].squeeze()),
    ]
    x += 1
    for one, other in views:
        assert one._shares_buffer(x)
        np.testing.assert_array_equal(one.numpy(), other + 1)
    with pytest.raises(ValueError, match="ndim"):
        _ = A([1]).mT
    with pytest.raises(ValueError):
        x.reshape(5, 5)


REDUCTIONS = ["sum", "prod", "mean", "std", "var", "min", "max", "any", "all", "argmin", "argmax", "cumsum", "cumprod"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_methods_are_the_functions(name: str) -> None:
    values = np.array([[1.0, 2, 3], [4, 5, 0]])
    for axis in (None, 0, 1):
        result = getattr(A(values), name)(axis=axis)
        expected = getattr(values, name)(axis=axis)
        np.testing.assert_allclose(result.numpy(), expected)
        np.testing.assert_allclose(getattr(A(values), name)(axis).numpy(), expected)


def test_other_methods() -> None:
    x = A([3, 1, 2])
    assert x.clip(2, 3).tolist() == [3, 2, 2]
    assert A([1.4]).round().tolist() == [1]
    assert A([1j]).conj().tolist() == [-1j]
    assert x.argsort().tolist() == [1, 2, 0]
    assert x.repeat(2).tolist() == [3, 3, 1, 1, 2, 2]
    assert x.take([0, -1]).tolist() == [3, 2]
    assert x.dot(x).item() == 14
    x.sort()
    assert x.tolist() == [1, 2, 3]
    grid = A([[3, 1], [0, 2]])
    grid.sort(axis=0)
    assert grid.tolist() == [[0, 1], [3, 2]]
    with pytest.raises(np.exceptions.AxisError):
        grid.sort(axis=2)


def test_wait_all() -> None:
    results = [A([each]) + 1 for each in range(20)]
    weft.wait_all()
    assert all(result.is_ready() for result in results)
    weft.wait_all(timeout=0)


def test_blocking_points_raise_the_failure() -> None:
    for use in (np.asarray, repr, str, weft.NDArray.tolist, weft.NDArray.numpy, lambda x: bool(x[0]), lambda x: 1 in x):
        with pytest.raises(KeyError, match="on purpose"):
            use(failed())
    x = failed()
    with pytest.raises(KeyError):
        x.wait_to_read()
    x[:] = 5
    assert x.tolist() == [5, 5]


def test_await() -> None:
    async def main() -> list[Any]:
        x = A([1, 2]) * 2
        assert await x is x
        results = await asyncio.gather(*(wait(A([each]) + 1) for each in range(5)))
        return [x.tolist(), *(each.item() for each in results)]

    async def wait(x: weft.NDArray) -> weft.NDArray:
        return await x

    assert asyncio.run(main()) == [[2, 4], 1, 2, 3, 4, 5]


def test_await_of_what_is_pending_and_fails(make_engine: MakeEngine, gates: Any) -> None:
    engine = make_engine(1)

    async def main(gate: Gate, *, fails: bool) -> Any:
        x = weft.ones(100_000, engine=engine) + 1  # more than is computed at the call
        if fails:
            x = fail(x)
        asyncio.get_running_loop().call_later(0.05, gate.open)
        async with asyncio.timeout(10):
            return (await x).tolist()

    for fails in (False, True):
        gate = gates()
        gate.hold(engine)
        if fails:
            with pytest.raises(KeyError, match="on purpose"):
                asyncio.run(main(gate, fails=True))
        else:
            assert asyncio.run(main(gate, fails=False)) == [2] * 100_000


def test_await_of_what_fails_without_python(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    gate.hold(engine)

    async def main() -> None:
        x = weft.empty(1 << 50, dtype="uint8", engine=engine) + 1  # more than there is
        asyncio.get_running_loop().call_later(0.05, gate.open)
        async with asyncio.timeout(10):
            await x

    with pytest.raises(MemoryError):
        asyncio.run(main())


def test_cancelling_an_await_cancels_no_op(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    gate.hold(engine)
    x = weft.ones(100_000, engine=engine)  # more than is computed at the call

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await x

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    gate.open()
    assert x.tolist() == [1] * 100_000


def test_arrays_can_be_collected() -> None:
    x = weft.zeros(3, device="cpu:1")
    reference = weakref.ref(x)
    x.wait_to_read()
    del x
    gc.collect()
    assert reference() is None


def test_methods_are_documented() -> None:
    for name, member in vars(weft.NDArray).items():
        if not name.startswith("_") and callable(member):
            assert inspect.getdoc(member), name


def test_methods_that_are_functions_are_all_there() -> None:
    from weft._handle.methods import _FUNCTIONS

    for name in _FUNCTIONS:
        assert getattr(weft.NDArray, name) is getattr(weft, name)
