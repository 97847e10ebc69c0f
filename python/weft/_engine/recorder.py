"""Recording: a `Trace` starts it, stops it, and shows the record."""

from __future__ import annotations

import errno
import operator
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, SupportsIndex

from weft._core import Engine
from weft._engine.default import get_engine
from weft._trace import formats
from weft._trace.markup import framed, table
from weft._trace.ranges import profiler_ranges
from weft.errors import ArgumentTypeError, ArgumentValueError, EngineClosedError, TraceError, WeftError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import TracebackType

    import numpy as np
    import numpy.typing as npt

    from weft._trace.record import Ops, Stream, Thread, Traced
    from weft._trace.summary import Summary
    from weft._trace.views import Views

_HEIGHT = 480  # of a timeline in a notebook, in pixels


class Trace:
    """The record of an engine's ops: inside a ``with`` block, or between `start` and `stop`. Made by `trace`.

    It can be looked at while it is recorded, too; then it shows all that has happened so far.

    Parameters
    ----------
    path : str or PathLike, optional
        The file to write at the end, as by `save`.
    engine : Engine, optional
        The engine to record; by default the default engine.
    limit : int, default: 1_000_000
        The most ops to keep.

    See Also
    --------
    trace : Make one.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        engine: Engine | None = None,
        limit: SupportsIndex = 1_000_000,
    ) -> None:
        if engine is not None and not isinstance(engine, Engine):
            raise ArgumentTypeError(f"trace() takes a weft.Engine or None, not {type(engine).__name__}")
        try:
            self._limit = operator.index(limit)
        except TypeError:
            raise ArgumentTypeError(f"the limit of a trace is a number of ops, not {type(limit).__name__}") from None
        if self._limit < 1:
            raise ArgumentValueError(f"the limit of a trace is at least one op, not {self._limit}")
        # Before the run, not after it: a wrong suffix, a missing package, a folder that is not there.
        self._path = None if path is None else formats.check(path)
        if self._path is not None and not self._path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "the folder that the trace is to be written to is not there", path)
        self._engine = engine
        self._recording = False
        self._dropped: weakref.finalize[[Engine], Trace] | None = None
        self._views: Views | None = None

    def __repr__(self) -> str:
        """Return its objects."""
        if self._recording:
            return "<weft.Trace, recording>"
        if self._views is None:
            return "<weft.Trace, not started>"
        return f"<weft.Trace of {len(self.ops):,} entries>"

    def _repr_html_(self) -> str:
        """Return the timeline as notebooks show it: a page that zooms, pans and searches."""
        if self._recording or self._views is None:
            return table([], [(repr(self),)])
        from weft._trace.page import page_of  # noqa: PLC0415 - needed in notebooks alone

        return framed(page_of("weft", self._views), _HEIGHT) + self._views.summary._repr_html_()

    def start(self) -> Self:
        """Start to record.

        Returns
        -------
        Trace
            Itself.

        Raises
        ------
        TraceError
            If it was started before, or another trace records the same engine.

        Examples
        --------
        >>> import weft
        >>> trace = weft.trace().start()
        >>> x = weft.ones(100_000) + 1
        >>> trace.stop()
        >>> len(trace.ops) > 0
        True
        """
        if self._recording or self._views is not None:
            raise TraceError("this trace was started before: make another one with weft.trace()")
        self._engine = engine = get_engine() if self._engine is None else self._engine
        ranges = profiler_ranges()
        # A trace that is dropped while it records ends: it could not be stopped, and the engine would not be traced
        # again.
        self._dropped = weakref.finalize(self, _forget, engine)
        self._dropped.atexit = False
        try:
            engine._trace_start(self._limit, ranges)
            self._recording = True
            return self  # noqa: TRY300 - in here, for interrupts come at any line
        except WeftError:  # it was not started
            self._dropped.detach()
            raise
        except BaseException:
            self._abandon()
            raise

    def _abandon(self) -> None:
        """Stop without a record."""
        self._recording = False
        if self._dropped is not None:
            self._dropped()

    def stop(self) -> None:
        """Wait for all pushed ops, on devices too, stop to record, and write the file if there is one to write.

        The failures of ops are neither raised nor do they count as reported: the next wait raises them.

        Raises
        ------
        TraceError
            If it is not recording.
        DeadlockError
            If called inside an op, which would wait for itself. It is stopped and written all the same.

        Examples
        --------
        See `start`.
        """
        self._stop(wait=True)

    def __enter__(self) -> Self:
        """Start to record."""
        try:
            return self.start()
        except BaseException:
            if self._recording:  # an interrupt came behind the start: no block ends it
                self._abandon()
            raise

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop and write, also when the body raised: then its exception passes, with a note if writing failed."""
        if exc_value is None:
            self.stop()
            return
        try:
            # After Ctrl-C the user does not want to wait.
            self._stop(wait=isinstance(exc_value, Exception))
        except Exception as error:  # noqa: BLE001 - the body's exception must not be hidden by one of ours
            exc_value.add_note(f"weft: the trace was not written: {type(error).__name__}: {error}")

    def _stop(self, *, wait: bool) -> None:
        """Stop to record, after all that was pushed if `wait`, and write. A wait that fails does not keep it from that."""
        engine = self._engine
        if not self._recording or engine is None:
            raise TraceError("this trace is not recording: start() it, or use it in a with statement")
        try:
            if wait:
                with suppress(EngineClosedError):  # closed inside the block: all is done
                    engine._drain()
        finally:
            try:
                answer = engine._trace_stop()
            finally:
                self._recording = False
                if self._dropped is not None:
                    self._dropped.detach()
            self._views = _views(answer)
            if self._path is not None:
                self.save(self._path)

    def _seen(self) -> Views:
        """Return the views of the record."""
        if self._recording and self._engine is not None:
            return _views(self._engine._trace_read())
        if self._views is None:
            raise TraceError("this trace has recorded nothing yet: start() it, or use it in a with statement")
        return self._views

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file, of the format that its suffix says.

        Parameters
        ----------
        path : str or PathLike
            ``.json`` or ``.json.gz`` for trace events, which https://ui.perfetto.dev opens; ``.png``, ``.svg`` or
            ``.html`` for a timeline, as by `timeline`; ``.dot`` for a graph, as by `graph`.

        Raises
        ------
        ArgumentValueError
            If the suffix is none of these.
        ImportError
            If the format needs ``weft[trace]``.

        Examples
        --------
        >>> import tempfile, pathlib, weft
        >>> with weft.trace() as trace:
        ...     x = weft.ones(100_000) + 1
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.save(pathlib.Path(folder, "run.json"))
        """
        place = formats.check(path)
        formats.write(place, self._seen())

    def timeline(self, path: str | os.PathLike[str]) -> None:
        """Draw the ops on a time axis.

        A lane for each thread and stream; copies, computation and waits in colours of their own; the critical path
        outlined.

        Parameters
        ----------
        path : str or PathLike
            ``.html`` for a page that zooms, pans and searches, and needs nothing but a browser; ``.png`` or ``.svg`` for
            a picture, which needs ``weft[trace]``.

        Raises
        ------
        ArgumentValueError
            If the suffix is none of these.
        ImportError
            If the format needs ``weft[trace]``.

        Examples
        --------
        >>> import tempfile, pathlib, weft
        >>> with weft.trace() as trace:
        ...     x = weft.ones(100_000) + 1
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.timeline(pathlib.Path(folder, "run.html"))
        """
        formats.write_timeline(formats.check(path, formats.TIMELINES, "timeline"), self._seen())

    def graph(self, path: str | os.PathLike[str]) -> None:
        """Draw the ops and the versions that they read and make.

        Parameters
        ----------
        path : str or PathLike
            ``.dot`` for text in Graphviz's language; ``.svg`` for a picture, laid out by Graphviz's ``dot`` if that is
            there and the graph is small, or else layer by layer, which needs ``weft[trace]``.

        Raises
        ------
        ArgumentValueError
            If the suffix is none of these.
        ImportError
            If the format needs ``weft[trace]``.

        Examples
        --------
        >>> import tempfile, pathlib, weft
        >>> with weft.trace() as trace:
        ...     x = weft.ones(100_000) + 1
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trace.graph(pathlib.Path(folder, "run.dot"))
        """
        formats.write_graph(formats.check(path, formats.GRAPHS, "graph"), self._seen())

    def summary(self) -> Summary:
        """Return the figures: for each op count, times and queue time, the critical path, parallelism, overlap.

        Returns
        -------
        Summary
            Numbers as attributes; ``print`` shows them as text, ``.show()`` as tables where rich is installed.

        Examples
        --------
        >>> import weft
        >>> with weft.Engine(workers=2) as engine, weft.trace(engine=engine) as trace:
        ...     x = engine.new_variable("x")
        ...     for _ in range(3):
        ...         engine.push(lambda: None, mutate_vars=[x], name="step")
        >>> summary = trace.summary()
        >>> summary.count, summary.ops[0].name, summary.critical_path
        (3, 'step', ['step', 'step', 'step'])
        """
        return self._seen().summary

    @property
    def ops(self) -> Ops:
        """One element for each op and wait, in the order of pushes: a structured array.

        ``name`` and ``place`` are positions in `names` and `places`, ``pusher`` and ``worker`` in `threads` (65535:
        none), ``parent`` in this array (-1: none). ``pushed``, ``ready``, ``started``, ``ended`` and ``settled`` are
        nanoseconds since the start; 0 is an event that has not happened. Ops that ran on a CUDA device have a
        ``stream``, a position in `streams` (65535: none), ``device_started`` and ``device_ended`` on the same clock,
        and copies the bytes that they ``moved``.

        Examples
        --------
        >>> import weft
        >>> with weft.Engine(workers=2) as engine, weft.trace(engine=engine) as trace:
        ...     engine.push(lambda: None, name="nothing")
        >>> op = trace.ops[0]
        >>> trace.names[op["name"]], bool(op["started"] <= op["ended"])
        ('nothing', True)
        """
        return self._seen().record.ops

    @property
    def accesses(self) -> Ops:
        """One element for each access: ``op``, ``variable``, ``kind`` (0 read, 1 mutate, 2 overwrite), ``version``."""
        return self._seen().record.accesses

    @property
    def dependencies(self) -> npt.NDArray[np.int64]:
        """Pairs of positions in `ops`: the second waits for the first. Pairs that follow from others are left out.

        Examples
        --------
        >>> import weft
        >>> with weft.Engine(workers=2) as engine, weft.trace(engine=engine) as trace:
        ...     x = engine.new_variable("x")
        ...     engine.push(lambda: None, mutate_vars=[x])
        ...     engine.push(lambda: None, read_vars=[x])
        >>> trace.dependencies.tolist()
        [[0, 1]]
        """
        return self._seen().dependencies

    @property
    def critical_path(self) -> npt.NDArray[np.int64]:
        """Positions in `ops` of the longest chain of ops that wait for each other."""
        return self._seen().critical.ops

    @property
    def names(self) -> list[str]:
        """Names of ops."""
        return self._seen().record.names

    @property
    def places(self) -> list[str]:
        """Where ops were pushed, as ``file:line``."""
        return self._seen().record.places

    @property
    def threads(self) -> list[Thread]:
        """Threads that pushed, waited or ran: ``name``, ``kind``, ``lane`` and ``ident`` of each thread."""
        return self._seen().record.threads

    @property
    def streams(self) -> list[Stream]:
        """Streams of devices that ops ran on: ``device``, ``name`` and ``kind`` of each.

        Kinds are ``"compute"``, ``"copy in"`` (from the host), ``"copy out"`` (to it) and ``"peer"`` (from another device).
        """
        return self._seen().record.streams

    @property
    def variables(self) -> list[Traced]:
        """Accessed variables: ``id``, ``name`` and ``bytes`` of each variable."""
        return self._seen().record.variables

    @property
    def errors(self) -> dict[int, str]:
        """For ops that failed, by their position in `ops`, one line."""
        return self._seen().record.errors

    @property
    def duration(self) -> float:
        """Seconds from start to stop."""
        return self._seen().record.duration / 1e9

    @property
    def dropped(self) -> int:
        """How many ops were over the limit and not kept."""
        return self._seen().record.dropped


def _forget(engine: Engine) -> None:
    """End a recording that was dropped."""
    with suppress(WeftError):
        engine._trace_stop()


def _views(answer: Mapping[str, Any]) -> Views:
    """Return the views of the core's answer."""
    from weft._trace.views import Views  # noqa: PLC0415 - needed for traces alone

    return Views.of(answer)
