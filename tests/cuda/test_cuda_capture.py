"""`weft.cuda.capture`: blocks on a CUDA device, recorded once and pushed as one op."""

from __future__ import annotations

import asyncio
import copy
import ctypes
import gc
import pickle
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON, background
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from conftest import Gate, RunScript

DEVICE = weft.gpu(0)

AXPY = """
extern "C" __global__ void axpy(const float* x, float* y, float factor, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += factor * x[i];
}
"""


@pytest.fixture(autouse=True)
def driver(fake_cuda: dict[str, str]) -> Iterator[ctypes.CDLL]:
    """The driver of the host, for callables that launch by themselves."""
    yield ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"])
    weft.wait_all(SOON)


def row(value: float, size: int = 8) -> weft.NDArray:
    return weft.full(size, value, dtype="float32", device=DEVICE)


def test_nothing_runs_in_the_block_and_all_of_it_at_each_replay() -> None:
    x, y = row(1), row(0)
    with weft.cuda.capture("step") as graph:
        z = x * 2
        y += z + 1
        x[2:4] = 5
    assert (x.tolist(), y.tolist()) == ([1.0] * 8, [0.0] * 8)
    assert isinstance(graph, weft.cuda.Graph)
    assert (graph.name, repr(graph)) == ("step", f"<weft.Program 'step': {graph.ops} ops, {graph.nbytes} bytes>")
    assert graph.ops >= 4
    for _ in range(3):
        graph.replay()
    assert y.tolist() == [9.0, 9.0, 25.0, 25.0, 9.0, 9.0, 9.0, 9.0]
    assert z.tolist() == [2.0, 2.0, 10.0, 10.0, 2.0, 2.0, 2.0, 2.0]


def test_replays_come_in_order_with_other_ops_and_count_versions() -> None:
    x, y = row(1), row(0)
    with weft.cuda.capture() as graph:
        y += x
        x *= 2
    before = x.version, y.version
    graph.replay()
    y *= 10
    graph.replay()
    assert (x.version, y.version) == (before[0] + 2, before[1] + 3)
    x.copyfrom(np.full(8, 3, "float32"))
    graph.replay()
    assert (x.tolist(), y.tolist()) == ([6.0] * 8, [15.0] * 8)


def test_ops_pushed_before_the_block_are_replayed_behind(gate: Gate) -> None:
    x = row(0)
    weft.wait_all(SOON)
    gate.hold(weft.get_engine())
    ready = weft.get_engine().new_variable()
    weft.get_engine().push(gate, (), (ready,))
    late = weft.empty(8, dtype="float32", device=DEVICE)
    late[...] = x + 1  # no memory before it is issued, unless the block needs it
    with weft.cuda.capture() as graph:
        late += 1
    graph.replay()
    gate.open()
    assert late.tolist() == [2.0] * 8


def test_kernels_are_recorded() -> None:
    axpy = weft.cuda.RawKernel(AXPY, "axpy")
    x, y = row(1, 100), row(1, 100)
    with weft.cuda.capture() as graph:
        axpy(2, 64, (weft.Read(x), weft.Mutate(y), 2.0, 100))
        axpy(2, 64, (y, x, 1.0, 50), reads=[y], mutates=[x])
    del axpy
    gc.collect()
    graph.replay()
    assert (y[99].item(), x[0].item(), x[50].item()) == (3.0, 4.0, 1.0)


def test_copies_within_the_device_are_recorded() -> None:
    x, y = row(1), row(0)
    with weft.cuda.capture() as graph:
        y.copyfrom(x)
        x[:4].copyfrom(y[4:] * 3)
    graph.replay()
    assert (x.tolist(), y.tolist()) == ([3.0] * 4 + [1.0] * 4, [1.0] * 8)


