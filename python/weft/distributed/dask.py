"""Dask on weft: a scheduler for Dask's graphs and collections on one machine.

>>> import weft
>>> weft.distributed.dask.get({"x": 1, "y": (sum, ["x", 10])}, "y")
11

``dask.config.set(scheduler=weft.distributed.dask.get)`` makes it that of all collections. What goes to a cluster goes
through ``distributed.Client`` as ever: tasks, programs and symbols pickle, and arrays travel as buffers.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

from weft._default import get_engine

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from weft._core import Completion, Engine, Variable

__all__ = ["get"]

#: Tasks that are held back while others are pushed, at most: an engine takes a million.
_HELD = 100_000

try:
    _spec: Any = importlib.import_module("dask._task_spec")
    _core: Any = importlib.import_module("dask.core")
    _local: Any = importlib.import_module("dask.local")
    _callbacks: Any = importlib.import_module("dask.callbacks")
except ImportError as _error:
    raise ImportError(
        f"weft.distributed.dask needs Dask of 2024.12 or newer ({_error}): pip install 'dask>=2024.12'"
    ) from _error


def get(
    dsk: Any,  # noqa: ANN401 - a mapping, or what has a graph
    keys: Any,  # noqa: ANN401 - a key, or lists of keys of any depth
    *,
    engine: Engine | None = None,
    cache: dict[Hashable, Any] | None = None,
    callbacks: Any = None,  # noqa: ANN401 - Dask's
    **_kwargs: Any,  # noqa: ANN401 - what other schedulers take
) -> Any:  # noqa: ANN401 - what the tasks compute
    """Compute keys of a Dask graph: each task is an op, and the engine runs at once all that may run at once.

    Parameters
    ----------
    dsk : mapping or collection's graph
        Tasks by key.
    keys : key or list
        What to compute; lists may be nested.
    engine : Engine, optional
        What runs the tasks; by default the default engine.
    cache : dict, optional
        Results of keys that are known already.
    callbacks : optional
        As for Dask's own schedulers; those of the context are called in any case.
    **_kwargs
        What Dask's other schedulers take, and this one needs not: ``num_workers``, ``pool`` and the like.

    Returns
    -------
    object
        The value of a key; for a list, a tuple of what its items give.

    Raises
    ------
    BaseException
        What a task has raised first, the original object. Tasks that have not begun are left out then.
    KeyError
        If a key is not in the graph.

    Examples
    --------
    >>> import weft
    >>> from operator import add
    >>> graph = {"a": 1, "b": (add, "a", 1), "c": (add, "a", "b")}
    >>> weft.distributed.dask.get(graph, ["c", ["a", "b"]])
    (3, (1, 2))
    """
    if not hasattr(dsk, "items"):
        dsk = dsk.__dask_graph__()
    known = dict(cache or {})
    nodes: dict[Hashable, Any] = _spec.convert_legacy_graph(dsk, {*dsk, *known})
    wanted = set(_core.flatten([keys] if not isinstance(keys, list) else keys))
    with _callbacks.local_callbacks(callbacks) as active:
        run = _Run(nodes, wanted, known, engine or get_engine())
        if active:
            return _nested(keys, _observed(run, active))
        return _nested(keys, run.results())


def _nested(keys: Any, values: dict[Hashable, Any]) -> Any:  # noqa: ANN401 - as above
    return _local.nested_get(keys, values)


def _observed(run: _Run, active: Any) -> dict[Hashable, Any]:  # noqa: ANN401 - Dask's callbacks
    """Compute under callbacks, which hear of each task before and after it."""
    starts, states, before, after, finishes = _callbacks.unpack_callbacks(active)
    state: dict[str, Any] = {
        "cache": run.values,
        "waiting": {},
        "ready": [],
        "running": set(),
        "finished": set(),
        "released": set(),
    }
    for call in starts:
        call(run.nodes)
    failed = True
    try:
        for call in states:
            call(run.nodes, state)
        state["waiting"] = {key: set[Any]() for key in run.order()}
        state["dependencies"] = {key: run.nodes[key].dependencies for key in run.order()}
        run.before = lambda key: [call(key, run.nodes, state) for call in before]

        def finished(key: Hashable, value: object) -> None:
            state["waiting"].pop(key, None)
            state["finished"].add(key)
            for call in after:
                call(key, value, run.nodes, state, None)

        run.after = finished
        found = run.results()
        failed = False
        return found
    finally:
        for call in finishes:
            call(run.nodes, state, failed)


class _Run:
    """One computation: its values by key, and who still needs them.

    Parameters
    ----------
    nodes : mapping
        Dask's nodes by key.
    wanted : set
        The keys to keep.
    values : dict
        What is known already; it becomes what is computed, and loses what nobody needs any more.
    engine : Engine
        What runs the tasks.
    """

    def __init__(
        self, nodes: dict[Hashable, Any], wanted: set[Hashable], values: dict[Hashable, Any], engine: Engine
    ) -> None:
        self.nodes = nodes
        self.values = values
        self.before: Callable[[Hashable], object] | None = None
        self.after: Callable[[Hashable, object], object] | None = None
        self._wanted = wanted
        self._engine = engine
        self._order: list[Hashable] | None = None
        self._stopped = False
        self._error: BaseException | None = None

    def order(self) -> list[Hashable]:
        """Return the keys that are needed, each behind what it depends on."""
        if self._order is None:
            self._order = list(self._sorted())
        return self._order

    def _sorted(self) -> Iterator[Hashable]:
        nodes, done = self.nodes, set(self.values)
        for root in self._wanted:
            if root in done:
                continue
            entered: set[Hashable] = {root}
            stack = [(root, iter(self._node(root).dependencies))]
            while stack:
                key, rest = stack[-1]
                for each in rest:
                    if each in done:
                        continue
                    node = nodes.get(each) or self._node(each)
                    if not node.dependencies:
                        done.add(each)
                        yield each
                        continue
                    if each in entered:
                        path = [name for name, _ in stack]
                        raise RuntimeError(f"the graph has a cycle: {path[path.index(each) :]}")
                    entered.add(each)
                    stack.append((each, iter(node.dependencies)))
                    break
                else:
                    stack.pop()
                    entered.discard(key)
                    done.add(key)
                    yield key

    def _node(self, key: Hashable) -> Any:  # noqa: ANN401 - one of Dask's
        try:
            return self.nodes[key]
        except KeyError:
            raise KeyError(f"the graph has no key {key!r}") from None

    def results(self) -> dict[Hashable, Any]:
        """Push all tasks, wait for those that are wanted, and return the values."""
        variables: dict[Hashable, Variable] = {}
        gate = _Gate(self._engine)
        try:
            self._push(variables, gate)
        except BaseException:
            self._stopped = True
            raise
        finally:
            gate.open()
        for key in self._wanted:
            if key in variables:
                self._engine.wait_for_var(variables[key])
                if self._error is not None:
                    break
        if self._error is not None:
            raise self._error
        return self.values

    def _push(self, variables: dict[Hashable, Variable], gate: _Gate) -> None:
        """Push an op for each task, on a variable for each value."""
        values, nodes, order = self.values, self.nodes, self.order()
        readers = self._readers()
        push, new = self._engine.push, self._engine.new_variable
        data = _spec.DataNode if self.before is None and self.after is None else None
        closed = [gate.variable]
        for at, key in enumerate(order):
            node = nodes[key]
            if type(node) is data:
                values[key] = node.value
                continue
            variables[key] = own = new()
            reads = [variables[each] for each in node.dependencies if each in variables]
            push(_Task(self, key, node, readers), reads or closed, (own,))
            if at == _HELD:
                gate.open()

    def _readers(self) -> dict[Hashable, list[None]]:
        """Return how often each value is read, as lists from which items are taken without a lock."""
        readers: dict[Hashable, list[None]] = {key: [] for key in (*self.order(), *self.values)}
        for key in self.order():
            for each in self.nodes[key].dependencies:
                readers[each].append(None)
        for key in self._wanted:
            readers[key].append(None)
        return readers

    def fail(self, error: BaseException) -> None:
        """Note what a task has raised: the first counts, and nothing begins after it."""
        if self._error is None:
            self._error = error
        self._stopped = True

    @property
    def stopped(self) -> bool:
        """Whether tasks that have not begun are left out."""
        return self._stopped


class _Gate:
    """What tasks wait for that wait for nothing else: they begin when most are pushed.

    Until then the thread that pushes and the workers would take the GIL from each other, again and again.
    """

    def __init__(self, engine: Engine) -> None:
        self.variable = engine.new_variable("dask graph")
        self._lock = threading.Lock()
        self._open = False
        self._done: Completion | None = None
        engine.push_async(self._begin, (), (self.variable,), name="dask graph")

    def _begin(self, done: Completion) -> None:
        with self._lock:
            self._done = done
            if not self._open:
                return
        done()

    def open(self) -> None:
        """Let them begin."""
        with self._lock:
            was, self._open = self._open, True
            done = self._done
        if done is not None and not was:
            done()


class _Task:
    """A task as a callable for the engine."""

    __slots__ = ("key", "node", "readers", "run")

    def __init__(self, run: _Run, key: Hashable, node: Any, readers: dict[Hashable, list[None]]) -> None:  # noqa: ANN401 - one of Dask's
        self.run = run
        self.key = key
        self.node = node
        self.readers = readers

    def __call__(self) -> None:
        run = self.run
        if run.stopped:
            return
        values, node = run.values, self.node
        try:
            if run.before is not None:
                run.before(self.key)
            needed = node.dependencies
            value = values[self.key] = node({each: values[each] for each in needed})
            if run.after is not None:
                run.after(self.key, value)
        except BaseException as error:  # noqa: BLE001 - raised by get()
            run.fail(error)
            return
        for each in needed:
            left = self.readers[each]
            left.pop()
            if not left:
                values.pop(each, None)
