"""Back-pressure: limits on pending ops and their bytes, and memory that stays flat."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON, Gate, MakeEngine, RunScript, background, still_waits
from weft import errors

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["work_stealing", "per_device"])
def policy(request: pytest.FixtureRequest, gates: object) -> str:  # noqa: ARG001 - gates open before engines close
    """Policies under which ops can be pending."""
    return str(request.param)


def test_a_push_over_the_limit_blocks_until_an_op_is_done(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine, ran = make_engine(1, policy, max_pending_ops=4), threading.Event()
    gate.hold(engine)
    for _ in range(3):
        engine.push(lambda: None)
    pusher = background(lambda: engine.push(ran.set))
    assert still_waits(pusher)  # with the GIL released: this thread runs on
    assert engine.pending == 4
    gate.open()
    pusher.result(SOON)
    assert ran.wait(SOON)


def test_or_raises_where_asked_to(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine = make_engine(1, policy, max_pending_ops=4, on_limit="raise")
    x, ran = engine.new_variable(), list[int]()
    gate.hold(engine)
    for i in range(3):
        engine.push(lambda i=i: ran.append(i), (), (x,))
    for _ in range(2):
        with pytest.raises(errors.PendingLimitError, match=r"5 ops would be pending, .* limit is 4.* max_pending_ops"):
            engine.push(lambda: ran.append(9), (), (x,))
    assert (x.version, engine.pending) == (3, 4)
    gate.open()
    engine.wait_for_all()
    engine.push(lambda: ran.append(3), (), (x,))
    engine.wait_for_all()
    assert ran == [0, 1, 2, 3]


def test_bytes_block(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine = make_engine(1, policy, max_pending_bytes=1000)
    gate.hold(engine, nbytes=600)
    engine.push(lambda: None, nbytes=400)
    assert engine.stats()["pending_bytes"] == 1000
    engine.push(lambda: None)  # holds no bytes: goes through
    pusher = background(lambda: engine.push(lambda: None, nbytes=1))
    assert still_waits(pusher)
    gate.open()
    pusher.result(SOON)
    engine.wait_for_all()
    assert engine.stats()["pending_bytes"] == 0


def test_bytes_raise(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine = make_engine(1, policy, max_pending_bytes=1000, on_limit="raise")
    gate.hold(engine, nbytes=600)
    with pytest.raises(errors.PendingLimitError):
        engine.push(lambda: None, nbytes=401)
    engine.push(lambda: None, nbytes=400)
    assert engine.stats()["pending_bytes"] == 1000


def test_a_loop_of_temporaries_stays_within_its_bytes(make_engine: MakeEngine, policy: str) -> None:
    engine, live, most = make_engine(2, policy, max_pending_bytes=8 << 20), 0, 0
    lock = threading.Lock()

    def drop() -> None:
        nonlocal live
        with lock:
            live -= 1

    for _ in range(500):
        with lock:
            live += 1
            most = max(most, live)
        engine.push(drop, nbytes=1 << 20)
    engine.wait_for_all()
    assert live == 0
    assert most <= 9, "eight pending, one about to be pushed"


def test_pushes_from_inside_ops_are_exempt(make_engine: MakeEngine, policy: str) -> None:
    engine = make_engine(1, policy, max_pending_ops=2, max_pending_bytes=10)
    x, ran = engine.new_variable(), list[int]()

    def outer() -> None:
        for i in range(100):
            engine.push(lambda i=i: ran.append(i), (), (x,), nbytes=10)

    engine.push(outer)
    engine.wait_for_all(timeout=SOON)
    engine.wait_for_var(x, timeout=SOON)
    assert ran == list(range(100))


def test_many_threads_share_a_small_limit(make_engine: MakeEngine, policy: str) -> None:
    engine, lock, ran = make_engine(2, policy, max_pending_ops=3), threading.Lock(), 0

    def add() -> None:
        nonlocal ran
        with lock:
            ran += 1

    pushers = [background(lambda: [engine.push(add) for _ in range(2000)]) for _ in range(4)]
    for pusher in pushers:
        pusher.result(SOON)
    engine.wait_for_all()
    assert ran == 8000


def test_closing_frees_a_blocked_pusher(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine = make_engine(1, policy, max_pending_ops=1)
    gate.hold(engine)
    pusher = background(lambda: engine.push(lambda: None))
    assert still_waits(pusher)
    closer = background(lambda: engine.close(cancel=True))
    assert isinstance(pusher.exception(SOON / 4), errors.EngineClosedError)  # the gate is still shut
    gate.open()
    closer.result(SOON)


MEMORY = """
    import ctypes, gc, threading
    import psutil
    import weft

    def resident():
        gc.collect()
        return psutil.Process().memory_info().rss

    kind, library = {kind!r}, ctypes.CDLL({library!r})
    engine = weft.Engine(2, max_pending_ops={limit})
    x, y, z = (engine.new_variable() for _ in range(3))
    wide = [engine.new_variable() for _ in range(1024)]
    def body(): pass
    address = ctypes.cast(library.succeed, ctypes.c_void_p).value
    def push(reads, mutates):
        if kind == "native":
            engine.push_native(address, 0, reads, mutates)
        else:
            engine.push(body, reads, mutates)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["native", "callable"])
