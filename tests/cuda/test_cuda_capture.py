"""Capture and replay: what a thread pushes on a CUDA device, recorded once and pushed as one op."""

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
    assert (graph.name, repr(graph)) == ("step", f"<weft.cuda.Graph 'step', {graph.ops} ops>")
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
    assert graph.name is None
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


def test_results_in_between_are_the_graphs_alone() -> None:
    x = row(1)
    with weft.cuda.capture() as graph:
        y = x
        for _ in range(10):
            y = y + 1
    assert graph.nbytes == 9 * 32
    graph.replay()
    assert y.tolist() == [11.0] * 8
    before = weft.cuda.memory_stats(DEVICE).in_use
    del graph
    gc.collect()
    weft.cuda.synchronize()
    for _ in range(100):
        if weft.cuda.memory_stats(DEVICE).in_use <= before - 9 * 32:
            break
        weft.cuda.synchronize()
    assert weft.cuda.memory_stats(DEVICE).in_use <= before - 9 * 32


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


def test_callables_are_called_once_and_what_they_launch_is_recorded(cupy: Any, driver: ctypes.CDLL) -> None:
    engine, x, y = weft.get_engine(), row(0), row(0)
    called: list[Any] = []

    def fill(array: weft.NDArray, word: int) -> Callable[[], None]:
        def launch() -> None:
            found = weft.cuda.current_stream()
            assert found is not None
            called.append((found[1], threading.get_ident(), cupy.current()[-1], cupy.allocators[-1]))
            values = array._values()
            address = ctypes.c_void_p(values.data.ptr)
            assert driver.cuMemsetD32Async(address, word, ctypes.c_size_t(values.size), ctypes.c_void_p(found[1])) == 0

        return launch

    with weft.cuda.capture() as graph:
        engine.push(fill(x, 0x40000000), (), [x])  # 2.0
        engine.push(fill(y, 0x40400000), (), [y])  # 3.0
        engine.push(fill(x, 0x3F800000), [y], [x])  # 1.0
        engine.new_operator(fill(y, 0x40800000), [x], [y]).push()  # 4.0
        x += y
    assert len(called) == 4
    assert {thread for _, thread, _, _ in called} == {threading.get_ident()}
    assert all(current == (stream, 0) for stream, _, current, _ in called)
    one, other, third, fourth = (pool for *_, pool in called)
    assert one is not other, "ops that may run side by side do not share memory"
    assert third in (one, other)
    assert fourth in (one, other)
    assert cupy.allocators == cupy.current() == []
    assert (x.tolist(), y.tolist()) == ([0.0] * 8, [0.0] * 8)
    graph.replay()
    assert (x.tolist(), y.tolist()) == ([5.0] * 8, [4.0] * 8)
    assert len(called) == 4


def test_functions_of_cupys_run_on_the_capture(cupy: Any) -> None:
    x = row(1)
    with weft.cuda.capture() as graph:
        x.sum()
        x[...] = weft.cumulative_sum(x)
    assert len(cupy.pools) == 2
    assert len({stream for stream, _ in cupy.seen}) == 1
    graph.replay()
    weft.wait_all(SOON)


def test_a_callable_that_fails_leaves_no_graph(cupy: Any) -> None:
    x = row(1)

    def fail() -> None:
        raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError, match="no"), weft.cuda.capture() as graph:
        weft.get_engine().push(fail, (), [x], name="failing")
    with pytest.raises(errors.CaptureError, match="graph 'graph' was not recorded: an exception has left"):
        graph.replay()
    with (  # noqa: PT012 - one statement is caught in the block
        pytest.raises(
            errors.CaptureError, match="op 'failing' was recorded in part, and has failed: ZeroDivisionError"
        ),
        weft.cuda.capture() as graph,
    ):
        with pytest.raises(ZeroDivisionError):
            weft.get_engine().push(fail, (), [x], name="failing")
        with pytest.raises(errors.CaptureError, match="recorded in part"):
            x += 1
    assert repr(graph) == "<weft.cuda.Graph, abandoned>"
    assert (cupy.current(), cupy.allocators) == ([], [])
    x += 1
    assert x.tolist() == [2.0] * 8


