"""Dask's graphs on weft's engine."""

from __future__ import annotations

import importlib
from operator import add, mul
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft

if TYPE_CHECKING:
    from conftest import RunScript

dask: Any = pytest.importorskip("dask")
get = importlib.import_module("weft.distributed.dask").get


def test_graphs_of_every_form() -> None:
    graph = {"a": 1, "b": (add, "a", 10), "c": (sum, ["a", "b", (mul, "b", 2)]), ("d", 0): "c", "e": {"x": "b"}}
    assert get(graph, "c") == 34
    assert get(graph, ["c", ["b", ("d", 0)]]) == (34, (11, 34))
    assert get(graph, []) == ()
    assert get({"f": (add, "known", 1)}, "f", cache={"known": 4}) == 5


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


def test_collections_compute() -> None:
    import dask.array as da

    with dask.config.set(scheduler=get):
        whole = np.arange(10_000).reshape(100, 100)
        x = da.from_array(whole, chunks=(30, 40))
        np.testing.assert_array_equal((x + x.T).sum(axis=0).compute(), (whole + whole.T).sum(axis=0))
        assert float(da.linalg.norm(x.astype(float)).compute()) == pytest.approx(np.linalg.norm(np.arange(1e4)))
        inside = dask.delayed(lambda: int(da.ones(10, chunks=5).sum().compute()))()
        assert inside.compute() == 10  # a task that computes a graph


def test_programs_symbols_and_arrays_travel_to_a_cluster(script: RunScript) -> None:
    done = script(
        """
        import numpy as np, weft
        from distributed import Client

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
        """
    )
    assert done.returncode == 0, done.stderr
