"""``@weft.task``: accesses in the signature, a call pushes."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import MOMENT, SOON, Gate, MakeEngine
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Array = np.ndarray[Any, Any]

pytestmark = pytest.mark.usefixtures("default_engine")


class Box:
    """Something that holds a value and can be referred to weakly."""

    def __init__(self, value: int = 0) -> None:
        self.value = value


@weft.task
def add(source: weft.Read, target: weft.Mutate, factor: int = 1) -> None:
    """Add a multiple."""
    target.value += factor * source.value


@weft.task
def fill(target: weft.Overwrite[Box], value: int) -> None:
    target.value = value


@weft.task
def fail(target: weft.Mutate[Box]) -> None:
    message = f"at {target.value}"
    raise KeyError(message)


@weft.task(priority=2, name="scaled")
def scale(x: weft.Mutate[Array], factor: float) -> None:
    x *= factor


@weft.task
def look_at(_x: weft.Read, y: Any) -> Any:
    return y


@weft.task
def total(x: weft.Read[Array], y: weft.Read[Array], *, out: weft.Overwrite[Array]) -> None:
    out[...] = x.sum() + y.sum()


def test_a_call_pushes(default_engine: weft.Engine, gate: Gate) -> None:
    a, b = Box(2), Box(1)
    gate.hold(default_engine, mutate=(default_engine.variable_of(b),))
    handle = add(a, b)
    assert b.value == 1
    assert not handle.done()
    gate.open()
    weft.wait(b)
    assert b.value == 3
    assert default_engine.variable_of(b).version == 2
    assert default_engine.variable_of(a).version == 0


def test_calls_are_ordered_by_their_arguments() -> None:
    a, b = Box(1), Box()
    x, y = 1, 0
    for i in range(500):
        add(a, b, factor=2)
        y += 2 * x
        fill(a, i)
        x = i
        add(target=a, source=b)
        x += y
        fill(b, 1)
        y = 1
    weft.wait()
    assert (a.value, b.value) == (x, y)


def test_a_program_gives_its_serial_result() -> None:
    x, y, out = np.ones(1000), np.full(1000, 2.0), np.zeros(1)
    for _ in range(10):
        scale(x, 2.0)
        scale(y, factor=0.5)
        total(x, y, out=out)
    weft.wait(out)
    assert out[0] == 1000 * 2.0**10 + 2000 * 0.5**10


def test_views_stand_for_their_owner() -> None:
    x, out = np.zeros(100), np.zeros(1)
    for i in range(100):
        scale(x[i:], 1.0)
        fill_one(x[i : i + 1], float(i))
    total(x.reshape(10, 10), x[:0], out=out)
    weft.wait(out)
    assert out[0] == sum(range(100))


@weft.task
def fill_one(x: weft.Mutate[Array], value: float) -> None:
    x[0] = value


def test_the_same_argument_twice() -> None:
    a = Box(3)
    for _ in range(4):
        add(a, a)
    weft.wait(a, timeout=SOON)
    assert a.value == 48


def test_arguments_are_kept_until_it_ran(default_engine: weft.Engine, gate: Gate) -> None:
    a, b, hold = Box(5), Box(), default_engine.new_variable()
    gate.hold(default_engine, mutate=(hold, default_engine.variable_of(a)))
    gone = weakref.ref(a)
    add(a, b)
    del a
    gc.collect()
    assert gone() is not None
    gate.open()
    weft.wait(b)
    assert b.value == 5


def test_failures_arrive_at_the_wait_and_name_the_task(default_engine: weft.Engine) -> None:
    a, b = Box(7), Box()
    fail(a)
    add(a, b)
    for box in (a, b):
        with pytest.raises(KeyError, match="at 7") as caught:
            weft.wait(box)
        notes = "\n".join(caught.value.__notes__)
        assert "fail" in notes
        assert "test_task.py" in notes
    fill(a, 1)
    weft.wait(a)
    default_engine.wait_for_all()
    assert a.value == 1


def test_a_write_to_what_is_tagged_read_says_which_tag_belongs_there() -> None:
    @weft.task
    def halve(values: weft.Read[np.ndarray], out: weft.Overwrite[np.ndarray]) -> None:
        values /= 2
        out[...] = values

    out = np.empty(2)
    halve(np.ones(2), out)
    with pytest.raises(ValueError, match="read-only") as caught:
        weft.wait(out)
    assert "tagged weft.Mutate or weft.Overwrite" in "\n".join(caught.value.__notes__)


def test_several_failures_arrive_as_a_group() -> None:
    a, b = Box(1), Box(2)
    fail(a)
    fail(b)
    with pytest.raises(ExceptionGroup) as caught:
        weft.wait(a, b)
    assert sorted(error.args[0] for error in caught.value.exceptions) == ["at 1", "at 2"]


def test_wait_takes_variables_objects_and_a_timeout(default_engine: weft.Engine, gate: Gate) -> None:
    a = Box()
    x = default_engine.variable_of(a)
    gate.hold(default_engine, mutate=(x,))
    for arguments in ((a,), (x,), ()):
        with pytest.raises(errors.WaitTimeoutError):
            weft.wait(*arguments, timeout=MOMENT)
    gate.open()
    weft.wait(a, x, timeout=SOON)
    weft.wait(timeout=SOON)
    weft.wait(a, timeout=float("inf"))
    for wrong in ("1", -1, float("nan")):
        with pytest.raises(
            (errors.ArgumentTypeError, errors.ArgumentValueError), match="timeout must be None or a number of seconds"
        ):
            weft.wait(a, timeout=wrong)  # type: ignore[arg-type]


def test_on_an_engine_of_its_own(make_engine: MakeEngine, default_engine: weft.Engine) -> None:
    engine = make_engine(1, "per_device")

    @weft.task(engine=engine, device=weft.cpu(1))
    def store(target: weft.Overwrite[Box], value: int) -> None:
        target.value = value

    a = Box()
    store(a, 4)
    engine.wait_for_var(engine.variable_of(a))
    assert a.value == 4
    assert (engine.stats()["pushed"], default_engine.stats()["pushed"]) == (1, 0)


def test_looks_like_the_function() -> None:
    assert add.__name__ == "add"
    assert add.__doc__ == "Add a multiple."
    assert list(inspect.signature(add).parameters) == ["source", "target", "factor"]


def test_a_call_that_does_not_fit_pushes_nothing(default_engine: weft.Engine) -> None:
    a = Box()
    for call in (lambda: add(a), lambda: add(a, a, 1, 2), lambda: add(a, a, color=3), lambda: fill(a)):
        with pytest.raises(TypeError, match=r"task '(add|fill)': "):
            call()
    with pytest.raises(errors.ArgumentTypeError):
        fill(3, 4)  # an int has no variable
    assert default_engine.stats()["pushed"] == 0


def test_a_misspelled_argument_is_named_as_python_does() -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"^task 'scaled': got an unexpected keyword argument 'fator'$"):
        scale(np.ones(3), fator=2.0)  # type: ignore[call-arg]
    with pytest.raises(errors.ArgumentTypeError, match=r"^task 'scaled': missing a required argument: 'factor'$"):
        scale(np.ones(3))  # type: ignore[call-arg]

    @weft.task
    def collect(x: weft.Mutate[Array], factor: float, **more: float) -> None:
        x *= factor + sum(more.values())

    with pytest.raises(errors.ArgumentTypeError, match="missing a required argument: 'factor'"):
        collect(np.ones(3), fator=2.0)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (
            [np.ones(3)],
            r"parameter 'target' \(weft.Overwrite\): a list can have no variable: name the arrays in it one by one",
        ),
        ((np.ones(3),), "a tuple can have no variable: name the arrays"),
        (3, "an int can have no variable, for it never changes: pass it without a tag"),
        (np.float64(3), "a float64 can have no variable, for it never changes"),
        (np.random.default_rng(0), r"weakly referenced: .*\(an empty subclass of Generator may do"),
    ],
)
def test_what_has_no_variable_is_told_with_what_to_do(
    default_engine: weft.Engine, argument: object, message: str
) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=message):
        fill(argument, 4)
    with pytest.raises(errors.ArgumentTypeError, match=rf"{message}|write weft.wait\(\*x\)"):
        weft.wait(argument)
    assert default_engine.stats()["pushed"] == 0


@pytest.mark.parametrize(
    "given",
    [
        list,
        tuple,
        set,
        iter,
        lambda x: (each for each in x),
        lambda x: dict(enumerate(x)),
        lambda x: {0: x[0]}.values(),
    ],
)
def test_a_wait_for_a_container_says_how_to_wait_for_what_is_in_it(given: Callable[[Any], Any]) -> None:
    boxes = [Box(), Box()]
    handles = [fill(box, 2) for box in boxes]

    async def wait_in_asyncio() -> None:
        await weft.wait_async(given(handles))

    how = r"write weft.wait\(\*x" + (r"\.values\(\)\)" if isinstance(given(handles), dict) else r"\)")
    with pytest.raises(errors.ArgumentTypeError, match=how):
        weft.wait(given(handles))
    with pytest.raises(errors.ArgumentTypeError, match=how):
        asyncio.run(wait_in_asyncio())
    weft.wait(*handles)


def test_only_a_callable_can_be_a_task() -> None:
    with pytest.raises(errors.ArgumentTypeError):
        weft.task(42)


class Fetching:
    """Instances whose call only makes a coroutine."""

    async def __call__(self, name: str = "") -> str:
        return name


class Counting:
    """Instances whose call only makes a generator."""

    def __call__(self, n: int = 0) -> Iterator[int]:
        yield n


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: functools.partial(x, 1)], ids=["itself", "a partial"])
def test_a_call_that_would_run_nothing_is_refused(wrap: Callable[[Any], Any]) -> None:
    async def fetch(name: str = "") -> str:
        return name

    def count(n: int = 0) -> Iterator[int]:
        yield n

    for function in (fetch, Fetching()):
        with pytest.raises(errors.ArgumentTypeError, match="is a coroutine function"):
            weft.task(wrap(function))
    for function in (count, Counting()):
        with pytest.raises(errors.ArgumentTypeError, match="is a generator function"):
            weft.task(wrap(function))
    for kind in (Fetching, Counting):  # a class makes an instance, which is a result
        assert isinstance(weft.task(kind)().result(SOON), kind)


@weft.task
def look(x: weft.Read[Array], seen: list[Any]) -> None:
    seen.append(x)


def test_a_call_that_only_reads_is_waited_for(default_engine: weft.Engine, gate: Gate) -> None:
    x, seen = np.ones(3), list[Any]()
    gate.hold(default_engine, mutate=(default_engine.variable_of(x),))
    handle = look(x, seen)
    with pytest.raises(errors.WaitTimeoutError):
        handle.wait(0.01)
    assert repr(handle) == "<weft.TaskHandle of 'look': pending>"
    gate.open()
    handle.wait(SOON)
    weft.wait(handle, timeout=SOON)
    assert handle.done()
    assert handle.exception() is None
    assert len(seen) == 1


def test_a_handle_is_of_its_call_alone(default_engine: weft.Engine, gate: Gate) -> None:
    box = Box()
    first = fill(box, 1)
    first.wait(SOON)
    gate.hold(default_engine, mutate=(default_engine.variable_of(box),))
    second = fill(box, 2)
    first.wait(SOON)
    assert first.done()
    assert not second.done()
    gate.open()
    second.wait(SOON)


def test_a_handle_tells_what_failed() -> None:
    box = Box(7)
    handle = fail(box)
    with pytest.raises(KeyError, match="at 7"):
        handle.wait(SOON)
    assert isinstance(handle.exception(), KeyError)
    skipped = add(box, Box())
    with pytest.raises(KeyError, match="at 7"):
        skipped.wait(SOON)
    assert "failed" in repr(skipped)


def test_a_handle_is_awaited() -> None:
    async def main() -> list[Any]:
        seen: list[Any] = []
        await look(np.ones(2), seen)
        await weft.wait_async(look(np.ones(3), seen), look(np.ones(4), seen))
        with pytest.raises(KeyError):
            await fail(Box())
        return seen

    assert sorted(map(len, asyncio.run(main()))) == [2, 3, 4]


@weft.task
def write_to_what_it_reads(x: weft.Read[Array]) -> None:
    x += 1


@weft.task
def copy_over(to: weft.Mutate[Array], x: weft.Read[Array]) -> None:
    to += x


def test_what_a_task_only_reads_it_cannot_write() -> None:
    x = np.ones(3)
    with pytest.raises(ValueError, match="read-only"):
        write_to_what_it_reads(x).wait(SOON)
    with pytest.raises(ValueError, match="read-only"):
        write_to_what_it_reads(x=x).wait(SOON)
    assert x.tolist() == [1, 1, 1]
    assert x.flags.writeable
    copy_over(x, x).wait(SOON)  # declared to be changed, too
    copy_over(x, x=np.ones(3)).wait(SOON)
    assert x.tolist() == [3, 3, 3]


@pytest.mark.parametrize("tagged", ["NumPy's", "weft's", "a handle"])
def test_an_array_without_a_tag_is_passed_on_untouched(tagged: str) -> None:
    """Beside others that come as views, too: the op does not access it, so nothing would keep its memory from other ops."""
    x, box = weft.zeros(2), Box()
    first = {"NumPy's": np.ones(2), "weft's": weft.ones(2), "a handle": look_at(box, np.ones(2))}[tagged]
    assert look_at(first, x).result(SOON) is x
    assert isinstance(look_at(x, x).result(SOON), np.ndarray)


def test_a_default_with_a_tag_comes_as_an_argument_does() -> None:
    """An array of weft's as memory, which the function changes at once, not by an op that would come after later pushes."""
    with weft.Engine(2) as engine:
        state = weft.zeros(2, engine=engine)

        @weft.task(engine=engine)
        def advance(by: int = 1, x: weft.Mutate[Any] = state, /, *, seen: weft.Read[Any] = state) -> bool:
            x += by
            return isinstance(x, np.ndarray) and isinstance(seen, np.ndarray)

        first = advance()
        state *= 10
        assert first.result(SOON)
        assert advance(2).result(SOON)
        assert state.tolist() == [12, 12]


