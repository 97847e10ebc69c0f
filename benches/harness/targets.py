"""The speeds to reach, each a ratio or a time of this run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from harness.build import TRACED
from harness.native import replay_case
from weft.bench.arrays.host import ALONE, ARGUMENTS, BESIDE_PROCESS, BESIDE_THREAD, ROUNDS
from weft.bench.arrays.hosts import given, size
from weft.bench.arrays.numpy_arrays import NumPyArrays
from weft.bench.patterns import PATTERNS
from weft.bench.ratios import Statistic, best_peer
from weft.bench.runners import CHUNKED_MAP
from weft.bench.symbols.jobs import PEAK, QUOTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weft.bench.samples import Samples

OPENMP_RATIO = {"chain": 0.2, "fan": 0.2}
OPENMP_RATIO_ELSEWHERE = 0.25
TRACED_NS = 60.0
CALLABLE_US = 0.5
CALLABLE_TIMES_FASTER = 5.0
PUSH_US = 0.25
NATIVE_PAIR_US = 1.5
CALLABLE_PAIR_US = 12.0
BUSY_NATIVE_US = 50.0
RETURN_US = 0.5
RETURN_SIZES = (16, 1_000_000)
SMALL_ADDS_RATIO = 1.5
TORCH_SIZES = (1_000, 100_000, 1_000_000)
SCRIPT_RATIO = 0.5
BLOCKED_SCRIPT_RATIO = 0.35
# What a spinning thread takes beyond the core that a spinning process takes as well.
SPINNING_RATIO = 1.15
# Of Taskflow's time, or of oneTBB's where Taskflow is not there.
REPLAY_RATIO = {"chain": 0.5, "independent": 0.5}
REPLAY_RATIO_ELSEWHERE = 0.3
REPLAY_SIZES = (1_000, 100_000)
CALL_US = {16: 10.0, 1_000: 40.0, 100_000: 700.0}
ONE_CALL_US = 2.5
FIRST_MS = {ROUNDS: 3.0, "24 layers, a training step": 50.0, "ResNet-18": 150.0}
ARGUMENTS_US, ARGUMENT_US = 1.0, 0.1
# Of the peak of live bytes, and of what MXNet plans.
INFERENCE_RATIO, RESNET_RATIO, TRAINING_RATIO = 1.05, 1.12, 1.0
FIT_RATIO, FIT_MS = 1.25, 100.0
CHAIN_S = {"build": 0.6, "save": 0.5, "load": 0.5, "infer shapes": 0.3, "bind": 0.3}
# Fewer than one run in twenty of an unchanged program differ by more on a quiet machine.
THROUGHPUT_NOISE = 1.05


@dataclass(frozen=True, slots=True)
class Target:
    """One speed to reach; ``by_minimum`` and ``by_median`` are None where nothing was measured."""

    name: str
    unit: str
    bound: float
    at_least: bool
    by_minimum: float | None
    by_median: float | None
    decided_by: Statistic = "minimum"

    @property
    def reached(self) -> bool | None:
        """Whether the deciding statistic keeps the bound."""
        value = self.by_minimum if self.decided_by == "minimum" else self.by_median
        if value is None:
            return None
        return value >= self.bound if self.at_least else value <= self.bound


def targets(samples: Samples, tables: tuple[str, ...]) -> list[Target]:
    """Return every target of the tables that were timed."""
    found: list[Target] = []
    if "A" in tables:
        found += _native(samples)
        found += _traced(samples)
    if "B" in tables:
        found += _callables(samples)
        found += _pushes(samples)
        found += _threads(samples)
    if "C" in tables:
        found += _additions(samples)
    if "D" in tables:
        found += _scripts(samples)
    if "E" in tables:
        start = _time(samples, ("E", "weft", "native op"), "native op beside a busy main thread: start", BUSY_NATIVE_US)
        found.append(replace(start, decided_by="median"))
    if "M" in tables:
        found += _planned(samples)
    if "N" in tables:
        found += _chains(samples)
    if "R" in tables:
        found += _replays(samples)
        found += _calls(samples)
    return found


def _value(samples: Samples, key: tuple[str, str, str], statistic: Statistic) -> float | None:
    cell = samples.cell(*key)
    return None if cell is None else getattr(cell, statistic)


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or below is None else above / below


def _difference(minuend: float | None, subtrahend: float | None) -> float | None:
    return None if minuend is None or subtrahend is None else minuend - subtrahend


def _both(
    samples: Samples, above: tuple[str, str, str], below: tuple[str, str, str]
) -> tuple[float | None, float | None]:
    minimum = _ratio(_value(samples, above, "minimum"), _value(samples, below, "minimum"))
    return minimum, _ratio(_value(samples, above, "median"), _value(samples, below, "median"))


def _time(samples: Samples, key: tuple[str, str, str], name: str, bound: float, unit: str = "us") -> Target:
    minimum, median = _value(samples, key, "minimum"), _value(samples, key, "median")
    return Target(name, unit, bound, at_least=False, by_minimum=minimum, by_median=median)


def _native(samples: Samples) -> Iterator[Target]:
    for pattern in PATTERNS:
        minimum, median = _both(samples, ("A", "weft", pattern), ("A", "OpenMP", pattern))
        bound = OPENMP_RATIO.get(pattern, OPENMP_RATIO_ELSEWHERE)
        yield Target(f"A, {pattern}: weft / OpenMP", "x", bound, at_least=False, by_minimum=minimum, by_median=median)


def _traced(samples: Samples) -> Iterator[Target]:
    for pattern in PATTERNS:
        minimum, median = (
            _difference(
                _value(samples, ("A", TRACED, pattern), statistic), _value(samples, ("A", "weft", pattern), statistic)
            )
            for statistic in ("minimum", "median")
        )
        name = f"A, {pattern}: what a trace adds per op"
        yield Target(name, "ns", TRACED_NS, at_least=False, by_minimum=minimum, by_median=median)


def _callables(samples: Samples) -> Iterator[Target]:
    for pattern in PATTERNS:
        own = ("B", "weft", pattern)
        yield _time(samples, own, f"B, {pattern}: weft per callable", CALLABLE_US)
        minimum = _ratio(best_peer(samples, "B", pattern, "minimum"), _value(samples, own, "minimum"))
        median = _ratio(best_peer(samples, "B", pattern, "median"), _value(samples, own, "median"))
        name = f"B, {pattern}: best peer / weft"
        yield Target(name, "x", CALLABLE_TIMES_FASTER, at_least=True, by_minimum=minimum, by_median=median)
    minimum, median = _both(samples, ("B", CHUNKED_MAP, "independent"), ("B", "weft", "independent"))
    name = f"B, independent: {CHUNKED_MAP} / weft"
    yield Target(name, "x", CALLABLE_TIMES_FASTER, at_least=True, by_minimum=minimum, by_median=median)


def _pushes(samples: Samples) -> Iterator[Target]:
    for case, bound in {
        "push alone, chain": PUSH_US,
        "push alone, independent": PUSH_US,
        "push + wait, native op": NATIVE_PAIR_US,
        "push + wait, callable": CALLABLE_PAIR_US,
    }.items():
        yield _time(samples, ("push", "weft", case), case, bound)


def _threads(samples: Samples) -> Iterator[Target]:
    table, row = "threads", "weft, native ops"
    for pushers in (2, 4):
        minimum, median = _both(samples, (table, row, f"{pushers} pushing"), (table, row, "1 pushing"))
        name = f"{pushers} threads pushing / 1 thread, time per op"
        yield Target(name, "x", THROUGHPUT_NOISE, at_least=False, by_minimum=minimum, by_median=median)


def _additions(samples: Samples) -> Iterator[Target]:
    for n in RETURN_SIZES:
        yield _time(samples, ("C return", "weft", size(n)), f"C, {size(n)}: c = a + b returns", RETURN_US)
    numpy = NumPyArrays.name
    small = size(RETURN_SIZES[0])
    yield _array_ratio(samples, f"C, {small}: weft / {numpy}", ("C", numpy, small), SMALL_ADDS_RATIO)
    torch = next((row for row in samples.rows("C") if row.startswith("torch")), "torch")
    for n in TORCH_SIZES:
        yield _array_ratio(samples, f"C, {size(n)}: weft / {torch}", ("C", torch, size(n)), 1.0)


def _scripts(samples: Samples) -> Iterator[Target]:
    numpy = ("D", NumPyArrays.name, ALONE)
    yield _array_ratio(samples, f"D: weft / {NumPyArrays.name}", numpy, SCRIPT_RATIO)
    yield _array_ratio(samples, f"D, blocked in cache: weft / {NumPyArrays.name}", numpy, BLOCKED_SCRIPT_RATIO)
    minimum, median = _both(samples, ("D", "weft", BESIDE_THREAD), ("D", "weft", BESIDE_PROCESS))
    name = f"D: weft {BESIDE_THREAD} / {BESIDE_PROCESS}"
    yield Target(name, "x", SPINNING_RATIO, at_least=False, by_minimum=minimum, by_median=median)


def _replays(samples: Samples) -> Iterator[Target]:
    peer = next((row for row in ("Taskflow static", "oneTBB") if row in samples.rows("R replay")), "Taskflow static")
    for ops in REPLAY_SIZES:
        for pattern in PATTERNS:
            case = replay_case(pattern, ops)
            minimum, median = _both(samples, ("R replay", "weft", case), ("R replay", peer, case))
            bound = REPLAY_RATIO.get(pattern, REPLAY_RATIO_ELSEWHERE)
            name = f"R, {case}: weft / {peer}"
            yield Target(name, "x", bound, at_least=False, by_minimum=minimum, by_median=median)


def _calls(samples: Samples) -> Iterator[Target]:
    for n, bound in CALL_US.items():
        yield _time(samples, ("R", "weft", size(n)), f"R, {size(n)}: a call of 100 ops", bound)
    yield _time(samples, ("R", "weft", given(1)), "R: a call of one op", ONE_CALL_US)
    for name, bound in FIRST_MS.items():
        yield _time(samples, ("R first", "weft", name), f"R: the first call of {name}", bound, "ms")
    one = ("R", "weft", given(1))
    for count in ARGUMENTS[1:]:
        many = ("R", "weft", given(count))
        minimum, median = (
            _difference(_value(samples, many, statistic), _value(samples, one, statistic))
            for statistic in ("minimum", "median")
        )
        name, bound = f"R, {given(count)}: beyond a call of one", ARGUMENTS_US + ARGUMENT_US * count
        yield Target(name, "us", bound, at_least=False, by_minimum=minimum, by_median=median)


def _planned(samples: Samples) -> Iterator[Target]:
    for case in samples.cases("M inference"):
        minimum, median = _both(samples, ("M inference", "weft", case), ("M inference", PEAK, case))
        bound = RESNET_RATIO if case.startswith("ResNet") else INFERENCE_RATIO
        name = f"M, {case}, inference: planned / live"
        yield Target(name, "x", bound, at_least=False, by_minimum=minimum, by_median=median)
    for case in samples.cases("M training"):
        own, peer = (_value(samples, ("M training", row, case), "minimum") for row in ("weft", QUOTED))
        # MXNet tells whole megabytes.
        ratio = _ratio(None if own is None else float(int(own)), peer)
        name = f"M, {case}, training: weft / MXNet"
        yield Target(name, "x", TRAINING_RATIO, at_least=False, by_minimum=ratio, by_median=ratio)
    for case in samples.cases("M fit"):
        fit = ("M fit", "weft", case)
        values = _value(samples, fit, "minimum"), _value(samples, fit, "median")
        yield Target(
            f"M, {case}: by rule / live", "x", FIT_RATIO, at_least=False, by_minimum=values[0], by_median=values[1]
        )
        yield _time(samples, ("M offsets", "weft, by rule", case), f"M, {case}: by rule", FIT_MS, "ms")
        if "MiniMalloc" in samples.rows("M offsets"):
            minimum, median = _both(samples, ("M offsets", "weft", case), ("M offsets", "MiniMalloc", case))
            name = f"M, {case}: search / MiniMalloc"
            yield Target(name, "x", 1.0, at_least=False, by_minimum=minimum, by_median=median)


def _chains(samples: Samples) -> Iterator[Target]:
    for step, bound in CHAIN_S.items():
        yield _time(samples, ("N", "weft", step), f"N: {step} a chain of 100,000 ops", bound, "s")


def _array_ratio(samples: Samples, name: str, peer: tuple[str, str, str], bound: float) -> Target:
    table, _, case = peer
    minimum, median = _both(samples, (table, "weft", case), peer)
    return Target(name, "x", bound, at_least=False, by_minimum=minimum, by_median=median)
