"""Dask's graphs on weft's engine."""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
import textwrap
import threading
from operator import add, mul
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import RunScript

dask: Any = pytest.importorskip("dask")
get = importlib.import_module("weft.distributed.dask").get


def test_graphs_of_every_form() -> None:
    graph = {"a": 1, "b": (add, "a", 10), "c": (sum, ["a", "b", (mul, "b", 2)]), ("d", 0): "c", "e": {"x": "b"}}
    assert get(graph, "c") == 34
    assert get(graph, ["c", ["b", ("d", 0)]]) == (34, (11, 34))
    assert get(graph, []) == ()
    assert get({"f": (add, "known", 1)}, "f", cache={"known": 4}) == 5


class Pair(NamedTuple):
    """A tuple of its own kind."""

    first: Any
    second: Any


@pytest.mark.parametrize(
    "value",
    [
        "a",
        ("t", 1),
        ("no", "key"),
        1.5,
        True,
        None,
        [],
        ["a", ["a", ("t", 1)], "no key"],
        ("a", [1, "a"]),
        (1, ["a"]),
        {"a", "b"},
        frozenset({"a", 7}),
        {"a": "a"},
        Pair("a", 3),
        (list, [("t", 1), (add, "a", 1)]),
        (dict, {"x": "a", "y": [1]}),
        (tuple, [(add, "a", (mul, 2, "a"))]),
        (sorted, {"b"}),
        (repr, Pair("a", ["b"])),
        (len, ([], "a")),
        (repr, np.arange(3)),
        (int,),
    ],
)
def test_the_older_form_means_what_it_means_to_dask(value: Any) -> None:
    graph = {"a": 4, "b": "a", ("t", 1): (add, "a", "b"), "of": value, 1.5: "key"}
    found, due = get(graph, ["of", "b"]), dask.get(graph, ["of", "b"])
    assert found == due
    assert type(found[0]) is type(due[0])


def test_a_literal_list_is_new_at_each_computation() -> None:
    literal = [1, 2]
    graph = {"a": (list.append, literal, 3), "b": literal}
    get(graph, "a")
    get(graph, "b").append(4)
    assert literal == [1, 2]
    with pytest.raises(KeyError, match="no key 'x'"):
        get({"x": "x"}, "x")


def test_long_chains_and_wide_fans() -> None:
    chain: dict[Any, Any] = {("x", 0): 0} | {("x", at): (add, ("x", at - 1), 1) for at in range(1, 3000)}
    assert get(chain, ("x", 2999)) == 2999
    fan: dict[Any, Any] = {("y", at): (add, at, 1) for at in range(1000)}
    assert get(fan | {"all": (sum, list(fan))}, "all") == 500_500


def test_values_go_when_nobody_needs_them() -> None:
    alive: list[Any] = []

    class Value:
        def __init__(self) -> None:
            alive.append(self)

        def __del__(self) -> None:
            gone.append(1)

    gone: list[int] = []

    def look(value: Any) -> int:
        alive.clear()
        return 1 if value else 0

    def count(_: int) -> int:
        return len(gone)

    assert get({"a": (Value,), "b": (look, "a"), "c": (count, "b")}, "c", engine=weft.get_engine()) == 1


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_exception_is_raised_as_it_is(workers: int) -> None:
    began = []

    def boom() -> None:
        raise LookupError("boom")

    with weft.Engine(workers=workers) as engine:
        graph = {"a": (boom,), "b": (began.append, "a"), "c": (add, 1, 1)}
        with pytest.raises(LookupError, match="boom"):
            get(graph, ["b", "c"], engine=engine)
        assert not began
        assert get(graph, "c", engine=engine) == 2


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(KeyError, match="no key 'z'"):
        get({"a": 1}, "z")
    with pytest.raises(RuntimeError, match="cycle"):
        get({"a": (abs, "b"), "b": (abs, "a")}, "a")
    with pytest.raises(weft.errors.ArgumentTypeError, match=r"a mapping of keys to tasks, .* not a list"):
        get([(abs, -1)], "a")  # type: ignore[arg-type]


