"""An overwrite of a whole array does not wait for ops that still use its values: it writes to other memory meanwhile."""

from __future__ import annotations

import gc
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, MakeEngine, RunScript, background, still_waits
from weft._core import push_compute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Elements of 8 bytes: enough to be worth it.
LENGTH = 20_000


class Reader:
    """Reads an array in an op that stays until the test lets it go."""

    def __init__(self) -> None:
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, out: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
        self.entered.set()
        assert self.opened.wait(6 * SOON)
        out[...] = x.sum()


@pytest.fixture
def use(make_engine: MakeEngine) -> Iterator[Callable[..., weft.Engine]]:
    """Make an engine the default one while the test runs."""
    previous = weft.get_engine()

    def make(*args: Any, **options: Any) -> weft.Engine:
        engine = make_engine(*args, **options)
        weft.set_engine(engine)
        return engine

    yield make
    weft.set_engine(previous)


@pytest.fixture
def held() -> Iterator[Callable[[weft.NDArray], tuple[Reader, weft.NDArray]]]:
    """Hold readers of arrays, which the end of the test lets go."""
    readers: list[Reader] = []

    def hold(x: weft.NDArray) -> tuple[Reader, weft.NDArray]:
        reader, total = Reader(), weft.empty(())
        readers.append(reader)
        push_compute(reader, (total,), (x,), name="read")
        assert reader.entered.wait(SOON)
        return reader, total

    yield hold
    for reader in readers:
        reader.opened.set()


OVERWRITES: dict[str, Callable[[weft.NDArray, weft.NDArray], object]] = {
    "copyfrom": lambda x, batch: x.copyfrom(batch),
    "item": lambda x, batch: x.__setitem__(..., batch),
    "slice": lambda x, batch: x.__setitem__(slice(None), batch),
    "out": lambda x, batch: weft.sin(batch, out=x),
    "numpy": lambda x, batch: push_compute(np.copyto, (x,), (batch,), name="load"),
}


@pytest.mark.parametrize("how", OVERWRITES)
def test_an_overwrite_does_not_wait_for_readers(use: Callable[..., weft.Engine], held: Any, how: str) -> None:
    use(3)
    x, batch = weft.ones(LENGTH), weft.zeros(LENGTH)
    view = x[5:]
    weft.get_engine().wait_for_all()
    version = x.version
    reader, total = held(x)
    OVERWRITES[how](x, batch)
    batch.wait_to_write(timeout=SOON)  # the overwrite has read it
    assert not x.is_ready()
    assert x.version == version + 1
    after = view.sum()
    reader.opened.set()
    assert total.item() == LENGTH
    assert after.item() == 0.0
    assert (x.numpy() == 0.0).all()


def test_a_limit_of_one_switches_it_off(use: Callable[..., weft.Engine], held: Any) -> None:
    assert use(3, rename_limit=1).rename_limit == 1
    x, batch = weft.ones(LENGTH), weft.full(LENGTH, 2.0)
    weft.get_engine().wait_for_all()
    reader, total = held(x)
    x.copyfrom(batch)
    wait = background(batch.wait_to_write)
    assert still_waits(wait)
    reader.opened.set()
    wait.result(SOON)
    assert total.item() == LENGTH
    assert (x.numpy() == 2.0).all()


@pytest.mark.parametrize("export", ["asarray", "buffer", "dlpack"])
def test_an_export_keeps_the_address(use: Callable[..., weft.Engine], held: Any, export: str) -> None:
    """One from before the overwrite makes it wait; one from after sees the values arrive where it looks."""
    use(3)
    x, batch = weft.ones(LENGTH), weft.full(LENGTH, 2.0)
    weft.get_engine().wait_for_all()
    exports: dict[str, Callable[[], Any]] = {
        "asarray": lambda: np.asarray(x),
        "buffer": lambda: np.frombuffer(x),
        "dlpack": lambda: np.from_dlpack(x),
    }
    seen = exports[export]()
    assert seen[0] == 1.0
    reader, _ = held(x)
    x.copyfrom(batch)
    wait = background(batch.wait_to_write)
    assert still_waits(wait)
    reader.opened.set()
    wait.result(SOON)
    x.wait_to_read()
    assert (seen == 2.0).all()
    assert np.asarray(x).ctypes.data == seen.ctypes.data


