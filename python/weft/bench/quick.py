"""``weft bench --quick``: whether weft is fast here, in five lines and under a minute.

Each line is a pair, weft and its usual replacement: verified against each other, then timed in turns.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

import weft
from weft.bench.arrays.programs import differs, make_addends, make_operands, rounds, script
from weft.bench.patterns import make_program
from weft.bench.runners import CounterRunner, WeftRunner
from weft.bench.samples import VerificationError, quiet, watched

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft.bench.settings import Settings

#: Repetitions of each pair: at least so many, and no more once so many seconds have gone.
_LEAST, _SECONDS = 3, 8.0
#: Below this ratio of times weft is called faster, and above its reciprocal slower.
_SAME = 0.9


class Pair(NamedTuple):
    """Two ways to the same end.

    Attributes
    ----------
    what : str
        The end, for the reader.
    peer : str
        What is beside weft.
    ours, theirs : callable
        Runs it once.
    parts : int
        Of how many equal parts a run is: a time is that of one.
    """

    what: str
    peer: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    parts: int = 1


def array_pairs(settings: Settings) -> list[Pair]:
    """Return the pairs of arrays, verified.

    Raises
    ------
    VerificationError
        If two ways come to different ends.
    """
    given = make_operands(settings)
    held = type(given)(
        tuple(map(weft.asarray, given.starts)), tuple(map(weft.asarray, given.offsets)), *map(weft.asarray, given[2:])
    )
    x, y = make_addends(1_000)
    a, b = weft.asarray(x), weft.asarray(y)
    step: Any = weft.program(partial(rounds, weft.tanh, 25))
    sums = settings.add_ops

    def whole() -> list[Any]:
        return [each.wait_to_read() or each for each in script(weft.exp, held)]

    def replayed() -> list[Any]:
        return [each.wait_to_read() or each for each in step(a, b)]

    def added(one: Any, other: Any) -> None:
        for _ in range(sums):
            one + other  # pyright: ignore[reportUnusedExpression] # an op is pushed
        weft.wait_all()

    _verify("a script", [each.numpy() for each in whole()], script(np.exp, given))
    _verify("a function", [each.numpy() for each in replayed()], rounds(np.tanh, 25, x, y))
    return [
        Pair("a script of independent chains and products", "NumPy", whole, lambda: script(np.exp, given)),
        Pair(
            "a function of 100 ops on 1,000 numbers, recorded",
            "NumPy",
            lambda: [replayed() for _ in range(sums)],
            lambda: [rounds(np.tanh, 25, x, y) for _ in range(sums)],
            sums,
        ),
        Pair("a sum of 1,000 numbers, one of many", "NumPy", lambda: added(a, b), lambda: added(x, y), sums),
    ]


def call_pairs(stack: ExitStack, settings: Settings) -> list[Pair]:
    """Return the pairs of Python calls; their threads end with the stack."""
    calls, tasks = settings.callable_ops // 10, settings.add_ops
    program = make_program("random", calls)
    ours = WeftRunner(stack.enter_context(weft.Engine(settings.workers)))
    theirs = CounterRunner(settings.workers, own_queue=True)
    stack.callback(theirs.close)
    pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
    double = weft.task(_doubled)
    return [
        Pair(
            "a Python call that waits for others",
            "a thread pool that counts",
            ours.prepare(program, None),
            theirs.prepare(program, None),
            calls,
        ),
        Pair(
            "a task and its result",
            "ThreadPoolExecutor",
            lambda: [double(number).result() for number in range(tasks)],
            lambda: [pool.submit(_doubled, number).result() for number in range(tasks)],
            tasks,
        ),
    ]


def _doubled(number: int) -> int:
    return 2 * number


def _verify(what: str, found: Any, expected: Any) -> None:
    wrong = differs(found, list(expected), exact=False)
    if wrong is not None:
        raise VerificationError(f"{what}: weft and NumPy differ: {wrong}")


def measured(pair: Pair) -> tuple[float, float]:
    """Return the least seconds of a part, weft's and the other's."""
    ours: list[float] = []
    theirs: list[float] = []
    end = time.perf_counter() + _SECONDS
    while len(ours) < _LEAST or time.perf_counter() < end:
        for run, times in ((pair.ours, ours), (pair.theirs, theirs)):
            with watched(), quiet():
                start = time.perf_counter()
                run()
                times.append(time.perf_counter() - start)
    return min(ours) / pair.parts, min(theirs) / pair.parts


def line(pair: Pair, ours: float, theirs: float) -> str:
    """Return the line of a pair.

    Examples
    --------
    >>> from weft.bench.quick import Pair, line
    >>> print(line(Pair("a script", "NumPy", int, int), 0.031, 0.0885))
    2.9 times as fast   a script: 31 ms, NumPy 88 ms
    """
    ratio = ours / theirs
    if ratio < _SAME:
        verdict = f"{1 / ratio:.1f} times as fast"
    else:
        verdict = "as fast" if ratio <= 1 / _SAME else f"{ratio:.1f} times as slow"
    return f"{verdict:<18}  {pair.what}: {_time(ours)}, {pair.peer} {_time(theirs)}"


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}" if seconds / size < 10 else f"{seconds / size:.0f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def run(settings: Settings) -> None:
    """Print a line for each pair, as soon as it is timed."""
    with ExitStack() as stack:
        previous = weft.set_engine(stack.enter_context(weft.Engine(settings.workers)))
        stack.callback(weft.set_engine, previous)
        for pair in (*array_pairs(settings), *call_pairs(stack, settings)):
            print(line(pair, *measured(pair)), flush=True)
    print("least times of runs in turns; `weft bench` has the tables, and more libraries")
