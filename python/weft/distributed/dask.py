"""Dask on weft: a scheduler for Dask's graphs and collections on one machine.

>>> import weft
>>> weft.distributed.dask.get({"x": 1, "y": (sum, ["x", 10])}, "y")
11

``dask.config.set(scheduler=weft.distributed.dask.get)`` makes it that of all collections. What goes to a cluster goes
through ``distributed.Client`` as ever: tasks, programs and symbols pickle, and arrays travel as buffers.
"""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from weft._core import _TaskGraph
from weft._engine.default import get_engine
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Hashable

    from weft._core import Engine

__all__ = ["get"]

try:
    _spec: Any = importlib.import_module("dask._task_spec")
    _core: Any = importlib.import_module("dask.core")
    _local: Any = importlib.import_module("dask.local")
    _callbacks: Any = importlib.import_module("dask.callbacks")
    _ensure_dict: Any = importlib.import_module("dask.utils").ensure_dict
except ImportError as _error:
    raise ImportError(
        f"weft.distributed.dask needs Dask of 2024.12 or newer ({_error}): pip install 'dask>=2024.12'"
    ) from _error

#: Dask's classes that the core turns into calls.
_KINDS: tuple[type, ...] = (_spec.Task, _spec.TaskRef, _spec.Alias, _spec.DataNode, _spec.List, _spec.GraphNode)


def get(
    dsk: Any,
    keys: Any,
    *,
    engine: Engine | None = None,
    cache: dict[Hashable, Any] | None = None,
    callbacks: Any = None,
    **_kwargs: Any,
) -> Any:
    """Compute keys of a Dask graph: each task is an op, and the engine runs side by side all that may run so.

    Parameters
    ----------
    dsk : mapping or collection's graph
        Tasks by key.
    keys : key or list
        The wanted keys; lists may be nested.
    engine : Engine, optional
        The engine of the tasks; by default the default one.
    cache : dict, optional
        Results of keys that are known already.
    callbacks : optional
        As for Dask's own schedulers; those of the context are called in any case.
    **_kwargs
        Arguments of Dask's other schedulers that this one needs not: ``num_workers``, ``pool`` and the like.

    Returns
    -------
    object
        The value of a key; for a list, a tuple of its items' values.

    Raises
    ------
    BaseException
        The first exception of a task, the original object. Tasks that have not begun are left out then.
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
        if not hasattr(dsk, "__dask_graph__"):
            raise ArgumentTypeError(
                f"a graph is a mapping of keys to tasks, or a collection of Dask's, not a {type(dsk).__name__}"
            )
        dsk = dsk.__dask_graph__()
    known = dict(cache or {})
    asked = cast("list[Any]", keys) if isinstance(keys, list) else [keys]  # type: ignore[redundant-cast] # not to Pyright
    nested = any(isinstance(key, list) for key in asked)
    wanted: list[Hashable] = list(dict.fromkeys(_core.flatten(asked) if nested else asked))
    engine = engine or get_engine()
    with _callbacks.local_callbacks(callbacks) as active:
        if active:
            nodes: dict[Hashable, Any] = _spec.convert_legacy_graph(dsk, {*dsk, *known} if known else None)
            values = _observed(nodes, wanted, known, engine, active)
        else:
            values = _computed(_graph(_ensure_dict(dsk), wanted, known), engine)
    if nested:
        return _local.nested_get(asked, values)
    found = tuple(values[key] for key in asked)
    return found if asked is keys else found[0]


def _graph(nodes: dict[Hashable, Any], wanted: list[Hashable], known: dict[Hashable, Any], *calls: Any) -> _TaskGraph:
    """Read a graph; values of its older form beside calls, keys and lists are left to Dask's own conversion."""
    names = {*nodes, *known} if known else nodes
    convert = partial(_spec.convert_legacy_task, None, all_keys=names)
    return _TaskGraph(nodes, wanted, known, _KINDS, _spec.Dict, convert, *calls)


def _observed(
    nodes: dict[Hashable, Any], wanted: list[Hashable], known: dict[Hashable, Any], engine: Engine, active: Any
) -> dict[Hashable, Any]:
    """Compute under callbacks, which hear of each task before and after it."""
    starts, states, before, after, finishes = _callbacks.unpack_callbacks(active)
    state: dict[str, Any] = {
        "cache": known,
        "waiting": {},
        "ready": [],
        "running": set(),
        "finished": set(),
        "released": set(),
    }

    def begins(key: Hashable) -> None:
        for call in before:
            call(key, nodes, state)

    def ends(key: Hashable, value: object) -> None:
        state["waiting"].pop(key, None)
        state["finished"].add(key)
        for call in after:
            call(key, value, nodes, state, None)

    for call in starts:
        call(nodes)
    failed = True
    try:
        graph = _graph(nodes, wanted, known, begins, ends)
        order = graph.order()
        state["waiting"] = {key: set[Any]() for key in order}
        state["dependencies"] = {key: nodes[key].dependencies for key in order}
        for call in states:
            call(nodes, state)
        found = _computed(graph, engine)
        failed = False
        return found
    finally:
        for call in finishes:
            call(nodes, state, failed)


def _computed(graph: _TaskGraph, engine: Engine) -> dict[Hashable, Any]:
    """Push a graph, and wait for it."""
    try:  # an interrupt may come before the wait
        engine.wait_for_var(graph.push(engine))
    except BaseException:
        graph.stop()
        raise
    return graph.take()
