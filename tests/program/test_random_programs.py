"""Random programs, eager and recorded, four calls each: the same bits, and the same failures.

Four policies run at least 25,000 ops each in replays. Set ``WEFT_RANDOM_PROGRAMS`` to run so many times as many.
"""

from __future__ import annotations

import os
import random
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft._program.function import ProgramFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

MANY = int(os.environ.get("WEFT_RANDOM_PROGRAMS", "1"))
SIZE = 24
CALLS = 4
KINDS = (
    "binary",
    "unary",
    "in place",
    "slice",
    "view",
    "assign",
    "reduce",
    "draw",
    "task",
    "matmul",
    "astype",
    "fail",
    "renew",
)
#: Ops of replays for each policy: 100,000 in all.
OPS = 25_000

BINARY: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * b,
    weft.maximum,
    weft.minimum,
    weft.arctan2,
]
UNARY: list[Callable[[Any], Any]] = [weft.tanh, weft.negative, weft.abs, weft.sin, lambda a: a * 0.5, lambda a: 1.0 - a]


@dataclass
class Ran:
    """A run of a program: the arrays that it may name, the generator, what its tasks saw."""

    arrays: list[weft.NDArray]
    rng: weft.random.Generator
    seen: list[bytes] = field(default_factory=list)
    states: list[weft.NDArray] = field(default_factory=list)
    runs: dict[int, int] = field(default_factory=dict)