def test_no_more_memory_than_two_buffers(use: Callable[..., weft.Engine], held: Any) -> None:
    """It is the pool's again when the last reader of the old values is done."""
    use(3)
    length = 1 << 20
    x, batch = weft.ones(length), weft.full(length, 2.0)
    weft.get_engine().wait_for_all()
    gc.collect()
    before = weft.memory_stats()["in_use"]
    reader, total = held(x)
    for _ in range(20):
        x.copyfrom(batch)
    assert weft.memory_stats()["in_use"] <= before + x.nbytes + (1 << 18)
    reader.opened.set()
    weft.get_engine().wait_for_all()
    assert total.item() == length
    assert weft.memory_stats()["in_use"] <= before + (1 << 18)


def test_other_memory_counts_among_what_pending_ops_hold(use: Callable[..., weft.Engine], held: Any) -> None:
    length = 1 << 20
    engine = use(5, max_pending_bytes=12 << 20)
    arrays, batch = [weft.ones(length) for _ in range(3)], weft.full(length, 2.0)
    engine.wait_for_all()
    readers = [held(x) for x in arrays]
    before = weft.memory_stats()["in_use"]
    for x in arrays:  # without room for a second storage it waits, behind its readers
        x.copyfrom(batch)
    assert engine.stats()["pending_bytes"] >= 8 << 20
    assert weft.memory_stats()["in_use"] <= before + (8 << 20) + (1 << 18)
    for reader, _ in readers:
        reader.opened.set()
    engine.wait_for_all()
    assert [total.item() for _, total in readers] == [length] * 3
    assert [x.sum().item() for x in arrays] == [2 * length] * 3
    assert engine.stats()["pending_bytes"] == 0


def test_a_skipped_overwrite_is_recovered(use: Callable[..., weft.Engine], held: Any) -> None:
    use(3)
    x, batch = weft.ones(LENGTH), weft.ones(LENGTH)
    weft.get_engine().wait_for_all()
    reader, _ = held(x)

    def fail(_: object) -> None:
        message = "no batch"
        raise RuntimeError(message)

    push_compute(fail, (batch,), (), name="load")
    x.copyfrom(batch)
    reader.opened.set()
    with pytest.raises(RuntimeError, match="no batch"):
        x.wait_to_read()
    x.recover()
    assert (x.numpy() == 1.0).all()


def test_an_array_is_deleted_meanwhile(use: Callable[..., weft.Engine], held: Any) -> None:
    use(3)
    x, batch = weft.ones(LENGTH), weft.full(LENGTH, 2.0)
    weft.get_engine().wait_for_all()
    reader, total = held(x)
    x.copyfrom(batch)
    later = x * 3.0
    del x, batch
    gc.collect()
    reader.opened.set()
    assert total.item() == LENGTH
    assert (later.numpy() == 6.0).all()


def test_a_trace_has_the_storage(use: Callable[..., weft.Engine], held: Any) -> None:
    engine = use(3)
    x, batch = weft.ones(LENGTH), weft.full(LENGTH, 2.0)
    weft.get_engine().wait_for_all()
    with weft.trace(engine=engine) as trace:
        reader, _ = held(x)
        x.copyfrom(batch)
        reader.opened.set()
        engine.wait_for_all()
    assert "rename (storage 2 of 2)" in [trace.names[name] for name in trace.ops["name"]]


def turn(out: np.ndarray[Any, Any], given: np.ndarray[Any, Any]) -> None:
    """Write the values backwards."""
    np.copyto(out, given[::-1])