def test_independent_ops_are_not_chained() -> None:
    # The driver replays newer nodes first where the graph lets it: only the right edges give the right values.
    x = row(1)
    with weft.cuda.capture() as graph:
        ys = [x * factor for factor in range(5)]
        total = ys[0] + ys[1]
        for y in ys[2:]:
            total = total + y
        x += total
    graph.replay()
    graph.replay()
    assert x.tolist() == [1.0 * 11 * 11] * 8


def _step(arrays: list[weft.NDArray], choices: np.ndarray[Any, Any]) -> None:
    for kind, out, left, right in choices:
        target = arrays[out]
        if kind == 0:
            target[...] = arrays[left] - arrays[right]
        elif kind == 1:
            target[left : left + 6] = arrays[right][3:9] + 1
        elif kind == 2:
            target += arrays[left] * 0.5
        else:
            temporary = arrays[left] + arrays[right]
            temporary *= 0.25
            target[6:] = temporary[:6]


@pytest.mark.parametrize("seed", range(20))
def test_random_programs_are_as_without_a_capture(seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 4, (4, 12)).astype("float32")
    eager = [weft.asarray(each, device=DEVICE) for each in start]
    replayed = [weft.asarray(each, device=DEVICE) for each in start]
    programs = [rng.integers(0, 4, (int(rng.integers(1, 12)), 4)) for _ in range(3)]
    graphs = []
    for program in programs:
        with weft.cuda.capture() as graph:
            _step(replayed, program)
        graphs.append(graph)
    for at in rng.integers(0, 3, 12):
        _step(eager, programs[at])
        graphs[at].replay()
        if rng.random() < 0.5:
            for arrays in (eager, replayed):
                arrays[0] += arrays[1]
    for one, other in zip(eager, replayed, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_results_in_between_lie_in_an_arena() -> None:
    x = row(1, 1000)
    with weft.cuda.capture() as graph:
        y = x
        for _ in range(10):
            y = y / weft.sum(y)
    assert 0 < graph.nbytes <= 3 * 8192 < graph.eager_nbytes
    x.wait_to_read(SOON)  # until then it may have no memory
    before = weft.cuda.memory_stats(DEVICE).in_use
    graph.replay()
    y.wait_to_read(SOON)
    del graph
    gc.collect()
    weft.cuda.synchronize(DEVICE)
    # Results that somebody holds are theirs.
    assert weft.cuda.memory_stats(DEVICE).in_use <= before + y.nbytes


def test_a_graph_holds_what_it_uses() -> None:
    x, y = row(2), row(0)
    with weft.cuda.capture() as graph:
        y += x
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None
    graph.replay()
    graph.replay()
    del graph
    assert y.tolist() == [4.0] * 8


def test_callables_run_at_each_replay_between_what_they_wait_for(cupy: Any, driver: ctypes.CDLL) -> None:
    engine, x, y = weft.get_engine(), row(0), row(0)
    called: list[Any] = []

    def fill(array: weft.NDArray, word: int) -> Callable[[], None]:
        def launch() -> None:
            found = weft.cuda.current_stream()
            assert found is not None
            called.append((found[1], cupy.current()[-1]))
            values = array._values()
            address = ctypes.c_void_p(values.data.ptr)
            assert driver.cuMemsetD32Async(address, word, ctypes.c_size_t(values.size), ctypes.c_void_p(found[1])) == 0

        return launch

    with weft.cuda.capture() as graph:
        engine.push(fill(x, 0x40000000), (), [x])  # 2.0
        x *= 2
        y[...] = x + 1
        engine.new_operator(fill(x, 0x3F800000), [y], [x]).push()  # 1.0
        x += y
    assert called == []
    for _ in range(3):
        graph.replay()
    assert (x.tolist(), y.tolist()) == ([6.0] * 8, [5.0] * 8)
    assert len(called) == 6
    assert all(current == (stream, 0) for stream, current in called)
    assert cupy.current() == []


def test_functions_of_cupys_are_recorded(cupy: Any) -> None:
    x = row(1)
    with weft.cuda.capture() as graph:
        x[...] = weft.cumulative_sum(x)
    assert cupy.seen == []
    graph.replay()
    graph.replay()
    assert x.tolist() == [1.0, 3.0, 6.0, 10.0, 15.0, 21.0, 28.0, 36.0]


def test_a_callable_that_fails_fails_what_it_writes(cupy: Any) -> None:
    x, y = row(1), row(1)

    def fail() -> None:
        raise ZeroDivisionError("no")

    with weft.cuda.capture() as graph:
        y *= 2
        weft.get_engine().push(fail, (), [x], name="failing")
        x += 1
        y += 1
    for _ in range(3):
        graph.replay()
        with pytest.raises(ZeroDivisionError, match="no"):
            x.wait_to_read(SOON)
    assert y.tolist() == [15.0] * 8
    assert cupy.current() == []


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (
            lambda x: x[0].item(),
            r"the value of an array of shape \(\) and dtype float32 is not known while 'step' is recorded",
        ),
        (lambda x: x.numpy(), "nothing of a recording runs"),
        (lambda x: x.wait_to_read(SOON), "is not known while 'step' is recorded"),
        (lambda x: x.wait_to_write(SOON), "is not known"),
        (weft.wait, "is not known"),
        (lambda x: x.__cuda_array_interface__, "is not known"),
    ],
)
def test_values_that_are_not_known_are_refused(misuse: Callable[[weft.NDArray], object], message: str) -> None:
    x = row(1)
    with (  # noqa: PT012 - one statement is caught in the block
        pytest.raises(errors.CaptureError, match="is not known while 'step' is recorded"),
        weft.cuda.capture("step") as graph,
    ):
        x += 1
        with pytest.raises(errors.CaptureError, match=message) as caught:
            misuse(x)
    assert isinstance(caught.value, RuntimeError)
    assert repr(graph) == "<weft.Program 'step', abandoned>"
    assert x.tolist() == [1.0] * 8