def build(seed: int, length: int) -> list[Callable[[Ran], None]]:  # noqa: C901 - one branch for each kind of step
    """Return the steps of a program: each names arrays by number and does the same at every run."""
    chance = random.Random(seed)
    count = 5  # arrays so far
    # Eager code joins ranges when the whole is read, and their failures with them; so programs that fail write no parts.
    failing = chance.random() < 0.4
    steps: list[Callable[[Ran], None]] = []
    for number in range(length):
        kind = chance.choices(
            KINDS, [6, 5, 4, 0, 2, 0, 1, 1, 1, 1, 1, 0.5, 1.0] if failing else [6, 5, 4, 4, 2, 3, 1, 1, 1, 1, 1, 0, 0]
        )[0]
        one, other, third = (chance.randrange(count) for _ in range(3))
        low, high = sorted(chance.sample(range(SIZE + 1), 2))
        reach = high - low
        start = chance.randrange(SIZE - reach + 1)
        function = chance.choice(BINARY)
        alone = chance.choice(UNARY)

        def step(  # noqa: C901, PLR0912 - as above
            ran: Ran,
            number: int = number,
            kind: str = kind,
            one: int = one,
            other: int = other,
            third: int = third,
            low: int = low,
            high: int = high,
            start: int = start,
            reach: int = reach,
            function: Any = function,
            alone: Any = alone,
        ) -> None:
            arrays = ran.arrays
            a, b, c = arrays[one], arrays[other], arrays[third]
            if kind == "binary":
                arrays.append(function(a, b))
            elif kind == "unary":
                arrays.append(alone(a))
            elif kind == "in place":
                a *= 0.5
                a += b
            elif kind == "slice":
                c[low:high] = function(a[start : start + reach], b[low:high])
            elif kind == "view":
                arrays.append(a[::-1])
            elif kind == "assign":
                a[start : start + reach] = a[low:high]
            elif kind == "reduce":
                arrays.append(a - b.sum() / SIZE)
            elif kind == "draw":
                arrays.append(ran.rng.random(SIZE) + a)
            elif kind == "task":
                note(ran.seen, a)
                blend(b, a)
            elif kind == "matmul":
                arrays.append((a.reshape(4, -1) @ b.reshape(-1, 4)).ravel().repeat(SIZE // 8)[:SIZE])
            elif kind == "fail":
                fail_now_and_then(ran, ran.states[one % 2], number)
            elif kind == "renew":
                ran.states[one % 2].fill(0.25)
            else:
                arrays.append(a.astype("float32").astype("float64"))

        if kind in {"binary", "unary", "view", "reduce", "draw", "matmul", "astype"}:
            count += 1
        steps.append(step)
    return steps


def note(seen: list[bytes], x: weft.NDArray) -> None:
    """Push a callable that looks at values."""
    x.engine.push(lambda: seen.append(np.asarray(x).tobytes()), [x])


def blend(y: weft.NDArray, x: weft.NDArray) -> None:
    """Push a callable that changes an array."""

    def run() -> None:
        out, given = np.asarray(y), np.asarray(x)
        np.tanh(out + 0.25 * given, out=out)

    y.engine.push(run, [x], [y])


def fail_now_and_then(ran: Ran, state: weft.NDArray, number: int) -> None:
    """Push a callable that fails at every other run: calls come to it in their order, as all change the state."""

    def run() -> None:
        ran.runs[number] = ran.runs.get(number, 0) + 1
        if (ran.runs[number] + number) % 2:
            raise ArithmeticError(number)

    state.engine.push(run, (), [state], name="fail")


def seen_of(array: weft.NDArray) -> bytes:
    """Return an array's bytes, or that it has failed: of which of several failures, nobody promises."""
    try:
        return array.tobytes()
    except ArithmeticError:
        return b"failed"


def start(engine: weft.Engine, seed: int) -> tuple[list[weft.NDArray], Ran]:
    """Return arguments, of which some overlap, and states."""
    rng = np.random.default_rng(seed)
    base = weft.asarray(rng.normal(size=2 * SIZE), engine=engine)
    arguments = [base[:SIZE], base[SIZE // 2 : SIZE // 2 + SIZE], weft.asarray(rng.normal(size=SIZE), engine=engine)]
    states = [weft.asarray(rng.normal(size=SIZE), engine=engine) for _ in range(2)]
    return arguments, Ran(states, weft.random.default_rng(seed, engine=engine), states=states)


def outcome(engine: weft.Engine, seed: int, length: int, **options: Any) -> tuple[list[bytes], int]:
    """Run a program four times, eagerly if there are no options; return all that can be seen of it, and the ops replayed."""
    steps = build(seed, length)
    arguments, lasting = start(engine, seed)

    def body(*given: weft.NDArray) -> list[weft.NDArray]:
        ran = Ran([*given, *lasting.arrays], lasting.rng, lasting.seen, lasting.states, lasting.runs)
        for step in steps:
            step(ran)
        return [ran.arrays[-1], *ran.arrays[5 :: max(1, length // 4)]]

    call = weft.program(body, **options) if options else body
    found: list[bytes] = []
    pending: list[list[weft.NDArray]] = []
    for number in range(CALLS):
        results = call(*arguments)
        if number == 1:
            arguments[2] = arguments[2] * 2.0  # elsewhere in memory
        if number == 2:
            found.extend(map(seen_of, results))
        pending.append(results)
    found += [seen_of(array) for results in pending for array in results]
    found += [seen_of(array) for array in (*arguments, *lasting.arrays)]
    with suppress(ArithmeticError, ExceptionGroup):  # of temporaries that nobody has looked at
        engine.wait_for_all()
    replayed = sum(program.ops for program in call.programs) * CALLS if isinstance(call, ProgramFunction) else 0
    # Who reads may run beside who reads: the order of what tasks saw says nothing.
    return [*found, lasting.rng.random(2).tobytes(), *sorted(lasting.seen)], replayed


def compare(make_engine: Callable[[], weft.Engine], chance: random.Random, length: int) -> int:
    """Compare what a random program of so many steps gives, eagerly and replayed; return how many ops were replayed."""
    seed = chance.randrange(10**9)
    engine, other = make_engine(), make_engine()
    wanted, _ = outcome(engine, seed, length)
    options: dict[str, Any] = {
        "sequential": chance.random() < 0.2,
        "memory": chance.choice(["min", "balanced", "speed"]),
    }
    if chance.random() < 0.2:
        options["passes"] = ()
    found, ops = outcome(other, seed, length, **options)
    assert found == wanted, f"seed {seed}, length {length}, {options}"
    engine.close()
    other.close()
    return ops


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "workers"), [("serial", 1), ("work_stealing", 1), ("work_stealing", 2), ("work_stealing", 8)]
)
def test_replays_are_what_eager_calls_are(make_engine: MakeEngine, policy: str, workers: int) -> None:
    chance = random.Random(workers)
    replayed = 0
    while replayed < OPS * MANY:
        replayed += compare(lambda: make_engine(workers, policy), chance, chance.choice([3, 10, 40, 160]))


def test_replays_in_an_order_of_the_planners(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large arrays, as one is taken only where there is much to gain."""
    monkeypatch.setattr(sys.modules[__name__], "SIZE", 24 << 9)
    chance = random.Random(3)
    for _ in range(8 * MANY):
        compare(lambda: make_engine(2), chance, 40)
