"""One array library in a process of its own: ``python -m weft.bench.arrays.host NAME SETTINGS``.

It answers requests, a line each. Alone in its process a library has the thread pools and environment that it wants, and
its idle threads cost the others no time.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from time import perf_counter_ns
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import numpy as np

from weft.bench.arrays.libraries import LIBRARIES
from weft.bench.arrays.networks import NETWORKS
from weft.bench.arrays.programs import (
    CALLED_ROUNDS,
    FUSED,
    Operands,
    differs,
    ends,
    make_addends,
    make_operands,
    rounds,
    script,
)
from weft.bench.samples import quiet, settled
from weft.bench.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from weft.bench.arrays.numpy_arrays import NumPyArrays

# Additions before a clock starts: caches, pools and clock rates settle.
_WARM_UP = 50
# Floats that the additions between two clock readings may make: all in flight at the same time, they fill no memory.
_FLOATS_IN_FLIGHT = 8_000_000
_ADDS_IN_FLIGHT = 64
# Ends with this process, however that ends: then its standard input is closed.
_SPINNER = """
import os, sys, threading
threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
print(flush=True)
while True: pass
"""

ALONE = "alone"
BESIDE_THREAD = "beside a spinning thread"
BESIDE_PROCESS = "beside a spinning process"
SURROUNDINGS = (ALONE, BESIDE_THREAD, BESIDE_PROCESS)
#: How many arrays the calls of one op are given.
ARGUMENTS = (1, 10, 100)
_GIVEN_FLOATS = 16
#: The column of table R's function among first calls.
ROUNDS = "100 ops"
# Calls of table R before a clock starts, and at least and at most between the first reading and the last.
_CALLS_BEFORE = 5
_CALLS = (3, 200)
# The rounds amplify differences of rounding: after so many, results are compared.
_COMPARED_ROUNDS = 3


class _Bench:
    """Answers the requests: verify and time. The units are those of the tables."""

    def __init__(self, library: NumPyArrays, settings: Settings) -> None:
        self._library = library
        self._settings = settings
        self._addends = {n: [library.hold(values) for values in make_addends(n)] for n in settings.add_sizes}
        self._script: Callable[[], Sequence[Any]] = list
        if "D" in library.tables:
            self._script = library.run(self._held(make_operands(settings)))
        has_networks = library.functions is not None and "R" in settings.tables
        self._networks = {name: make(settings) for name, make in NETWORKS.items()} if has_networks else {}
        # By function and size: functions are compiled once.
        self._called: dict[tuple[str, int], tuple[Callable[..., Sequence[Any]], list[Any]]] = {}

    def _held(self, operands: Operands) -> Operands:
        hold = self._library.hold
        starts, offsets = (tuple(map(hold, arrays)) for arrays in operands[:2])
        return Operands(starts, offsets, hold(operands.left), hold(operands.right))

    def verify(self) -> str | None:
        """Compare the results of both tables with NumPy's; tell the difference."""
        library = self._library
        if "C" in library.tables:
            for n, held in self._addends.items():
                pushed = library.push(held[0], held[1], 3)
                library.wait(pushed)
                said = differs([library.values(pushed[-1])], [np.add(*make_addends(n))], exact=True)
                if said:
                    return f"c = a + b with {n} floats: {said}"
        checks = {"R": self._verify_calls, "F": self._verify_fused, "R first": self._verify_networks}
        for table, check in checks.items():
            said = check() if table in library.tables else None
            if said:
                return said
        if "D" not in library.tables:
            return None
        found = [library.values(result) for result in self._script()]
        said = differs(found, script(np.exp, make_operands(self._settings)), exact=library.exact)
        return f"table D: {said}" if said else None

    def _verify_calls(self) -> str | None:
        """Compare results of table R with NumPy's, at the first call and at the next."""
        library = self._library
        pair, ten = make_addends(_GIVEN_FLOATS), make_addends(_GIVEN_FLOATS) * 5
        for name, call, given, expected in (
            ("the rounds", self._rounds(_COMPARED_ROUNDS), pair, rounds(np.tanh, _COMPARED_ROUNDS, *pair)),
            ("one op of ten arrays", library.compiled(ends), ten, ends(*ten)),
        ):
            held = [library.hold(values) for values in given]
            for _ in range(2):
                made = call(*held)
                library.finish(made)
                said = differs([library.values(result) for result in made], expected, exact=library.exact)
                if said:
                    return f"{name}, called: {said}"
        return None

    def _verify_fused(self) -> str | None:
        """Compare results of table F with NumPy's."""
        library, pair = self._library, make_addends(max(self._settings.fused_sizes))
        for name, function in FUSED.items():
            made = library.compiled(function)(*(library.hold(values) for values in pair))
            library.finish(made)
            said = differs([library.values(result) for result in made], function(*pair), exact=library.exact)
            if said:
                return f"{name}, called: {said}"
        return None

    def _rounds(self, count: int) -> Callable[..., Sequence[Any]]:
        tanh = self._library.tanh

        def call(x: Any, y: Any) -> tuple[Any, Any]:
            return rounds(tanh, count, x, y)

        return self._library.compiled(call)

    def rounds(self, n: int) -> list[float]:
        """Time calls of table R's function with their waits, in microseconds each."""
        return self._calls(("rounds", n), lambda: self._rounds(CALLED_ROUNDS), make_addends(n))

    def first(self, name: str) -> list[float]:
        """Time a function's first call, which records or compiles it, and runs it, in milliseconds."""
        library = self._library
        if name == ROUNDS:
            call = self._rounds(CALLED_ROUNDS)
            arguments = [library.hold(values) for values in make_addends(self._settings.call_sizes[-1])]
        else:
            call, arguments = self._network(name)
        start = perf_counter_ns()
        library.finish(call(*arguments))
        return [(perf_counter_ns() - start) / 1e6]

    def _network(self, name: str) -> tuple[Callable[..., Sequence[Any]], list[Any]]:
        """Return a network that was not called yet, and its arguments."""
        library, network = self._library, self._networks[name]
        assert library.functions is not None, "whoever has none is not asked"
        weights, *data = (list(map(library.hold, network.weights)), *map(library.hold, network.data))
        return library.compiled(network.make(library.functions)), [weights, *data]

    def _verify_networks(self) -> str | None:
        """Compare networks with NumPy's, at the first call and at the next."""
        library = self._library
        for name, network in self._networks.items():
            call, arguments = self._network(name)
            for _ in range(2):
                made = call(*arguments)
                library.finish(made)
                said = network.differs([library.values(result) for result in made])
                if said:
                    return f"{name}, called: {said}"
        return None

    def fused(self, name: str, n: int) -> list[float]:
        """Time calls of one of table F's functions, as `rounds`."""
        return self._calls((name, n), lambda: self._library.compiled(FUSED[name]), make_addends(n))

    def ends(self, count: int) -> list[float]:
        """Time calls of the function of one op, which takes so many arrays, as `rounds`."""
        one, other = make_addends(_GIVEN_FLOATS)
        given = [other if at % 2 else one for at in range(count)]
        return self._calls(("ends", count), lambda: self._library.compiled(ends), given)

    def _calls(
        self, key: tuple[str, int], make: Callable[[], Callable[..., Sequence[Any]]], given: Sequence[Any]
    ) -> list[float]:
        library = self._library
        if key not in self._called:
            self._called[key] = make(), [library.hold(values) for values in given]
        call, held = self._called[key]
        for _ in range(_CALLS_BEFORE):
            library.finish(call(*held))
        found: list[float] = []
        least, most = _CALLS
        last = perf_counter_ns() + int(self._settings.call_seconds * 1e9)
        while len(found) < least or (len(found) < most and perf_counter_ns() < last):
            start = perf_counter_ns()
            made = call(*held)
            library.finish(made)
            found.append((perf_counter_ns() - start) / 1000)
            del made  # not in the next one's time
        return found

    def returns(self, n: int) -> list[float]:
        """Time ``c = a + b`` until it returns, in microseconds: means over some calls in a row, nothing pending before."""
        library, (a, b) = self._library, self._addends[n]
        count = min(max(_FLOATS_IN_FLIGHT // n, 1), _ADDS_IN_FLIGHT)
        library.wait(library.push(a, b, _WARM_UP))
        found: list[float] = []
        for _ in range(self._settings.add_batches):
            start = perf_counter_ns()
            pushed = library.push(a, b, count)
            found.append((perf_counter_ns() - start) / 1000 / count)
            library.wait(pushed)
            del pushed  # not in the next one's time
        return found

    def many(self, n: int) -> list[float]:
        """Time independent additions and the wait for all of them, in microseconds per addition."""
        library, (a, b), count = self._library, self._addends[n], self._settings.add_ops
        library.wait(library.push(a, b, _WARM_UP))
        start = perf_counter_ns()
        library.wait(library.push(a, b, count))
        return [(perf_counter_ns() - start) / 1000 / count]

    def script(self, surroundings: str) -> list[float]:
        """Time table D's script, in milliseconds."""
        if surroundings == ALONE:
            self._script()
        with _beside(surroundings):
            start = perf_counter_ns()
            self._script()
            return [(perf_counter_ns() - start) / 1e6]


@contextmanager
def _beside(surroundings: str) -> Generator[None]:
    """Keep a processor busy meanwhile: with bytecode in this process, which wants the GIL, or in another one."""
    if surroundings == BESIDE_THREAD:
        spinning, stop = threading.Event(), threading.Event()

        def spin() -> None:
            spinning.set()
            while not stop.is_set():
                pass

        thread = threading.Thread(target=spin)
        thread.start()
        spinning.wait()
        try:
            yield
        finally:
            stop.set()
            thread.join()
    elif surroundings == BESIDE_PROCESS:
        command = [sys.executable, "-S", "-c", _SPINNER]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603 - this very interpreter
            try:
                cast("IO[bytes]", process.stdout).readline()
                yield
            finally:
                process.kill()
    else:
        yield


def _restrict(workers: int) -> None:
    """Leave this process as many processors as there are workers: some libraries take all they see."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:workers])


def _answers() -> TextIO:
    """Return a stream to the parent; libraries' prints go to stderr instead."""
    stream = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return stream


def main(name: str, text: str) -> None:
    """Answer until there are no more requests."""
    settings = Settings(**json.loads(text))
    parent = _answers()

    def reply(**answer: object) -> None:
        print(json.dumps(answer), file=parent)

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C the parent ends this process
    _restrict(settings.workers)
    try:
        library = LIBRARIES[name](settings.workers)
    except ModuleNotFoundError as error:
        reply(missing=f"not available: no module {error.name}")
        return
    except Exception as error:  # noqa: BLE001 - a broken installation may raise anything
        reply(missing=f"not available: its import raises {type(error).__name__}")
        return
    bench = _Bench(library, settings)
    reply(name=library.name, tables=library.tables, networks=library.functions is not None)
    with settled():
        for line in sys.stdin:
            request, *arguments = json.loads(line)
            with quiet():
                reply(answer=getattr(bench, request)(*arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