def test_a_pending_op_holds_at_most_256_bytes(script: RunScript, native_path: Path, kind: str) -> None:
    source = (
        MEMORY
        + """
    N = 300_000
    entered, opened = threading.Event(), threading.Event()
    def gate():
        entered.set()
        opened.wait()
    engine.push(gate, (), (x, y, z))
    entered.wait()
    before = resident()
    for i in range(N):
        push((x, y), (z,))
    grown = resident() - before
    assert engine.pending == N + 1
    opened.set()
    engine.wait_for_all()
    print(grown / N)
    """
    )
    done = script(source.format(kind=kind, library=str(native_path), limit=1 << 20))
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) <= 256


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["native", "callable"])
def test_memory_stays_flat(script: RunScript, native_path: Path, kind: str) -> None:
    """Six rounds of 300,000 ops: what the first two rounds took is what the others live on.

    The queue is filled to its limit before, so that no round is the first in which so many ops wait.
    """
    source = (
        MEMORY
        + """
    N = 100_000
    entered, opened = threading.Event(), threading.Event()
    def gate():
        entered.set()
        opened.wait()
    engine.push(gate, (), (x,))
    entered.wait()
    while engine.pending < {limit}:
        push((x,), (wide[engine.pending & 1023],))
    opened.set()
    engine.wait_for_all()
    sizes = []
    for _ in range(6):
        for i in range(N):
            push((), (x,))
            push((x,), (wide[i & 1023],))
            push((wide[(7 * i) & 1023], x), (y,))
        engine.wait_for_all()
        sizes.append(resident())
    print(*sizes)
    """
    )
    done = script(source.format(kind=kind, library=str(native_path), limit=10_000))
    assert done.returncode == 0, done.stderr
    sizes = [int(size) for size in done.stdout.split()]
    assert max(sizes[2:]) - sizes[1] <= 16 << 20, sizes


def test_a_blocked_push_has_changed_nothing_yet(make_engine: MakeEngine, policy: str, gate: Gate) -> None:
    engine = make_engine(1, policy, max_pending_ops=1)
    x = engine.new_variable()
    engine.push(lambda: None, (), (x,))
    engine.wait_for_all()
    gate.hold(engine)
    pusher = background(lambda: engine.push(lambda: None, (), (x,)))
    assert still_waits(pusher)
    engine.wait_for_var(x, timeout=SOON)
    assert (x.version, x.is_ready()) == (1, True)
    with pytest.raises(errors.WaitTimeoutError):
        engine.wait_for_all(timeout=MOMENT)
    gate.open()
    pusher.result(SOON)
    engine.wait_for_all(timeout=SOON)
    assert x.version == 2


@pytest.mark.slow
def test_variables_and_engines_come_and_go(script: RunScript) -> None:
    """Neither a hundred thousand variables nor a hundred engines leave anything behind."""
    source = """
    import gc, threading
    import psutil
    import weft

    def resident():
        gc.collect()
        return psutil.Process().memory_info().rss

    sizes = []
    for _ in range(5):
        with weft.Engine(2, max_pending_ops=4096) as engine:  # as many wait at most, however busy the machine is
            for _ in range(40_000):
                x = engine.new_variable()
                engine.push(int, (), (x,))
                engine.delete_variable(x)
            engine.wait_for_all()
        for _ in range(20):
            with weft.Engine(2) as engine:
                engine.push(int)
                engine.wait_for_all()
        sizes.append(resident())
    assert threading.active_count() == 1
    print(*sizes, psutil.Process().num_threads())
    """
    done = script(source)
    assert done.returncode == 0, done.stderr
    *sizes, threads = (int(word) for word in done.stdout.split())
    assert max(sizes[2:]) - sizes[1] <= 16 << 20, sizes
    assert threads < 20, "closed engines keep no threads"


def test_limits_can_be_asked_for(make_engine: MakeEngine) -> None:
    engine = make_engine(1, max_pending_ops=3, max_pending_bytes=1000, on_limit="raise")
    assert (engine.max_pending_ops, engine.max_pending_bytes, engine.on_limit) == (3, 1000, "raise")
    usual = make_engine(1)
    assert usual.on_limit == "block"
    assert usual.max_pending_bytes is None or usual.max_pending_bytes >= 256 << 20  # a share of the memory
