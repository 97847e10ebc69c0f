"""Serial equivalence: random programs give, under every policy and worker count, what they give under ``serial``.

A program is data. Running it records all that a user can see: values, exceptions, versions, what ran, what was
finalized, what each wait raised. Hypothesis draws programs and shrinks those that differ; longer ones come from
printed seeds, as many as the environment variable ``WEFT_ORACLE_SEEDS`` says.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import weft
from conftest import PARALLEL, SHUFFLED, SOON

VARIABLES = 4
MASK = (1 << 61) - 1


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """Op ``args[0]`` failed."""


@dataclass(frozen=True)
class Push:
    """One op; ``nested`` are pushed from inside it, onto variables that only it touches."""

    read: tuple[int, ...]
    mutate: tuple[int, ...]
    overwrite: tuple[int, ...]
    fails: bool = False
    always_run: bool = False
    priority: int = 0
    device: int = 0
    how: str = "push"
    nested: tuple[Push, ...] = ()


@dataclass(frozen=True)
class Wait:
    """A wait of the main thread: for one variable, to write it, or for all."""

    kind: str
    variable: int = 0


@dataclass(frozen=True)
class Delete:
    """Delete a variable with a finalizer, and put a fresh one in its place."""

    variable: int


Step = Push | Wait | Delete
indices = st.lists(st.integers(0, VARIABLES - 1), max_size=3).map(tuple)
flat = st.builds(
    Push,
    indices,
    indices,
    indices,
    fails=st.integers(0, 6).map(lambda n: n == 6),
    always_run=st.integers(0, 5).map(lambda n: n == 5),
    priority=st.integers(-3, 3),
    device=st.integers(0, 3),
    how=st.sampled_from(["push", "push", "async", "operator"]),
)
pushes = st.builds(
    lambda push, nested: Push(**(vars(push) | {"nested": tuple(nested)})), flat, st.lists(flat, max_size=2)
)
waits = st.builds(
    Wait, st.sampled_from(["wait_for_var", "wait_to_write", "wait_for_all"]), st.integers(0, VARIABLES - 1)
)
programs = st.lists(
    st.one_of(pushes, pushes, pushes, pushes, waits, st.builds(Delete, st.integers(0, VARIABLES - 1))), max_size=40
)


@dataclass
class Run:
    """One run of a program, and all that can be seen of it."""

    engine: weft.Engine
    variables: list[weft.Variable] = field(default_factory=list)
    values: list[list[int]] = field(default_factory=list)
    inner: list[weft.Variable] = field(default_factory=list)
    seen: dict[str, Any] = field(default_factory=dict)
    ran: dict[tuple[int, ...], int] = field(default_factory=dict)
    finalized: list[int] = field(default_factory=list)
    settled: int = 0

    def fresh(self) -> tuple[weft.Variable, list[int]]:
        """Make a variable, and the cell that holds its value."""
        return self.engine.new_variable(), [1]

    def push(self, push: Push, name: tuple[int, ...], variables: list[weft.Variable], values: list[list[int]]) -> None:
        """Push one op and, from inside it, its nested ones."""
        cells = [values[i] for i in (*push.read, *push.mutate)]
        targets = [values[i] for i in (*push.mutate, *push.overwrite)]
        nested = [self.fresh() for _ in range(VARIABLES)] if push.nested else []

        def body() -> None:
            self.ran[name] = self.ran.get(name, 0) + 1
            for i, inner in enumerate(push.nested):
                self.push(inner, (*name, i), [v for v, _ in nested], [c for _, c in nested])
            if push.fails:
                raise Boom(name)
            result = sum(cell[0] * 7 for cell in cells) + sum(name) * 31 + 5
            for shift, target in enumerate(targets):
                target[0] = (result + shift) & MASK

        def asynchronous(done: weft.Completion) -> None:
            body()
            done()

        accesses = [[variables[i] for i in kind] for kind in (push.read, push.mutate, push.overwrite)]
        device = weft.cpu(push.device // 2)
        options: dict[str, Any] = {
            "overwrite_vars": accesses[2],
            "priority": push.priority,
            "name": str(name),
            "device": device.copy if push.device % 2 else device,
            "always_run": push.always_run,
        }
        if push.how == "async":
            self.engine.push_async(asynchronous, *accesses[:2], **options)
        elif push.how == "operator":
            self.engine.new_operator(body, *accesses[:2], **options).push()
        else:
            self.engine.push(body, *accesses[:2], **options)
        self.inner += [v for v, _ in nested]

    def note(self, key: str, call: Any, *arguments: Any) -> None:
        """Record what a wait raised."""
        try:
            call(*arguments, timeout=SOON)
        except BaseExceptionGroup as group:
            self.seen[key] = sorted(error.args for error in group.exceptions)
        except Boom as error:
            self.seen[key] = [error.args]

    def program(self, steps: list[Step]) -> dict[str, Any]:
        """Run it, and answer all that was seen."""
        made = [self.fresh() for _ in range(VARIABLES)]
        self.variables, self.values = [v for v, _ in made], [c for _, c in made]
        for number, step in enumerate(steps):
            match step:
                case Push():
                    self.push(step, (number,), self.variables, self.values)
                case Wait("wait_for_all"):
                    self.settle()  # or an op of before may still push, and fail, after the wait
                    self.note(f"{number}: all", self.engine.wait_for_all)
                case Wait(kind, i):
                    self.note(f"{number}: {kind}", getattr(self.engine, kind), self.variables[i])
                case Delete(i):
                    self.engine.delete_variable(self.variables[i], lambda n=number: self.finalized.append(n))
                    self.variables[i], self.values[i] = self.fresh()
        self.settle()
        self.note("last", self.engine.wait_for_all)
        self.engine.wait_for_all(timeout=SOON)
        exceptions = [v.exception() for v in (*self.variables, *self.inner)]
        stats = self.engine.stats()
        for key in ("pushed", "completed"):
            stats[key] -= self.settled
        return {
            "waits": self.seen,
            "values": [cell[0] for cell in self.values],
            "exceptions": sorted(str(error) for error in exceptions),
            "outer": [str(error) for error in exceptions[:VARIABLES]],
            "versions": [(v.version, v.completed_version) for v in self.variables],
            "inner versions": sorted((v.version, v.completed_version) for v in self.inner),
            "ran": self.ran,
            "finalized": sorted(self.finalized),
            "counts": {key: stats[key] for key in ("pushed", "completed", "failed", "skipped", "pending")},
        }

    def settle(self) -> None:
        """Wait, without asking for failures, until no op is left, those that ops push among them."""
        while self.engine.pending:
            gate = self.engine.new_variable()
            self.settled += 1
            self.engine.push(lambda: None, [*self.variables, *self.inner], (), overwrite_vars=(gate,), always_run=True)
            self.engine.wait_for_var(gate, timeout=SOON)


def outcome(steps: list[Step], policy: str, workers: int) -> dict[str, Any]:
    """Run a program on an engine of its own."""
    with weft.Engine(workers, policy) as engine:
        return Run(engine).program(steps)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("policy", "workers"), [*PARALLEL, SHUFFLED])
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
@given(steps=programs)
def test_small_programs(policy: str, workers: int, steps: list[Step]) -> None:
    assert outcome(steps, policy, workers) == outcome(steps, "serial", 1)


def long_program(seed: int) -> list[Step]:
    """A thousand steps and more, few of which fail: most of them run."""
    random = Random(seed)

    def some(most: int) -> tuple[int, ...]:
        return tuple(random.choices(range(VARIABLES), k=random.randrange(most + 1)))

    def push(depth: int) -> Push:
        nested = (
            tuple(push(depth + 1) for _ in range(random.randrange(1, 3))) if random.random() < 0.1 and depth < 2 else ()
        )
        return Push(
            some(3),
            some(2),
            some(1),
            fails=random.random() < 0.02,
            always_run=random.random() < 0.05,
            priority=random.randrange(-5, 6),
            device=random.randrange(4),
            how=random.choice(["push", "push", "push", "async", "operator"]),
            nested=nested,
        )

    def step() -> Step:
        kind = random.random()
        if kind < 0.97:
            return push(0)
        if kind < 0.985:
            return Delete(random.randrange(VARIABLES))
        return Wait(random.choice(["wait_for_var", "wait_to_write", "wait_for_all"]), random.randrange(VARIABLES))

    return [step() for _ in range(1500)]


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("often")
@pytest.mark.parametrize(("policy", "workers"), [*PARALLEL, SHUFFLED])
@pytest.mark.parametrize("seed", range(int(os.environ.get("WEFT_ORACLE_SEEDS", "3"))))
def test_long_programs(policy: str, workers: int, seed: int) -> None:
    steps = long_program(seed)
    expected = outcome(steps, "serial", 1)
    for attempt in range(2):
        assert outcome(steps, policy, workers) == expected, f"seed {seed}, attempt {attempt}"
