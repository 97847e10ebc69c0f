"""An overwrite of a whole array does not wait for ops that still use its values: it writes to other memory meanwhile."""

from __future__ import annotations

import ctypes
import gc
import pickle
import random
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, MakeEngine, RunScript, address_of, background, still_waits
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


@weft.task
def fill(x: weft.Overwrite[Any], value: float) -> None:
    """Fill an array."""
    x[...] = value


def copy_beside_a_reader(x: weft.NDArray, held: Any, value: float, *, waits: bool) -> None:
    """Overwrite an array while an op reads the values before: the copy waits for it, or does not."""
    batch = weft.full(LENGTH, value)
    before = float(x[0])
    batch.wait_to_read()
    reader, total = held(x)
    x.copyfrom(batch)
    copied = background(batch.wait_to_write)
    if waits:
        assert still_waits(copied)
    else:
        copied.result(SOON)
    reader.opened.set()
    copied.result(SOON)
    assert total.item() == LENGTH * before
    x.wait_to_read()


EXPORTS: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "part": lambda x: np.asarray(x)[10:20].reshape(2, 5).T,
    "buffer": lambda x: np.frombuffer(x),  # noqa: PLW0108 - overloads
    "memoryview": lambda x: memoryview(x),  # noqa: PLW0108 - a class
    "dlpack": lambda x: np.from_dlpack(x),  # noqa: PLW0108 - takes its argument by place
}


@pytest.mark.parametrize("export", EXPORTS)
def test_an_export_keeps_the_address_while_it_lives(use: Callable[..., weft.Engine], held: Any, export: str) -> None:
    """One from before the overwrite makes it wait; one from after sees the values arrive where it looks."""
    use(3)
    x = weft.ones(LENGTH)
    seen = EXPORTS[export](x)
    assert np.asarray(seen).flat[0] == 1.0
    copy_beside_a_reader(x, held, 2.0, waits=True)
    assert (np.asarray(seen) == 2.0).all()
    weft.get_engine().wait_for_all()
    del seen
    gc.collect()
    copy_beside_a_reader(x, held, 3.0, waits=False)
    assert (np.asarray(x) == 3.0).all()


