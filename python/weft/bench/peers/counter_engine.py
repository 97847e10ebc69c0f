"""A dependency engine as one would write it in an afternoon: FIFO queues, countdowns and one lock over a ThreadPoolExecutor.

It keeps weft's order per variable (reads together, mutations alone, first come first served), so it runs the same programs.
Two ways of handing out ready ops are timed, since neither wins everywhere: each ready op submitted to the executor, or a
ready queue of our own that at most ``workers`` submitted loops drain.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Variable:
    """A FIFO queue of accesses not yet granted, and the granted ones."""

    __slots__ = ("mutating", "queue", "reading")

    def __init__(self) -> None:
        self.queue: deque[tuple[Op, bool]] = deque()
        self.reading = 0
        self.mutating = False


class Op:
    """A callable with its accesses and the number of them not yet granted."""

    __slots__ = ("countdown", "exec_func", "mutates", "reads")

    def __init__(self, exec_func: Callable[[], object], reads: Sequence[Variable], mutates: Sequence[Variable]) -> None:
        self.exec_func = exec_func
        self.reads = reads
        self.mutates = mutates
        self.countdown = 0


class CounterEngine:
    """Runs ops in dependency order on a ThreadPoolExecutor.

    Parameters
    ----------
    workers : int
        Threads of the executor.
    own_queue : bool
        Drain a ready queue of our own instead of submitting each ready op.
    """

    def __init__(self, workers: int, *, own_queue: bool = False) -> None:
        self._executor = ThreadPoolExecutor(workers)
        self._workers = workers
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._pending = 0
        self._own_queue = own_queue
        self._ready: deque[Op] = deque()
        self._draining = 0

    def push(
        self, exec_func: Callable[[], object], reads: Sequence[Variable] = (), mutates: Sequence[Variable] = ()
    ) -> None:
        """Enter an op in its variables' queues, and hand it out if every access is granted at once."""
        op = Op(exec_func, reads, mutates)
        with self._lock:
            self._pending += 1
            for variable in reads:
                if variable.mutating or variable.queue:
                    variable.queue.append((op, False))
                    op.countdown += 1
                else:
                    variable.reading += 1
            for variable in mutates:
                if variable.mutating or variable.reading or variable.queue:
                    variable.queue.append((op, True))
                    op.countdown += 1
                else:
                    variable.mutating = True
            if op.countdown:
                return
            if self._own_queue:
                self._ready.append(op)
                if self._draining == self._workers:
                    return
                self._draining += 1
        if self._own_queue:
            self._executor.submit(self._drain)
        else:
            self._executor.submit(self._run, op)

    def wait_for_all(self) -> None:
        """Return once every op pushed before has run."""
        with self._idle:
            while self._pending:
                self._idle.wait()

    def close(self) -> None:
        """Run all pending ops and stop the threads."""
        self.wait_for_all()
        self._executor.shutdown()

    def _run(self, op: Op) -> None:
        # The first op made ready follows on this thread: a chain needs one submission.
        while True:
            op.exec_func()
            with self._lock:
                ready = self._complete(op)
            if not ready:
                return
            op = ready.pop()
            for other in ready:
                self._executor.submit(self._run, other)

    def _drain(self) -> None:
        lock, queue = self._lock, self._ready
        done: Op | None = None
        while True:
            loops = 0
            with lock:
                if done is not None:
                    queue.extend(self._complete(done))
                if not queue:
                    self._draining -= 1
                    return
                op = queue.popleft()
                if queue and self._draining < self._workers:
                    loops = min(len(queue), self._workers - self._draining)
                    self._draining += loops
            for _ in range(loops):
                self._executor.submit(self._drain)
            op.exec_func()
            done = op

    def _complete(self, op: Op) -> list[Op]:
        """Pass the op's variables on; the lock is held."""
        ready: list[Op] = []
        for variable in op.reads:
            variable.reading -= 1
            if not variable.reading and variable.queue:
                _grant(variable, ready)
        for variable in op.mutates:
            variable.mutating = False
            if variable.queue:
                _grant(variable, ready)
        self._pending -= 1
        if not self._pending:
            self._idle.notify_all()
        return ready


def _grant(variable: Variable, ready: list[Op]) -> None:
    queue = variable.queue
    while queue:
        op, mutates = queue[0]
        if mutates:
            if variable.reading:
                return
            variable.mutating = True
        else:
            variable.reading += 1
        queue.popleft()
        op.countdown -= 1
        if not op.countdown:
            ready.append(op)
        if mutates:
            return
