"""Callables, native functions and tasks that name arrays among their accesses."""

from __future__ import annotations

import ctypes
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, address_of
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def arrays(engine: weft.Engine) -> Iterator[weft.Engine]:
    """Every policy and worker count, as the default engine."""
    previous = weft.set_engine(engine)
    yield engine
    weft.set_engine(previous)


def test_a_callable_gets_the_memory_of_what_it_names(arrays: weft.Engine) -> None:
    x, y = weft.zeros(4), weft.ones(4)
    flags = []

    def body() -> None:
        values, others = np.asarray(x), np.asarray(y)
        flags.append((values.flags.writeable, others.flags.writeable))
        values += 3 * others

    arrays.push(body, [y], [x])
    doubled = x * 2
    x[:2] = 7
    assert doubled.tolist() == [6, 6, 6, 6]
    assert x.tolist() == [7, 7, 3, 3]
    assert flags == [(True, False)]


def test_a_task_gets_values_and_arithmetic_comes_after_it(arrays: weft.Engine) -> None:  # noqa: ARG001 - the default
    @weft.task
    def add(out: weft.Mutate[Any], a: weft.Read[Any], times: int) -> None:
        assert isinstance(out, np.ndarray)
        assert not a.flags.writeable
        out += times * a

    x, y = weft.zeros(3), weft.ones(3)
    add(x, y, times=2)
    z = x + 1
    add(x, a=z, times=1)
    weft.wait(x)
    assert x.tolist() == [5, 5, 5]
    assert z.tolist() == [3, 3, 3]


def test_an_overwrite_sees_the_whole_array(arrays: weft.Engine) -> None:
    x = weft.empty(5)
    arrays.push(lambda: np.asarray(x).fill(2), overwrite_vars=[x])
    assert x.sum().item() == 10


def test_an_operator_takes_arrays(arrays: weft.Engine) -> None:
    x = weft.zeros(10)
    part = x[2:4]

    def body() -> None:
        np.asarray(part)[...] += 1

    operator = arrays.new_operator(body, [], [part])
    for _ in range(5):
        operator.push()
    x[0] = 9
    assert x.tolist() == [9, 0, 5, 5, 0, 0, 0, 0, 0, 0]


def test_an_asynchronous_op_holds_its_arrays_until_it_is_done(parallel: weft.Engine) -> None:
    x = _on(parallel, np.zeros(3))
    begun: list[tuple[weft.Completion, np.ndarray]] = []
    started = Event()

    def begin(done: weft.Completion) -> None:
        begun.append((done, np.asarray(x)))
        started.set()

    parallel.push_async(begin, mutate_vars=[x])
    after = x + 1
    assert started.wait(SOON)
    (done, values) = begun.pop()
    assert not after.is_ready()
    values[:] = 4
    done()
    after.wait_to_read(SOON)
    assert after.tolist() == [5, 5, 5]


def _on(engine: weft.Engine, values: np.ndarray) -> weft.NDArray:
    previous = weft.set_engine(engine)
    try:
        return weft.asarray(values)
    finally:
        weft.set_engine(previous)


def test_a_native_function_takes_arrays(arrays: weft.Engine) -> None:
    x = weft.zeros(4, dtype=weft.int32)
    x.wait_to_read()
    address = np.asarray(x).ctypes.data

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
    def fill(data: int) -> int:
        (ctypes.c_int32 * 4).from_address(data)[:] = [1, 2, 3, 4]
        return 0

    arrays.push_native(address_of(fill), address, mutate_vars=[x], keep_alive=fill)
    assert (x * 2).tolist() == [2, 4, 6, 8]


def test_callables_on_disjoint_slices_run_side_by_side(many: weft.Engine) -> None:
    x = _on(many, np.zeros(8))
    first, second = Event(), Event()
    left, right = x[:4], x[4:]

    def fill_left() -> None:
        first.set()
        assert second.wait(SOON)
        np.asarray(left)[:] = 1

    def fill_right() -> None:
        second.set()
        assert first.wait(SOON)
        np.asarray(right)[:] = 2

    many.push(fill_left, [], [left])
    many.push(fill_right, [], [right])
    x.wait_to_read(SOON)
    assert x.tolist() == [1] * 4 + [2] * 4


