"""``new_operator``: accesses checked once, pushed as often as one likes."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from weft import errors

if TYPE_CHECKING:
    import weft
    from conftest import MakeEngine


def test_pushes_again_and_again(engine: weft.Engine) -> None:
    x, y, seen = engine.new_variable(), engine.new_variable(), list[int]()
    operator = engine.new_operator(lambda: seen.append(len(seen)), (x,), (y,), name="count")
    for _ in range(1000):
        operator.push()
    engine.wait_for_var(y)
    assert seen == list(range(1000))
    assert (x.version, y.version) == (0, 1000)


def test_is_not_pushed_by_being_made(engine: weft.Engine) -> None:
    x, seen = engine.new_variable(), list[int]()
    engine.new_operator(lambda: seen.append(1), (), (x,))
    engine.wait_for_all()
    assert (seen, x.version, engine.stats()["pushed"]) == ([], 0, 0)


def test_is_ordered_among_other_pushes(engine: weft.Engine) -> None:
    x, order = engine.new_variable(), list[str]()
    operator = engine.new_operator(lambda: order.append("operator"), overwrite_vars=(x, x))
    engine.push(lambda: order.append("first"), (), (x,))
    operator.push()
    engine.push(lambda: order.append("last"), (), (x,))
    engine.wait_for_var(x)
    assert order == ["first", "operator", "last"]


def test_fails_and_recovers(engine: weft.Engine) -> None:
    x, steps = engine.new_variable(), iter(range(3))
    operator = engine.new_operator(lambda: 1 / next(steps), overwrite_vars=(x,), name="reciprocal")
    operator.push()
    with pytest.raises(ZeroDivisionError) as caught:
        engine.wait_for_var(x)
    assert any("reciprocal" in note for note in caught.value.__notes__)
    operator.push()
    engine.wait_for_var(x)


def test_always_run(engine: weft.Engine) -> None:
    x, ran = engine.new_variable(), list[str]()
    clean_up = engine.new_operator(lambda: ran.append("clean-up"), (x,), always_run=True)
    engine.push(lambda: 1 / 0, (), (x,))
    clean_up.push()
    with pytest.raises(ZeroDivisionError):
        engine.wait_for_all()
    assert ran == ["clean-up"]


def test_pushed_from_inside_an_op(engine: weft.Engine) -> None:
    x, y, seen = engine.new_variable(), engine.new_variable(), list[str]()
    inner = engine.new_operator(lambda: seen.append("inner"), (x,), (y,))
    engine.push(inner.push, (), (x,))
    engine.wait_for_var(x)
    engine.wait_for_var(y)
    assert seen == ["inner"]


def test_arguments_are_checked_when_it_is_made(engine: weft.Engine, make_engine: MakeEngine) -> None:
    foreign = make_engine(1).new_variable()
    with pytest.raises(errors.WrongEngineError):
        engine.new_operator(lambda: None, (foreign,))
    with pytest.raises(errors.ArgumentTypeError):
        engine.new_operator(42)
    with pytest.raises(errors.ArgumentTypeError):
        engine.new_operator(lambda: None, 42)


def test_push_after_its_variable_was_deleted(engine: weft.Engine) -> None:
    x, ran = engine.new_variable("gone"), list[str]()
    operator = engine.new_operator(lambda: ran.append("ran"), (), (x,))
    operator.push()
    engine.delete_variable(x)
    with pytest.raises(errors.VariableDeletedError, match="gone"):
        operator.push()
    engine.wait_for_all()
    assert ran == ["ran"]


def test_push_after_close(make_engine: MakeEngine) -> None:
    engine = make_engine(1)
    operator = engine.new_operator(lambda: None)
    engine.close()
    with pytest.raises(errors.EngineClosedError):
        operator.push()


def test_outlives_the_callers_handles(engine: weft.Engine) -> None:
    ran: list[str] = []
    operator = engine.new_operator(lambda: ran.append("ran"), (), (engine.new_variable(),))
    operator.push()
    engine.wait_for_all()
    assert ran == ["ran"]


def test_a_cycle_through_an_operator_is_collected(engine: weft.Engine) -> None:
    class Model:
        """Holds the operator whose callable holds it."""

        def __init__(self) -> None:
            self.step = engine.new_operator(self.run, (), (engine.new_variable(),))

        def run(self) -> None:
            pass

    model = Model()
    gone = weakref.ref(model)
    model.step.push()
    engine.wait_for_all()
    engine.push(lambda: None)  # whoever next has the GIL lets go of what ran
    engine.wait_for_all()
    del model
    gc.collect()
    assert gone() is None
