"""Which calls are of one program: never a stale replay, never a recording too many."""

from __future__ import annotations

import dataclasses
import enum
import sys
import warnings
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
from conftest import SOON, background

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - as users write them


class Typed(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Params:
    w: Any
    rate: float = 0.5


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    kind: str = "tanh"


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


X = weft.arange(12.0)


def identity() -> Any:
    return weft.program(lambda value: [leaf * 2 for leaf in leaves(value)])


def leaves(value: Any) -> list[Any]:
    if isinstance(value, weft.NDArray):
        return [value]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part)]
    return []


def x(*shape: int, dtype: str = "float64") -> weft.NDArray:
    return weft.ones(shape, dtype=dtype)


SAME = {
    "arrays": (x(3), x(3)),
    "views elsewhere in a buffer": (X[:3], X[5:8]),
    "lists": ([x(3), 1], [x(3), 1]),
    "dicts": ({"a": x(3), "b": (1, None)}, {"a": x(3), "b": (1, None)}),
    "named tuples": (Pair(x(3), 1), Pair(x(3), 1)),
    "dataclasses": (Params(x(3)), Params(x(3))),
    "floats": (0.1 + 0.2, 0.30000000000000004),
    "nan": (float("nan"), float("nan")),
    "nan in a tuple": ((1.0, float("nan")), (1.0, float("nan"))),
    "strings": ("tanh", str(b"tanh", "ascii")),
    "large integers": (10**30, 10**29 * 10),
    "slices": (slice(0, 3, None), slice(0, 3, None)),
    "enums": (Mode.TRAIN, Mode.TRAIN),
    "numbers of NumPy": (np.float32(1.5), np.float32(1.5)),
    "nan of NumPy": (np.float64("nan"), np.float64("nan")),
    "dtypes": (np.dtype("float32"), np.dtype("f4")),
    "arrays of NumPy": (np.ones(3), np.zeros(3)),
    "devices": (weft.cpu(1), weft.cpu(1)),
    "frozen sets": (frozenset({1, 2}), frozenset({1, 2})),
    "None and ellipsis": ((None, ...), (None, ...)),
}

OTHER = {
    "shape": (x(3), x(4)),
    "rank": (x(3), x(3, 1)),
    "dtype": (x(3), x(3, dtype="float32")),
    "strides": (X[:3], X[:6:2]),
    "a view upside down": (X[:3], X[2::-1]),
    "device": (x(3), weft.ones(3, device="cpu:1")),
    "writability": (x(3), weft.asarray(np.broadcast_to(np.ones(3), 3), copy=False)),
    "an array and a NumPy array": (x(3), np.ones(3)),
    "strides of NumPy": (np.ones((2, 2)), np.ones((2, 2)).T[:, ::-1]),
    "writability of NumPy": (np.ones(3), np.broadcast_to(np.float64(1), 3).copy().view()),
    "which share memory": ([X[:3], X[:3]], [X[:3], x(3)]),
    "how far apart": ([X[:3], X[1:4]], [X[:3], X[2:5]]),
    "zeros' signs": (0.0, -0.0),
    "types of one number": (1, 1.0),
    "a bool and an integer": (True, 1),
    "signs inside": ((0.0,), (-0.0,)),
    "signs of NumPy": (np.float64(0.0), np.float64(-0.0)),
    "a float and NumPy's": (1.0, np.float64(1.0)),
    "dtypes of NumPy's numbers": (np.float32(1), np.float64(1)),
    "complex signs": (complex(0, 0.0), complex(0, -0.0)),
    "lists and tuples": ([x(3)], (x(3),)),
    "tuples and named ones": ((x(3), 1), Pair(x(3), 1)),
    "kinds of named tuples": (Pair(x(3), 1), Typed(x(3), 1)),
    "kinds of dataclasses": (Params(x(3)), Frozen(x(3))),
    "fields of dataclasses": (Params(x(3), 0.5), Params(x(3), 0.25)),
    "names of a dict": ({"a": x(3)}, {"b": x(3)}),
    "order of a dict": ({"a": x(3), "b": x(4)}, {"b": x(4), "a": x(3)}),
    "nesting": ([[x(3)], x(3)], [[x(3), x(3)]]),
    "slices": (slice(0, 3), slice(0, 4)),
    "strings and bytes": ("a", b"a"),
    "enums": (Mode.TRAIN, Mode.TEST),
    "None and False": (None, False),
}
OTHER["writability of NumPy"][1].flags.writeable = False


