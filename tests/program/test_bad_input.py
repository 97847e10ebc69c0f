"""One misuse of programs each, and what works beside it."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

import weft
from weft.errors import ArgumentTypeError, ArgumentValueError, CaptureError, EngineClosedError

if TYPE_CHECKING:
    from conftest import Gate, MakeEngine, RunScript


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"static_argnames": "nothing"}, "static_argnames.*'nothing'"),
        ({"static_argnames": [1]}, "static_argnames"),
        ({"static_argnames": 1}, "static_argnames is a name or several, not int"),
        ({"memory": "most"}, "memory.*'balanced'"),
        ({"sequential": 1}, "sequential"),
        ({"verify": -1}, "verify"),
        ({"verify": 1.0}, "verify"),
        ({"max_programs": 0}, "max_programs"),
        ({"max_programs": True}, "max_programs"),
    ],
)
def test_options(options: dict[str, Any], error: str) -> None:
    with pytest.raises((ArgumentTypeError, ArgumentValueError), match=error):
        weft.program(lambda x: x, **options)
    assert weft.program(lambda x: x, static_argnames="x", memory="min", max_programs=1)(1) == 1


async def coroutine() -> None:
    """Await nothing."""


def generator() -> Any:
    yield 1


@pytest.mark.parametrize("function", [1, "name", coroutine, generator])
def test_what_is_no_function(function: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"weft\.program"):
        weft.program(function)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: float(x.sum()),
        lambda x: bool(x.any()),
        lambda x: x.numpy(),
        lambda x: x.tolist(),
        lambda x: 1.0 in x,
        lambda x: x.wait_to_read(),
    ],
)
def test_a_value_asked_for_inside(ask: Any) -> None:
    step = weft.program(lambda x: ask(x * 2))
    with pytest.raises(CaptureError, match="test_bad_input"):
        step(weft.ones(2))
    assert not step.programs
    assert (weft.ones(2) * 2).tolist() == [2.0, 2.0]
    with weft.eager():
        step(weft.ones(2))


def test_a_capture_left_by_an_exception() -> None:
    x = weft.ones(2)
    with pytest.raises(ZeroDivisionError), weft.capture("left") as program:
        x.fill(1 // 0)
    with pytest.raises(CaptureError, match="'left'"):
        program.replay()
    assert x.tolist() == [1.0, 1.0]
    with weft.capture("again") as program:
        x += 1
    program.replay()
    assert x.tolist() == [2.0, 2.0]


def leave(x: Any, made: list[weft.NDArray]) -> None:
    made.extend([x + 1, weft.asarray([1.0, 2.0])])
    x.fill(1 // 0)


def test_arrays_of_a_capture_that_was_left_have_no_values() -> None:
    x = weft.ones(2)
    made: list[weft.NDArray] = []
    with pytest.raises(ZeroDivisionError), weft.capture("left"):
        leave(x, made)
    y, known = made
    for use in (y.tolist, lambda: y + 1, lambda: x.copyfrom(y)):
        with pytest.raises(CaptureError, match="'left'"):
            use()
    assert "recorded" in repr(y)
    assert known.tolist() == [1.0, 2.0], "what is known needs no replay"
    with weft.capture("kept") as program:
        y = x + 1
    program.replay()
    assert y.tolist() == [2.0, 2.0]


def test_deleted_states_and_arguments() -> None:
    w = weft.ones(2)
    step = weft.program(lambda x, w: x + w, donate="w")
    assert step(weft.ones(2), w).tolist() == [2.0, 2.0]
    with pytest.raises(weft.errors.VariableDeletedError, match="donate"):
        step(weft.ones(2), w)
    closing = weft.program(lambda x: x + w)
    with pytest.raises(weft.errors.VariableDeletedError, match="donate"):
        closing(weft.ones(2))
    w = weft.ones(2)
    assert closing(weft.ones(2)).tolist() == [2.0, 2.0]


def test_a_program_used_in_its_own_block() -> None:
    x = weft.ones(2)
    with weft.capture("step") as program:
        x += 1
        with pytest.raises(CaptureError, match="has not ended"):
            program.replay()
    program.replay()
    assert x.tolist() == [2.0, 2.0]


def test_a_program_whose_block_was_left_by_an_exception() -> None:
    x = weft.ones(2)
    with contextlib.suppress(KeyError), weft.capture("step") as program:
        x += 1
        raise KeyError(1)
    with pytest.raises(CaptureError, match="was not recorded: an exception has left its block"):
        program.replay()
    assert x.tolist() == [1.0, 1.0]


def test_two_captures_in_one_thread() -> None:
    x = weft.ones(2)
    with weft.capture("outer") as program:
        x += 1
        with pytest.raises(CaptureError, match="'outer'"), weft.capture("inner"):
            x += 1
        x += 1
    program.replay()
    assert x.tolist() == [3.0, 3.0]


def test_captures_in_two_threads() -> None:
    ours, theirs = weft.ones(2), weft.ones(2)
    found = []

    def record() -> None:
        with weft.capture("theirs") as program:
            theirs.fill(3.0)
        found.append(program)

    with weft.capture("ours") as program:
        thread = threading.Thread(target=record)
        thread.start()
        ours.fill(2.0)
        thread.join()
    assert [program.ops, found[0].ops] == [1, 1]
    program.replay()
    found[0].replay()
    assert ours.tolist() + theirs.tolist() == [2.0, 2.0, 3.0, 3.0]


def test_recursion() -> None:
    @weft.program
    def endless(x: Any) -> Any:
        return endless(x + 1)

    with pytest.raises(CaptureError, match="calls itself"):
        endless(weft.ones(2))

    @weft.program
    def halving(x: Any, depth: int) -> Any:
        return x if depth == 0 else halving(x * 0.5, depth - 1)

    assert halving(weft.ones(2), 3).tolist() == [0.125, 0.125]
    assert halving(weft.ones(2), 3).tolist() == [0.125, 0.125]


def test_a_program_inside_an_op() -> None:
    step = weft.program(lambda x: x + 1)
    found = []
    engine = weft.get_engine()
    engine.push(lambda: found.append(step(weft.ones(2)).tolist()), name="inside")
    engine.push(lambda: found.append(step(weft.ones(2)).tolist()), name="inside")
    engine.wait_for_all()
    assert found == [[2.0, 2.0]] * 2


def test_a_capture_inside_an_op() -> None:
    x = weft.ones(2)
    found = []

    def inside() -> None:
        with weft.capture("inside") as program:
            x.fill(4.0)
        found.append(program)

    weft.get_engine().push(inside)
    weft.wait_all()
    assert x.tolist() == [1.0, 1.0]
    found[0].replay()
    assert x.tolist() == [4.0, 4.0]


def test_replay_on_a_closed_engine(make_engine: MakeEngine) -> None:
    engine = make_engine(workers=1)
    x = weft.ones(2, engine=engine)
    with weft.capture("step", engine=engine) as program:
        x += 1
    step = weft.program(lambda x: weft.tanh(x) + 1)
    program.replay()
    step(x)
    engine.close()
    with pytest.raises(EngineClosedError):
        program.replay()
    with pytest.raises(EngineClosedError):
        step(x)


def test_arrays_of_two_engines(make_engine: MakeEngine) -> None:
    one, other = weft.ones(2, engine=make_engine(workers=1)), weft.ones(2)
    step = weft.program(lambda x, y: x + y)
    with pytest.raises(weft.errors.WeftError, match="engine"):
        step(one, other)
    assert step(one, one).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("result", [object(), {1, 2}, threading.Lock()])
def test_results_that_are_no_values(result: Any) -> None:
    step = weft.program(lambda x: (x, result))
    with pytest.raises(TypeError, match=type(result).__name__):
        step(weft.ones(2))
    assert weft.program(lambda x: (x, {"name": 1.5}))(weft.ones(2))[1] == {"name": 1.5}


def test_replay_of_a_program_with_arguments() -> None:
    step = weft.program(lambda x, w: x @ w)
    x, w = weft.ones((2, 3)), weft.ones((3, 2))
    program = step.lower(x, w)
    with pytest.raises(ArgumentValueError, match="x, w"):
        program.replay()
    with pytest.raises(ArgumentTypeError, match="sequential"):
        program.replay("yes")  # type: ignore[arg-type]
    assert program.replay(arguments=[x, w])[0].tolist() == [[3.0, 3.0]] * 2
    with pytest.raises(ValueError, match="shape"):
        program.replay(arguments=[w, x])


def test_out_of_memory_for_the_arena() -> None:
    huge = 1 << 46

    @weft.program
    def step(x: Any) -> Any:
        return weft.tanh(weft.broadcast_to(x, (huge,)) + 1).sum()

    small = weft.program(lambda x: weft.tanh(x + 1).sum())
    x = weft.ones(1)
    with pytest.raises(MemoryError):
        step(x).tolist()
    assert x.tolist() == [1.0]
    assert small(x).tolist() == (weft.tanh(x + 1).sum()).tolist()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_with_a_replay_in_flight(script: RunScript) -> None:
    done = script(
        """
        import os, threading, weft
        gate = threading.Event()
        x, y = weft.ones(4), weft.ones(4)

        @weft.program
        def step(x):
            y = weft.tanh(x)
            weft.get_engine().push(gate.wait, (), [y])
            return y + 1

        result = step(x)
        child = os.fork()
        if child == 0:
            try:
                result.tolist()
            except weft.errors.ForkedError:
                pass
            else:
                os._exit(2)
            same = weft.program(lambda x: weft.tanh(x) + 1)
            first, second = same(x), same(x)
            os._exit(0 if first.tolist() == second.tolist() == (weft.tanh(x) + 1).tolist() else 3)
        _, status = os.waitpid(child, 0)
        gate.set()
        assert result.tolist() == (weft.tanh(x) + 1).tolist()
        print(os.waitstatus_to_exitcode(status))
        """
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "0"


def test_a_failed_op_is_named_and_the_program_stays_usable(gate: Gate) -> None:
    del gate
    chance = [True]

    @weft.program
    def step(x: Any) -> Any:
        y, z = x + 1, x * 2

        def fail() -> None:
            if chance[0]:
                raise ArithmeticError("not now")

        weft.get_engine().push(fail, (), [y], name="fail")
        return y, z, y + z

    bad, good, both = step(weft.ones(2))
    for failed in (bad, both):
        with pytest.raises(ArithmeticError, match="not now") as caught:
            failed.tolist()
        assert "'fail'" in "\n".join(caught.value.__notes__)
        assert "test_bad_input.py" in "\n".join(caught.value.__notes__)
    assert good.tolist() == [2.0, 2.0]
    chance[0] = False
    assert [result.tolist() for result in step(weft.ones(2))] == [[2.0, 2.0], [2.0, 2.0], [4.0, 4.0]]