LOOKS: dict[str, Callable[[weft.NDArray], object]] = {
    "print": print,
    "repr": repr,
    "str": str,
    "float": lambda x: float(x[5]),
    "item": lambda x: x[7].item(),
    "bool": lambda x: bool(x[0]),
    "sum": lambda x: float(x.sum()),
    "tolist": lambda x: x[:3].tolist(),
    "copy": np.array,
    "ufunc": np.exp,
    "pickle": pickle.dumps,
    "numpy": lambda x: x.numpy().sum(),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_keeps_no_address(use: Callable[..., weft.Engine], held: Any, look: str) -> None:
    use(3)
    x = weft.ones(LENGTH)
    LOOKS[look](x)
    weft.get_engine().wait_for_all()
    copy_beside_a_reader(x, held, 2.0, waits=False)


def test_an_address_that_went_out_as_a_number_holds_for_good(use: Callable[..., weft.Engine], held: Any) -> None:
    use(3)
    x = weft.ones(LENGTH)
    address = x.__array_interface__["data"][0]
    copy_beside_a_reader(x, held, 2.0, waits=True)
    assert np.asarray(x).ctypes.data == address


def test_a_view_that_a_reader_keeps_sees_values_arrive(use: Callable[..., weft.Engine]) -> None:
    use(4)
    x, batch = weft.ones(LENGTH), weft.full(LENGTH, 2.0)
    weft.get_engine().wait_for_all()
    known: list[np.ndarray[Any, Any]] = []
    entered, opened = threading.Event(), threading.Event()

    def keep(out: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        known.append(values)  # beyond its op
        entered.set()
        assert opened.wait(6 * SOON)
        out[...] = values.sum()

    total = weft.empty(())
    push_compute(keep, (total,), (x,), name="read")
    assert entered.wait(SOON)
    x.copyfrom(batch)
    batch.wait_to_write(timeout=SOON)
    opened.set()
    assert total.item() == LENGTH
    x.wait_to_read()
    assert (known[0] == 2.0).all(), "the values were copied to where it looks"


@pytest.mark.parametrize("how", ["task", "push", "operator"])
def test_a_task_that_overwrites_does_not_wait(use: Callable[..., weft.Engine], held: Any, how: str) -> None:
    engine = use(3)
    x = weft.ones(LENGTH)
    view = x[5:]
    weft.get_engine().wait_for_all()
    reader, total = held(x)
    version, done = x.version, threading.Event()

    def load() -> None:
        values = np.asarray(x)
        assert values.flags.writeable
        values[...] = 2.0
        assert (view.numpy() == 2.0).all(), "a view shows what the op writes"
        with pytest.raises(weft.errors.WeftError):
            x.fill(3.0)  # it would come after all ops on it
        done.set()

    @weft.task
    def load_by_tag(values: weft.Overwrite[Any]) -> None:
        assert values.flags.writeable
        values[...] = 2.0
        done.set()

    if how == "task":
        load_by_tag(x)
    elif how == "push":
        engine.push(load, overwrite_vars=[x], name="load")
    else:
        engine.new_operator(load, overwrite_vars=[x]).push()
    assert done.wait(SOON), "the reader goes on"
    assert not x.is_ready()
    assert x.version == version + 1
    after = view.sum()
    reader.opened.set()
    assert total.item() == LENGTH
    assert after.item() == 2.0 * (LENGTH - 5)
    assert (x.numpy() == 2.0).all()


def test_a_task_overwrites_several_arrays_together(use: Callable[..., weft.Engine], held: Any) -> None:
    """Small ones among them are copied; with one that must wait, all do."""
    use(4)
    x, labels = weft.ones(LENGTH), weft.ones(100)
    weft.get_engine().wait_for_all()
    done = [threading.Event(), threading.Event()]

    @weft.task
    def load(values: weft.Overwrite[Any], labels: weft.Overwrite[Any], turn: int) -> None:
        values[...] = turn + 2
        labels[...] = turn + 2
        done[turn].set()

    readers = [held(x), held(labels)]
    load(x, labels, 0)
    assert done[0].wait(SOON)
    for (reader, total), length in zip(readers, (LENGTH, 100), strict=True):
        reader.opened.set()
        assert total.item() == length
    assert (x.numpy() == 2).all()
    assert (labels.numpy() == 2).all()
    export, (reader, _) = np.asarray(x), held(x)
    load(x, labels, 1)
    assert not done[1].wait(0.02)
    reader.opened.set()
    assert done[1].wait(SOON)
    assert (labels.numpy() == 3).all()
    assert (export == 3).all()


def test_a_view_that_a_task_keeps_stays_valid(use: Callable[..., weft.Engine], held: Any) -> None:
    use(3)
    x, kept = weft.ones(LENGTH), []

    @weft.task
    def load(values: weft.Overwrite[Any], turn: int) -> None:
        kept.append(values)
        values[...] = turn

    for turn in range(2, 8):
        reader, total = held(x)
        load(x, turn)
        reader.opened.set()
        total.wait_to_read()
        assert (x.numpy() == turn).all()
    assert all(np.isin(values, range(2, 8)).all() for values in kept)


def test_a_native_function_gets_the_memory_that_it_knows(use: Callable[..., weft.Engine], held: Any) -> None:
    engine = use(3)
    x = weft.ones(LENGTH)
    known = np.asarray(x)
    address, called = known.ctypes.data, threading.Event()

    def write(data: int) -> int:
        ctypes.memset(data, 0, x.nbytes)
        called.set()
        return 0

    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(write)
    reader, total = held(x)
    engine.push_native(address_of(function), address, overwrite_vars=[x], keep_alive=(function, known))
    assert not called.wait(0.02)
    reader.opened.set()
    assert total.item() == LENGTH
    assert (x.numpy() == 0.0).all()


@pytest.mark.parametrize("what", ["input", "state"])
def test_an_overwrite_does_not_wait_for_a_program(use: Callable[..., weft.Engine], what: str) -> None:
    """A program asks where its memory lies when each of its steps runs."""
    use(3)
    buffer, batch = weft.ones(LENGTH), weft.ones(LENGTH)
    entered, opened = threading.Event(), threading.Event()
    opened.set()

    def look(out: np.ndarray[Any, Any], values: np.ndarray[Any, Any]) -> None:
        entered.set()
        assert opened.wait(6 * SOON)
        out[...] = values.sum()

    def total(values: weft.NDArray) -> weft.NDArray:
        out = weft.empty(())
        push_compute(look, (out,), (values,), name="look")
        return out + values[3]

    step = weft.program(total) if what == "input" else weft.program(lambda: total(buffer))
    arguments = [buffer] if what == "input" else []
    results = [step(*arguments) for _ in range(3)]
    weft.get_engine().wait_for_all()
    for turn in range(2, 6):
        entered.clear()
        opened.clear()
        results.append(step(*arguments))
        assert entered.wait(SOON)
        batch.fill(float(turn))
        buffer.copyfrom(batch)
        batch.wait_to_write(timeout=SOON)
        assert not buffer.is_ready()
        opened.set()
    results.append(step(*arguments))
    values = [1, 1, 1, 1, 2, 3, 4, 5]
    assert [result.item() for result in results] == [(LENGTH + 1) * value for value in values]


def test_a_small_program_sees_renamed_memory(use: Callable[..., weft.Engine], held: Any) -> None:
    """One that its caller runs: it asks for addresses where no exchange can come between."""
    use(3)
    buffer = weft.ones(LENGTH)
    step = weft.program(lambda values: (values[5:8] * 2.0).sum())
    assert step(buffer).item() == 6.0
    for turn in range(2, 6):
        reader, _ = held(buffer)
        fill(buffer, float(turn))
        reader.opened.set()
        buffer.wait_to_read()
        assert step(buffer).item() == 6.0 * turn


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


@weft.task
def load_both(x: weft.Overwrite[Any], y: weft.Overwrite[Any], value: float) -> None:
    """Fill two arrays."""
    x[...] = value
    y[...] = value + 1.0


class Program:
    """A program of overwrites, changes, readers and exports, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.arrays = [weft.full(LENGTH, float(number)) for number in range(4)]
        self.views = [x[100:200] for x in self.arrays]
        self.exports: list[tuple[weft.NDArray, np.ndarray[Any, Any], int]] = []
        self.seen: list[Any] = []
        state = self.arrays[0]
        self.program = weft.program(lambda x: weft.sqrt(weft.abs(x)) + weft.cos(state) * 2.0)
        self.other = weft.program(lambda x, y: ((x[:50] + y[:50]) * state[50]).sum())

    def overwrite(self, x: weft.NDArray, y: weft.NDArray) -> None:
        ways: list[Callable[[], object]] = [
            lambda: x.copyfrom(y),
            lambda: x.copyfrom(np.full(LENGTH, 7.0)),
            lambda: x.__setitem__(..., 3.0),
            lambda: weft.sin(y, out=x),
            lambda: push_compute(turn, (x,), (y,), name="turn") if x is not y else None,
        ]
        self.random.choice(ways)()

    def load(self, x: weft.NDArray, y: weft.NDArray) -> None:
        """Overwrite by a task, one array or two."""
        if x is y or self.random.random() < 0.5:
            fill(x, float(self.random.randrange(100)))
        else:
            load_both(x, y, float(self.random.randrange(100)))

    def step(self, x: weft.NDArray, y: weft.NDArray) -> None:
        """Call a program whose input and state are overwritten between calls."""
        self.seen.append(self.program(x) if self.random.random() < 0.5 else self.other(x, y))

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
        kinds = (
            [self.overwrite] * 4
            + [self.load] * 2
            + [self.step] * 3
            + [self.read] * 4
            + [self.change] * 2
            + [self.export]
        )
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


def train() -> list[bytes]:
    """Train a small model by a program whose batch is one buffer, and answer the bits of losses and weights."""
    random = np.random.default_rng(31)
    weights, batch = weft.asarray(random.standard_normal((128, 64)) / 12.0).copy(), weft.zeros((64, 128))

    @weft.program
    def step(batch: weft.NDArray) -> weft.NDArray:
        out = weft.tanh(batch @ weights)
        weights[...] = weights - batch.T @ (out * (1.0 - out * out)) * 0.01
        return (out * out).mean()

    losses = []
    for turn in range(20):
        if turn % 3:
            batch.copyfrom(random.standard_normal((64, 128)))
        else:
            fill(batch, 0.01 * turn)
        losses.append(step(batch))
    weft.get_engine().wait_for_all()
    return [np.asarray(value).tobytes() for value in (*losses, weights, batch)]


def test_a_model_sees_each_batch(use: Callable[..., weft.Engine]) -> None:
    use(policy="serial")
    wanted = train()
    for workers, limit in [(1, 2), (3, 2), (3, 3), (2, 1)]:
        use(workers, rename_limit=limit)
        assert train() == wanted, (workers, limit)


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


@pytest.mark.slow
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


@pytest.mark.slow
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
