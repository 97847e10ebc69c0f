"""One face over every Python implementation of table B: prepare a program, then run it as often as asked."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from harness.patterns import INDEPENDENT_VARIABLES, PATTERNS, Program, State
from peers.counter_engine import CounterEngine, Variable
from peers.thread_pool import MapPool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import weft


V = TypeVar("V")

# The one peer that is not handed op after op: many ops of it are one task.
CHUNKED_MAP = "ThreadPool.map, its own chunks"


def no_op() -> None:
    """Do nothing: the callable of every timing."""


def numbered_no_op(_op_id: int) -> None:
    """Do nothing, for pools that pass an argument."""


class Runner(Protocol):
    """Runs programs on one implementation."""

    @property
    def name(self) -> str:
        """How its row is called."""

    @property
    def patterns(self) -> Sequence[str]:
        """The patterns that it can run."""

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """Return what pushes the whole program and waits; with a state its ops step it, else they do nothing."""

    def close(self) -> None:
        """Stop the threads."""


def callables(program: Program, state: State | None) -> list[Callable[[], None]]:
    """Return one callable without arguments per op."""
    if state is None:
        return [no_op] * len(program.ops)
    return [partial(state.step, op_id) for op_id in range(len(program.ops))]


class WeftRunner:
    """`weft.Engine.push` of callables."""

    name = "weft"
    patterns = PATTERNS

    def __init__(self, engine: weft.Engine) -> None:
        self.engine = engine

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        engine = self.engine
        variables = [engine.new_variable() for _ in range(program.variables)]
        ops = bind(program, state, variables)

        def run() -> None:
            push = engine.push
            for exec_func, reads, mutates in ops:
                push(exec_func, reads, mutates)
            engine.wait_for_all()

        return run

    def close(self) -> None:
        """See `Runner`."""
        self.engine.close()


class CounterRunner:
    """The hand-written engine over a ThreadPoolExecutor."""

    patterns = PATTERNS

    def __init__(self, workers: int, *, own_queue: bool) -> None:
        self.name = "ThreadPoolExecutor + counters, own queue" if own_queue else "ThreadPoolExecutor + counters"
        self.engine = CounterEngine(workers, own_queue=own_queue)

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        engine = self.engine
        ops = bind(program, state, [Variable() for _ in range(program.variables)])

        def run() -> None:
            push = engine.push
            for exec_func, reads, mutates in ops:
                push(exec_func, reads, mutates)
            engine.wait_for_all()

        return run

    def close(self) -> None:
        """See `Runner`."""
        self.engine.close()


class MapRunner:
    """`multiprocessing.pool.ThreadPool.map`, a barrier wherever a variable comes again."""

    patterns = ("independent",)

    def __init__(self, workers: int, *, chunked: bool) -> None:
        self.name = CHUNKED_MAP if chunked else "ThreadPool.map, chunksize=1"
        self._pool = MapPool(workers, None if chunked else 1)

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        step = numbered_no_op if state is None else state.step
        return partial(self._pool.map_blocks, step, len(program.ops), INDEPENDENT_VARIABLES)

    def close(self) -> None:
        """See `Runner`."""
        self._pool.close()


def bind(
    program: Program, state: State | None, variables: Sequence[V]
) -> list[tuple[Callable[[], None], tuple[V, ...], tuple[V, ...]]]:
    """Replace variable numbers by an implementation's variables, ahead of any timing."""
    return [
        (exec_func, tuple(variables[i] for i in op.reads), tuple(variables[i] for i in op.mutates))
        for exec_func, op in zip(callables(program, state), program.ops, strict=True)
    ]
