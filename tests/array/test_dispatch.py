"""From a call to a push: operands, scalars, results given, masks, operators, overlap, errors at the call."""

from __future__ import annotations

import enum
import operator
from typing import Any

import numpy as np
import pytest

import weft
from weft._call.blocking import eager
from weft._call.dispatch import call
from weft._call.operands import as_array, engine_of
from weft._call.views import view

A = weft.asarray


def test_as_array() -> None:
    x = A([1])
    assert as_array(x) is x
    for given, dtype in [
        (1, "int64"),
        (1.5, "float64"),
        (1j, "complex128"),
        (True, "bool"),
        (np.float32(1), "float32"),
    ]:
        assert as_array(given).dtype == dtype
    assert as_array([[1, 2], [3, 4]]).shape == (2, 2)
    source = np.ones(2)
    taken = as_array(source)
    source[:] = 7
    assert taken.tolist() == [1, 1]
    for bad in ("text", None, object(), ["a"], np.datetime64("2020-01-01")):
        with pytest.raises(TypeError, match=r"no arrays of dtype|no array can be made of"):
            as_array(bad)
    with pytest.raises(ValueError):
        as_array([[1, 2], [3]])


def test_engine_of() -> None:
    with weft.Engine(workers=1) as engine:
        x = weft.zeros(1, engine=engine)
        assert engine_of(1, x) is engine
        assert (x + 1).engine is engine
        assert (x + np.ones(1)).engine is engine
        with pytest.raises(weft.errors.WrongEngineError):
            x + A([1.0])
        with pytest.raises(weft.errors.WrongEngineError):
            weft.hypot(x, A([1.0]))
    assert engine_of() is weft.get_engine()


def test_eager_returns_independent_arrays() -> None:
    x = A([3, 1, 3])
    same = eager("same", lambda array: array, x)
    same += 1
    assert x.tolist() == [3, 1, 3]
    values, counts = eager("unique", np.unique, x, return_counts=True)
    assert (values.tolist(), counts.tolist()) == ([1, 3], [1, 2])
    result = eager("unique_counts", np.unique_counts, x)
    assert type(result).__name__ == "UniqueCountsResult"
    assert eager("sum", np.sum, x).item() == 7


def test_view() -> None:
    x = A([1, 2, 3])
    odd = view(x, (2,), (16,))
    x += 10
    assert odd.tolist() == [11, 13]
    with pytest.raises(IndexError):
        view(x, (3,), (16,))


SCALARS: list[tuple[Any, ...]] = [
    ("u1", 3),
    ("u1", 1.5),
    ("i8", 1.5),
    ("i8", True),
    ("?", 3),
    ("?", True),
    ("f4", 3),
    ("f4", 1e300),
    ("f4", 2j),
    ("c8", 1.5),
    ("i4", 2j),
]


@pytest.mark.parametrize(("dtype", "scalar"), SCALARS, ids=str)
@pytest.mark.parametrize("name", ["add", "multiply", "divide", "equal", "less_equal"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_scalars_promote_as_in_numpy(name: str, dtype: str, scalar: Any) -> None:
    values = np.array([0, 1, 3], dtype)
    for _ in range(2):  # the second time by a cached plan
        for flip in (False, True):
            operands = (scalar, values) if flip else (values, scalar)
            expected = getattr(np, name)(*operands)
            given = [A(each) if isinstance(each, np.ndarray) else each for each in operands]
            result = getattr(weft, name)(*given)
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize(("dtype", "scalar"), [("u1", 300), ("u1", -1), ("i1", 128), ("i8", 2**63), ("u8", -1)])
def test_scalars_out_of_range_are_refused_and_compared(dtype: str, scalar: int) -> None:
    x = A(np.array([0, 1], dtype))
    for _ in range(2):
        for compute in (operator.add, operator.iadd, weft.maximum):
            with pytest.raises(OverflowError, match=str(scalar)):
                compute(x, scalar)
        assert (x < scalar).tolist() == [scalar > 0] * 2
        assert (scalar == x).tolist() == [False] * 2
    assert x.version == 0
    assert (A([1]) < 2.5).tolist() == [True]


def test_subclasses_of_numbers_and_numpys_scalars() -> None:
    class Level(enum.IntEnum):
        HIGH = 3

    x = A(np.array([1], "f4"))
    assert (x + Level.HIGH).dtype == "float32"
    assert (x + np.float64(3)).dtype == "float64"
    assert (x + np.int8(3)).dtype == "float32"
    assert weft.add(1, 2).item() == 3
    assert weft.add(1, 2.5).dtype == "float64"


OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    divmod,
]
BITS = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]


