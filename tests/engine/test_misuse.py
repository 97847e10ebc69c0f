"""One misuse per case, and beside it the twin that passes: a clear error, and nothing changed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

import weft
from conftest import MOMENT, SOON, MakeEngine, address_of
from weft import errors

if TYPE_CHECKING:
    import ctypes
    from collections.abc import AsyncIterator, Callable, Iterator


@pytest.fixture
def x(engine: weft.Engine) -> weft.Variable:
    """A variable whose queue every misuse below must leave as it was."""
    return engine.new_variable("x")


def unchanged(engine: weft.Engine, x: weft.Variable) -> None:
    """Nothing was pushed, nothing failed, and the queue of ``x`` works."""
    assert (x.version, x.completed_version, engine.pending, engine.stats()["pushed"]) == (0, 0, 0, 0)
    ran: list[str] = []
    engine.push(lambda: ran.append("twin"), (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    engine.wait_for_all(timeout=SOON)
    assert ran == ["twin"]
    assert x.version == 1


def test_a_name_with_nul() -> None:
    """Threads are named after their engine, which no NUL can be a part of."""
    with pytest.raises(errors.ArgumentValueError, match="NUL"):
        weft.Engine(1, name="a\0b")
    with weft.Engine(1, name="a b") as twin:
        x = twin.new_variable()
        twin.push(lambda: None, (), (x,))
        twin.wait_for_var(x, timeout=SOON)


@pytest.mark.parametrize("thing", [None, 42, "print", b"", [], object()])
def test_not_callable(engine: weft.Engine, x: weft.Variable, thing: Any) -> None:
    for push in (engine.push, engine.push_async, engine.new_operator):
        with pytest.raises(errors.ArgumentTypeError):
            push(thing, (), (x,))
    unchanged(engine, x)


def test_foreign_variable(engine: weft.Engine, x: weft.Variable, make_engine: MakeEngine) -> None:
    foreign = make_engine(1).new_variable()
    for accesses in ({"read_vars": [x, foreign]}, {"mutate_vars": [x, foreign]}, {"overwrite_vars": [x, foreign]}):
        with pytest.raises(errors.WrongEngineError):
            engine.push(lambda: None, **accesses)
    unchanged(engine, x)


def test_deleted_variable(engine: weft.Engine, x: weft.Variable) -> None:
    gone = engine.new_variable("gone")
    engine.delete_variable(gone)
    engine.wait_for_all()
    before = engine.stats()["pushed"]
    for accesses in ({"read_vars": [x, gone]}, {"mutate_vars": [x, gone]}, {"overwrite_vars": [x, gone]}):
        with pytest.raises(errors.VariableDeletedError):
            engine.push(lambda: None, **accesses)
    assert (x.version, engine.stats()["pushed"]) == (0, before)
    engine.push(lambda: None, (), (x,))
    engine.wait_for_var(x)


def test_closed_engine(make_engine: MakeEngine) -> None:
    closed, twin = make_engine(1), make_engine(1)
    x, y = closed.new_variable(), twin.new_variable()
    closed.close()
    with pytest.raises(errors.EngineClosedError):
        closed.push(lambda: None, (), (x,))
    assert x.version == 0
    twin.push(lambda: None, (), (y,))
    twin.wait_for_var(y)


@pytest.mark.parametrize(("wrong", "twin"), [(0, 1), (-1, 2), (-(2**40), 8)])
def test_workers_below_one(wrong: int, twin: int) -> None:
    with pytest.raises(errors.ArgumentValueError, match="workers"):
        weft.Engine(wrong)
    with weft.Engine(twin) as engine:
        engine.push(lambda: None)


@pytest.mark.parametrize("wrong", ["2", 1.5, [2], object()])
def test_workers_that_are_no_number(wrong: Any) -> None:
    with pytest.raises(TypeError):
        weft.Engine(wrong)


def test_more_workers_than_can_be(x: weft.Variable) -> None:
    for wrong in ({"workers": 2**70}, {"max_pending_ops": 2**70}, {"max_pending_bytes": 2**70}):
        with pytest.raises(errors.ArgumentValueError, match=next(iter(wrong))):
            weft.Engine(**wrong)
    assert x.version == 0


@pytest.mark.parametrize(
    ("wrong", "twin"),
    [("", "serial"), ("Serial", "serial"), ("threads", "per_device"), ("work-stealing", "work_stealing")],
)
def test_unknown_policy(wrong: str, twin: str) -> None:
    with pytest.raises(errors.ArgumentValueError, match="policy") as caught:
        weft.Engine(1, wrong)
    assert all(policy in str(caught.value) for policy in ("work_stealing", "per_device", "serial"))
    with weft.Engine(1, twin) as engine:
        engine.push(lambda: None)


@pytest.mark.parametrize(
    ("wrong", "twin"),
    [
        ({"on_limit": "wait"}, {"on_limit": "block"}),
        ({"max_pending_ops": 0}, {"max_pending_ops": 1}),
        ({"max_pending_ops": -5}, {"max_pending_ops": 5}),
        ({"max_pending_bytes": -1}, {"max_pending_bytes": 1}),
        ({"switch_interval": -0.1}, {"switch_interval": 0.005}),
        ({"switch_interval": float("nan")}, {"switch_interval": None}),
    ],
)
@pytest.mark.usefixtures("often")  # which restores the switch interval
def test_impossible_settings(wrong: dict[str, Any], twin: dict[str, Any]) -> None:
    with pytest.raises(errors.ArgumentValueError, match=next(iter(wrong))):
        weft.Engine(1, **wrong)
    with weft.Engine(1, **twin) as engine:
        engine.push(lambda: None)


@pytest.mark.parametrize("address", [0, 3, 4095, -1, 1 << 64])
def test_where_no_function_lies(engine: weft.Engine, x: weft.Variable, native: ctypes.CDLL, address: int) -> None:
    with pytest.raises(errors.ArgumentValueError, match="address"):
        engine.push_native(address, 0, (), (x,))
    unchanged(engine, x)
    engine.push_native(address_of(native.succeed), 0, (), (x,))
    engine.wait_for_var(x)


@pytest.mark.parametrize("option", [{"priority": 1 << 40}, {"priority": -(1 << 31) - 1}, {"nbytes": -1}])
def test_numbers_out_of_range(engine: weft.Engine, x: weft.Variable, option: dict[str, int]) -> None:
    for push in (engine.push, engine.push_async):
        with pytest.raises(errors.ArgumentValueError, match=f"{next(iter(option))} is a whole number from .* to 2"):
            push(lambda *_: None, (), (x,), **option)
        with pytest.raises(errors.ArgumentTypeError, match="is a whole number"):
            push(lambda *_: None, (), (x,), **dict.fromkeys(option, "high"))  # type: ignore[arg-type]
    unchanged(engine, x)
    engine.push(lambda: None, (), (x,), priority=(1 << 31) - 1, nbytes=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x,
        lambda x: [x, None],
        lambda x: [x, "x"],
        lambda x: (x, 3),
        lambda x: [[x]],
        lambda x: [x, {}],
        lambda x: {"x": x},
        lambda x: 7,  # noqa: ARG005
        lambda x: "xy",  # noqa: ARG005
        lambda x: object(),  # noqa: ARG005
    ],
)
@pytest.mark.parametrize("kind", ["read_vars", "mutate_vars", "overwrite_vars"])
def test_wrong_typed_lists(
    engine: weft.Engine, x: weft.Variable, kind: str, make: Callable[[weft.Variable], Any]
) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=kind):
        engine.push(lambda: None, **{kind: make(x)})
    unchanged(engine, x)


def test_a_sequence_that_raises_says_so_itself(engine: weft.Engine, x: weft.Variable) -> None:
    class Broken:
        def __len__(self) -> int:
            return 1

        def __getitem__(self, index: int) -> Any:
            message = "the sequence's own"
            raise RuntimeError(message)

    with pytest.raises((RuntimeError, TypeError)):
        engine.push(lambda: None, Broken(), (x,))
    unchanged(engine, x)


@pytest.mark.parametrize(
    "options",
    [
        {"priority": "high"},
        {"priority": 1.5},
        {"priority": 2**80},
        {"name": 5},
        {"name": "a\ud800b"},
        {"always_run": "yes"},
        {"device": 5},
        {"nbytes": -1},
        {"nbytes": "many"},
        {"colour": "red"},
    ],
)
def test_wrong_options(engine: weft.Engine, x: weft.Variable, options: dict[str, Any]) -> None:
    known = "colour" not in options  # Python itself refuses what no parameter is called
    with pytest.raises(errors.WeftError if known else TypeError, match=next(iter(options))):
        engine.push(lambda: None, (), (x,), **options)
    unchanged(engine, x)


@pytest.mark.parametrize(
    ("argument", "wrong", "kind"),
    [
        ("policy", None, errors.ArgumentTypeError),
        ("on_limit", 5, errors.ArgumentTypeError),
        ("name", 5, errors.ArgumentTypeError),
        ("name", "a\ud800b", errors.ArgumentValueError),
        ("stall_after", "soon", errors.ArgumentTypeError),
        ("switch_interval", "soon", errors.ArgumentTypeError),
        ("blas_threads", "two", errors.ArgumentTypeError),
        ("blas_threads", 2**80, errors.ArgumentValueError),
    ],
)
def test_settings_of_another_type(argument: str, wrong: Any, kind: type[errors.WeftError]) -> None:
    with pytest.raises(kind, match=f"{argument} (is|must be) .*, not"):
        weft.Engine(1, **{argument: wrong})


def test_names_and_flags_of_another_type(engine: weft.Engine, x: weft.Variable) -> None:
    wrong: Any = 5
    with pytest.raises(errors.ArgumentTypeError, match="name must be a string"):
        engine.new_variable(wrong)
    with pytest.raises(errors.ArgumentValueError, match="name must be a string that UTF-8 can encode"):
        engine.new_variable("a\ud800b")
    with pytest.raises(errors.ArgumentTypeError, match="always_run is True or False"):
        engine.push(lambda: None, (), (x,), always_run=wrong)
    with pytest.raises(errors.ArgumentTypeError, match="cancel is True or False"):
        engine.close(wrong)
    unchanged(engine, x)


def test_a_device_by_its_name(engine: weft.Engine, x: weft.Variable) -> None:
    with pytest.raises((TypeError, ValueError)):
        engine.push(lambda: None, (), (x,), device="abacus:0")
    unchanged(engine, x)
    engine.push(lambda: None, (), (x,), device=weft.Device("cpu:0"))
    engine.wait_for_var(x)


@pytest.mark.parametrize("wrong", [None, 3, "x", object()])
def test_waits_for_what_is_no_variable(engine: weft.Engine, x: weft.Variable, wrong: Any) -> None:
    for call in (engine.wait_for_var, engine.wait_to_write, engine.delete_variable):
        with pytest.raises(errors.ArgumentTypeError, match=f"var must be a weft.Variable, not {type(wrong).__name__}"):
            call(wrong)
    unchanged(engine, x)


def test_an_array_waits_by_its_own_methods(engine: weft.Engine) -> None:
    array: Any = weft.ones(2)
    for call in (engine.wait_for_var, engine.wait_to_write):
        with pytest.raises(errors.ArgumentTypeError, match="wait_to_read"):
            call(array)
    array.wait_to_read(SOON)


@pytest.mark.parametrize("wrong", ["soon", -1, -0.5, float("nan"), [1], 10**400])
def test_wrong_timeouts(engine: weft.Engine, x: weft.Variable, wrong: Any) -> None:
    kind = errors.ArgumentValueError if isinstance(wrong, (int, float)) else errors.ArgumentTypeError
    for call in (
        lambda: engine.wait_for_var(x, timeout=wrong),
        lambda: engine.wait_to_write(x, timeout=wrong),
        lambda: engine.wait_for_all(timeout=wrong),
        lambda: engine.close(timeout=wrong),
        lambda: weft.wait(x, timeout=wrong),
        lambda: weft.ones(2).wait_to_read(wrong),
    ):
        with pytest.raises(kind, match="timeout must be None or a number of seconds of at least 0, not"):
            call()
    engine.wait_for_var(x, timeout=float("inf"))
    engine.wait_for_var(x, timeout=1e12)
    unchanged(engine, x)


def test_a_finalizer_that_cannot_be_called(engine: weft.Engine, x: weft.Variable) -> None:
    wrong: Any = 5
    with pytest.raises(errors.ArgumentTypeError, match="finalizer must be callable, not int"):
        engine.delete_variable(x, wrong)
    unchanged(engine, x)


def out_of_memory() -> None:
    bytearray(sys.maxsize)


def too_deep() -> None:
    too_deep()


def too_deep_in_c(thing: Any = 0) -> None:
    sorted([thing], key=too_deep_in_c)


def leave() -> None:
    sys.exit(3)


def interrupt() -> None:
    raise KeyboardInterrupt


def stop_generator() -> None:
    raise GeneratorExit


def bare() -> None:
    raise BaseException


def stop_iteration() -> None:
    next(iter(()))


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (out_of_memory, MemoryError),
        (too_deep, RecursionError),
        (too_deep_in_c, RecursionError),
        (leave, SystemExit),
        (interrupt, KeyboardInterrupt),
        (stop_generator, GeneratorExit),
        (stop_iteration, StopIteration),
        (bare, BaseException),
    ],
)
def test_a_callable_that_raises_anything(
    engine: weft.Engine, x: weft.Variable, body: Callable[[], None], kind: type[BaseException]
) -> None:
    """The process lives, the failure is told as itself, and the same push with a sound callable passes."""
    y = engine.new_variable()
    engine.push(body, (), (x,), name="wild")
    engine.push(lambda: None, (x,), (y,))
    for variable in (x, y):
        with pytest.raises(kind) as caught:
            engine.wait_for_var(variable, timeout=SOON)
        assert type(caught.value) is kind
        assert caught.value is x.exception()
    ran: list[str] = []
    engine.push(lambda: ran.append("twin"), overwrite_vars=(x,))
    engine.wait_for_var(x, timeout=SOON)
    assert ran == ["twin"]
    assert (x.completed_version, engine.pending) == (2, 0)


def test_base_exceptions_are_grouped_too(engine: weft.Engine) -> None:
    engine.push(leave)
    engine.push(too_deep)
    with pytest.raises(BaseExceptionGroup) as caught:
        engine.wait_for_all(timeout=SOON)
    assert {type(error) for error in caught.value.exceptions} == {SystemExit, RecursionError}


def test_an_exception_that_cannot_be_made_or_printed(engine: weft.Engine, x: weft.Variable) -> None:
    class Mute(Exception):  # noqa: N818
        def __str__(self) -> str:
            message = "no"
            raise RuntimeError(message)

        __repr__ = __str__

    def body() -> None:
        raise Mute

    engine.push(body, (), (x,))
    with pytest.raises(Mute):
        engine.wait_for_var(x, timeout=SOON)


def test_a_callable_that_takes_arguments(engine: weft.Engine, x: weft.Variable) -> None:
    engine.push(lambda needed: needed, (), (x,))
    with pytest.raises(TypeError, match="needed"):
        engine.wait_for_var(x, timeout=SOON)
    engine.push(lambda needed=1: needed, overwrite_vars=(x,))
    engine.wait_for_var(x, timeout=MOMENT * 100)


def test_functions_whose_calls_run_nothing(engine: weft.Engine, x: weft.Variable) -> None:
    ran: list[int] = []

    async def coroutine(*_: object) -> None:
        ran.append(1)

    def generator(*_: object) -> Iterator[None]:
        ran.append(2)
        yield

    async def both(*_: object) -> AsyncIterator[None]:
        ran.append(3)
        yield

    for function, kind in ((coroutine, "a coroutine"), (generator, "a generator"), (both, "an async generator")):
        for push in (engine.push, engine.push_async):
            push(function, overwrite_vars=(x,))
            with pytest.raises(errors.ArgumentTypeError, match=f"only made {kind}"):
                engine.wait_for_var(x, timeout=SOON)
    assert not ran
    engine.push(lambda: list(generator()), overwrite_vars=(x,))  # the twin
    engine.wait_for_var(x, timeout=SOON)
    assert ran == [2]


def test_a_callable_whose_destructor_raises(
    engine: weft.Engine, x: weft.Variable, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: seen.append(type(args.exc_value)))

    class Bitter:
        def __call__(self) -> None:
            pass

        def __del__(self) -> None:
            message = "bitter end"
            raise OSError(message)

    for _ in range(10):
        engine.push(Bitter(), (), (x,))
    engine.wait_for_var(x, timeout=SOON)
    engine.close()
    assert x.exception() is None
    assert set(seen) <= {OSError}


def test_variables_and_operators_are_made_by_engines_alone() -> None:
    for kind in (weft.Variable, weft.Operator, weft.Completion):
        with pytest.raises(TypeError):
            kind()