def test_callbacks_hear_of_each_task() -> None:
    from dask.callbacks import Callback

    heard: list[tuple[str, Any]] = []
    with Callback(
        start=lambda _: heard.append(("start", None)),
        pretask=lambda key, _dsk, _state: heard.append(("before", key)),
        posttask=lambda key, value, _dsk, _state, _id: heard.append((key, value)),
        finish=lambda _dsk, _state, failed: heard.append(("finish", failed)),
    ):
        assert get({"a": (add, 1, 1), "b": (add, "a", 1)}, "b") == 3
    assert heard == [("start", None), ("before", "a"), ("a", 2), ("before", "b"), ("b", 3), ("finish", False)]


def test_few_values_live_at_a_time() -> None:
    lock, live, most = threading.Lock(), 0, 0

    class Value:
        def __init__(self, *_: object) -> None:
            nonlocal live, most
            with lock:
                live += 1
                most = max(most, live)

        def __del__(self) -> None:
            nonlocal live
            with lock:
                live -= 1

    graph: dict[Any, Any] = {(0, at): (Value, at) for at in range(256)}
    for layer in range(8):
        graph |= {(layer + 1, at): (Value, (layer, 2 * at), (layer, 2 * at + 1)) for at in range(128 >> layer)}
    with weft.Engine(workers=2) as engine:
        get(graph, (8, 0), engine=engine)
    assert most <= 2 * 9 + 4  # a path for each worker, and not the 256 leaves


def test_arguments_of_every_kind() -> None:
    from dask._task_spec import Alias, DataNode, Dict, List, Task, TaskRef, Tuple

    def show(*args: Any, **named: Any) -> Any:
        return args, named

    graph = {
        "data": DataNode("data", 5),
        "plain": 7,
        "alias": Alias("alias", "data"),
        "a": Task(
            "a", show, TaskRef("alias"), "data", List(TaskRef("data"), Tuple(TaskRef("plain"), 1)), k=TaskRef("plain")
        ),
        "b": Task("b", show, Dict({"x": TaskRef("a")}), n=Task(None, add, TaskRef("data"), TaskRef("data"))),
    }
    assert get(graph, "a") == ((5, "data", [5, (7, 1)]), {"k": 7})
    assert get(graph, ["b", "alias"]) == ((({"x": get(graph, "a")},), {"n": 10}), 5)
    fused = Task.fuse(Task("p", add, TaskRef("data"), 1), Task("q", mul, TaskRef("p"), 3), key="q")
    assert get({"data": graph["data"], "q": fused}, "q") == 18


def test_an_interrupt_leaves_out_what_has_not_begun(script: RunScript) -> None:
    done = script(
        """
        import _thread, threading, weft
        import weft.distributed.dask as dask

        begun, went_on = threading.Event(), []

        def first():
            _thread.interrupt_main()
            begun.wait(20)
            return 1

        def other(x):
            went_on.append(x)

        engine = weft.Engine(workers=1)
        try:
            dask.get({"a": (first,), "b": (other, "a"), "c": (other, "b")}, "c", engine=engine)
        except KeyboardInterrupt:
            begun.set()
            engine.close()
            print("interrupted", went_on)
        """
    )
    assert done.stdout == "interrupted []\n", done.stderr


def test_a_graph_is_not_recorded() -> None:
    @weft.program
    def step(x: weft.NDArray) -> weft.NDArray:
        return x + get({"a": (add, 1, 1)}, "a")

    with pytest.raises(weft.errors.CaptureError, match="outside of the program"):
        step(weft.ones(2))


def test_a_trace_names_tasks() -> None:
    with weft.trace() as trace:
        get({("x", 1): (add, 1, 1), "y": (add, ("x", 1), 1), "z": (add, ("x", 1), "y")}, "z")
    assert {"('x', 1)", "y", "z"} <= {name for text in trace.names for name in text.split(" ... ")}


