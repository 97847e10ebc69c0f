"""Dependencies and the critical path, held against plain definitions."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from records import ACCESSES, OPS, Recording, random_run

from weft._trace.critical import critical_path
from weft._trace.dependencies import dependencies
from weft._trace.record import NO_OP, NONE, Access, Kind, Record


def by_definition(record: Record) -> set[tuple[int, int]]:
    """Walk the accesses one by one."""
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    pairs = set()
    for op, variable, kind in record.accesses[["op", "variable", "kind"]].tolist():
        since = readers.setdefault(variable, [])
        if kind == Access.READ or record.ops["kind"][op] == Kind.WAIT:
            pairs |= {(writer[variable], op)} if variable in writer else set()
            if record.ops["kind"][op] != Kind.WAIT:
                since.append(op)
        else:
            pairs |= {(before, op) for before in since or ([writer[variable]] if variable in writer else [])}
            writer[variable], readers[variable] = op, []
    return {(before, after) for before, after in pairs if before != after}


def longest(record: Record, pairs: np.ndarray) -> int:
    """The length of the longest chain, by definition."""
    ends: list[int] = []
    for op, took in enumerate(record.durations().tolist()):
        ends.append(took + max((ends[before] for before, after in pairs.tolist() if after == op), default=0))
    return max(ends)


@pytest.mark.parametrize("seed", range(20))
def test_dependencies_are_those_of_the_definition(seed: int) -> None:
    record = random_run(150, seed, variables=random.Random(seed).randint(3, 12)).record()
    found = dependencies(record)
    assert found.tolist() == sorted(found.tolist(), key=lambda pair: pair[::-1])
    assert (found[:, 0] < found[:, 1]).all()
    assert set(map(tuple, found.tolist())) == by_definition(record)


def pairs_of(run: Recording) -> list[list[int]]:
    return dependencies(run.record()).tolist()


def test_reads_wait_for_the_mutation_before_and_not_for_each_other() -> None:
    run = Recording()
    run.op("write", 1, 2, mutate="x")
    run.op("read", 3, 4, read="x")
    run.op("read", 3, 4, read="x")
    run.op("write", 5, 6, overwrite="x")
    assert pairs_of(run) == [[0, 1], [0, 2], [1, 3], [2, 3]]


def test_mutations_in_a_row_wait_for_the_last_one() -> None:
    run = Recording()
    for at in range(3):
        run.op("write", at, at + 1, mutate="x")
    assert pairs_of(run) == [[0, 1], [1, 2]]


def test_variables_know_nothing_of_each_other() -> None:
    run = Recording()
    run.op("x", 1, 2, mutate="x")
    run.op("y", 1, 2, mutate="y")
    run.op("read", 3, 4, read="y")
    run.op("x", 3, 4, mutate="x")
    assert pairs_of(run) == [[1, 2], [0, 3]]


def test_two_variables_give_one_dependency_and_an_op_does_not_wait_for_itself() -> None:
    run = Recording()
    run.op("write", 1, 2, mutate="xy")
    run.op("both", 3, 4, read="xy")
    run.op("twice", 5, 6, read="z", mutate="z")
    assert pairs_of(run) == [[0, 1]]


def test_nothing_waits_for_a_wait() -> None:
    run = Recording()
    run.op("write", 1, 2, mutate="x")
    run.op("wait", 1, 2, read="x", kind=Kind.WAIT, worker=None)
    run.op("write", 5, 6, mutate="x")
    assert pairs_of(run) == [[0, 1], [0, 2]]


def test_without_accesses_there_are_no_dependencies() -> None:
    run = Recording()
    run.op("alone", 1, 2)
    assert dependencies(run.record()).shape == (0, 2)


@pytest.mark.parametrize("seed", range(20))
def test_the_critical_path_is_the_longest_chain(seed: int) -> None:
    record = random_run(120, seed).record()
    pairs = dependencies(record)
    path = critical_path(record, pairs)
    assert path.length == longest(record, pairs) == int(record.durations()[path.ops].sum())
    links = set(map(tuple, pairs.tolist()))
    assert all(pair in links for pair in zip(path.ops[:-1].tolist(), path.ops[1:].tolist(), strict=True))


def test_nothing_that_ran_has_no_critical_path() -> None:
    run = Recording()
    run.op("pending", 0, 0, read="x")
    path = critical_path(run.record(), dependencies(run.record()))
    assert (path.length, path.ops.tolist()) == (0, [])


def test_what_was_pushed_inside_an_op_waits_for_what_that_did_before() -> None:
    run = Recording()
    parent = run.op("parent", 100, 500, mutate="x")
    run.op("child", 600, 900, pushed=400, parent=parent, mutate="y")
    run.op("other", 100, 150, mutate="z", worker=2)
    path = critical_path(run.record(), dependencies(run.record()))
    assert (path.length, path.ops.tolist()) == (300 + 300, [0, 1])


def test_a_parent_that_was_not_kept_is_no_parent() -> None:
    run = Recording()
    run.op("child", 600, 900, parent=NO_OP, mutate="y")
    assert critical_path(run.record(), dependencies(run.record())).length == 300


def seconds_of_path(count: int) -> float:
    """Return the processor time that dependencies and critical path of so many ops take."""
    variables = 1000
    rng = np.random.default_rng(5)
    started = np.arange(count) * 1000 + 1
    ops = {name: np.zeros(count, kind) for name, kind in OPS.items()}
    ops |= {"started": started, "ended": started + rng.integers(1, 900, count), "parent": np.full(count, NO_OP)}
    ops |= {"worker": np.ones(count, "u2"), "stream": np.full(count, NONE, "u2")}
    accesses = {
        "op": np.repeat(np.arange(count, dtype="u4"), 3),
        "variable": rng.integers(0, variables, 3 * count, "u4"),
        "kind": np.tile(np.array([0, 0, 1], "u1"), count),
        "version": np.zeros(3 * count, "u8"),
    }
    answer = Recording().answer() | {
        "ops": {name: column.astype(OPS[name]).tobytes() for name, column in ops.items()},
        "accesses": {name: column.astype(ACCESSES[name]).tobytes() for name, column in accesses.items()},
    }
    record = Record.read(answer)
    begin = time.process_time()
    path = critical_path(record, dependencies(record))
    taken = time.process_time() - begin
    assert len(path.ops) > count / variables
    return taken


@pytest.mark.slow
def test_a_million_ops_take_seconds() -> None:
    """Some 3 on an idle machine; on a slow one, what their number asks for."""
    tenth = seconds_of_path(100_000)
    assert seconds_of_path(1_000_000) < max(20, 30 * tenth)
