"""One face over the implementations of tables A and B in Python: prepare a program, then run it as often as asked."""

from __future__ import annotations

import ctypes
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from weft.bench.patterns import INDEPENDENT_VARIABLES, PATTERNS, Program, State
from weft.bench.peers.counter_engine import CounterEngine, Variable
from weft.bench.peers.thread_pool import MapPool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import weft
    from weft.bench.native_ops import NativeOps

V = TypeVar("V")

#: The one peer that is not handed op after op: many ops of it are one task.
CHUNKED_MAP = "ThreadPool.map, its own chunks"
#: Beside weft's row from Rust, where a checkout brings it.
NATIVE_WEFT = "weft, pushed from Python"

_NativeCallable = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


def no_op() -> None:
    """Do nothing: the callable of every timing."""


def _numbered_no_op(_op_id: int) -> None:
    """Do nothing, for pools that pass an argument."""


def _pushing(
    push: Callable[..., None], wait: Callable[[], None], ops: Sequence[tuple[object, ...]]
) -> Callable[[], None]:
    """Return what pushes ops one by one, and waits."""

    def run() -> None:
        enter = push
        for exec_func, reads, mutates in ops:
            enter(exec_func, reads, mutates)
        wait()

    return run


class Runner(Protocol):
    """Runs programs on one implementation."""

    @property
    def name(self) -> str:
        """How its row is called."""
        ...

    @property
    def patterns(self) -> Sequence[str]:
        """The patterns that it can run."""
        ...

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """Return what pushes the whole program and waits; with a state its ops step it, else they do nothing."""
        ...

    def close(self) -> None:
        """Stop the threads."""
        ...


class WeftRunner:
    """`weft.Engine.push` of callables."""

    name = "weft"
    patterns = PATTERNS

    def __init__(self, engine: weft.Engine) -> None:
        self._engine = engine

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        engine = self._engine
        ops = bind(program, state, [engine.new_variable() for _ in range(program.variables)])
        return _pushing(engine.push, engine.wait_for_all, ops)

    def close(self) -> None:
        """See `Runner`."""
        self._engine.close()


class NativeRunner(WeftRunner):
    """`weft.Engine.push_native`; ops that step a state are C's only by their calling convention."""

    name = NATIVE_WEFT

    def __init__(self, engine: weft.Engine, native: NativeOps) -> None:
        super().__init__(engine)
        self._native = native
        self._kept_alive: list[object] = []

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        engine, address = self._engine, self._native.no_op_address
        if state is not None:

            def step(data: int | None) -> int:
                state.step(data or 0)  # ctypes makes None of the address 0
                return 0

            native_step = _NativeCallable(step)
            self._kept_alive.append(native_step)
            address = ctypes.cast(native_step, ctypes.c_void_p).value or 0
        # To the address that steps, the data is the op's number; to the one that does nothing, 0.
        stride = 0 if state is None else 1
        ops = bind(program, None, [engine.new_variable() for _ in range(program.variables)])

        def run() -> None:
            push = engine.push_native
            data = 0
            for _, reads, mutates in ops:
                push(address, data, reads, mutates)
                data += stride
            engine.wait_for_all()

        return run


class CounterRunner:
    """The hand-written engine over a ThreadPoolExecutor.

    Parameters
    ----------
    workers : int
        Threads of the executor.
    own_queue : bool
        See `CounterEngine`.
    native : NativeOps, optional
        Whose no-op is called through ctypes instead of a callable.
    """

    patterns = PATTERNS

    def __init__(self, workers: int, *, own_queue: bool, native: NativeOps | None = None) -> None:
        queue = ", own queue" if own_queue else ""
        self.name = f"ThreadPoolExecutor + counters{queue}" + (", ctypes" if native else "")
        self._engine = CounterEngine(workers, own_queue=own_queue)
        self._no_op = partial(native.no_op, 0) if native else no_op

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        engine = self._engine
        ops = bind(program, state, [Variable() for _ in range(program.variables)], self._no_op)
        return _pushing(engine.push, engine.wait_for_all, ops)

    def close(self) -> None:
        """See `Runner`."""
        self._engine.close()


class MapRunner:
    """`multiprocessing.pool.ThreadPool.map`, a barrier wherever a variable comes again."""

    patterns = ("independent",)

    def __init__(self, workers: int, *, chunked: bool) -> None:
        self.name = CHUNKED_MAP if chunked else "ThreadPool.map, chunksize=1"
        self._pool = MapPool(workers, None if chunked else 1)

    def prepare(self, program: Program, state: State | None) -> Callable[[], None]:
        """See `Runner`."""
        step = _numbered_no_op if state is None else state.step
        return partial(self._pool.map_blocks, step, len(program.ops), INDEPENDENT_VARIABLES)

    def close(self) -> None:
        """See `Runner`."""
        self._pool.close()


def bind(
    program: Program, state: State | None, variables: Sequence[V], nothing: Callable[[], object] = no_op
) -> list[tuple[Callable[[], object], tuple[V, ...], tuple[V, ...]]]:
    """Replace variable numbers by an implementation's variables, ahead of any timing.

    Parameters
    ----------
    program : Program
        The ops.
    state : State or None
        What the callables step; without it they are `nothing`.
    variables : sequence
        The implementation's, by number.
    nothing : callable
        What is called where there is no state.

    Returns
    -------
    list of tuple
        For each op the callable, what it reads, what it mutates.
    """
    return [
        (
            nothing if state is None else partial(state.step, op_id),
            tuple(variables[i] for i in op.reads),
            tuple(variables[i] for i in op.mutates),
        )
        for op_id, op in enumerate(program.ops)
    ]
