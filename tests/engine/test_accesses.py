"""Read, mutate, overwrite: who runs beside whom, and in which order."""

from __future__ import annotations

import threading
from itertools import count
from random import Random
from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON, Gate, MakeEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft


@pytest.fixture(params=["work_stealing", "per_device"])
def eight(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - gates open before engines close
    """Eight workers, so that only the order of accesses holds an op back."""
    return make_engine(8, request.param)


def test_readers_run_together(eight: weft.Engine) -> None:
    x, meet = eight.new_variable(), threading.Barrier(4)
    for _ in range(4):
        eight.push(lambda: meet.wait(SOON), (x,))
    eight.wait_for_all()


def test_readers_wait_for_the_writer_before_them(eight: weft.Engine, gate: Gate) -> None:
    x, read = eight.new_variable(), threading.Event()
    gate.hold(eight, mutate=(x,))
    eight.push(read.set, (x,))
    assert not read.wait(MOMENT)
    gate.open()
    assert read.wait(SOON)


@pytest.mark.parametrize("kind", ["mutate_vars", "overwrite_vars"])
def test_writer_waits_for_the_readers_before_it(eight: weft.Engine, gates: Callable[[], Gate], kind: str) -> None:
    x, wrote = eight.new_variable(), threading.Event()
    readers = [gates(), gates()]
    for reader in readers:
        eight.push(reader, (x,))
    assert all(reader.entered.wait(SOON) for reader in readers)
    eight.push(wrote.set, **{kind: (x,)})
    readers[0].open()
    assert not wrote.wait(MOMENT)
    readers[1].open()
    assert wrote.wait(SOON)


@pytest.mark.parametrize("kind", ["mutate_vars", "overwrite_vars"])
def test_no_reader_overtakes_a_queued_writer(eight: weft.Engine, gate: Gate, kind: str) -> None:
    x, order = eight.new_variable(), list[str]()
    eight.push(gate, (x,))
    assert gate.entered.wait(SOON)
    eight.push(lambda: order.append("writer"), **{kind: (x,)})
    eight.push(lambda: order.append("reader"), (x,))
    free = threading.Event()
    eight.push(free.set)
    assert free.wait(SOON), "a worker was free"
    assert order == []
    gate.open()
    eight.wait_for_all()
    assert order == ["writer", "reader"]


def test_a_writer_is_not_starved_by_readers(eight: weft.Engine) -> None:
    """Readers that each push the next one before they end keep the variable in use for ever; a writer comes through."""
    x, wrote, turns = eight.new_variable(), threading.Event(), count()

    def reader() -> None:
        if not wrote.is_set() and next(turns) < 100_000:
            eight.push(reader, (x,))

    for _ in range(4):
        eight.push(reader, (x,))
    eight.push(wrote.set, (), (x,))
    assert wrote.wait(SOON)
    assert next(turns) < 100_000


@pytest.mark.usefixtures("often")
def test_writers_are_alone_and_readers_see_no_writer(eight: weft.Engine) -> None:
    random = Random(20_240)
    x, order = eight.new_variable(), list[int]()
    readers = writers = 0
    lock, faults = threading.Lock(), list[str]()

    def read(expected: int) -> None:
        nonlocal readers
        with lock:
            readers += 1
            if writers or len(order) != expected:
                faults.append(f"reader of {expected} met {writers} writers and {len(order)} versions")
        with lock:
            readers -= 1

    def write(i: int) -> None:
        nonlocal writers
        with lock:
            writers += 1
            if writers > 1 or readers:
                faults.append(f"writer {i} met {writers - 1} writers and {readers} readers")
        order.append(i)
        with lock:
            writers -= 1

    version = 0
    for _ in range(5000):
        if random.random() < 0.4:
            kind = random.choice(["mutate_vars", "overwrite_vars"])
            eight.push(lambda i=version: write(i), **{kind: (x,)})
            version += 1
        else:
            eight.push(lambda v=version: read(v), (x,))
    eight.wait_for_all()
    assert faults == []
    assert order == list(range(version))


@pytest.mark.parametrize(
    ("read", "mutate", "overwrite", "versions"),
    [
        (2, 0, 0, 0),
        (1, 1, 0, 1),
        (0, 2, 0, 1),
        (0, 0, 2, 1),
        (1, 0, 1, 1),
        (0, 1, 1, 1),
        (3, 2, 2, 1),
    ],
)
def test_a_variable_named_twice_merges(
    engine: weft.Engine, read: int, mutate: int, overwrite: int, versions: int
) -> None:
    x, y, ran = engine.new_variable(), engine.new_variable(), list[int]()
    for i in range(3):
        engine.push(lambda i=i: ran.append(i), [x, y] * read, [x] * mutate, overwrite_vars=[x] * overwrite)
    engine.wait_for_all(timeout=SOON)
    assert ran == [0, 1, 2] or (versions == 0 and sorted(ran) == [0, 1, 2])
    assert x.version == x.completed_version == 3 * versions


@pytest.mark.parametrize(("read", "mutate"), [(1, 0), (0, 1), (1, 1)])
def test_overwrite_beside_read_or_mutate_is_a_mutate(engine: weft.Engine, read: int, mutate: int) -> None:
    """Such an op sees the old value: on a failed one it is skipped, and does not clear the failure."""
    x, ran = engine.new_variable(), list[str]()
    engine.push(lambda: 1 / 0, (), (x,))
    engine.push(lambda: ran.append("ran"), [x] * read, [x] * mutate, overwrite_vars=[x])
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_var(x)
    assert ran == []


def test_accesses_to_several_variables_hold_together(many: weft.Engine, gate: Gate) -> None:
    x, y, z, order = many.new_variable(), many.new_variable(), many.new_variable(), list[str]()
    gate.hold(many, mutate=(x,))
    many.push(lambda: order.append("both"), (x,), (y,))
    many.push(lambda: order.append("after"), (), (y,))
    many.push(lambda: order.append("free"), (), (z,))
    many.wait_for_var(z)
    assert order == ["free"]
    gate.open()
    many.wait_for_all()
    assert order == ["free", "both", "after"]