class Program:
    """A program of overwrites, changes, readers and exports, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.arrays = [weft.full(LENGTH, float(number)) for number in range(4)]
        self.views = [x[100:200] for x in self.arrays]
        self.exports: list[tuple[weft.NDArray, np.ndarray[Any, Any], int]] = []
        self.seen: list[Any] = []

    def overwrite(self, x: weft.NDArray, y: weft.NDArray) -> None:
        ways: list[Callable[[], object]] = [
            lambda: x.copyfrom(y),
            lambda: x.copyfrom(np.full(LENGTH, 7.0)),
            lambda: x.__setitem__(..., 3.0),
            lambda: weft.sin(y, out=x),
            lambda: push_compute(turn, (x,), (y,), name="turn") if x is not y else None,
        ]
        self.random.choice(ways)()

    def change(self, x: weft.NDArray, y: weft.NDArray) -> None:
        if self.random.random() < 0.5:
            self.random.choice(self.views)[...] = y[:100]
        else:
            x += 1.0

    def read(self, x: weft.NDArray, y: weft.NDArray) -> None:
        self.seen += [weft.cos(x), y.sum(), self.random.choice(self.views) * 2.0]

    def export(self, x: weft.NDArray, _: weft.NDArray) -> None:
        """Begin an export, or end one."""
        if len(self.exports) == 6 or self.random.random() < 0.3:
            del self.exports[:1]
            return
        export = np.asarray(x)
        self.seen.append(export.copy())
        self.exports.append((x, export, export.ctypes.data))

    def run(self, steps: int) -> list[bytes]:
        """Answer the bits of all that was seen."""
        kinds = [self.overwrite] * 5 + [self.read] * 5 + [self.change] * 2 + [self.export]
        for _ in range(steps):
            self.random.choice(kinds)(self.random.choice(self.arrays), self.random.choice(self.arrays))
        weft.get_engine().wait_for_all()
        for x, export, address in self.exports:
            assert np.asarray(x).ctypes.data == address
            self.seen.append(export.copy())
        return [np.asarray(value).tobytes() for value in (*self.seen, *self.arrays, *self.views)]


@pytest.mark.parametrize("seed", range(12))
def test_programs_give_the_bits_of_the_serial_policy(use: Callable[..., weft.Engine], seed: int) -> None:
    use(policy="serial")
    wanted = Program(seed).run(60)
    settings = [(1, "work_stealing", 2), (4, "work_stealing", 2), (2, "work_stealing", 3), (2, f"shuffled:{seed}", 2)]
    for workers, policy, limit in settings:
        use(workers, policy, rename_limit=limit)
        assert Program(seed).run(60) == wanted, (workers, policy, limit)


@pytest.mark.parametrize(
    ("limit", "error"),
    [
        (0, weft.errors.ArgumentValueError),
        (-1, weft.errors.ArgumentValueError),
        (65, weft.errors.ArgumentValueError),
        ("two", weft.errors.ArgumentTypeError),
        (1.5, weft.errors.ArgumentTypeError),
    ],
)
def test_an_impossible_limit_is_refused(limit: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="rename_limit"):
        weft.Engine(rename_limit=limit)


@pytest.mark.parametrize(("value", "told"), [("1", "1"), ("3", "3"), ("", "2"), ("none", "refused"), ("0", "refused")])
def test_the_environment_sets_the_limit(script: RunScript, value: str, told: str) -> None:
    done = script(
        """
        import weft
        try:
            print(weft.get_engine().rename_limit)
        except weft.errors.ArgumentValueError as error:
            assert "WEFT_RENAME_LIMIT" in str(error), error
            print("refused")
        """,
        WEFT_RENAME_LIMIT=value,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == told


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")
def test_without_memory_it_waits(script: RunScript) -> None:
    done = script("""
        import resource, threading
        import numpy as np
        import weft
        from weft._core import push_compute

        engine = weft.Engine(3)
        weft.set_engine(engine)
        x, batch, total = weft.ones(1 << 26), weft.full(1 << 26, 2.0), weft.empty(())
        entered, opened = threading.Event(), threading.Event()

        def read(out, values):
            entered.set()
            assert opened.wait(60)
            out[...] = values[:10].sum()

        for _ in range(3):
            engine.push(int)
        weft.get_engine().wait_for_all()
        with weft.trace(engine=engine) as trace:
            push_compute(read, (total,), (x,), name="read")
            assert entered.wait(60)
            used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
            _, hard = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20), hard))
            x.copyfrom(batch)
            opened.set()
            engine.wait_for_all()
        assert "not renamed: out of memory" in [trace.names[name] for name in trace.ops["name"]], [trace.names[name] for name in trace.ops["name"]]
        assert total.item() == 10
        assert x[12345].item() == 2.0
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_a_child_goes_on_with_renamed_arrays(script: RunScript) -> None:
    done = script("""
        import os, warnings
        import weft
        warnings.simplefilter("ignore", DeprecationWarning)

        x, batches = weft.ones(100_000), [weft.full(100_000, float(number)) for number in range(4)]
        weft.get_engine().wait_for_all()
        for number in range(100):
            for batch in batches:
                x.copyfrom(batch)
                total = x.sum()
            pid = os.fork()
            if not pid:
                y = weft.ones(100_000)
                for batch in batches:
                    y.copyfrom(batch)
                    seen = y.sum()
                x.copyfrom(batches[1])
                os._exit(0 if seen.item() == 300_000 and x.sum().item() == 100_000 else 1)
            assert os.waitpid(pid, 0)[1] == 0
        assert total.item() == 300_000
    """)
    assert done.returncode == 0, done.stderr
