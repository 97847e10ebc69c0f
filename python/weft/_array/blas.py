"""How many threads BLAS and LAPACK take for the hosted calls of an engine that asks for a number of its own.

The number is the process's: so calls that want the same one share it, those that want another one wait for them, and the last one
to end sets what was set before.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from threading import Condition
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from weft._core import Engine

__all__ = ["find", "limited", "of_engine"]

#: Ops beside those of `weft.linalg` whose NumPy function calls BLAS.
_PRODUCTS = frozenset(["einsum", "matmul", "tensordot", "vecdot"])


@cache
def find() -> Any:  # noqa: ANN401 - threadpoolctl ships no types
    """Return what sets the number of threads of the BLAS libraries that this process has loaded.

    Raises
    ------
    ImportError
        If threadpoolctl is not installed.
    """
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError as error:
        raise ImportError("blas_threads needs threadpoolctl: pip install 'weft[machine]'", name="threadpoolctl") from error
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _Shared:
    """Who runs under a number of threads now, and what restores the one before."""

    def __init__(self) -> None:
        self.changed = Condition()
        self.running = 0
        self.threads = 0
        self.limit: Any = None

    def enter(self, threads: int) -> None:
        with self.changed:
            while self.running and self.threads != threads:
                self.changed.wait()
            if not self.running:
                self.limit = find().limit(limits=threads)
                self.threads = threads
            self.running += 1

    def leave(self) -> None:
        with self.changed:
            self.running -= 1
            if not self.running:
                limit, self.limit = self.limit, None
                limit.restore_original_limits()
                self.changed.notify_all()


_shared = _Shared()


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Give BLAS so many threads inside; None for what the process has set."""
    if threads is None:
        yield
        return
    _shared.enter(threads)
    try:
        yield
    finally:
        _shared.leave()


def of_engine(engine: Engine, op: str, run: Callable[..., None]) -> Callable[..., None]:
    """Return what runs a hosted op on the host: with the engine's number of threads, if it has one and the op calls BLAS."""
    threads = engine.blas_threads
    if threads is None or not (op.startswith("linalg.") or op in _PRODUCTS):
        return run
    return partial(_run, threads, run)


def _run(threads: int, run: Callable[..., None], *views: Any) -> None:  # noqa: ANN401 - views
    with limited(threads):
        run(*views)