def test_captures_do_not_nest() -> None:
    x = row(1)
    with weft.cuda.capture("step") as graph:
        x += 1
        with pytest.raises(errors.CaptureError, match="recording 'step' is open on this thread"):
            weft.cuda.capture("inner").__enter__()
        x *= 2
    graph.replay()
    assert x.tolist() == [4.0] * 8


def test_the_host_copies_and_other_devices_are_recorded(cupy: Any) -> None:  # noqa: ARG001 - for the callable
    x, far, host, seen = row(1), weft.zeros(8, dtype="float32", device=weft.gpu(1)), weft.zeros(8), list[float]()
    with weft.cuda.capture() as graph:
        x += 1
        host += x.to_device("cpu")
        weft.get_engine().push(lambda: seen.append(float(np.asarray(host)[0])), [host])
        far.copyfrom(x)
        far *= 10
        x.copyfrom(host.astype("float32"))
    assert (x.tolist(), far.tolist(), host.tolist(), seen) == ([1.0] * 8, [0.0] * 8, [0.0] * 8, [])
    for _ in range(3):
        graph.replay()
    weft.wait_all(SOON)
    assert seen == [2.0, 5.0, 11.0]
    assert (x.tolist(), far.tolist()) == ([11.0] * 8, [60.0] * 8)


def test_other_threads_go_on() -> None:
    x, other = row(1), row(1)
    with weft.cuda.capture() as graph:
        x += 1

        def elsewhere() -> list[float]:
            nonlocal other
            other += 1
            with weft.cuda.capture("theirs") as theirs:
                other += 10
            theirs.replay()
            return other.tolist()  # type: ignore[no-any-return]

        assert background(elsewhere).result(SOON) == [12.0] * 8
    assert graph.ops == 1
    graph.replay()
    assert x.tolist() == [2.0] * 8


