"""The cost of a push by itself, of push and wait together, and of pushes from several threads."""

from __future__ import annotations

import threading
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol, TypeVar

from weft.bench.patterns import make_program
from weft.bench.peers.counter_engine import CounterEngine, Variable
from weft.bench.runners import bind, no_op
from weft.bench.samples import Job, timed_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    import weft
    from weft.bench.native_ops import NativeOps
    from weft.bench.settings import Settings

_PUSHERS = (1, 2, 4)
_VARIABLES_PER_PUSHER = 64


_V = TypeVar("_V")
_V_contra = TypeVar("_V_contra", contravariant=True)


class _Pushes(Protocol[_V_contra]):
    def push(self, func: Callable[[], object], reads: Sequence[_V_contra], mutates: Sequence[_V_contra], /) -> None: ...
    def wait_for_all(self) -> None: ...


def _push_alone(
    engine: _Pushes[_V], new_variable: Callable[[], _V], pattern: str, ops: int
) -> Callable[[], list[float]]:
    """Return a repetition that times only the calls of ``push``: the one worker is held inside a callable meanwhile."""
    program = make_program(pattern, ops)
    bound = bind(program, None, [new_variable() for _ in range(program.variables)])

    def repetition() -> list[float]:
        held, release = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            release.wait()

        engine.push(hold, (), ())
        held.wait()
        push = engine.push
        try:
            start = perf_counter_ns()
            for exec_func, reads, mutates in bound:
                push(exec_func, reads, mutates)
            elapsed = perf_counter_ns() - start
        finally:
            release.set()
        engine.wait_for_all()
        return [elapsed / 1000 / ops]

    return repetition


def _pairs(kind: str, name: str, once: Callable[[], object], settings: Settings) -> Job:
    """Return the job that calls ``once``, a push and its wait, many times."""
    return Job("push", f"push + wait, {kind}", name, partial(timed_calls, once, settings.pairs, 1000))


def _alone(name: str, engine: _Pushes[_V], new_variable: Callable[[], _V], settings: Settings) -> list[Job]:
    """Return the jobs that time pushes by themselves on an engine with one worker."""
    return [
        Job("push", f"push alone, {pattern}", name, _push_alone(engine, new_variable, pattern, settings.push_ops))
        for pattern in ("chain", "independent")
    ]


def _from_threads(engine: weft.Engine, native: NativeOps, pushers: int, n: int) -> Callable[[], list[float]]:
    """Return a repetition in which threads push ``n`` native ops in all on variables of their own, and everything runs."""
    share = n // pushers
    own = [[(engine.new_variable(),) for _ in range(_VARIABLES_PER_PUSHER)] for _ in range(pushers)]

    def repetition() -> list[float]:
        ready = threading.Barrier(pushers)
        starts: list[int] = []

        def pusher(variables: list[tuple[weft.Variable]]) -> None:
            push, address = engine.push_native, native.no_op_address
            ready.wait()
            starts.append(perf_counter_ns())
            for i in range(share):
                push(address, 0, (), variables[i % _VARIABLES_PER_PUSHER])

        threads = [threading.Thread(target=pusher, args=(variables,)) for variables in own]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.wait_for_all()
        return [(perf_counter_ns() - min(starts)) / 1000 / (share * pushers)]

    return repetition


def weft_push_jobs(engine: weft.Engine, single: weft.Engine, native: NativeOps | None, settings: Settings) -> list[Job]:
    """Return weft's jobs; ``single`` is an engine with one worker."""
    jobs = _alone("weft", single, single.new_variable, settings)
    variable = engine.new_variable()
    mutates = (variable,)

    def callable_pair() -> None:
        engine.push(no_op, (), mutates)
        engine.wait_for_var(variable)

    jobs.append(_pairs("callable", "weft", callable_pair, settings))
    if native is None:
        return jobs
    address = native.no_op_address

    def native_pair() -> None:
        engine.push_native(address, 0, (), mutates)
        engine.wait_for_var(variable)

    jobs.append(_pairs("native op", "weft", native_pair, settings))
    jobs += [
        Job(
            "threads",
            f"{pushers} pushing",
            "weft, native ops",
            _from_threads(engine, native, pushers, settings.threads_ops),
        )
        for pushers in _PUSHERS
    ]
    return jobs


def peer_push_jobs(
    single: CounterEngine, pool: ThreadPoolExecutor, native: NativeOps | None, settings: Settings
) -> list[Job]:
    """Return the peers' jobs; ``single`` is a counter engine with one worker."""
    jobs = _alone("counter engine", single, Variable, settings)
    submit, peer = pool.submit, "ThreadPoolExecutor"
    jobs.append(_pairs("callable", peer, lambda: submit(no_op).result(), settings))
    if native is not None:
        ctypes_no_op = native.no_op
        jobs.append(_pairs("native op", peer, lambda: submit(ctypes_no_op, 0).result(), settings))
    return jobs
