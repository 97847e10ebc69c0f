"""What a program reads beside its arguments: nothing of it is frozen at the first call."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import weft

RATE = 2.0


def ones() -> weft.NDArray:
    return weft.ones(3)


def test_branches_on_arguments_are_taken_anew() -> None:
    step = weft.program(lambda x, up: x + 1 if up else x - 1)
    assert [step(ones(), up).tolist()[0] for up in (True, False, True)] == [2.0, 0.0, 2.0]
    assert [step(ones(), up=up).tolist()[0] for up in (True, False, True)] == [2.0, 0.0, 2.0]


def test_globals_that_are_bound_anew_are_noticed() -> None:
    global RATE  # noqa: PLW0603 - the subject
    step = weft.program(lambda x: x * RATE)
    found = []
    for rate in (2.0, 2.0, 3.0, -0.0, 0.0):
        RATE = rate
        found.append(step(ones()).tolist()[0])
    assert [repr(value) for value in found] == ["2.0", "2.0", "3.0", "-0.0", "0.0"]
    assert "RATE" in step.why()
    assert len(step.programs) == 4


def test_closure_cells_that_are_bound_anew_are_noticed() -> None:
    w, rate = ones(), 2.0

    @weft.program
    def step(x: Any) -> Any:
        return [part * rate for part in (x, w)]

    assert step(ones())[1].tolist() == [2.0] * 3
    w = weft.full(3, 5.0)
    assert step(ones())[1].tolist() == [10.0] * 3
    assert "w" in step.why()
    rate = 1.0
    assert step(ones())[1].tolist() == [5.0] * 3
    assert "rate was 2.0, and is 1.0" in step.why()
    w += 1  # in place: no other program
    assert step(ones())[1].tolist() == [6.0] * 3
    assert len(step.programs) == 3


def test_a_closure_that_is_deleted_is_the_functions_error() -> None:
    w = ones()
    step = weft.program(lambda x: x + w)
    assert step(ones()).tolist() == [2.0] * 3
    del w
    with pytest.raises(NameError, match="w"):
        step(ones())
    w = weft.full(3, 2.0)
    assert step(ones()).tolist() == [3.0] * 3


class Layer:
    def __init__(self) -> None:
        self.w = ones()


class Net:
    def __init__(self) -> None:
        self.layer, self.rate, self.calls = Layer(), 0.5, 0

    @weft.program
    def step(self, x: Any) -> Any:
        return self.scaled(x) + self.layer.w

    def scaled(self, x: Any) -> Any:
        return x * self.rate

    @weft.program
    def count(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


def test_attribute_paths_that_are_bound_anew_are_noticed() -> None:
    net = Net()
    assert net.step(ones()).tolist() == [1.5] * 3
    assert net.step(ones()).tolist() == [1.5] * 3
    assert len(net.step.programs) == 1
    net.layer.w = weft.full(3, 2.0)
    assert net.step(ones()).tolist() == [2.5] * 3
    net.layer = Layer()
    assert net.step(ones()).tolist() == [1.5] * 3
    net.rate = 1.0
    assert net.step(ones()).tolist() == [2.0] * 3
    assert "self.rate was 0.5, and is 1.0" in net.step.why()


class Written:
    """Reads an attribute of `self` by instructions that newer Pythons alone have."""

    def __init__(self) -> None:
        self.rate = 2.0

    @weft.program
    def each(self, *xs: Any) -> Any:
        return weft.concat([self.rate * x for x in xs])

    @weft.program
    def in_a_class(self, x: Any) -> Any:
        class Body:
            y = x * self.rate

        return Body.y


@pytest.mark.parametrize("name", ["each", "in_a_class"])
def test_attributes_are_noticed_wherever_they_are_read(name: str) -> None:
    owner = Written()
    step = getattr(owner, name)
    assert [step(ones()).tolist() for _ in range(2)] == [[2.0] * 3] * 2
    owner.rate = 3.0
    assert step(ones()).tolist() == [3.0] * 3
    assert "self.rate was 2.0, and is 3.0" in step.why()


class Scaled:
    scale = 1.0

    def __init__(self) -> None:
        self.rate = 2.0

    def __call__(self, x: Any) -> Any:
        return self.of(x)

    def of(self, x: Any) -> Any:
        return x * self.rate * self.scale

    def by(self, other: Any, x: Any) -> Any:
        return x * other.rate * self.scale

    @classmethod
    @weft.program
    def of_class(cls, x: Any) -> Any:
        return x * cls.scale


def _rate(owner: Any, x: Any) -> Any:
    return x * owner.rate


@pytest.mark.parametrize(
    "step",
    [
        lambda owner: owner,
        lambda owner: owner.of,
        lambda owner: partial(owner.of),
        lambda owner: partial(_rate, owner),
        lambda owner: partial(Scaled().by, owner),
    ],
)
def test_what_a_callable_brings_along_is_looked_into(step: Any) -> None:
    owner = Scaled()
    program = weft.program(step(owner))

    def call() -> Any:
        return program(x=ones()).tolist()[0]

    assert [call(), call()] == [2.0, 2.0]
    owner.rate = 3.0
    assert [call(), call()] == [3.0, 3.0]
    assert "rate was 2.0, and is 3.0" in program.why()
    assert len(program.programs) == 2


class Named:
    """Reads attributes by names of its own."""

    def __init__(self) -> None:
        self.rate = 2.0
        self.inner = SimpleNamespace(rate=2.0, most=SimpleNamespace(rate=2.0))

    def raw(self, x: Any) -> Any:
        return x * self.rate

    @weft.program
    def by_a_variable(self, x: Any) -> Any:
        inner = self.inner
        return x * inner.rate

    @weft.program
    def by_two(self, x: Any) -> Any:
        owner = self
        most = owner.inner.most
        return x * most.rate

    @weft.program
    def in_a_branch(self, x: Any) -> Any:
        inner = self.inner
        return weft.cond(x.sum() > 0, lambda: x * inner.rate, lambda: x)

    @weft.program
    def in_a_list(self, x: Any) -> Any:
        inner = self.inner
        return sum([x * inner.rate for _ in range(1)])


class Inheriting(Named):
    @weft.program
    def by_super(self, x: Any) -> Any:
        return super().raw(x)

    def raw(self, x: Any) -> Any:
        return x


@pytest.mark.parametrize("name", ["by_a_variable", "by_two", "in_a_branch", "in_a_list", "by_super"])
def test_attributes_are_noticed_by_whatever_name(name: str) -> None:
    owner = Inheriting()
    step = getattr(owner, name)
    assert [step(ones()).tolist()[0] for _ in range(2)] == [2.0, 2.0]
    owner.rate = owner.inner.rate = owner.inner.most.rate = 3.0
    assert [step(ones()).tolist()[0] for _ in range(2)] == [3.0, 3.0]
    assert "rate was 2.0, and is 3.0" in step.why()
    assert len(step.programs) == 2


class Dense(weft.layer.Layer):
    def __init__(self) -> None:
        self.dense, self.rate = weft.layer.Linear(3), 2.0

    def forward(self, x: Any) -> Any:
        return self.dense(x) * self.rate


def test_what_a_layer_notes_about_itself_makes_no_new_program() -> None:
    net = Dense()
    step = weft.program(net)
    first, again = (step(weft.ones((2, 3))).tolist() for _ in range(2))
    assert first == again
    assert len(step.programs) == 1
    net.rate = 4.0
    np.testing.assert_allclose(step(weft.ones((2, 3))).numpy(), 2 * np.array(first))


def test_an_object_that_is_made_for_one_call_is_no_new_program() -> None:
    step = weft.program(lambda x: weft.program(Scaled())(x) * 1.0)
    assert [step(ones()).tolist()[0] for _ in range(3)] == [2.0] * 3
    assert len(step.programs) == 1


def test_an_object_that_is_made_in_a_call_is_no_new_program() -> None:
    step = weft.program(lambda x: Net().step(x))
    assert [step(ones()).tolist()[0] for _ in range(3)] == [1.5] * 3
    assert len(step.programs) == 1, step.why()


def test_attributes_of_classes_and_of_namespaces_are_noticed() -> None:
    class Settings:
        rate = 2.0

    namespace = SimpleNamespace(inner=SimpleNamespace(rate=1.0))
    step = weft.program(lambda x: x * Settings.rate * namespace.inner.rate)
    assert step(ones()).tolist() == [2.0] * 3
    Settings.rate = 3.0
    assert step(ones()).tolist() == [3.0] * 3
    namespace.inner.rate = 2.0
    assert step(ones()).tolist() == [6.0] * 3
    assert "namespace.inner.rate was 1.0, and is 2.0" in step.why()
    assert step(ones()).tolist() == [6.0] * 3
    assert len(step.programs) == 3
    assert Scaled.of_class(ones()).tolist() == [1.0] * 3
    try:
        Scaled.scale = 4.0
        assert Scaled.of_class(ones()).tolist() == [4.0] * 3
    finally:
        Scaled.scale = 1.0


class Binding:
    """Reads attributes that it may have bound before."""

    def __init__(self) -> None:
        self.rate, self.trains, self.kept = 1.0, False, None
        self.inner = SimpleNamespace(rate=1.0)

    @weft.program
    def step(self, x: Any) -> Any:
        if self.trains:
            self.rate = 0.5
            self.inner = SimpleNamespace(rate=4.0)
        self.kept = x * self.inner.rate
        return self.kept * self.rate


def test_attributes_that_were_not_bound_before_they_were_read_are_noticed() -> None:
    net = Binding()
    assert [net.step(ones()).tolist()[0] for _ in range(2)] == [1.0, 1.0]
    net.rate = 3.0
    assert [net.step(ones()).tolist()[0] for _ in range(2)] == [3.0, 3.0]
    assert "self.rate was 1.0, and is 3.0" in net.step.why()
    net.inner.rate = 2.0
    assert [net.step(ones()).tolist()[0] for _ in range(2)] == [6.0, 6.0]
    assert len(net.step.programs) == 3


def test_attributes_that_were_bound_before_they_were_read_make_no_new_program() -> None:
    net = Binding()
    net.trains = True
    assert [net.step(ones()).tolist()[0] for _ in range(3)] == [2.0] * 3
    assert len(net.step.programs) == 1
    net.rate = net.inner.rate = 7.0
    assert net.step(ones()).tolist() == [2.0] * 3
    assert len(net.step.programs) == 1


def test_a_counter_in_python_is_not_frozen() -> None:
    net = Net()
    assert [net.count(ones()).tolist()[0] for _ in range(3)] == [1.0, 2.0, 3.0]
    with pytest.warns(weft.errors.RecordingWarning, match=r"self\.calls"):
        assert [net.count(ones()).tolist()[0] for _ in range(8)] == [4.0 + number for number in range(8)]


def test_instances_have_programs_of_their_own() -> None:
    one, other = Net(), Net()
    other.rate = 2.0
    assert one.step(ones()).tolist() == [1.5] * 3
    assert other.step(ones()).tolist() == [3.0] * 3
    assert one.step(ones()).tolist() == [1.5] * 3
    assert len(one.step.programs) == len(other.step.programs) == 1
    assert not Net.step.programs
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None, "a program keeps no instance"


def test_a_branch_that_refers_to_the_instance_does_not_keep_it() -> None:
    class Gate:
        rate = 2.0

        @weft.program
        def step(self, x: Any) -> Any:
            return weft.cond(x.sum() > 0, lambda: x * self.rate, lambda: x)

    one = Gate()
    assert one.step(ones()).tolist() == [2.0] * 3
    one.rate = 3.0
    assert [one.step(ones()).tolist() for _ in range(2)] == [[3.0] * 3] * 2
    assert len(one.step.programs) == 2
    gone = weakref.ref(one)
    del one
    gc.collect()
    assert gone() is None, "a program keeps no instance"


def test_what_inlined_programs_read_is_noticed() -> None:
    rate, net = 2.0, Net()
    inner = weft.program(lambda x: x * rate)
    outer = weft.program(lambda x: inner(x) + net.step(x))
    assert outer(ones()).tolist() == [3.5] * 3
    rate = 3.0
    assert outer(ones()).tolist() == [4.5] * 3
    net.rate = 1.0
    assert outer(ones()).tolist() == [5.0] * 3
    assert not inner.programs


def test_clear_for_what_is_not_noticed() -> None:
    rates = [2.0]
    step = weft.program(lambda x: x * rates[0])
    assert step(ones()).tolist() == [2.0] * 3
    rates[0] = 3.0
    assert step(ones()).tolist() == [2.0] * 3
    step.clear()
    assert not step.programs
    assert step(ones()).tolist() == [3.0] * 3


def test_tasks_run_at_each_replay() -> None:
    seen = []

    @weft.task
    def show(x: weft.Read[weft.NDArray]) -> None:
        seen.append(np.asarray(x).tolist())

    @weft.program
    def step(x: Any) -> Any:
        y = x * 2
        show(y)
        return y

    for number in range(3):
        step(weft.full(1, float(number)))
    weft.wait_all()
    assert seen == [[0.0], [2.0], [4.0]]


def test_the_value_of_a_state_that_is_read_is_part_of_the_signature() -> None:
    limit = weft.asarray(1.0)

    @weft.program
    def step(x: Any) -> Any:
        return x + 1 if float(limit) > 0 else x - 1

    assert step(ones()).tolist() == [2.0] * 3
    assert step(ones()).tolist() == [2.0] * 3
    assert len(step.programs) == 1
    limit -= 2
    assert step(ones()).tolist() == [0.0] * 3
    assert step(ones()).tolist() == [0.0] * 3
    assert len(step.programs) == 2