def test_a_default_with_a_tag_is_guarded_as_an_argument_is() -> None:
    state = np.zeros(2)
    with weft.Engine(2, check=True) as engine:

        @weft.task(engine=engine)
        def advance(x: weft.Mutate[Array] = state) -> None:
            x += 1

        advance().wait()
    assert state.tolist() == [1, 1]


def test_kinds_of_methods() -> None:
    class Shop:
        """Sells."""

        sold = 0

        @weft.task
        def sell(self: weft.Mutate, n: int = 1) -> int:
            self.sold += n
            return self.sold

        @classmethod
        @weft.task
        def kind(cls, n: int = 1) -> tuple[str, int]:
            return cls.__name__, n

        @staticmethod
        @weft.task
        def inside(n: int = 1) -> int:
            return n

        @weft.task
        @staticmethod
        def outside(n: int = 1) -> int:
            return n

        @weft.task(name="outside")
        @staticmethod
        def named(n: int = 1) -> int:
            return n

    shop = Shop()
    assert [shop.sell(n).result(SOON) for n in (1, 2)] == [1, 3]
    assert shop.kind().result(SOON) == Shop.kind(1).result(SOON) == ("Shop", 1)
    for static in ("inside", "outside", "named"):
        for owner in (Shop, shop):
            assert getattr(owner, static)().result(SOON) == 1, (owner, static)
            assert getattr(owner, static)(5).result(SOON) == 5, (owner, static)
    for wrong in (classmethod(Shop), property(Shop)):
        with pytest.raises(errors.ArgumentTypeError, match="put it below @classmethod or @property"):
            weft.task(wrong)  # type: ignore[call-overload]