def test_an_empty_capture_replays_as_nothing() -> None:
    with weft.cuda.capture("empty") as graph:
        pass
    graph.replay()
    weft.wait_all(SOON)
    assert (graph.ops, graph.nbytes, repr(graph)) == (0, 0, "<weft.Program 'empty': 0 ops, 0 bytes>")


def test_a_graph_is_replayed_after_its_block() -> None:
    x = row(1)
    with weft.cuda.capture("step") as graph:
        x += 1
        assert repr(graph) == "<weft.Program 'step', recording>"
        for use in (graph.replay, background(graph.replay).result, lambda: graph.ops):
            with pytest.raises(errors.CaptureError, match="the block of the program 'step' has not ended"):
                use()
    graph.replay()
    assert x.tolist() == [2.0] * 8


def _interrupted(x: weft.NDArray) -> None:
    x += 1
    raise KeyError


def test_an_exception_abandons_the_capture() -> None:
    x = row(1)
    with pytest.raises(KeyError), weft.cuda.capture() as graph:
        _interrupted(x)
    with pytest.raises(errors.CaptureError, match="was not recorded"):
        graph.replay()
    x += 1  # is pushed again
    with weft.cuda.capture() as graph:
        x += 1
    graph.replay()
    assert x.tolist() == [3.0] * 8


def test_a_capture_ends_on_its_thread() -> None:
    x, entered = row(1), weft.cuda.capture()
    graph = entered.__enter__()
    x += 1
    with pytest.raises(errors.CaptureError, match="it ends where it began, and once"):
        background(lambda: entered.__exit__(None, None, None)).result(SOON)
    entered.__exit__(None, None, None)
    graph.replay()
    assert x.tolist() == [2.0] * 8


def test_a_thread_that_ends_in_a_capture_leaves_nothing() -> None:
    x = row(1)

    def begin() -> None:
        weft.cuda.capture().__enter__()
        nonlocal x
        x += 1

    background(begin).result(SOON)
    x += 1
    assert x.tolist() == [2.0] * 8


def test_blocks_are_not_pickled() -> None:
    with pytest.raises(errors.ArgumentTypeError, match="the name of a capture is a string, not int"):
        weft.cuda.capture(7).__enter__()  # type: ignore[arg-type]
    with weft.cuda.capture() as graph:
        pass
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="was captured as a block, and a block cannot be pickled"):
            use(graph)


def test_arrays_of_two_engines_are_refused(make_engine: Any) -> None:
    other, x = make_engine(1), row(1)
    theirs = weft.get_engine()
    weft.set_engine(other)
    try:
        z = row(1)
        with weft.cuda.capture("mixed") as graph:
            z += 1
            with pytest.raises(errors.CaptureError, match=r"belongs to engine .* and recording 'mixed' to engine"):
                x += 1
        graph.replay()
        assert (x.tolist(), z.tolist()) == ([1.0] * 8, [2.0] * 8)
    finally:
        weft.set_engine(theirs)


def test_what_the_driver_refuses_fails_alone_and_names_its_place(fake_cuda: dict[str, str], script: RunScript) -> None:
    result = script(
        """
        import ctypes, os, weft
        driver = ctypes.CDLL(os.environ["WEFT_CUDA_LIBRARY"])
        x, y, z = (weft.zeros(3, device=weft.gpu(0)) for _ in range(3))
        with weft.cuda.capture("step") as graph:
            x += 1
            y += 2
            z.copyfrom(y)
        graph.replay()
        graph.replay()
        assert z.tolist() == [4.0] * 3
        os.environ["FAKE_GRAPHS_FAIL"] = "1"
        graph.replay()
        print(x.tolist(), z.tolist())
        driver.fake_cuda_order(1, 2)
        graph.replay()
        print(x.tolist())
        for array in (y, z):
            try:
                array.tolist()
            except weft.errors.CudaError as error:
                print(error)
        del os.environ["FAKE_GRAPHS_FAIL"]
        y[...] = 7
        graph.replay()
        print(z.tolist())
        """,
        **fake_cuda,
    )
    assert result.returncode == 0, result.stderr
    refused, others, first, again, values = result.stdout.splitlines()
    assert refused == "[3.0, 3.0, 3.0] [6.0, 6.0, 6.0]"
    assert others == "[4.0, 4.0, 4.0]"
    assert first == again
    assert "pushed at " in first
    assert first.endswith("script.py:7: cuLaunchKernel answered CUDA_ERROR_OUT_OF_MEMORY (2)")
    assert values == "[9.0, 9.0, 9.0]"


