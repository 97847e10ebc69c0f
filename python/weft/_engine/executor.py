"""`Executor`: the interface of `concurrent.futures` over an engine."""

from __future__ import annotations

import concurrent.futures
import itertools
import threading
from concurrent.futures.thread import BrokenThreadPool
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from weft._core import Engine, _Answering
from weft._engine.exit import has_drained
from weft.errors import ArgumentTypeError, ArgumentValueError, EngineClosedError

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")

# In the words of `concurrent.futures`.
_SHUT_DOWN = "cannot schedule new futures after shutdown"
_BROKEN = "a thread initializer failed, the thread pool is not usable anymore"
_EXITED = "cannot schedule new futures after interpreter shutdown"


class Executor(concurrent.futures.Executor):
    """Run calls on an engine's workers and hand back futures, as `concurrent.futures.ThreadPoolExecutor` does.

    The calls of an executor are independent ops. On an engine that is given, they share its workers with everything
    else that is pushed there, and shutting the executor down leaves the engine open.

    Parameters
    ----------
    engine : Engine or int, optional
        The engine to run on. By default the executor makes one, and closes it at shutdown; a number is that of its
        workers, as for `concurrent.futures.ThreadPoolExecutor`.
    workers, max_workers : int, optional
        The number of workers of the engine that the executor makes; by default as many as this process may use CPUs.

    thread_name_prefix : str, default: ""
        The beginning of the names of threads that run its calls; the rest is a number. For an engine of its own alone.
    initializer : callable, optional
        Each thread calls it before the executor's first call there. If it raises, the executor is broken: its futures
        have a `concurrent.futures.thread.BrokenThreadPool`, with the error as its cause.
    initargs : tuple, default: ()
        The arguments of `initializer`.

    Raises
    ------
    ArgumentTypeError
        If `engine` is not an engine, or `initializer` cannot be called.
    ArgumentValueError
        If an engine and a number of workers or a prefix are given, or two numbers, or one less than 1.

    See Also
    --------
    task : Push functions in the order that their arguments need.

    Notes
    -----
    ``Future.result()`` inside a submitted call blocks its worker, as in every pool of threads: with one worker it
    waits for ever for a call that has not started.

    Examples
    --------
    >>> import weft
    >>> with weft.Executor(workers=2) as executor:
    ...     future = executor.submit(pow, 2, 10)
    ...     list(executor.map(abs, [-1, -2, -3]))
    [1, 2, 3]
    >>> future.result()
    1024
    """

    def __init__(
        self,
        engine: Engine | int | None = None,
        workers: int | None = None,
        *,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        counts = [engine if isinstance(engine, int) else None, workers, max_workers]
        if sum(count is not None for count in counts) > 1:
            raise ArgumentValueError(
                "workers and max_workers mean the same, as does a number in front: give one of them"
            )
        if max_workers is not None and max_workers <= 0:
            raise ArgumentValueError(f"max_workers must be greater than 0, not {max_workers}")
        workers = next((count for count in counts if count is not None), None)
        if isinstance(engine, int):
            engine = None
        if engine is not None and not isinstance(engine, Engine):
            raise ArgumentTypeError(f"Executor() takes a weft.Engine, a number or None, not {type(engine).__name__}")
        if engine is not None and (workers is not None or thread_name_prefix):
            raise ArgumentValueError(
                "workers and their names belong to an engine that the executor makes: give either an engine or these"
            )
        if initializer is not None and not callable(initializer):
            raise ArgumentTypeError(f"initializer is a callable, not {type(initializer).__name__}")
        begins = initializer is not None or thread_name_prefix
        self._threads = _Threads(thread_name_prefix, initializer, initargs) if begins else None
        self._owns_engine = engine is None
        self._engine = Engine(workers, name="executor") if engine is None else engine
        # Every call reads this variable, so that waiting to write it waits for the calls of this executor alone.
        self._calls = self._engine.new_variable("executor")
        self._unstarted: set[concurrent.futures.Future[Any]] = set()
        self._shut_down = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> concurrent.futures.Future[T]:
        """Push a call.

        Parameters
        ----------
        fn : Callable
            The function to call.
        *args, **kwargs
            Its arguments, kept alive until it has run.

        Returns
        -------
        concurrent.futures.Future
            Holds the result or the exception of `fn`; ``cancel()`` works until the call starts.

        Raises
        ------
        ArgumentTypeError
            If `fn` cannot be called.
        RuntimeError
            If the executor was shut down, its engine closed, or the exiting process has run all that it had to.

        Examples
        --------
        >>> import weft
        >>> with weft.Executor(workers=1) as executor:
        ...     executor.submit(int, "2a", base=16).result()
        42
        """
        if not callable(fn):
            raise ArgumentTypeError(f"submit() takes a callable, not {type(fn).__name__}")
        if self._shut_down:
            raise RuntimeError(_SHUT_DOWN)
        if has_drained():
            raise RuntimeError(_EXITED)
        future: concurrent.futures.Future[T] = concurrent.futures.Future()
        if self._threads is not None and self._threads.broken is not None:
            raise BrokenThreadPool(_BROKEN) from self._threads.broken
        call = _Call(future, self._unstarted, self._threads, fn, args, kwargs)
        name = getattr(fn, "__name__", None) or type(fn).__name__
        try:
            self._engine.push(_Answering(call.run, call.dropped), [self._calls], name=name)
        except EngineClosedError as error:
            call.dropped()
            raise RuntimeError(_EXITED if has_drained() else _SHUT_DOWN) from error
        except BaseException:  # Ctrl-C while the engine has no room, say
            call.dropped()
            raise
        # No lock around the push, which may block on the engine's limits: a shutdown that came between is found here.
        if self._shut_down and future.cancel():
            raise RuntimeError(_SHUT_DOWN)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and wait for those pushed.

        Parameters
        ----------
        wait : bool, default: True
            Whether to return only when all calls are done. Without, they finish in the background.
        cancel_futures : bool, default: False
            Whether to cancel the calls that have not started.

        Raises
        ------
        DeadlockError
            If called with ``wait=True`` by one of the executor's own calls.

        Examples
        --------
        >>> import weft
        >>> executor = weft.Executor(workers=1)
        >>> executor.shutdown()
        >>> executor.submit(print)
        Traceback (most recent call last):
        ...
        RuntimeError: cannot schedule new futures after shutdown
        """
        self._shut_down = True
        if cancel_futures:
            for future in self._unstarted.copy():
                future.cancel()
        if wait and not self._engine.closed:
            self._engine.wait_to_write(self._calls)
            if self._owns_engine:
                self._engine.close()


class _Threads:
    """The beginnings of the threads that run an executor's calls: their names, and their first calls."""

    def __init__(self, prefix: str, initializer: Callable[..., object] | None, initargs: tuple[Any, ...]) -> None:
        self._prefix, self._initializer, self._initargs = prefix, initializer, initargs
        self._begun = threading.local()
        self._numbers = itertools.count()
        #: The exception of the initializer.
        self.broken: BaseException | None = None

    def begin(self) -> None:
        """Begin this thread, unless it has; BrokenThreadPool if a beginning has failed."""
        if self.broken is None and not getattr(self._begun, "here", False):
            self._begun.here = True
            if self._prefix:
                threading.current_thread().name = f"{self._prefix}_{next(self._numbers)}"
            if self._initializer is not None:
                try:
                    self._initializer(*self._initargs)
                except BaseException as error:  # noqa: BLE001 - the futures deliver it
                    self.broken = error
        if self.broken is not None:
            raise BrokenThreadPool(_BROKEN) from self.broken


class _Call(Generic[T]):
    """One submitted call: the payload of its op."""

    __slots__ = ("_args", "_fn", "_future", "_kwargs", "_threads", "_unstarted")

    def __init__(
        self,
        future: concurrent.futures.Future[T],
        unstarted: set[concurrent.futures.Future[Any]],
        threads: _Threads | None,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self._future, self._unstarted, self._threads = future, unstarted, threads
        self._fn, self._args, self._kwargs = fn, args, kwargs
        unstarted.add(future)

    def run(self) -> None:
        future = self._future
        self._unstarted.discard(future)
        if not future.set_running_or_notify_cancel():
            return
        try:
            if self._threads is not None:
                self._threads.begin()
            result = self._fn(*self._args, **self._kwargs)
        except BaseException as error:  # noqa: BLE001 - the future delivers it
            future.set_exception(error)
        else:
            future.set_result(result)
        finally:
            del self, future  # the traceback of the error that the future holds leads to this frame

    def dropped(self) -> None:
        """Cancel the future of a call that the engine dropped, lest a wait for it never ends."""
        if self._future in self._unstarted:
            self._unstarted.discard(self._future)
            self._future.cancel()
            self._future.set_running_or_notify_cancel()