def test_arrays_and_variables_are_entered_together(arrays: weft.Engine) -> None:
    x, log = weft.zeros(2), arrays.new_variable("log")
    seen: list[float] = []
    for turn in range(20):
        arrays.push(lambda: seen.append(float(np.asarray(x)[0])), [x], [log])
        arrays.push(lambda turn=turn: np.asarray(x).fill(turn + 1), [log], overwrite_vars=[x])
    arrays.wait_for_var(log, SOON)
    assert seen == list(range(20))


def test_a_failure_stays_with_the_array(arrays: weft.Engine) -> None:
    x, y = weft.zeros(2), weft.zeros(2)
    with pytest.raises(ZeroDivisionError, match="division"):  # noqa: PT012 - `serial` raises at the wait as well
        arrays.push(lambda: 1 // 0, [y], [x], name="divide")
        weft.wait(x + 1)
    assert y.tolist() == [0, 0]
    arrays.push(lambda: np.asarray(x).fill(1), overwrite_vars=[x])
    assert x.tolist() == [1, 1]


def test_random_programs_of_tasks_and_arithmetic(arrays: weft.Engine) -> None:  # noqa: ARG001 - the default
    @weft.task
    def scale(out: weft.Mutate[Any], factor: float) -> None:
        out *= factor

    @weft.task
    def mix(out: weft.Overwrite[Any], a: weft.Read[Any], b: weft.Read[Any]) -> None:
        np.add(a, 2 * b, out=out)

    random = Random(20)
    for _ in range(20):
        ours = [weft.asarray(np.arange(6.0) + i) for i in range(4)]
        theirs = [np.arange(6.0) + i for i in range(4)]
        for _ in range(30):
            a, b, c = random.sample(range(4), 3)
            low, factor = random.randrange(5), random.choice([0.5, 2.0, -1.0])
            match random.randrange(4):
                case 0:
                    scale(ours[a][low:], factor)
                    theirs[a][low:] *= factor
                case 1:
                    mix(ours[a], ours[b], ours[c])
                    theirs[a][:] = theirs[b] + 2 * theirs[c]
                case 2:
                    ours[a] = ours[b] - ours[c]
                    theirs[a] = theirs[b] - theirs[c]
                case _:
                    ours[a][low:] = ours[b][low:]
                    theirs[a][low:] = theirs[b][low:]
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


@pytest.mark.parametrize("accesses", ["read", "mutate"])
def test_arithmetic_on_what_the_op_has_is_refused(arrays: weft.Engine, accesses: str) -> None:
    x, y = weft.ones(3), weft.ones(3)
    caught: list[str] = []

    def body() -> None:
        for attempt in (lambda: x + 1, lambda: np.exp(x), x.sum, lambda: x.__iadd__(1), lambda: weft.sort(x)):
            with pytest.raises(errors.NestedPushError) as error:
                attempt()
            caught.append(str(error.value))
        y.__iadd__(1)  # not among the accesses

    arrays.push(body, *([[x], []] if accesses == "read" else [[], [x]]))
    arrays.wait_for_all(SOON)
    assert len(caught) == 5
    assert "shape (3,)" in caught[0]
    assert "numpy.asarray()" in caught[0]
    assert x.tolist() == [1, 1, 1]
    assert y.tolist() == [2, 2, 2]


def test_refused_pushes_change_nothing(arrays: weft.Engine, make_engine: Callable[..., weft.Engine]) -> None:
    x, gone = weft.zeros(2), arrays.new_variable("gone")
    arrays.delete_variable(gone)
    other = make_engine(1)
    before = x.version
    with pytest.raises(errors.VariableDeletedError):
        arrays.push(print, [gone], [x])
    with pytest.raises(errors.WrongEngineError, match="array of shape"):
        other.push(print, [], [x])
    with pytest.raises(errors.ArgumentTypeError, match="write \\[array\\]"):
        arrays.push(print, [], x)
    with pytest.raises(errors.ArgumentTypeError, match="one item is int"):
        arrays.push(print, [1], [x])
    with pytest.raises(errors.ArgumentTypeError, match="keeps its variables to itself"):
        arrays.variable_of(x)
    values = np.zeros(2)
    values.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        arrays.push(print, [], [weft.asarray(values, copy=False)])
    assert x.version == before
    assert x.tolist() == [0, 0]
