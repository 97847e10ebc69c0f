"""The memory of arrays: allocated when an op fills it, freed after its last reader, reused, and never growing."""

from __future__ import annotations

import gc
import threading
import traceback
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, Gate, MakeEngine, RunScript, background, still_waits
from weft._core import push_compute

if TYPE_CHECKING:
    from collections.abc import Iterator

MB = 1 << 20
#: What the bookkeeping of blocks may add to the bytes of arrays.
SLACK = MB // 4


def in_use() -> int:
    """Bytes of blocks that hold an array's values."""
    gc.collect()
    return weft.memory_stats()["in_use"]


@pytest.fixture(params=["work_stealing", "per_device"])
def engine(request: pytest.FixtureRequest, make_engine: MakeEngine, gates: object) -> Iterator[weft.Engine]:  # noqa: ARG001 - gates open before engines close
    """An engine with one worker, the default one while the test runs."""
    # What is pushed behind a gate has room, however little memory the machine has.
    made, previous = make_engine(1, request.param, max_pending_bytes=1 << 40), weft.get_engine()
    weft.set_engine(made)
    yield made
    weft.set_engine(previous)


class Reader:
    """Reads an array in an op that stays until the test lets it go."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
        self.entered.set()
        assert self.opened.wait(SOON)
        out[...] = x.sum()


def test_stats_are_counts_of_bytes() -> None:
    stats = weft.memory_stats()
    assert set(stats) >= {"allocated", "in_use", "cached", "peak"}
    assert all(isinstance(value, int) and value >= 0 for value in stats.values())
    assert stats["in_use"] + stats["cached"] <= stats["allocated"] + SLACK


def test_storage_is_allocated_when_the_op_that_fills_it_runs(engine: weft.Engine, gate: Gate) -> None:
    a = weft.ones(MB, dtype=weft.float64)
    a.wait_to_read()
    gate.hold(engine)
    before = in_use()
    results = [a + float(i) for i in range(8)]
    assert in_use() - before <= SLACK, "nothing has run yet"
    gate.open()
    engine.wait_for_all(timeout=SOON)
    assert abs(in_use() - before - 8 * a.nbytes) <= SLACK
    assert [float(r[0]) for r in results] == [1.0 + i for i in range(8)]


def test_an_empty_array_that_nobody_writes_takes_no_memory(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    before = in_use()
    arrays = [weft.empty(64 * MB) for _ in range(1000)]
    assert in_use() - before <= SLACK
    assert len(arrays) == 1000


def test_a_dropped_handle_frees_after_its_last_reader(engine: weft.Engine) -> None:
    before = in_use()
    x, total, reader = weft.ones(MB, dtype=weft.float64), weft.empty(()), Reader()
    push_compute(reader, (total,), (x,))
    del x
    assert reader.entered.wait(SOON)
    assert in_use() - before >= 8 * MB, "the reader needs it"
    reader.opened.set()
    engine.wait_for_all(timeout=SOON)
    assert float(total) == MB
    assert in_use() - before <= SLACK


def test_a_handle_dropped_when_all_is_done_frees_at_once(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    before = in_use()
    x = weft.ones(MB, dtype=weft.float64)
    x.wait_to_read()
    assert in_use() - before >= 8 * MB
    del x
    assert in_use() - before <= SLACK


@pytest.mark.slow
def test_ops_that_are_computed_together_hand_on_their_memory(engine: weft.Engine, gate: Gate) -> None:
    size = MB  # of 8 bytes: large ones are computed block by block
    x = weft.ones(size)
    x.wait_to_read()
    gate.hold(engine)
    weft.memory_trim()
    before = in_use()
    y, values = x, np.ones(size)
    for _ in range(40):  # all pushed before any runs; each y is read twice, by different ops
        t = weft.exp(y * -0.5)
        y = t * 0.5 + y * 0.25
    del t
    gate.open()
    y.wait_to_read()
    for _ in range(40):
        values = np.exp(values * -0.5) * 0.5 + values * 0.25
    np.testing.assert_array_equal(y.numpy(), values)
    assert weft.memory_stats()["peak"] - before <= 4 * 8 * size + SLACK


def test_a_handle_keeps_its_values_from_what_is_computed_with_it(engine: weft.Engine, gate: Gate) -> None:
    x = weft.ones(MB)
    x.wait_to_read()
    gate.hold(engine)
    first = x + 1
    second = first * first
    third = second - first
    gate.open()
    assert [float(array[-1]) for array in (first, second, third)] == [2, 4, 2]


def test_a_view_keeps_the_memory(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    before = in_use()
    x = weft.ones(MB, dtype=weft.float64)
    view = x[5:7]
    x.wait_to_read()
    del x
    assert in_use() - before >= 8 * MB
    assert view.numpy().tolist() == [1.0, 1.0]
    del view
    assert in_use() - before <= SLACK


def test_an_export_keeps_the_memory(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    before = in_use()
    x = weft.ones(MB, dtype=weft.float64)
    exported = np.asarray(x)
    del x
    assert in_use() - before >= 8 * MB
    assert exported.sum() == MB
    del exported
    assert in_use() - before <= SLACK


def test_results_of_failed_ops_leave_nothing(engine: weft.Engine) -> None:
    def fail(out: np.ndarray[Any, Any]) -> None:
        raise OSError(out.shape)

    before = in_use()
    for _ in range(20):
        x = weft.empty(MB)
        push_compute(fail, (x,), ())
        y = x + 1.0
        with pytest.raises(OSError, match=str(MB)):
            y.wait_to_read(SOON)
        del x, y
    engine.wait_for_all(timeout=SOON)  # raises nothing: all failures were reported
    assert in_use() - before <= SLACK


def test_freed_blocks_are_reused(engine: weft.Engine) -> None:
    a = weft.ones(MB, dtype=weft.float64)
    for _ in range(4):
        (a + 1.0).wait_to_read()
    gc.collect()
    before = weft.memory_stats()["allocated"]
    for i in range(50):
        b = a * float(i)
        b.wait_to_read()
    engine.wait_for_all(timeout=SOON)
    assert weft.memory_stats()["allocated"] - before <= 2 * a.nbytes, "fifty results in the blocks of two"


def test_trim_gives_back_what_is_cached(engine: weft.Engine) -> None:
    a = weft.ones(MB, dtype=weft.float64)
    (a + 1.0).wait_to_read()
    engine.wait_for_all(timeout=SOON)
    gc.collect()
    weft.memory_trim()
    stats = weft.memory_stats()
    assert stats["cached"] == 0
    assert stats["in_use"] >= a.nbytes
    assert float(weft.sum(a)) == MB


def test_a_push_over_the_bytes_blocks(make_engine: MakeEngine, gate: Gate) -> None:
    engine = make_engine(1, max_pending_bytes=4 * MB)
    previous = weft.get_engine()
    weft.set_engine(engine)
    try:
        a = weft.ones(MB, dtype=weft.int8)
        a.wait_to_read()
        gate.hold(engine)
        results = background(lambda: [a + a for _ in range(8)])
        assert still_waits(results)
        assert engine.stats()["pending_bytes"] <= 4 * MB
        gate.open()
        assert all(int(r[-1]) == 2 for r in results.result(SOON))
    finally:
        gate.open()
        weft.set_engine(previous)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["work_stealing", "per_device", "serial"])
def test_a_loop_of_temporaries_stays_within_its_bytes(script: RunScript, policy: str) -> None:
    """Two thousand temporaries of 1 MB: the peak is the limit on pending bytes and what the program holds."""
    source = f"""
    import weft
    MB = 1 << 20
    weft.set_engine(weft.Engine(2, {policy!r}, max_pending_bytes=64 * MB))
    a, b = weft.ones(MB // 8), weft.ones(MB // 8)
    for i in range(2000):
        c = a + b
    weft.wait_all(timeout=60)
    live = a.nbytes + b.nbytes + 2 * c.nbytes  # the name `c` holds the old result until the new one is made
    assert float(c[-1]) == 2.0
    print(weft.memory_stats()["peak"] - live)
    for i in range(500):
        c = weft.sqrt(weft.abs(a * 2.0 - b)) + a  # temporaries nobody holds
    weft.wait_all(timeout=60)
    assert float(c[-1]) == 2.0
    print(weft.memory_stats()["peak"] - live)
    """
    done = script(source)
    assert done.returncode == 0, done.stderr
    for peak in done.stdout.split():
        assert int(peak) <= 64 * MB + SLACK


MILLION = """
    import gc, psutil, threading
    import weft
    from weft._core import push_compute

    def resident():
        gc.collect()
        return psutil.Process().memory_info().rss

    weft.set_engine(weft.Engine({workers}, {policy!r}, max_pending_ops=4096))
    a, x = weft.ones(16, dtype=weft.float32), weft.zeros(16, dtype=weft.float32)
    view = x[3:9]
    # So many ops as may wait at most do so once, before anything is measured.
    def fill():
        entered, opened = threading.Event(), threading.Event()
        def gate(view):
            entered.set()
            opened.wait()
        full = weft.zeros(16)
        push_compute(gate, (full,), ())
        entered.wait()
        while weft.get_engine().pending < 4096:
            full += 1.0
        opened.set()
        weft.wait_all(timeout=60)
    if {policy!r} != "serial":  # whose ops never wait
        fill()
    sizes, blocks = [], []
    for _ in range(5):
        for i in range({rounds}):
            c = a + a
            c = c * a
            view += 1.0
            x -= c
        weft.wait_all(timeout=60)
        sizes.append(resident())
        blocks.append(weft.memory_stats()["allocated"])
    wanted = [{rounds} * 5 * (-2.0 + (3 <= i < 9)) for i in range(16)]
    assert x.numpy().tolist() == wanted, x.numpy()
    print(*sizes)
    print(*blocks)
    assert x.version == 2 * {rounds} * 5 + 1, x.version
"""


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "workers"), [("work_stealing", 2), ("per_device", 1), ("serial", 1)])
def test_memory_stays_flat_over_a_million_ops(script: RunScript, policy: str, workers: int) -> None:
    """Five rounds of 200,000 small ops: what the first took is what the others live on."""
    done = script(MILLION.format(policy=policy, workers=workers, rounds=50_000))
    assert done.returncode == 0, done.stderr
    sizes, blocks = ([int(size) for size in line.split()] for line in done.stdout.splitlines())
    assert max(sizes[1:]) - sizes[0] <= 8 * MB, sizes
    assert max(blocks[1:]) - blocks[0] <= MB, blocks


def test_memory_stays_flat_over_views_and_slices(script: RunScript) -> None:
    """A buffer that is split into ever other ranges forgets the old ones."""
    source = """
    import gc, psutil, threading
    import weft
    from weft._core import push_compute

    def resident():
        gc.collect()
        return psutil.Process().memory_info().rss

    weft.set_engine(weft.Engine(2, max_pending_ops=4096))
    entered, opened = threading.Event(), threading.Event()
    def gate(view):
        entered.set()
        opened.wait()
    full = weft.zeros(16)
    push_compute(gate, (full,), ())
    entered.wait()
    while weft.get_engine().pending < 4096:
        full += 1.0
    opened.set()
    weft.wait_all(timeout=60)
    x, sizes = weft.zeros(4096), []
    for _ in range(5):
        for i in range(10_000):
            start, length = (i * 997) % 4000, 1 + (i * 31) % 96
            x[start : start + length] += 1.0
            if i % 50 == 0:
                x *= 0.5
        weft.wait_all(timeout=60)
        sizes.append(resident())
    print(*sizes)
    """
    done = script(source)
    assert done.returncode == 0, done.stderr
    sizes = [int(size) for size in done.stdout.split()]
    assert max(sizes[1:]) - sizes[0] <= 4 * MB, sizes


@pytest.mark.slow
def test_three_hundred_sorts_do_not_pile_up(script: RunScript) -> None:
    """Temporaries of 4 MB in a loop that waits for nothing: the limit that an engine has by itself bounds them."""
    source = """
    import sys, time
    import psutil
    import weft

    def peak():
        if sys.platform == "win32":
            return psutil.Process().memory_info().peak_wset
        import resource
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit

    x = weft.random.default_rng(1).standard_normal(1 << 19)
    weft.wait_all(timeout=60)
    before = peak()
    totals = [weft.sort(x * float(i)).sum() for i in range(300)]
    weft.wait_all(timeout=60)
    print(peak() - before)
    deadline = time.monotonic() + 60
    while weft.memory_stats()["cached"] and time.monotonic() < deadline:
        time.sleep(0.05)  # nobody tells when a worker has given memory back
    print(weft.memory_stats()["cached"])
    """
    done = script(source)
    assert done.returncode == 0, done.stderr
    most, kept = map(int, done.stdout.split())
    assert most < 1000 * MB
    assert kept == 0, "what nobody uses is given back"


def test_failures_that_were_reported_go_with_their_arrays() -> None:
    """A traceback leads to the frames of the wait, and these to the array whose failure it is: a circle through the core."""
    engine = weft.Engine(2)
    x = weft.zeros((2, 2), engine=engine) - 1.0

    def alive() -> int:
        gc.collect()
        return sum(type(each) is np.linalg.LinAlgError for each in gc.get_objects())

    def fail() -> None:
        with pytest.raises(np.linalg.LinAlgError):
            weft.linalg.cholesky(x).numpy()

    before, counts = alive(), []
    for _ in range(4):
        for _ in range(250):
            fail()
        counts.append(alive() - before)
    assert max(counts) <= 32, counts
    # What somebody handles is whole, and so is what is raised again.
    y = weft.linalg.cholesky(x)
    with pytest.raises(np.linalg.LinAlgError) as first:
        y.numpy()
    for _ in range(50):
        fail()
    assert "test_failures_that_were_reported" in "".join(map(str, traceback.extract_tb(first.value.__traceback__)))
    with pytest.raises(np.linalg.LinAlgError) as again:
        y.wait_to_read()
    assert again.value is first.value
    engine.close(cancel=True)


@pytest.mark.slow
def test_memory_stays_flat_over_failures(script: RunScript) -> None:
    done = script(
        """
        import gc, os
        import numpy as np
        import weft

        def resident():
            gc.collect()
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

        x, sizes = weft.zeros((2, 2)) - 1.0, []
        for _ in range(8):
            for _ in range(4_000):
                try:
                    weft.linalg.cholesky(x).numpy()
                except np.linalg.LinAlgError:
                    pass
            sizes.append(resident())
        print(*sizes)
        """
    )
    assert done.returncode == 0, done.stderr
    sizes = [int(size) for size in done.stdout.split()]
    assert max(sizes[1:]) - sizes[0] <= 4 * MB, sizes
