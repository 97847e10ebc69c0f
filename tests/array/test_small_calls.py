"""Short ways of calls on small arrays: they find what NumPy finds, wherever the operands lie."""

from __future__ import annotations

import operator
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._ops.ufuncs import unary

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Gate, MakeEngine

KINDS = [
    *("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
SOON = 30


def values(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    found = draw.integers(-100, 100, shape) if dtype[0] == "i" else draw.integers(0, 200, shape)
    if dtype[0] in "fc":
        found = found / 7
    return (found > 90 if dtype == "bool" else found).astype(dtype)


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("dtype", KINDS)
def test_casts(dtype: str, wanted: str) -> None:
    a = values(dtype, (7, 5))
    if dtype[0] == "c" and wanted[0] not in "cb":
        a = a.real.astype(a.real.dtype)
    x = weft.asarray(a)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for view in (np.s_[:], np.s_[::2, ::-1], np.s_[3]):
            same(x[view].astype(wanted), a[view].astype(wanted))
        target, expected = weft.zeros((7, 5), dtype=wanted), np.zeros((7, 5), wanted)
        target[1:], expected[1:] = x[:-1], a[:-1]
    same(target, expected)


@pytest.mark.parametrize("dtype", KINDS)
def test_choices(dtype: str) -> None:
    a, b, mask = values(dtype, (6, 5)), values(dtype, (6, 5), 2), values("bool", (6, 5), 3)
    x, y, chosen = weft.asarray(a), weft.asarray(b), weft.asarray(mask)
    same(weft.where(chosen, x, y), np.where(mask, a, b))
    same(weft.where(chosen[:, :1], x.T.T[::-1], y[0]), np.where(mask[:, :1], a[::-1], b[0]))
    same(weft.where(chosen, x, 1), np.where(mask, a, 1))
    same(weft.where(chosen, 0.5, y), np.where(mask, 0.5, b))
    same(weft.where(x, x, y), np.where(a, a, b))
    wide = np.result_type(dtype, "float64")
    same(weft.where(chosen, x, weft.asarray(b.astype(wide))), np.where(mask, a, b.astype(wide)))
    same(weft.where(chosen, 1, 0), np.where(mask, 1, 0))


@pytest.mark.parametrize("shape", [(5, 4), (1,), (3, 2, 4), (60, 50)], ids=str)
def test_joins_and_rolls(shape: tuple[int, ...]) -> None:
    a, b = values("float32", shape), values("float32", shape, 2)
    x, y = weft.asarray(a), weft.asarray(b)
    for axis in range(-len(shape), len(shape)):
        same(weft.concatenate([x, y, x[:]], axis), np.concatenate([a, b, a], axis))
        same(weft.stack([x, y], axis), np.stack([a, b], axis))
        same(weft.roll(x.T, 2, axis), np.roll(a.T, 2, axis))
        same(weft.roll(x, (-1, 7), (axis, 0)), np.roll(a, (-1, 7), (axis, 0)))
    same(weft.stack([x, y], len(shape)), np.stack([a, b], len(shape)))
    same(weft.roll(x, 3), np.roll(a, 3))
    same(weft.roll(x.T, 3), np.roll(a.T, 3))
    same(weft.concatenate([x, weft.asarray(b.astype(int))]), np.concatenate([a, b.astype(int)]))
    same(weft.concatenate([x, y[:0]]), np.concatenate([a, b[:0]]))
    out = weft.zeros((2 * shape[0], *shape[1:]), dtype=weft.float32)
    out[: shape[0]] = x
    same(weft.roll(out, 1, 0), np.roll(np.concatenate([a, np.zeros_like(a)]), 1, 0))


@pytest.mark.parametrize("dtype", KINDS)
def test_searches(dtype: str) -> None:
    a = values(dtype, (9, 6))
    if dtype[0] == "f":
        a[4, 2:5] = np.nan
    x = weft.asarray(a)
    for name in ("argmax", "argmin"):
        ours, theirs = getattr(weft, name), getattr(np, name)
        same(ours(x), theirs(a))
        for axis in (0, 1, -1):
            same(ours(x, axis), theirs(a, axis))
            same(ours(x[::-2, ::3], axis), theirs(a[::-2, ::3], axis))
            same(ours(x, axis, keepdims=True), theirs(a, axis, keepdims=True))
        same(ours(x.T), theirs(a.T))


@pytest.mark.parametrize("dtype", KINDS)
def test_reductions(dtype: str) -> None:
    a = values(dtype, (9, 6, 4))
    x = weft.asarray(a)
    functions: list[str] = ["sum", "prod", "any", "all", *(["max", "min"] if dtype[0] != "c" else [])]
    with np.errstate(all="ignore"):
        for name in functions:
            for axis in (None, 0, 1, -1, (0, 2)):
                for keepdims in (False, True):
                    found = getattr(weft, name)(x, axis=axis, keepdims=keepdims)
                    expected = np.asarray(getattr(np, name)(a, axis=axis, keepdims=keepdims))
                    assert found.dtype == expected.dtype, (name, axis)
                    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_small_products(dtype: str) -> None:
    a, b = values(dtype, (7, 5)), values(dtype, (5, 3), 2)
    x, y = weft.asarray(a), weft.asarray(b)
    for found, expected in (
        (x @ y, a @ b),
        (x @ y[:, 0], a @ b[:, 0]),
        (x[0] @ y, a[0] @ b),
        (x[0] @ y[:, 1], a[0] @ b[:, 1]),
        (y.T @ x.T, b.T @ a.T),
        (x[::2, ::-1] @ y, a[::2, ::-1] @ b),
    ):
        assert found.shape == np.shape(expected)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    with pytest.raises(ValueError, match=r"\(7, 5\) and \(7, 5\)"):
        x @ x


@pytest.mark.parametrize(
    ("shape", "new"),
    [((6, 4), (4, 6)), ((6, 4), (-1,)), ((6, 4), (2, -1, 3)), ((0, 3), (3, 0)), ((1,), ()), ((), (1, 1))],
)
def test_reshaping(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    a = values("int64", shape)
    x = weft.asarray(a)
    same(x.reshape(new), a.reshape(new))
    same(x.reshape(*new) if new else x.reshape(()), a.reshape(new))
    for order in ("C", "F", "A"):
        same(x.reshape(new, order=order), a.reshape(new, order=order))
        same(weft.reshape(x.T, new, order), np.reshape(a.T, new, order))
    for order in ("C", "F", "A", "K"):
        same(x.T.ravel(order), a.T.ravel(order))
        same(x.flatten(order), a.flatten(order))
        same(x.copy(order), a.copy(order))
    for bad in ((5, 5), (-1, -1), (5, 11, 3), (-2, 12)):
        with pytest.raises(ValueError, match=r"shape|dimension"):
            x.reshape(bad)
    with pytest.raises(ValueError, match="order must be one of"):
        x.reshape(new, order="Z")


def test_new_axes_in_keys() -> None:
    a = values("int64", (3, 4))
    x = weft.asarray(a)
    for key in (
        np.s_[None],
        np.s_[:, None],
        np.s_[None, 1, None, ::2],
        np.s_[..., None],
        np.s_[0, None],
        np.s_[1, 2, None],
    ):
        same(x[key], a[key])
    with pytest.raises(IndexError, match="too many indices"):
        x[0, 0, None, 0]


@pytest.mark.parametrize("mutates", [False, True])
def test_a_small_write_waits_for_readers_and_writers(make_engine: MakeEngine, gate: Gate, mutates: bool) -> None:
    """What runs where it is called is as if it had been pushed: nothing that was pushed before is overtaken."""
    engine = make_engine(2)
    x = weft.zeros(8, engine=engine)
    x += 1
    assert x.is_ready()
    seen: list[Any] = []
    engine.push(gate, [] if mutates else [x], [x] if mutates else [])
    assert gate.entered.wait(SOON)
    engine.push(lambda: seen.append(np.asarray(x).copy()), read_vars=[x])
    x += 1
    assert not x.is_ready()
    x[2:4] = weft.asarray([5, 6], engine=engine)
    y = x + x[::-1]
    gate.open()
    engine.wait_for_all(timeout=SOON)
    np.testing.assert_array_equal(seen[0], np.ones(8))
    np.testing.assert_array_equal(x.numpy(), [2, 2, 5, 6, 2, 2, 2, 2])
    np.testing.assert_array_equal(y.numpy(), x.numpy() + x.numpy()[::-1])


def test_what_failed_stays_failed(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    x = weft.zeros(4, engine=engine)

    def fail() -> None:
        raise RuntimeError("no value")

    engine.push(fail, mutate_vars=[x])
    calls: list[Callable[[], Any]] = [
        x.sum,
        lambda: weft.where(x > 0, x, x),
        lambda: weft.concatenate([x, x]),
        lambda: weft.roll(x, 1),
        x.argmax,
        lambda: x.astype("float32"),
        lambda: x @ x,
        lambda: x.reshape(2, 2) + 1,
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="no value"):
            call().wait_to_read(SOON)
    x += 1
    with pytest.raises(RuntimeError, match="no value"):
        x.wait_to_read(SOON)


@pytest.mark.parametrize("policy", ["work_stealing", "serial"])
def test_the_game_of_life(make_engine: MakeEngine, policy: str) -> None:
    """Slices of a board that is written in place, small and large, against NumPy."""
    engine = make_engine(2, policy)
    for size in (20, 100):
        board = (np.random.default_rng(size).random((size, size)) < 0.3).astype(np.int32)
        found = weft.asarray(board, engine=engine)
        for b in (board, found):
            world: Any = b
            for _ in range(10):
                n = world[:-2, :-2] + world[:-2, 1:-1] + world[:-2, 2:] + world[1:-1, :-2] + world[1:-1, 2:]
                n = n + world[2:, :-2] + world[2:, 1:-1] + world[2:, 2:]
                centre = world[1:-1, 1:-1]
                world[1:-1, 1:-1] = (n == 3) | ((centre == 1) & (n == 2))
        same(found, board)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "and_", "lshift", "lt", "eq"])
@pytest.mark.parametrize("dtype", KINDS)
def test_operators_on_two_dtypes(dtype: str, name: str) -> None:
    a, function = values(dtype, (6, 5)), getattr(operator, name)
    x = weft.asarray(a)
    for other in KINDS:
        b = values(other, (5,), 2)
        y = weft.asarray(b)
        try:
            expected = function(a, b)
        except TypeError:
            with pytest.raises(TypeError):
                function(x, y)
            continue
        for _ in range(2):  # the first time the loop is found
            same(function(x, y), expected)
        same(function(y, x[::2, ::-1]), function(b, a[::2, ::-1]))


def test_in_place_with_another_dtype() -> None:
    x = weft.asarray([1.5, 2.5])
    x += weft.asarray([1, 2])
    x *= weft.asarray([True, False])
    same(x, np.array([2.5, 0.0]))
    whole = weft.asarray([1, 2])
    with pytest.raises(TypeError, match="same_kind"):
        whole += weft.asarray([0.5, 0.5])
    same(whole, np.array([1, 2]))


@pytest.mark.parametrize("dtype", KINDS)
def test_an_element_as_a_number(dtype: str) -> None:
    a = values(dtype, (3, 2))
    x = weft.asarray(a)
    found, expected = x[2, 1].item(), a[2, 1].item()
    assert found == expected
    assert type(found) is type(expected)
    assert bool(x[0, 0]) == bool(a[0, 0])
    if dtype[0] != "c":
        assert (int(x[1, 1]), float(x[1, 1])) == (int(a[1, 1]), float(a[1, 1]))
    assert complex(x[1, 0]) == complex(a[1, 0])
    assert x[:1, :1].item() == a[0, 0].item()


def test_an_element_is_waited_for(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(2)
    x, held = weft.zeros((), engine=engine), weft.ones((), engine=engine)
    engine.push(gate, [], [held])
    assert gate.entered.wait(SOON)
    x += held
    opener = threading.Timer(0.01, gate.open)
    opener.start()
    assert float(x) == 1.0
    opener.join()
    failing = weft.asarray([1], dtype="int64", engine=engine)[weft.asarray([7], engine=engine)]
    with pytest.raises(IndexError, match="index 7"):
        failing.item()


@pytest.mark.parametrize("shape", [3, (), (2, 0), (2, 3), [2, 3], (np.int64(2),)])
def test_filled_arrays(shape: Any) -> None:
    same(weft.zeros(shape), np.zeros(shape))
    same(weft.ones(shape), np.ones(shape))
    same(weft.program(lambda x: x + weft.ones(shape))(weft.asarray(1.0)), 1.0 + np.ones(shape))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_products_of_vectors(dtype: str) -> None:
    a, b = values(dtype, (9,)), values(dtype, (9,), 2)
    x, y = weft.asarray(a), weft.asarray(b)
    assert (x @ y).shape == ()
    np.testing.assert_allclose((x @ y).numpy(), a @ b, rtol=1e-6)
    np.testing.assert_allclose((x[::-2] @ y[::2]).numpy(), a[::-2] @ b[::2], rtol=1e-6)
    with pytest.raises(ValueError, match="differ"):
        x @ y[1:]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("shape", [(100, 4), (70, 16), (9, 17), (33, 1), (3, 4, 5)])
def test_searches_in_short_rows(dtype: str, shape: tuple[int, ...]) -> None:
    draw = np.random.default_rng(3)
    a = draw.integers(0, 4, shape).astype(dtype)
    if dtype[0] == "f":
        a[draw.random(shape) < 0.1] = np.nan
    x = weft.asarray(a)
    for axis in range(len(shape)):
        same(x.argmax(axis), a.argmax(axis))
        same(x[::-1].T.argmin(axis), a[::-1].T.argmin(axis))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
def test_rounding(dtype: str) -> None:
    a = (np.random.default_rng(5).standard_normal(500) * 100).astype(dtype)
    x = weft.asarray(a)
    for decimals in (0, 1, 3, -1, 30):
        with np.errstate(all="ignore"):
            same(weft.round(x, decimals), np.round(a, decimals))


def test_ufuncs_that_a_user_replaces_leave_the_short_way() -> None:
    function = unary("tests_log1p", np.log1p, "the logarithm of x + 1", "[0.0]", "[0.]", gradient=None)
    x = weft.asarray([0.0])
    for _ in range(2):  # the second time by the loop that was found
        assert function(x).item() == 0.0
    weft.ops.get_op("tests_log1p").set_attribute("compute:cpu", lambda out, x: np.copyto(out, x + 1))
    for _ in range(2):
        assert function(x).item() == 1.0


def test_methods_of_ufuncs() -> None:
    a = np.arange(6.0).reshape(2, 3)
    x = weft.asarray(a)
    same(weft.add.reduce(x), np.add.reduce(a))
    same(weft.multiply.accumulate(x, 1), np.multiply.accumulate(a, 1))
    same(weft.subtract.outer(x[0], x[1]), np.subtract.outer(a[0], a[1]))
    same(weft.maximum.reduceat(x, [0, 1]), np.maximum.reduceat(a, [0, 1]))
    weft.add.at(x, (0, [0, 0, 1]), 1.0)
    np.add.at(a, (0, [0, 0, 1]), 1.0)
    same(x, a)
    same(weft.add.reduce([1, 2]), np.asarray(3))


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64", "complex128"])
def test_products_of_vectors_find_numpys(dtype: str) -> None:
    a, b = values(dtype, (16,)), values(dtype, (16,), seed=2)
    x, y = weft.asarray(a), weft.asarray(b)
    same(weft.vecdot(x, y), np.vecdot(a, b))
    same(weft.inner(x, y), np.inner(a, b))
    same(weft.vecdot(x[::-2], y[::2]), np.vecdot(a[::-2], b[::2]))
    for product in (weft.vecdot, weft.inner):
        with pytest.raises(ValueError, match="differ"):
            product(x, y[:3])


def test_a_products_gradient_is_the_same_by_the_short_way() -> None:
    x, y = weft.asarray([1.0, 2.0]), weft.asarray([3.0, 4.0])
    for product in (weft.vecdot, weft.inner):
        left, right = weft.grad(product, argnums=(0, 1))(x, y)
        assert (left.tolist(), right.tolist()) == ([3.0, 4.0], [1.0, 2.0])


@pytest.mark.parametrize("shape", [(1,), (129,), (32, 32), (300, 7), (2, 100, 3), (200_000,)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_moments_and_norms_have_numpys_bits(dtype: str, shape: tuple[int, ...]) -> None:
    a = (np.random.default_rng(3).standard_normal(shape) * 50).astype(dtype)
    x = weft.asarray(a)
    for array, theirs in ((x, a), (x.T, a.T), (x[..., ::-1], a[..., ::-1])):
        for axis in (None, *range(a.ndim)):
            for keepdims in (False, True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = [np.var(theirs, axis, keepdims=keepdims), np.std(theirs, axis, keepdims=keepdims)]
                same(weft.var(array, axis, keepdims=keepdims), expected[0])
                same(weft.std(array, axis, keepdims=keepdims), expected[1])
                norm = np.linalg.vector_norm(theirs, axis=axis, keepdims=keepdims)
                same(weft.linalg.vector_norm(array, axis=axis, keepdims=keepdims), norm)
    assert np.isnan(weft.std(weft.asarray([1.0]), ddof=1).item())


def test_one_element_goes_with_each() -> None:
    a = values("float64", (16,))
    x = weft.asarray(a)
    for shape in ((), (1,), (1, 1)):
        one, theirs = weft.full(shape, 0.3), np.full(shape, 0.3)
        same(x + one, a + theirs)
        same(one - x, theirs - a)
        same(weft.where(x > one, one, x), np.where(a > theirs, theirs, a))
    for at in (slice(None, 1), slice(-1, None)):  # one of those that are written
        x += x[at]
        a += a[at]
        same(x, a)


@pytest.mark.parametrize("part", [slice(None), slice(None, None, 2), slice(None, None, -1)])
def test_elements_by_positions_are_written_where_they_are_asked_for(part: slice) -> None:
    a = values("float64", (8, 6))
    x = weft.asarray(a)
    shown, theirs = x[part], a[part]
    shown[[0, 1]] = shown[[1, 0]]
    theirs[[0, 1]] = theirs[[1, 0]]
    shown[[0, -1], [2, 3]] = 0.5
    theirs[[0, -1], [2, 3]] = 0.5
    shown[:, [0, 4]] = shown[:, 1:3]  # which overlaps
    theirs[:, [0, 4]] = theirs[:, 1:3]
    shown[shown > 1] = weft.abs(shown[shown > 1])
    theirs[theirs > 1] = np.abs(theirs[theirs > 1])
    same(x, a)
    with pytest.raises(IndexError, match="out of bounds"):
        x[[8]] = 1.0
    same(x, a)
    x[weft.asarray([8])] = 1.0
    with pytest.raises(IndexError, match="out of bounds"):
        x.wait_to_read()


def test_elements_by_positions_wait_for_what_is_pending(gate: Gate) -> None:
    x, at = weft.zeros(4), weft.asarray([1, 2])
    before: list[float] = []

    @weft.task
    def look(found: weft.Read[Any]) -> None:
        gate()
        before.extend(found.tolist())

    look(x)
    assert gate.entered.wait(SOON)
    x[at] = 3.0
    gate.open()
    assert x.tolist() == [0.0, 3.0, 3.0, 0.0]
    assert before == [0.0] * 4


def test_elements_by_positions_from_several_threads_all_arrive() -> None:
    x = weft.zeros(4, dtype="int64")

    def count(at: int) -> None:
        for number in range(200):
            x[[at]] = number + 1

    threads = [threading.Thread(target=count, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert x.tolist() == [200] * 4


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sums_so_far(axis: int) -> None:
    a = values("float64", (3, 4))
    x = weft.asarray(a)
    same(weft.cumsum(x, axis), np.cumsum(a, axis))
    for include in (False, True):
        found = weft.cumulative_sum(x, axis=axis, include_initial=include)
        same(found, np.cumulative_sum(a, axis=axis, include_initial=include))


def test_a_small_take_out_of_bounds_fails() -> None:
    x = weft.arange(16.0)
    same(weft.take(x, weft.asarray([-1, 3])), np.arange(16.0)[[-1, 3]])
    for size in (2, 2000):
        with pytest.raises(IndexError, match="out of bounds"):
            weft.take(x, weft.full(size, 16)).wait_to_read()


@pytest.mark.parametrize("size", [5, 64, 65])
def test_a_short_sort_keeps_the_order_of_equal_elements(size: int) -> None:
    a = np.where(np.arange(size) % 3 == 0, -0.0, 0.0)
    a[size // 2] = np.nan
    found = weft.sort(weft.asarray(a)).numpy()
    assert found.tobytes() == np.sort(a, kind="stable").tobytes()


def test_arrays_of_objects_are_numpys() -> None:
    found = np.broadcast_arrays(weft.ones(2), np.array([None], dtype=object))
    assert found[0].tolist() == [1.0, 1.0]
    assert found[1].tolist() == [None, None]
    shown = np.broadcast_arrays(weft.ones(2), None)
    assert shown[1].tolist() == [None, None]


def test_a_misspelt_name_can_be_told() -> None:
    with pytest.raises(AttributeError, match="no attribute 'zeroes'") as caught:
        _ = weft.zeroes  # type: ignore[attr-defined]
    assert (caught.value.name, caught.value.obj) == ("zeroes", weft)  # where Python looks for one that is nearly this


def test_no_memory_is_said_with_the_op(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    x = weft.broadcast_to(weft.ones(1, engine=engine), (1 << 46,))
    with pytest.raises(MemoryError, match=r"op 'add': unable to allocate"):
        (x + x).wait_to_read()