@pytest.mark.parametrize("compute", [*OPERATORS, *BITS], ids=lambda compute: compute.__name__)
@pytest.mark.parametrize("dtypes", [("i8", "i8"), ("f4", "f4"), ("f8", "i4"), ("u1", "i1"), ("i2", "?")], ids="-".join)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_are_numpys(compute: Any, dtypes: tuple[str, str]) -> None:
    left, right = np.array([[5], [2]], dtypes[0]), np.array([1, 2, 3], dtypes[1])
    for _ in range(2):
        for pair in ((left, right), (left, 2), (2, left), (right, 3)):
            given = [A(each) if isinstance(each, np.ndarray) else each for each in pair]
            try:
                expected = compute(*pair)
            except TypeError:
                with pytest.raises(TypeError):
                    compute(*given)
                continue
            result = compute(*given)
            for one, other in zip(
                *((each if isinstance(each, tuple) else (each,)) for each in (result, expected)), strict=True
            ):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize(
    "compute", [operator.neg, operator.pos, abs, operator.invert], ids=lambda compute: compute.__name__
)
@pytest.mark.parametrize("dtype", ["i8", "u1", "f4", "c16", "?"])
def test_unary_operators_are_numpys(compute: Any, dtype: str) -> None:
    values = np.array([1, 0, 3], dtype)
    for _ in range(2):
        try:
            expected = compute(values)
        except TypeError:
            with pytest.raises(TypeError):
                compute(A(values))
            continue
        result = compute(A(values))
        assert result.dtype == expected.dtype
        np.testing.assert_array_equal(result.numpy(), expected)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5, 2.0, -1.0, 1j])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "i4", "u1"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_powers_are_numpys_to_the_last_bit(dtype: str, exponent: complex) -> None:
    values = np.array([0.1, 1.7, 3.3, 100.9]).astype(dtype)
    try:
        expected = values**exponent
    except (ValueError, OverflowError) as error:
        with pytest.raises(type(error), match=str(error)[:20]):
            (A(values) ** exponent).wait_to_read()
        return
    result = A(values) ** exponent
    assert result.dtype == expected.dtype
    assert result.numpy().tobytes() == expected.tobytes()


def test_other_operands() -> None:
    x = A([1, 2])
    assert operator.add(x, [3, 4]).tolist() == [4, 6]
    assert operator.add([3, 4], x).tolist() == [4, 6]
    assert (x + np.array([3.5, 4])).tolist() == [4.5, 6]
    for other in ("text", None, object(), {}):
        with pytest.raises(TypeError):
            x + other
        with pytest.raises(TypeError):
            operator.lt(other, x)
        assert (x == other) is False

    for other in ("text", None, object()):
        with pytest.raises(TypeError, match="unsupported operand type"):
            x += other

    class Greedy:
        def __radd__(self, other: object) -> str:
            return "mine"

    assert x + Greedy() == "mine"


def test_an_in_place_operator_leaves_what_it_does_not_take_to_the_operand() -> None:
    x = given = A([1, 2])

    class Reflected:
        def __radd__(self, other: object) -> tuple[str, object]:
            return "added", other

        def __rmatmul__(self, other: object) -> tuple[str, object]:
            return "multiplied", other

        def __rpow__(self, other: object) -> tuple[str, object]:
            return "raised", other

    x += Reflected()  # as for any object, the name means something else from here on
    assert x == ("added", given)
    x = given
    x @= Reflected()
    assert x == ("multiplied", given)
    x = given
    x **= Reflected()
    assert x == ("raised", given)
    x = given
    with pytest.raises(TypeError, match="unsupported operand type"):
        x -= Reflected()
    x += [1, 1]
    x += np.int64(1)
    x += True
    assert x is given
    np.testing.assert_array_equal(x.numpy(), [4, 5])


def test_in_place_is_the_same_object_and_casts_by_same_kind() -> None:
    x = given = A(np.array([1, 2], "f4"))
    x += A([1, 2])
    x *= 2
    x -= np.array([1, 1])
    x /= 3.0
    x **= 2
    assert x is given
    assert x.dtype == "float32"
    np.testing.assert_allclose(x.numpy(), [1, 49 / 9], rtol=1e-6)
    n = A([1, 2])
    for change in (lambda: operator.iadd(n, 1.5), lambda: operator.itruediv(n, 2), lambda: operator.iadd(n, 1j)):
        with pytest.raises(TypeError, match="same_kind"):
            change()
    for change in (lambda: operator.iadd(n, A([[1, 2], [3, 4]])), lambda: operator.iadd(n, A([1, 2, 3]))):
        with pytest.raises(ValueError, match="broadcast"):
            change()
    assert n.tolist() == [1, 2]
    assert n.version == 0