@pytest.mark.parametrize("name", SAME)
def test_alike_calls_are_of_one_program(name: str) -> None:
    step = identity()
    for value in SAME[name]:
        step(value)
    assert len(step.programs) == 1, step.why()


@pytest.mark.parametrize("name", OTHER)
def test_other_calls_are_of_another_program(name: str) -> None:
    step = identity()
    for value in (*OTHER[name], *OTHER[name]):
        step(value)
    assert len(step.programs) == 2, step.why()


def test_names_and_defaults_are_places() -> None:
    @weft.program
    def step(x: Any, rate: float = 0.5, *, shift: float = 1.0) -> Any:
        return x * rate + shift

    one = weft.ones(2)
    results = [step(one), step(one, 0.5), step(one, rate=0.5), step(x=one, shift=1.0), step(one, 0.5, shift=1.0)]
    assert [result.tolist() for result in results] == [[1.5, 1.5]] * 5
    assert len(step.programs) == 1
    assert step(one, shift=2.0).tolist() == [2.5, 2.5]


def test_any_number_of_arguments() -> None:
    @weft.program
    def total(*xs: Any, **named: Any) -> Any:
        return sum(xs) + sum(named.values())

    one = weft.ones(2)
    assert total(one, one, a=one).tolist() == [3.0, 3.0]
    assert total(one, one, one).tolist() == [3.0, 3.0]
    assert total(one, one, a=one).tolist() == [3.0, 3.0]
    assert len(total.programs) == 2


def test_any_number_of_arguments_and_some_by_name() -> None:
    @weft.program
    def total(x: Any, *rest: Any, scale: float = 1.0, shift: Any) -> Any:
        return (x + sum(rest)) * scale + shift

    one = weft.ones(2)
    assert total(one, shift=one).tolist() == [2.0, 2.0]
    assert total(x=one, shift=one).tolist() == [2.0, 2.0]
    assert len(total.programs) == 1
    assert total(one, one, one, shift=one, scale=2.0).tolist() == [7.0, 7.0]
    for wrong in (lambda: total(one), lambda: total(one, x=one, shift=one), lambda: total(one, shift=one, rest=(one,))):
        with pytest.raises(TypeError, match="total"):
            wrong()


def test_a_method_that_takes_any_number_of_arguments() -> None:
    class Scale:
        rate = 3.0

        @weft.program
        def total(*these: Any) -> Any:
            return sum(these[1:]) * these[0].rate

    one = weft.ones(2)
    assert [Scale().total(one).tolist(), Scale().total(one, one).tolist()] == [[3.0, 3.0], [6.0, 6.0]]


@pytest.mark.parametrize("call", [lambda f: f(), lambda f: f(1, 2, 3), lambda f: f(1, nothing=2)])
def test_wrong_arguments_are_pythons_error(call: Any) -> None:
    @weft.program
    def step(x: Any, y: Any = 1) -> Any:
        return x, y

    with pytest.raises(TypeError, match="step"):
        call(step)
    assert step(1) == (1, 1)
    with pytest.raises(TypeError, match=r"^step\(\): got an unexpected keyword argument 'z'$"):
        step(z=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [object(), lambda: 0, identity])
def test_objects_of_identity_are_refused_by_name(value: Any) -> None:
    @weft.program
    def step(x: Any, config: Any) -> Any:
        return x * len(config) * 2

    with pytest.raises(TypeError, match=r"'config'.*static_argnames"):
        step(weft.ones(2), {"inner": [value]})
    assert step(weft.ones(2), {"inner": ["a name"]}).tolist() == [2.0, 2.0]


def test_static_arguments_may_be_objects() -> None:
    @weft.program(static_argnames="activation")
    def step(x: Any, activation: Any) -> Any:
        return activation(x)

    one = weft.ones(2)
    for _ in range(2):
        assert step(one, weft.sqrt).tolist() == [1.0, 1.0]
        assert step(one, lambda x: x * 3).tolist() == [3.0, 3.0]
    assert len(step.programs) == 3, "each lambda is an object of its own"


@pytest.mark.parametrize("value", [{1, 2}, bytearray(b"a")])
def test_unhashable_arguments_are_refused_by_name(value: Any) -> None:
    step = weft.program(lambda x, names: (x, names)[0])
    with pytest.raises(TypeError, match="'names'"):
        step(weft.ones(2), value)
    step(weft.ones(2), frozenset({1, 2}))


@pytest.mark.parametrize("value", [[1], {"a": 1}, {1}, weft.ones(2), (1, weft.ones(2))])
def test_unhashable_static_arguments_are_refused_by_name(value: Any) -> None:
    step = weft.program(lambda x, names: (x, names)[0], static_argnames=["names"])
    with pytest.raises(TypeError, match=r"'names'.*hashable"):
        step(weft.ones(2), value)
    step(weft.ones(2), (1,))