def test_replays_of_a_failed_version_are_skipped() -> None:
    x, y = row(1), row(1)
    with weft.cuda.capture() as graph:
        y += x

    def fail() -> None:
        raise ZeroDivisionError

    weft.get_engine().push(fail, (), [x])
    graph.replay()
    with pytest.raises(ZeroDivisionError):
        y.tolist()
    x[...] = 1
    y[...] = 5
    graph.replay()
    assert y.tolist() == [6.0] * 8


def test_replays_inside_of_an_op_on_the_same_arrays_are_refused() -> None:
    x = row(1)
    with weft.cuda.capture() as graph:
        x += 1
    weft.get_engine().push(graph.replay, (), [x])
    with pytest.raises(errors.NestedPushError):
        x.tolist()


@pytest.mark.parametrize(("policy", "workers"), [("serial", 1), ("per_device", 2), ("work_stealing", 1)])
def test_every_policy_replays(make_engine: Any, policy: str, workers: int) -> None:
    previous = weft.get_engine()
    weft.set_engine(make_engine(workers, policy))
    try:
        x = row(1)
        with weft.cuda.capture() as graph:
            x *= 2
        for _ in range(10):
            graph.replay()
        assert x.tolist() == [1024.0] * 8
    finally:
        weft.set_engine(previous)


def test_many_threads_replay_one_graph() -> None:
    x, total = row(1), row(0)
    with weft.cuda.capture() as graph:
        total += x
    barrier = threading.Barrier(4)

    def replay() -> None:
        barrier.wait(SOON)
        for _ in range(100):
            graph.replay()

    for each in [background(replay) for _ in range(4)]:
        each.result(SOON)
    assert total.tolist() == [400.0] * 8


def test_a_forked_child_cannot_replay(fake_cuda: dict[str, str], script: RunScript) -> None:
    result = script(
        """
        import os, weft
        x = weft.zeros(3, device=weft.gpu(0))
        with weft.cuda.capture("step") as graph:
            x += 1
        graph.replay()
        x.wait_to_read()
        child = os.fork()
        if child == 0:
            try:
                graph.replay()
                x.wait_to_read()
            except weft.errors.ForkedError as error:
                print("refused:", error, flush=True)
            del graph
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        graph.replay()
        print(x.tolist())
        """,
        **fake_cuda,
    )
    assert result.returncode == 0, result.stderr
    refused, values = result.stdout.splitlines()
    assert refused.startswith("refused: ")
    assert values == "[2.0, 2.0, 2.0]"


def test_awaiting_what_a_capture_writes_is_refused(cupy: Any) -> None:  # noqa: ARG001 - for the callable
    x = row(1)

    async def look() -> None:
        with weft.cuda.capture():
            x.__iadd__(1)
            await x

    with pytest.raises(errors.CaptureError):
        asyncio.run(look())


def test_a_trace_shows_the_ops_of_a_replay() -> None:
    x, y = row(1), row(0)
    with weft.cuda.capture("step") as graph:
        x += 1
        y.copyfrom(x)
    for _ in range(3):
        graph.replay()
    with weft.trace() as trace:
        graph.replay()
        y.wait_to_read(SOON)
    graph.replay()
    assert {"add", "copy"} <= {trace.names[op["name"]] for op in trace.ops}
    assert y.tolist() == [6.0] * 8