def test_read_only_arrays_are_not_written_to() -> None:
    source = np.ones(2)
    source.flags.writeable = False
    x = weft.asarray(source, copy=False)
    assert x.readonly
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            x += 1.0
        with pytest.raises(ValueError, match="read-only"):
            x += A([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        weft.add(1.0, 1.0, out=x)
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


def test_broadcast_views_are_not_written_to() -> None:
    shown = weft.broadcast_to(A([1, 2]), (3, 2))
    for write in (lambda: weft.add(shown, 1, out=shown), lambda: operator.setitem(shown, 0, 5), lambda: shown.fill(1)):
        with pytest.raises(ValueError, match="broadcast view"):
            write()


def test_overlapping_views_are_numpys() -> None:
    for dtype in ("f8", "f8", "i4", "i4"):  # the second time with a cached loop
        for left, right in [(np.s_[1:], np.s_[:-1]), (np.s_[:-1], np.s_[1:]), (np.s_[:], np.s_[::-1])]:
            x, expected = weft.arange(2000, dtype=dtype), np.arange(2000, dtype=dtype)
            one, other = x[left], x[right]
            one += other
            expected[left] += expected[right]
            np.testing.assert_array_equal(x.numpy(), expected)
            weft.subtract(x[left], x[right], out=x[left])
            np.subtract(expected[left], expected[right], out=expected[left])
            np.testing.assert_array_equal(x.numpy(), expected)


def test_out() -> None:
    x, out = A([1.0, 2.0]), weft.zeros((3, 2))
    assert weft.add(x, 1, out=out) is out
    assert out.tolist() == [[2, 3]] * 3
    single = weft.zeros(2, dtype="f4")
    weft.multiply(x, x, out=single)
    assert single.tolist() == [1, 4]
    weft.add(x, x, out=x)
    assert x.tolist() == [2, 4]
    assert weft.exp(x, out=(out,)) is out
    with pytest.raises(TypeError, match="same_kind"):
        weft.add(x, x, out=weft.zeros(2, dtype=int))
    with pytest.raises(ValueError, match=r"\(3,\).*\(2,\)"):
        weft.add(x, x, out=weft.zeros(3))
    with pytest.raises(TypeError, match="NDArray"):
        weft.add(x, x, out=np.zeros(2))
    with pytest.raises(ValueError, match="out="):
        weft.add(x, x, out=(out, out))
    quotient = weft.zeros(2)
    first, second = weft.divmod(x, 3, out=(quotient, None))
    assert first is quotient
    assert second.tolist() == [2, 1]


def test_where() -> None:
    x, out = A([1.0, 4.0, 9.0]), weft.full(3, -1.0)
    weft.sqrt(x, out=out, where=A([True, False, True]))
    assert out.tolist() == [1, -1, 3]
    weft.add(x, 1, out=out, where=[False, True, False])
    assert out.tolist() == [1, 5, 3]
    assert weft.add(x, 1, where=A([[True], [True]])).shape == (2, 3)
    with pytest.raises(TypeError, match="int64"):
        weft.sqrt(x, where=A([1, 0, 1]))
    with pytest.raises(ValueError, match="broadcast"):
        weft.sqrt(x, where=A([True, False]))


def test_dtype() -> None:
    assert weft.add(A([1]), A([2]), dtype="f4").dtype == "float32"
    with pytest.raises(TypeError):
        weft.add(A([1.5]), A([2.5]), dtype=int)


def test_shapes_and_dtypes_are_checked_at_the_call() -> None:
    with pytest.raises(ValueError, match=r"\(2,\) \(3,\)"):
        A([1, 2]) + A([1, 2, 3])
    with pytest.raises(TypeError, match="float64"):
        weft.bitwise_and(A([1.0]), A([1]))
    with pytest.raises(TypeError, match="2"):
        call(weft.ops.get_op("add"), A([1]))
    with pytest.raises(TypeError):
        weft.add(x1=1, x2=2)


def test_half_precision_is_what_small_integers_give() -> None:
    for dtype in ("i1", "u1", "?"):
        values = np.array([1, 2, 5], dtype)
        for name in ("sqrt", "exp", "sin"):
            result, expected = getattr(weft, name)(A(values)), getattr(np, name)(values)
            assert result.dtype == "float16"
            np.testing.assert_array_equal(result.numpy(), expected)


def test_empty_arrays() -> None:
    x = weft.zeros((0, 3))
    assert (x + 1).shape == (0, 3)
    assert (x + A([1.0, 2.0, 3.0])).shape == (0, 3)
    x += 1
    assert weft.zeros(0).tolist() == []


def test_failures_pass_through_arithmetic() -> None:
    bad = A([1, 2]) ** A([-1, 1])
    total = (bad + 1) * 2
    fine = A([1]) + 1
    with pytest.raises(ValueError, match="negative integer powers"):
        total.wait_to_read()
    assert fine.tolist() == [2]
    bad[...] = 5
    assert bad.tolist() == [5, 5]


def test_nothing_waits(gate: Any, make_engine: Any) -> None:
    engine = make_engine(1)
    x = weft.ones(3, engine=engine)
    gate.hold(engine, mutate=(x,))
    y = weft.sqrt(x + x, out=weft.empty(3, engine=engine))
    x += y
    x[1:] = x[:-1]
    x[weft.asarray([0], engine=engine)] = 3
    x[x > 1] = 0
    z = weft.clip(x[[0, 1]].astype("f4"), 0, 1)
    assert not z.is_ready()
    gate.open()
    assert z.shape == (2,)
    z.wait_to_read()