#: Of Dask's own tests, those of what the scheduler covers; WEFT_DASK_TESTS=all runs whole files more.
OWN = ["test_ufunc"] + ["test_routines", "test_linalg", "test_slicing"] * (os.environ.get("WEFT_DASK_TESTS") == "all")


@pytest.mark.slow
@pytest.mark.parametrize("room", OWN)
def test_dasks_own_tests_pass(room: str, tmp_path: Path) -> None:
    (tmp_path / "scheduled.py").write_text(
        textwrap.dedent("""
        import dask, dask.base, weft
        get, graphs = weft.distributed.dask.get, []

        def counted(*args, **options):
            graphs.append(args)
            return get(*args, **options)

        dask.base.named_schedulers.update(dict.fromkeys(("sync", "synchronous", "single-threaded", "threads"), counted))
        dask.config.set(scheduler=counted)

        def pytest_terminal_summary(terminalreporter):
            terminalreporter.write_line(f"computed {len(graphs)} graphs")
        """),
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-p", "scheduled", "-p", "no:cacheprovider", "-q", "-c", os.devnull]
    command += ["--rootdir", str(tmp_path), "--pyargs", f"dask.array.tests.{room}"]
    paths = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    graphs = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("computed ")]
    assert graphs[0] > 100, done.stdout[-3000:]


def test_collections_compute() -> None:
    import dask.array as da

    with dask.config.set(scheduler=get):
        whole = np.arange(10_000).reshape(100, 100)
        x = da.from_array(whole, chunks=(30, 40))
        np.testing.assert_array_equal((x + x.T).sum(axis=0).compute(), (whole + whole.T).sum(axis=0))
        assert float(da.linalg.norm(x.astype(float)).compute()) == pytest.approx(np.linalg.norm(np.arange(1e4)))
        inside = dask.delayed(lambda: int(da.ones(10, chunks=5).sum().compute()))()
        assert inside.compute() == 10  # a task that computes a graph


def test_arrays_travel_as_buffers() -> None:
    buffers: list[pickle.PickleBuffer] = []
    x = weft.asarray(np.arange(1000.0))
    told = pickle.dumps(x * 2.0, protocol=5, buffer_callback=buffers.append)
    assert len(told) < 1000
    assert [each.raw().nbytes for each in buffers] == [8000]
    np.testing.assert_array_equal(pickle.loads(told, buffers=buffers).numpy(), np.arange(1000.0) * 2)


@pytest.mark.slow
def test_programs_symbols_and_arrays_travel_to_a_cluster(script: RunScript) -> None:
    done = script(
        """
        import numpy as np, weft
        from distributed import Client

        @weft.task
        def double(out: weft.Mutate, x: weft.Read) -> None:
            out[...] = 2.0 * x

        def doubled(double, x):
            out = weft.zeros_like(x)
            double(out, x)
            return out

        @weft.program
        def step(x):
            return weft.tanh(x * 2.0)

        def scaled(x):
            return weft.tanh(x * 2.0)

        def replayed(x):
            step = weft.program(scaled)
            return step(step(x))

        if __name__ == "__main__":
            with Client(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None) as client:
                x = weft.asarray(np.linspace(0, 1, 1000))
                y = client.submit(replayed, x).result()
                np.testing.assert_array_equal(y.numpy(), scaled(scaled(x)).numpy())
                a = weft.symbol.Variable("a")
                symbol = weft.tanh(a * 2.0)
                found = client.submit(lambda s, x: s.eval(a=x)[0], symbol, x).result()
                np.testing.assert_array_equal(found.numpy(), scaled(x).numpy())
                np.testing.assert_array_equal(client.submit(doubled, double, x).result().numpy(), (2.0 * x).numpy())
                both = client.gather(client.map(step, [x, x + 1.0]))
                np.testing.assert_array_equal(both[1].numpy(), scaled(x + 1.0).numpy())
        """
    )
    assert done.returncode == 0, done.stderr