@pytest.mark.parametrize(
    ("when", "message"), [("in an op", "STREAM_CAPTURE_INVALIDATED"), ("behind the last op", "was spoiled by a call")]
)
def test_a_call_that_waits_spoils_the_capture(cupy: Any, driver: ctypes.CDLL, when: str, message: str) -> None:  # noqa: ARG001 - for the callable
    x, found = row(1), []

    def look() -> None:
        current = weft.cuda.current_stream()
        assert current is not None
        found.append(ctypes.c_void_p(current[1]))
        if when == "in an op":
            driver.fake_cuda_spoil(found[0])

    def block() -> None:
        with weft.cuda.capture("step"):
            weft.get_engine().push(look, (), [x], name="look")
            driver.fake_cuda_spoil(found[0])

    with pytest.raises(errors.CaptureError, match=message):
        block()
    with weft.cuda.capture() as graph:
        x += 1
    graph.replay()
    assert x.tolist() == [2.0] * 8


def _nested(x: weft.NDArray) -> None:
    y = row(0)

    def push() -> None:
        y[...] = 1

    weft.get_engine().push(push, (), [x], name="outer")


def _pushed(x: weft.NDArray, **options: Any) -> None:
    host, variable = weft.ones(8), weft.get_engine().new_variable()
    others = {"host": [host], "variable": [variable]}
    weft.get_engine().push(lambda: None, others[options["beside"]], [x], name="mixed")


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (
            lambda x: x[0].item(),
            r"an array of shape \(\) and dtype float32 has no values yet .* capture 'step' writes it",
        ),
        (lambda x: x.numpy(), "has no values yet that could be waited for"),
        (repr, "End the block and replay the graph first"),
        (lambda x: x.wait_to_read(SOON), "has no values yet"),
        (lambda x: x.wait_to_write(SOON), "has no values yet"),
        (weft.wait, "has no values yet"),
        (lambda x: x.__cuda_array_interface__, "has no values yet"),
        (
            lambda x: x.copyfrom(np.ones(8, "float32")),
            r"op 'copy' writes to an array of shape \(8,\) and dtype float32 and cannot be recorded in capture 'step': it copies",
        ),
        (
            lambda _: weft.asarray([1.0], device=DEVICE),
            "copies from or to the host. Push it outside of the block, on an array",
        ),
        (
            lambda x: weft.ones(8, dtype="float32").copyfrom(x),
            "op 'copy' reads an array .* which capture 'step' writes",
        ),
        (lambda x: x.to_device("cpu"), "replay the graph, then push this"),
        (lambda x: x.to_device(weft.gpu(1)), "it copies between devices"),
        (lambda _: weft.zeros(3, device=weft.gpu(1)) + 1, r"records ops of cuda:0, and this one is of cuda:1"),
        (lambda x: weft.get_engine().push_async(lambda done: done(), (), [x]), "it completes later"),
        (lambda x: weft.get_engine().push(lambda: None, [x], name="look"), "op 'look' reads .* it writes to no array"),
        (lambda x: _pushed(x, beside="host"), "op 'mixed' writes to .* it uses memory of the host"),
        (lambda x: _pushed(x, beside="variable"), "op 'mixed' writes to .* it accesses variables of the host"),
        (
            lambda _: weft.cuda.capture("inner").__enter__(),
            "capture 'step' is open on this thread, and captures do not nest",
        ),
    ],
)
def test_what_cannot_be_recorded_is_refused_and_changes_nothing(
    cupy: Any,  # noqa: ARG001 - for the callables
    misuse: Callable[[weft.NDArray], object],
    message: str,
) -> None:
    x = row(1)
    weft.zeros(3, device=weft.gpu(1)).wait_to_read(SOON)
    with weft.cuda.capture("step") as graph:
        x += 1
        with pytest.raises(errors.CaptureError, match=message) as caught:
            misuse(x)
        x *= 2
    assert isinstance(caught.value, RuntimeError)
    graph.replay()
    assert x.tolist() == [4.0] * 8


def test_ops_pushed_by_a_callable_that_is_recorded_are_refused(cupy: Any) -> None:  # noqa: ARG001 - for the callable
    x = row(1)
    with pytest.raises(errors.CaptureError, match="is pushed by an op that is being recorded"), weft.cuda.capture():
        _nested(x)
    assert x.tolist() == [1.0] * 8


