"""Two engines in one process know nothing of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conftest import MOMENT, SOON, Gate, MakeEngine
from weft import errors

if TYPE_CHECKING:
    import weft


@pytest.fixture
def other(make_engine: MakeEngine, gates: object) -> weft.Engine:  # noqa: ARG001 - gates open before engines close
    """A second engine."""
    return make_engine(1, name="other")


def test_waits_and_failures_stay_apart(engine: weft.Engine, other: weft.Engine, gate: Gate) -> None:
    gate.hold(other)
    other.push(lambda: 1 / 0)
    engine.push(lambda: None)
    engine.wait_for_all(timeout=SOON)
    with pytest.raises(errors.WaitTimeoutError):
        other.wait_for_all(timeout=MOMENT)
    gate.open()
    with pytest.raises(ZeroDivisionError):
        other.wait_for_all()
    engine.wait_for_all()


def test_a_variable_of_the_other_engine_raises(engine: weft.Engine, other: weft.Engine) -> None:
    mine, foreign, ran = engine.new_variable("mine"), other.new_variable("foreign"), list[str]()
    for misuse in (
        lambda: engine.push(lambda: ran.append("r"), (foreign,), (mine,)),
        lambda: engine.push(lambda: ran.append("m"), (mine,), (mine, foreign)),
        lambda: engine.push(lambda: ran.append("o"), (), (mine,), overwrite_vars=(foreign,)),
        lambda: engine.wait_for_var(foreign),
        lambda: engine.wait_to_write(foreign),
        lambda: engine.delete_variable(foreign),
    ):
        with pytest.raises(errors.WrongEngineError, match="foreign"):
            misuse()
    assert (mine.version, foreign.version, ran) == (0, 0, [])
    engine.push(lambda: ran.append("mine"), (), (mine,))
    other.push(lambda: ran.append("foreign"), (), (foreign,))
    engine.wait_for_var(mine)
    other.wait_for_var(foreign)
    assert sorted(ran) == ["foreign", "mine"]


def test_an_op_of_one_may_wait_for_the_other(engine: weft.Engine, other: weft.Engine) -> None:
    x, y, order = engine.new_variable(), other.new_variable(), list[str]()

    def outer() -> None:
        other.push(lambda: order.append("inner"), (), (y,))
        other.wait_for_var(y)
        order.append("outer")

    engine.push(outer, (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    assert order == ["inner", "outer"]


def test_closing_one_leaves_the_other(engine: weft.Engine, other: weft.Engine) -> None:
    ran: list[str] = []
    other.close()
    assert (other.closed, engine.closed) == (True, False)
    engine.push(lambda: ran.append("ran"))
    engine.wait_for_all()
    assert ran == ["ran"]
