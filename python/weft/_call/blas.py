"""The number of BLAS and LAPACK threads in hosted calls of an engine that sets one.

The number belongs to the process. Calls with the same number share it, calls with another number wait for them, and the
last one to end restores the former number.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from threading import Condition
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from weft._core import Engine
    from weft._registry.op import Op


@cache
def find() -> tuple[Any, ...]:
    """Return an object for each loaded BLAS library that sets its number of threads.

    Raises
    ------
    ImportError
        If threadpoolctl is not installed.
    """
    try:
        threadpoolctl: Any = import_module("threadpoolctl")  # ships no types
    except ImportError as error:
        raise ImportError(
            "blas_threads needs threadpoolctl: pip install threadpoolctl", name="threadpoolctl"
        ) from error
    return tuple(threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers)


#: Seconds that a call waits for those with another number before it looks again: an interrupted call notifies no one.
_LOOK = 0.1


def _nothing(*, force: bool) -> None:
    """Do nothing, in place of the release that some libraries need before another thread may set the number."""


class _Call:
    """A call with a number of threads, for as long as this object lives, however the call ends."""

    __slots__ = ("__weakref__",)


class _Shared:
    """The running calls with a number of threads, and the number to restore.

    An interrupt may end a call at any line. So there is no count: a call runs as long as its object lives.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.running: WeakSet[_Call] = WeakSet()
        self.threads = 0
        self.before: list[int] | None = None
        """The process's own numbers; None while they hold."""

    def enter(self, call: _Call, threads: int) -> None:
        with self.changed:
            while self.running and self.threads != threads:
                self.changed.wait(_LOOK)
            if not self.running:
                if self.before is None:
                    self.before = [library.get_num_threads() for library in find()]
                self.threads = threads
                self._set([threads] * len(self.before))
            self.running.add(call)

    def leave(self, call: _Call) -> None:
        with self.changed:
            self.running.discard(call)
            if not self.running and self.before is not None:
                self._set(self.before)
                self.before = None
                self.changed.notify_all()

    def _set(self, counts: list[int]) -> None:
        for library, count in zip(find(), counts, strict=True):
            # threadpoolctl lets only one thread set the number, the first to do so. Here any worker may come first or
            # last.
            let_all = getattr(library, "clear_controlling_thread", _nothing)
            let_all(force=True)
            library.set_num_threads(count)
            let_all(force=True)


_shared = _Shared()


@contextmanager
def limited(threads: int | None) -> Generator[None]:
    """Give BLAS this number of threads inside; None for the process's own."""
    if threads is None:
        yield
        return
    call = _Call()
    try:
        _shared.enter(call, threads)
        yield
    finally:
        _shared.leave(call)


def of_engine(engine: Engine, op: Op, run: Callable[..., None]) -> Callable[..., None]:
    """Return `run` for a hosted op on the host, with the engine's number of threads.

    Without such a number, or if the op does not call BLAS, it is `run` itself.
    """
    threads = engine.blas_threads
    if threads is None or not op.attribute("blas", False):
        return run
    return partial(_run, threads, run)


def _run(threads: int, run: Callable[..., None], *views: Any) -> None:
    with limited(threads):
        run(*views)


def _after_fork_child() -> None:
    """Forget the calls of the parent's threads, which never end here; the end of the next call restores the number."""
    global _shared  # its lock may be held
    before, _shared = _shared.before, _Shared()
    _shared.before = before


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_child)
