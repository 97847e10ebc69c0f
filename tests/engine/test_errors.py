"""Errors live with the version: who sees which, and what still runs."""

from __future__ import annotations

import dataclasses
import traceback
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import SOON, Gate, background
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    import weft

HERE = Path(__file__).name


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What the ops of these tests raise."""


def raising(error: BaseException) -> Callable[[], None]:
    """Make a callable that raises ``error``."""

    def explode() -> None:
        raise error

    return explode


def line_of(function: Callable[..., object], text: str) -> int:
    """The line of this file, within ``function``, that holds ``text``."""
    code = function.__code__
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(n for n in range(code.co_firstlineno, len(lines)) if text in lines[n - 1])


@pytest.mark.parametrize("wait", ["wait_for_var", "wait_to_write"])
def test_every_wait_raises_the_very_exception(engine: weft.Engine, wait: str) -> None:
    x, error = engine.new_variable("x"), Boom("told once")
    engine.push(raising(error), (), (x,))
    for _ in range(3):
        with pytest.raises(Boom) as caught:
            getattr(engine, wait)(x)
        assert caught.value is error
    assert x.exception() is error
    assert x.is_ready(), "finished, though not well"
    assert error.args == ("told once",)


def test_threads_that_wait_all_get_it(parallel: weft.Engine, gate: Gate) -> None:
    x, error = parallel.new_variable(), Boom()
    gate.hold(parallel, mutate=(x,))
    parallel.push(raising(error), (), (x,))
    waits = [background(lambda: parallel.wait_for_var(x)) for _ in range(5)]
    gate.open()
    assert {id(wait.exception(SOON)) for wait in waits} == {id(error)}


def test_traceback_leads_into_the_callable(engine: weft.Engine) -> None:
    x = engine.new_variable()

    def inner() -> None:
        message = "deep down"
        raise Boom(message)

    engine.push(lambda: inner(), (), (x,))  # noqa: PLW0108 - a frame of its own
    with pytest.raises(Boom, match="deep down") as caught:
        engine.wait_for_var(x)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-2:] == ["<lambda>", "inner"]


def test_note_names_the_op_and_where_it_was_pushed(engine: weft.Engine) -> None:
    x, error = engine.new_variable(), Boom()
    engine.push(raising(error), (), (x,), name="scale weights")
    for _ in range(3):
        with pytest.raises(Boom):
            engine.wait_for_var(x)
    with pytest.raises(Boom):
        engine.wait_to_write(x)
    line = line_of(test_note_names_the_op_and_where_it_was_pushed, 'name="scale weights"')
    notes = [note for note in error.__notes__ if "scale weights" in note]
    assert len(notes) == 1, "one note, however often it is raised"
    assert f"{HERE}:{line}" in notes[0]


def test_note_of_an_op_without_a_name_says_where_it_was_pushed(engine: weft.Engine) -> None:
    x, error = engine.new_variable(), Boom()
    engine.push(raising(error), (), (x,))  # nameless
    with pytest.raises(Boom):
        engine.wait_for_var(x)
    line = line_of(test_note_of_an_op_without_a_name_says_where_it_was_pushed, "# nameless")
    assert any(f"{HERE}:{line}" in note for note in error.__notes__)


def test_an_exception_that_takes_no_note_is_still_raised(engine: weft.Engine) -> None:
    class Stubborn(Boom):
        def add_note(self, note: str, /) -> None:
            raise RuntimeError(note)

    x, error = engine.new_variable(), Stubborn()
    engine.push(raising(error), (), (x,))
    with pytest.raises(Stubborn) as caught:
        engine.wait_for_var(x)
    assert caught.value is error


def test_an_exception_that_takes_no_attributes(engine: weft.Engine) -> None:
    """Frozen dataclasses are such: theirs has its note, and the traceback of each wait begins anew."""

    @dataclasses.dataclass(frozen=True)
    class Frozen(Boom):
        code: int

    x, error = engine.new_variable(), Frozen(3)
    engine.push(raising(error), (), (x,), name="brittle")
    engine.push(raising(error), name="brittle too")
    depths = set()
    for _ in range(3):
        with pytest.raises(Frozen) as caught:
            engine.wait_for_var(x)
        assert caught.value is error
        depths.add(len(traceback.extract_tb(error.__traceback__)))
    assert len(depths) == 1
    with pytest.raises(Frozen):
        engine.wait_for_all()
    engine.close()
    assert [note.split(" pushed at ")[0] for note in error.__notes__] == [
        "weft: op 'brittle'",
        "weft: op 'brittle too'",
    ]


def test_ops_that_need_a_failed_version_are_skipped_and_fail_the_same_way(engine: weft.Engine) -> None:
    x, y, z, error, ran = *(engine.new_variable(n) for n in "xyz"), Boom(), list[str]()
    engine.push(raising(error), (), (x,))
    engine.push(lambda: ran.append("mutate"), (), (x,))
    engine.push(lambda: ran.append("read"), (x,), (y,))
    engine.push(lambda: ran.append("read read"), (y,), (), overwrite_vars=(z,))
    for variable in (x, y, z):
        with pytest.raises(Boom) as caught:
            engine.wait_for_var(variable)
        assert caught.value is error
        assert variable.exception() is error
    assert ran == []
    assert (x.completed_version, y.completed_version, z.completed_version) == (2, 1, 1)
    assert (engine.stats()["failed"], engine.stats()["skipped"]) == (1, 3)


def test_readers_before_the_failure_still_read(engine: weft.Engine) -> None:
    x, y, ran = engine.new_variable(), engine.new_variable(), list[str]()
    engine.push(lambda: ran.append("first"), (), (x,))
    engine.push(lambda: ran.append("reader"), (x,), (y,))
    engine.push(raising(Boom()), (), (x,))
    engine.wait_for_var(y)
    assert ran == ["first", "reader"]
    with pytest.raises(Boom):
        engine.wait_for_var(x)


def test_a_failed_reader_does_not_fail_what_it_read(engine: weft.Engine) -> None:
    x, y = engine.new_variable(), engine.new_variable()
    engine.push(raising(Boom()), (x,), (y,))
    engine.wait_for_var(x)
    engine.wait_to_write(x)
    assert x.exception() is None
    with pytest.raises(Boom):
        engine.wait_for_var(y)


def test_every_variable_the_op_would_have_made_fails(engine: weft.Engine) -> None:
    x, y, z, error = *(engine.new_variable(n) for n in "xyz"), Boom()
    engine.push(raising(error), (), (x, y), overwrite_vars=(z,))
    for variable in (x, y, z):
        with pytest.raises(Boom) as caught:
            engine.wait_for_var(variable)
        assert caught.value is error


def test_an_overwrite_that_succeeds_clears(engine: weft.Engine) -> None:
    x, ran = engine.new_variable(), list[str]()
    engine.push(raising(Boom()), (), (x,))
    engine.push(lambda: ran.append("overwrite"), overwrite_vars=(x,))
    engine.push(lambda: ran.append("mutate"), (), (x,))
    engine.wait_for_var(x)
    assert x.exception() is None
    assert ran == ["overwrite", "mutate"]
    with pytest.raises(Boom):
        engine.wait_for_all()  # cleared is not told: nothing is dropped


def test_an_overwrite_that_fails_leaves_its_own_failure(engine: weft.Engine) -> None:
    x, second = engine.new_variable(), Boom("second")
    engine.push(raising(Boom("first")), (), (x,))
    engine.push(raising(second), overwrite_vars=(x,))
    with pytest.raises(Boom, match="second"):
        engine.wait_for_var(x)
    assert x.exception() is second


def test_an_overwrite_that_was_skipped_clears_nothing(engine: weft.Engine) -> None:
    x, y, first, second = engine.new_variable(), engine.new_variable(), Boom("x"), Boom("y")
    engine.push(raising(first), (), (x,))
    engine.push(raising(second), (), (y,))
    engine.push(lambda: None, (x,), overwrite_vars=(y,))
    with pytest.raises(Boom) as caught:
        engine.wait_for_var(y)
    assert caught.value is first


def test_always_run_runs_after_a_failure(engine: weft.Engine) -> None:
    x, y, ran = engine.new_variable(), engine.new_variable(), list[str]()
    engine.push(raising(Boom()), (), (x,))
    engine.push(lambda: ran.append("read"), (x,), always_run=True)
    engine.push(lambda: ran.append("read, mutate"), (x,), (y,), always_run=True)
    engine.push(lambda: ran.append("mutate"), (), (x,), always_run=True)
    with pytest.raises(Boom):
        engine.wait_for_all()
    assert sorted(ran) == ["mutate", "read", "read, mutate"]


def test_unrelated_ops_run_on(engine: weft.Engine) -> None:
    x, y, ran = engine.new_variable(), engine.new_variable(), count()
    engine.push(raising(Boom()), (), (x,))
    for _ in range(100):
        engine.push(lambda: next(ran), (), (y,))
    engine.wait_for_var(y)
    assert next(ran) == 100


def test_wait_for_all_raises_a_single_failure_as_itself_and_once(engine: weft.Engine) -> None:
    x, error = engine.new_variable(), Boom()
    engine.push(raising(error), (), (x,))
    engine.push(lambda: None, (), (x,))  # skipped: no failure of its own
    with pytest.raises(Boom) as caught:
        engine.wait_for_all()
    assert caught.value is error
    engine.wait_for_all()
    with pytest.raises(Boom):
        engine.wait_for_var(x)


def test_wait_for_all_raises_many_as_a_group(engine: weft.Engine) -> None:
    failures = [Boom(i) for i in range(20)]
    for error in failures:
        engine.push(raising(error), (), (engine.new_variable(),))
    with pytest.raises(ExceptionGroup) as caught:
        engine.wait_for_all()
    assert sorted(map(id, caught.value.exceptions)) == sorted(map(id, failures))
    engine.wait_for_all()


def test_what_a_wait_has_told_wait_for_all_does_not_tell_again(engine: weft.Engine) -> None:
    x, y, told, untold = engine.new_variable(), engine.new_variable(), Boom("told"), Boom("untold")
    engine.push(raising(told), (), (x,))
    engine.push(raising(untold), (), (y,))
    with pytest.raises(Boom):
        engine.wait_for_var(x)
    with pytest.raises(Boom) as caught:
        engine.wait_for_all()
    assert caught.value is untold


def test_a_failure_without_variables_reaches_wait_for_all(engine: weft.Engine) -> None:
    error = Boom()
    engine.push(raising(error))
    with pytest.raises(Boom) as caught:
        engine.wait_for_all()
    assert caught.value is error


def test_a_failure_inside_a_wait_inside_an_op_is_the_op_s_own(engine: weft.Engine) -> None:
    x, y, error = engine.new_variable(), engine.new_variable(), Boom()
    engine.push(raising(error), (), (x,))
    engine.push(lambda: engine.wait_for_var(x), (), (y,))
    with pytest.raises(Boom) as caught:
        engine.wait_for_var(y)
    assert caught.value is error


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("VariableDeletedError", ValueError),
        ("WrongEngineError", ValueError),
        ("DeadlockError", RuntimeError),
        ("EngineClosedError", RuntimeError),
        ("PendingLimitError", RuntimeError),
        ("WaitTimeoutError", TimeoutError),
        ("CompletionError", RuntimeError),
        ("NativeOpError", RuntimeError),
        ("NestedPushError", RuntimeError),
        ("OpCancelledError", RuntimeError),
        ("ForkedError", RuntimeError),
        ("ArgumentTypeError", TypeError),
        ("ArgumentValueError", ValueError),
        ("GradientError", ValueError),
        ("ModelError", RuntimeError),
        ("StateFileError", ValueError),
    ],
)
def test_each_class_is_also_the_built_in_one(name: str, base: type[Exception]) -> None:
    error = getattr(errors, name)
    assert issubclass(error, errors.WeftError)
    assert issubclass(error, base)
    assert issubclass(errors.WeftError, Exception)
    assert error.__module__ == "weft.errors"
    assert error.__doc__
