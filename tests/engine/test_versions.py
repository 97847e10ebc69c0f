"""Versions: ``version`` counts the mutations pushed, ``completed_version`` those that finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import weft
    from conftest import Gate


def test_a_fresh_variable_is_at_zero(engine: weft.Engine) -> None:
    x = engine.new_variable("weights")
    assert (x.version, x.completed_version, x.name) == (0, 0, "weights")
    assert x.engine is engine
    assert x.exception() is None
    assert "weights" in repr(x)


def test_mutations_count_at_the_push_and_at_the_end(parallel: weft.Engine, gate: Gate) -> None:
    x = parallel.new_variable()
    gate.hold(parallel, mutate=(x,))
    assert (x.version, x.completed_version) == (1, 0)
    parallel.push(lambda: None, (), (x,))
    parallel.push(lambda: None, overwrite_vars=(x,))
    assert (x.version, x.completed_version) == (3, 0)
    gate.open()
    parallel.wait_for_var(x)
    assert (x.version, x.completed_version) == (3, 3)


def test_serial_has_completed_what_it_pushed(engine: weft.Engine) -> None:
    x = engine.new_variable()
    for version in range(1, 20):
        engine.push(lambda: None, (), (x,))
        assert x.version == version
        if engine.policy == "serial":
            assert x.completed_version == version
    engine.wait_for_var(x)
    assert x.completed_version == 19


def test_reads_and_waits_change_neither(engine: weft.Engine) -> None:
    x = engine.new_variable()
    engine.push(lambda: None, (), (x,))
    for _ in range(10):
        engine.push(lambda: None, (x,))
        engine.wait_for_var(x)
        engine.wait_to_write(x)
    engine.wait_for_all()
    assert (x.version, x.completed_version) == (1, 1)


def test_failed_and_skipped_mutations_count_too(engine: weft.Engine) -> None:
    x = engine.new_variable()
    engine.push(lambda: 1 / 0, (), (x,))
    engine.push(lambda: None, (), (x,))
    engine.push(lambda: None, (), (x,), always_run=True)
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_all()
    assert (x.version, x.completed_version) == (3, 3)


def test_an_op_sees_its_own_version_as_not_completed(engine: weft.Engine) -> None:
    x, seen = engine.new_variable(), list[int]()
    for _ in range(3):
        engine.push(lambda: seen.append(x.completed_version), (), (x,))
    engine.wait_for_var(x)
    assert seen == [0, 1, 2]


def test_versions_never_go_back(many: weft.Engine) -> None:
    x, seen = many.new_variable(), list[tuple[int, int]]()
    for _ in range(5000):
        many.push(lambda: None, (), (x,))
        completed = x.completed_version
        seen.append((completed, x.version))
    many.wait_for_var(x)
    assert all(completed <= version for completed, version in seen)
    assert [c for c, _ in seen] == sorted(c for c, _ in seen)
    assert [v for _, v in seen] == list(range(1, 5001))


def test_a_variable_never_pushed_stays_at_zero_and_another_is_another(engine: weft.Engine) -> None:
    x, y = engine.new_variable(), engine.new_variable()
    engine.push(lambda: None, (x,), (y,))
    engine.wait_for_all()
    assert (x.version, y.version) == (0, 1)
    assert x != y
    assert len({x, y, x}) == 2
