"""What is computed at the call: short ops whose operands are there. They give what a worker would, and leave long ones to it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from conftest import Gate, MakeEngine

KINDS = ["bool", "int8", "uint16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128"]


def values(dtype: str, shape: tuple[int, ...], seed: int = 1) -> Any:
    draw = np.random.default_rng(seed)
    found = draw.integers(-100, 100, shape) / 7
    return (found > 0 if dtype == "bool" else abs(found) if dtype[0] == "u" else found).astype(dtype)


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.numpy(), expected)


def calls() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    a = rng.normal(size=(60, 50))
    whole = rng.integers(0, 60, 40)
    return {
        "element-wise": lambda _, x: x * 2 + x,
        "function": lambda m, x: m.exp(x),
        "other dtypes": lambda m, x: x + m.asarray(np.arange(50, dtype="i2")),
        "cast": lambda _, x: x.astype(np.float32),
        "sum": lambda _, x: x.sum(axis=0),
        "search": lambda _, x: x.argmin(axis=1),
        "sorting": lambda m, x: m.sort(x, axis=1),
        "product": lambda _, x: x.T @ x[:, :20],
        "gather": lambda m, x: x[m.asarray(whole), 1:3],
        "rows": lambda m, x: x[m.asarray(whole)],
        "mask": lambda _, x: x[x > 0],
        "square": lambda _, x: x**2,
        "mean": lambda _, x: x.mean(axis=1),
        "dot": lambda m, x: m.dot(x, x[0]),
        "eye": lambda m, _: m.eye(7, k=1) + m.arange(7),
    } | {"a": a}


@pytest.mark.parametrize("name", [name for name in calls() if name != "a"])
def test_short_calls_need_no_worker(name: str, make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    a, call = calls()["a"], calls()[name]
    x = weft.asarray(a, engine=engine)
    before = weft.get_engine()
    weft.set_engine(engine)
    try:
        gate.hold(engine)  # the one worker
        found = call(weft, x)
        assert found.is_ready()
        np.testing.assert_allclose(found.numpy(), call(np, a), rtol=1e-14)
        assert found.dtype == call(np, a).dtype
    finally:
        weft.set_engine(before)
        gate.open()


def test_long_calls_are_left_to_a_worker(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    x = weft.ones(100_000, engine=engine, dtype="float32")
    y = weft.asarray(np.arange(30_000.0), engine=engine)
    x.wait_to_read()
    gate.hold(engine)
    pending = [x + x, x.sum(), weft.sort(y), weft.sin(y), weft.argmax(x)]
    assert not any(each.is_ready() for each in pending)
    gate.open()
    assert pending[0].tolist() == [2.0] * 100_000


def test_what_is_pending_is_waited_for(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    x = weft.asarray([3.0, 1.0, 2.0], engine=engine)
    gate.hold(engine)
    engine.push(lambda: None, mutate_vars=[x])
    found = [weft.sort(x), x[weft.asarray([0, 1], engine=engine)], x.mean(), x**2, weft.roll(x, 1)]
    assert not any(each.is_ready() for each in found)
    gate.open()
    assert [each.tolist() for each in found] == [[1, 2, 3], [3, 1], 2, [9, 1, 4], [2, 3, 1]]


def test_what_fails_at_the_call_fails_where_it_is_waited_for() -> None:
    x = weft.asarray([[1.0, 2.0], [2.0, 4.0]])
    inverse = weft.linalg.inv(x)
    with pytest.raises(np.linalg.LinAlgError):
        inverse.wait_to_read()
    taken = weft.take(weft.arange(3), weft.asarray([5]))
    with pytest.raises(IndexError):
        taken.wait_to_read()


def test_functions_of_users_run_on_workers() -> None:
    seen: list[int] = []

    @weft.ops.register_op("tests.where_it_runs", infer=lambda x: x)
    def where_it_runs(out: Any, x: Any) -> None:
        seen.append(threading.get_ident())
        np.copyto(out, x)

    where_it_runs(weft.ones(3)).wait_to_read()
    assert seen != [threading.get_ident()]


@pytest.mark.parametrize("dtype", KINDS)
def test_reductions_of_few_elements(dtype: str) -> None:
    for shape in [(200, 2), (300, 7), (100, 8), (50, 3, 5), (3, 400), (2, 3, 70)]:
        a = values(dtype, shape)
        for view in (a, a[::-1], a.T):
            x = weft.asarray(view)
            for axis in range(a.ndim):
                if dtype != "float16":  # which NumPy adds up in single precision along one axis only
                    same(x.sum(axis=axis), view.sum(axis=axis, dtype=x.sum(axis=axis).dtype))
                if dtype[0] != "c":
                    same(x.min(axis=axis), view.min(axis=axis))
                    same(x.max(axis=axis, keepdims=True), view.max(axis=axis, keepdims=True))
    zeros = weft.asarray(np.full((40, 2), -0.0))
    assert np.signbit(zeros.sum(axis=1).numpy()).all()


@pytest.mark.parametrize("dtype", KINDS)
def test_short_innermost_axes(dtype: str) -> None:
    a, b = values(dtype, (90, 1, 2)), values(dtype, (1, 5, 2), 2)
    x, y = weft.asarray(a), weft.asarray(b)
    same(x + y, a + b)
    same(weft.asarray(a.T) * weft.asarray(b.T), a.T * b.T)
    target, expected = weft.zeros((90, 5, 2), dtype=dtype), np.zeros((90, 5, 2), dtype)
    target[...], expected[...] = x, a
    target[:, 1:] += y[:, 1:] if dtype != "bool" else True
    expected[:, 1:] += b[:, 1:] if dtype != "bool" else True
    same(target, expected)


@pytest.mark.parametrize("dtype", KINDS)
def test_rows_by_arrays(dtype: str) -> None:
    a = values(dtype, (9, 4, 3))
    x = weft.asarray(a)
    places, mask, all_of_it = np.asarray([3, -1, 0, 3]), np.arange(9) % 2 == 0, values("bool", (9, 4, 3), 5)
    for view, own in ((a, x), (a[::-2], x[::-2]), (a[:, 1:], x[:, 1:]), (a.T, x.T), (a[:, 0, 0], x[:, 0, 0])):
        length = len(view)
        for key in (places[abs(places) < length], mask[:length], mask[:length] & False, places[:0]):
            same(own[weft.asarray(key)], view[key])
    same(x[weft.asarray(all_of_it)], a[all_of_it])
    for bad in ([9], [-10], [2**40]):
        with pytest.raises(IndexError):
            x[weft.asarray(bad)].wait_to_read()
    with pytest.raises(IndexError):
        x[weft.asarray(mask[:3])]


@pytest.mark.parametrize("dtype", KINDS)
def test_a_number_where_a_mask_is_true(dtype: str) -> None:
    a = values(dtype, (6, 5))
    x = weft.asarray(a)
    mask = values("bool", (6, 5), 4)
    x[weft.asarray(mask)], a[mask] = 1, 1
    x[1:4][weft.asarray(mask[1:4])], a[1:4][mask[1:4]] = 0, 0
    x[weft.asarray(~mask)], a[~mask] = weft.asarray(True).astype(dtype), np.asarray(True).astype(dtype)
    same(x, a)
    flags = weft.asarray(mask)
    flags[flags] = False
    assert not flags.any()


@pytest.mark.parametrize("dtype", ["int32", "float32", "float64", "complex128"])
def test_squares_and_means(dtype: str) -> None:
    a = values(dtype, (11, 6))
    x = weft.asarray(a)
    same(x**2, a**2)
    if dtype != "int32":
        same(x.mean(axis=0), a.mean(axis=0))
        assert x.mean(keepdims=True).shape == (1, 1)


def test_writers_do_not_tear_what_is_read_at_a_call() -> None:
    x = weft.zeros(2000)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            x.fill(float(number))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(40):
            found = weft.cumsum(x).numpy()
            assert found[-1] == found[0] * 2000, "all of it is of one version"
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("key", [3, slice(2, 5), (4, slice(None)), (slice(1, 3), 2), ()])
@pytest.mark.parametrize("value", [7.0, "array", "own part"])
def test_writes_to_parts_need_no_worker(key: Any, value: Any, make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    host = np.arange(48.0).reshape(6, 8)
    x = weft.asarray(host, engine=engine)
    given = {"array": -host, "own part": host[::-1]}.get(value, value)
    source = {"array": weft.asarray(-host, engine=engine), "own part": x[::-1]}.get(value, value)
    gate.hold(engine)  # the one worker
    x[key] = source if value == 7.0 else source[key]
    host[key] = given if value == 7.0 else given[key].copy()
    assert x.is_ready()
    gate.open()
    np.testing.assert_array_equal(x.numpy(), host)


def test_a_write_to_a_part_waits_for_readers_before_it(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1)
    x = weft.asarray(np.arange(12.0).reshape(3, 4), engine=engine)
    seen: list[Any] = []
    gate.hold(engine)  # the one worker
    engine.push(lambda: seen.append(np.asarray(x).copy()), [x])
    x[1] = 0.0
    x[2] = x[0] + x[1]
    gate.open()
    x.wait_to_write()
    np.testing.assert_array_equal(seen[0], np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(x.numpy(), [[0, 1, 2, 3], [0, 0, 0, 0], [0, 1, 2, 3]])


def test_an_element_is_a_copy_at_the_time_of_its_reading() -> None:
    x = weft.asarray(np.arange(4.0))
    before = x[2]
    x[2] = x[1] + x[3]
    x[2] += 0.5
    assert (before.item(), x[2].item(), x[-1].shape) == (2.0, 4.5, ())
