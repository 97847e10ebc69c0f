"""Tasks return: results of handles, handles as arguments, retries, declared and undeclared arrays, bytes of pending tasks."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    PendingLimitError,
    UndeclaredAccessWarning,
    WaitTimeoutError,
)


class Frame:
    """An object of a class that weft knows nothing of."""


def test_a_result_is_the_returned_object() -> None:
    made = Frame()

    @weft.task
    def read() -> Frame:
        return made

    assert read().result(SOON) is made


def test_a_task_needs_no_tag() -> None:
    @weft.task
    def add(x: int, y: int = 1) -> int:
        return x + y

    assert add(1).result() == 2
    assert add(1, y=5).result() == 6


def test_results_are_awaited() -> None:
    @weft.task
    def word() -> str:
        return "woven"

    async def main() -> str:
        return await word()

    assert asyncio.run(main()) == "woven"


def test_handles_are_dependencies() -> None:
    gate = threading.Event()

    @weft.task
    def first() -> list[int]:
        gate.wait(SOON)
        return [1, 2]

    @weft.task
    def second(values: list[int]) -> int:
        return sum(values)

    found = second(first())
    assert not found.done()
    gate.set()
    assert found.result(SOON) == 3


@pytest.mark.parametrize("nest", [lambda a, b: [a, b], lambda a, b: (a, b), lambda a, b: {"a": a, "b": [b]}])
def test_handles_inside_of_containers(nest: Any) -> None:
    @weft.task
    def number(x: int) -> int:
        return x

    @weft.task
    def same(x: Any) -> Any:
        return x

    assert same(nest(number(1), number(2))).result() == nest(1, 2)
    assert same(x=nest(number(1), number(2))).result() == nest(1, 2)


def test_a_container_that_contains_itself_is_passed_on() -> None:
    loop: list[Any] = [1]
    loop.append(loop)

    @weft.task
    def same(x: Any) -> Any:
        return x

    assert same(loop).result() is loop


def test_what_containers_of_handles_share_stays_shared() -> None:
    @weft.task
    def number(x: int) -> int:
        return x

    @weft.task
    def same(*x: Any) -> Any:
        return x

    row = [number(1), number(2)]
    table, again = same([row, row, (row,)], row).result()
    assert table == [[1, 2], [1, 2], ([1, 2],)]
    assert table[0] is table[1] is table[2][0] is again
    tower: Any = row
    for _ in range(100):
        tower = [tower, {"as well": tower}]
    (tower,) = same(tower).result()
    for _ in range(100):
        assert tower[0] is tower[1]["as well"]
        tower = tower[0]
    assert tower == [1, 2]


def test_a_container_of_handles_that_contains_itself() -> None:
    @weft.task
    def number(x: int) -> int:
        return x

    @weft.task
    def same(x: Any) -> Any:
        return x

    listed, named, paired = [number(1)], {"one": number(1)}, ([number(1)],)
    listed.append(listed)
    named["itself"] = named
    paired[0].append(paired)
    found = same(listed).result()
    assert found[0] == 1
    assert found[1] is found
    found = same(named).result()
    assert found["one"] == 1
    assert found["itself"] is found
    assert same(paired).result()[0][0] == 1


def test_a_failed_task_fails_its_dependents() -> None:
    @weft.task
    def fails() -> int:
        raise LookupError("no such file")

    @weft.task
    def follows(x: int) -> int:
        return x

    broken = fails()
    handle = follows(broken)
    for each in (broken, handle):
        with pytest.raises(LookupError, match="no such file"):
            each.result()


def test_a_result_can_be_changed_by_a_tag() -> None:
    @weft.task
    def make() -> np.ndarray:
        return np.zeros(3)

    @weft.task
    def fill(x: weft.Mutate[np.ndarray], by: float) -> None:
        x += by

    @weft.task
    def total(x: weft.Read[np.ndarray]) -> float:
        assert not x.flags.writeable
        return float(x.sum())

    made = make()
    fill(made, 1.0)
    middle = total(made)
    fill(made, 1.0)
    assert middle.result() == 3.0
    assert made.result().tolist() == [2.0, 2.0, 2.0]


def test_arrays_of_handles_are_arrays_of_results() -> None:
    @weft.task
    def square(x: int) -> int:
        return x * x

    assert np.array([square(2), square(3)]).tolist() == [4, 9]
    assert (int(square(2)), float(square(3)), complex(square(4))) == (4, 9.0, 16)


def test_a_handle_is_as_true_as_its_result() -> None:
    @weft.task
    def is_below(x: int, y: int) -> bool:
        return x < y

    @weft.task
    def fail() -> None:
        raise KeyError("no truth")

    assert [k for k in range(4) if is_below(k, 2)] == [0, 1]
    assert not any([is_below(3, 2), is_below(2, 2)])
    with pytest.raises(KeyError, match="no truth"):
        bool(fail())
    with pytest.raises(ValueError, match="ambiguous"):
        bool(weft.task(lambda: np.ones(2))())


def test_memory_of_a_result_goes_with_its_last_handle() -> None:
    @weft.task
    def make() -> Frame:
        return Frame()

    handle = make()
    reference = weakref.ref(handle.result())
    handle.wait()
    assert reference() is not None
    del handle
    weft.wait()
    gc.collect()
    assert reference() is None


def test_a_result_takes_a_timeout() -> None:
    gate = threading.Event()

    @weft.task
    def slow() -> int:
        gate.wait(SOON)
        return 1

    handle = slow()
    with pytest.raises(WaitTimeoutError, match="slow"):
        handle.result(0.01)
    gate.set()
    assert handle.result(SOON) == 1


def test_retries_call_again() -> None:
    calls = []

    @weft.task(retries=2)
    def flaky(x: int) -> int:
        calls.append(x)
        if len(calls) < 3:
            raise OSError("busy")
        return x

    assert flaky(7).result() == 7
    assert calls == [7, 7, 7]

    @weft.task(retries=1)
    def broken() -> None:
        calls.append(0)
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        broken().result()
    assert calls.count(0) == 2


@pytest.mark.parametrize(
    ("retries", "error"), [(-1, ArgumentValueError), (1.5, ArgumentTypeError), (True, ArgumentTypeError)]
)
def test_retries_are_checked(retries: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="retries"):
        weft.task(retries=retries)


TOTALS = np.zeros(2)
TABLE = np.arange(3.0)
TABLE.flags.writeable = False


@pytest.mark.parametrize("decorator", [weft.task, weft.task(priority=1)], ids=["bare", "with options"])
def test_a_global_array_is_told_of(decorator: Any) -> None:
    with pytest.warns(
        UndeclaredAccessWarning, match=r"'add' refers to 'TOTALS', a NumPy array .*mutates=\[TOTALS\]"
    ) as told:

        @decorator
        def add() -> None:
            TOTALS[:] += 1

    assert told[0].filename == __file__


def test_a_closed_over_array_is_told_of() -> None:
    own, theirs = np.zeros(2), weft.zeros(2)
    with pytest.warns(UndeclaredAccessWarning) as told:

        @weft.task
        def add() -> object:
            return [own for _ in range(3)], theirs

    assert sorted(str(each.message).split("'")[3] for each in told) == ["own", "theirs"]


def test_declared_arrays_constants_and_attributes_are_not_told_of() -> None:
    class Holder:
        TOTALS = 1

    own = np.zeros(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @weft.task(mutates=[own], reads=[TOTALS])
        def add(x: Any) -> Any:
            own[:] += TOTALS
            return x.TOTALS, TABLE

        assert add(Holder).result()[0] == 1


def test_declared_arrays_order_calls() -> None:
    own = np.zeros(1)

    @weft.task(mutates=[own])
    def add() -> None:
        value = own[0]
        own[0] = value + 1

    for _ in range(200):
        add()
    weft.wait(own)
    assert own[0] == 200


@pytest.mark.parametrize("given", [np.zeros(3), "x", 5, weft.zeros(2)])
def test_declarations_are_lists(given: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"reads is a list of objects, as in reads=\[x\]"):
        weft.task(reads=given)


@pytest.mark.parametrize(("option", "tag"), [("reads", "Read"), ("mutates", "Mutate")])
def test_declarations_are_objects_and_no_names(option: str, tag: str) -> None:
    message = rf"{option} is a list of objects, .* and holds the name 'y': .* by weft\.{tag}$"
    with pytest.raises(ArgumentTypeError, match=message):
        weft.task(**{option: [np.zeros(3), "y"]})  # type: ignore[call-overload]


def test_notes_of_a_deep_failure_are_counted() -> None:
    with weft.Engine(workers=2) as engine:

        @weft.task(engine=engine)
        def deep(left: int) -> int:
            if not left:
                raise KeyError(left)
            return deep(left - 1).result()

        found = []
        for depth in (2, 40):
            with pytest.raises(KeyError) as caught:
                deep(depth).result()
            found.append([note.partition(" pushed at ")[0] for note in caught.value.__notes__])
    pushed = "weft: op 'deep'"
    # The outermost one is pushed at another line.
    assert found == [[pushed] * 3, [pushed, pushed, "weft: ... and 38 more like this", pushed]]


def test_arrays_of_tasks_count_as_pending_bytes() -> None:
    gate = threading.Event()
    with weft.Engine(workers=1, max_pending_bytes=1 << 20, on_limit="raise") as engine:

        @weft.task(engine=engine)
        def hold(x: weft.Read[np.ndarray]) -> int:
            gate.wait(SOON)
            return x.size

        batch = np.zeros(1 << 16)
        handles = [hold(batch) for _ in range(5)]  # the same memory counts once
        assert engine.stats()["pending_bytes"] == batch.nbytes
        handles.append(hold(np.zeros(1 << 15)))
        with pytest.raises(PendingLimitError):
            hold(np.zeros(1 << 16))
        gate.set()
        for handle in handles:
            handle.wait(SOON)
        assert hold(np.zeros(1 << 16)).result() == 1 << 16