def test_states_and_arguments_that_share_memory() -> None:
    w = weft.ones(3)

    @weft.program
    def step(x: Any) -> Any:
        w.fill(5.0)
        return x + w

    other = weft.ones(3)
    assert step(other).tolist() == [6.0, 6.0, 6.0]
    assert step(w).tolist() == [10.0, 10.0, 10.0]
    assert step(other).tolist() == [6.0, 6.0, 6.0]
    assert step(w[:]).tolist() == [10.0, 10.0, 10.0]
    assert len(step.programs) == 2


def test_the_default_engine_is_part_of_it() -> None:
    step = weft.program(lambda: weft.ones(3) + 1)
    before = step()
    with weft.Engine(workers=1) as engine:
        previous = weft.set_engine(engine)
        try:
            after = step()
            assert after.engine is engine
            assert after.tolist() == [2.0, 2.0, 2.0]
        finally:
            weft.set_engine(previous)
    assert before.engine is not engine
    assert step().engine is before.engine
    assert len(step.programs) == 2


def test_programs_used_longest_ago_go_first() -> None:
    step = weft.program(lambda x: x + 1, max_programs=2)
    one, two, three = weft.ones(1), weft.ones(2), weft.ones(3)
    for x in (one, two, one, three, one):
        assert step(x).tolist() == [2.0] * x.size
    assert len(step.programs) == 2
    kept = step.programs
    step(one)
    assert step.programs[-1] in kept
    step(two)
    assert "max_programs=2" in step.why()


def test_a_call_is_recorded_while_another_is_compared() -> None:
    """Keys are compared by what their classes say: any thread may record meanwhile."""
    shapes = iter(range(2, 40))

    class Chatty:
        def __eq__(self, other: object) -> bool:
            if sys._getframe(1).f_code.co_filename.endswith("history.py") and (n := next(shapes, 0)):
                background(lambda: step(weft.ones(n), 1)).result(SOON)
            return self is other

        __hash__ = object.__hash__

    step = weft.program(lambda x, how: x + 1, static_argnames="how", max_programs=64)  # noqa: ARG005 - a key alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", weft.errors.RecordingWarning)
        for _ in range(4):
            assert step(weft.ones(1), Chatty()).tolist() == [2.0]
    assert next(shapes, 0) > 4, "nobody compared"


@pytest.mark.slow
def test_no_array_of_a_call_is_kept() -> None:
    import gc
    import weakref

    step = weft.program(lambda x: x + 1)
    x = weft.ones(3)
    gone = weakref.ref(x)
    step(x), step(x)
    buffer = weft.memory_stats()
    del x
    gc.collect()
    assert gone() is None
    assert buffer is not None


@pytest.mark.parametrize("count", [0, 1, 5, 17])
def test_an_argument_that_makes_many_programs_is_named_once(count: int, recwarn: pytest.WarningsRecorder) -> None:
    step = weft.program(lambda x, rate: x * rate, max_programs=4)
    x = weft.ones(2)
    for number in range(count):
        step(x, float(number))
        step(x, float(number))
    found = [warning for warning in recwarn if warning.category is weft.errors.RecordingWarning]
    assert len(found) == (count >= 8)
    for warning in found:
        assert "rate" in str(warning.message)
        assert "weft.asarray(rate, dtype=x.dtype)" in str(warning.message)
        assert warning.filename == __file__


def test_shapes_are_not_taken_for_rates() -> None:
    step = weft.program(lambda x, rate: x * rate)
    with pytest.warns(weft.errors.RecordingWarning, match="x alone.*pad"):
        assert [step(weft.ones(size), 0.5).size for size in range(8)] == list(range(8))


def test_an_attribute_of_a_dataclass_that_is_no_field_is_told_of() -> None:
    @dataclasses.dataclass
    class Scaled:
        w: Any
        rate: float = 2.0

        def __post_init__(self) -> None:
            self.twice = 2 * self.rate

    given = Scaled(x(3))
    step = weft.program(lambda p: p.w * p.twice)
    with pytest.raises(AttributeError, match="twice") as caught:
        step(given)
    assert "make it a field or a property of Scaled" in caught.value.__notes__[0]
    with pytest.raises(AttributeError, match="thrice") as caught:
        weft.program(lambda p: p.thrice)(x(3))
    assert not hasattr(caught.value, "__notes__")