def test_what_the_capture_only_reads_may_be_read(cupy: Any) -> None:  # noqa: ARG001 - for the callable
    x, y = row(1), row(0)
    with weft.cuda.capture() as graph:
        y += x
        assert x.tolist() == [1.0] * 8
        assert "1." in repr(x)
        copied = x.to_device("cpu")
        seen: list[int] = []
        weft.get_engine().push(lambda: seen.append(1), [x])
        x.wait_to_write(SOON)
    assert copied.tolist() == [1.0] * 8
    assert seen == [1]
    graph.replay()
    assert y.tolist() == [1.0] * 8


def test_the_host_and_other_threads_go_on(default_engine: weft.Engine) -> None:
    x, other = row(1), row(1)
    with weft.cuda.capture() as graph:
        x += 1
        host = weft.ones(3) + 1
        assert host.tolist() == [2.0] * 3
        variable = default_engine.new_variable()
        done = threading.Event()
        default_engine.push(done.set, (), (variable,))
        assert done.wait(SOON)

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
    before = weft.get_engine().stats()["pushed"]
    graph.replay()
    weft.wait_all(SOON)
    assert (graph.ops, graph.nbytes, repr(graph)) == (0, 0, "<weft.cuda.Graph 'empty', 0 ops>")
    assert weft.get_engine().stats()["pushed"] == before + 1


def test_a_graph_is_replayed_after_its_block() -> None:
    x = row(1)
    with weft.cuda.capture("step") as graph:
        x += 1
        assert repr(graph) == "<weft.cuda.Graph 'step', recording>"
        with pytest.raises(errors.CaptureError, match="graph 'step' cannot be replayed in a capture's block"):
            graph.replay()
        with pytest.raises(errors.CaptureError, match="graph 'step' is still being recorded"):
            background(graph.replay).result(SOON)
        with pytest.raises(errors.CaptureError, match="still being recorded"):
            _ = graph.ops
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
    with pytest.raises(errors.CaptureError, match="ends on the thread on which it began"):
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


def test_graphs_are_not_made_copied_or_pickled() -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"graphs are recorded, not made: with weft.cuda.capture\(\) as"):
        weft.cuda.Graph()
    with pytest.raises(errors.ArgumentTypeError, match="the name of a capture is a string, not int"):
        weft.cuda.capture(7).__enter__()  # type: ignore[arg-type]
    with weft.cuda.capture() as graph:
        pass
    for use in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="can be neither pickled nor copied"):
            use(graph)


def test_arrays_of_two_engines_are_refused(make_engine: Any) -> None:
    other, x = make_engine(1), row(1)
    theirs = weft.get_engine()
    weft.set_engine(other)
    try:
        z = row(1)
        z.wait_to_read(SOON)
        with weft.cuda.capture("mixed") as graph:
            x += 1
            with pytest.raises(
                errors.CaptureError, match="belongs to another engine than the ops that capture 'mixed'"
            ):
                z += 1
        graph.replay()
    finally:
        weft.set_engine(theirs)
    assert x.tolist() == [2.0] * 8


def test_a_failed_replay_names_the_graph_and_its_place(fake_cuda: dict[str, str], script: RunScript) -> None:
    result = script(
        """
        import os, traceback, weft
        x = weft.zeros(3, device=weft.gpu(0))
        with weft.cuda.capture("step") as graph:
            x += 1
        x.wait_to_read()
        os.environ["FAKE_GRAPHS_FAIL"] = "1"
        graph.replay()
        for _ in range(2):
            try:
                x.tolist()
            except weft.errors.CudaError as error:
                print(error)
        del os.environ["FAKE_GRAPHS_FAIL"]
        x[...] = 7
        graph.replay()
        print(x.tolist())
        """,
        **fake_cuda,
    )
    assert result.returncode == 0, result.stderr
    first, again, values = result.stdout.splitlines()
    assert first == again
    assert first.startswith("op 'step' (#")
    assert "pushed at " in first
    assert first.endswith("script.py:8: cuGraphLaunch answered CUDA_ERROR_OUT_OF_MEMORY (2)")
    assert values == "[8.0, 8.0, 8.0]"


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


def test_a_trace_shows_a_replay_by_the_graphs_name() -> None:
    x = row(1)
    with weft.cuda.capture("step") as graph:
        x += 1
    with weft.trace() as trace:
        graph.replay()
        x.wait_to_read(SOON)
    assert trace.names[trace.ops["name"][0]] == "step"
