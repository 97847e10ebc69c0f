"""Traps that recorders fell into: none of them is one here."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft.errors import CaptureError

if TYPE_CHECKING:
    from types import FrameType

RATE = 2.0


def ones(*shape: int) -> weft.NDArray:
    return weft.ones(shape or (3,))


# Results overwritten by the next replay.


def test_results_last() -> None:
    step = weft.program(lambda x: (x * 2, x + 1))
    results = [step(weft.full(4, float(number))) for number in range(6)]
    for number, (twice, more) in enumerate(results):
        assert twice.tolist() == [2.0 * number] * 4
        assert more.tolist() == [number + 1.0] * 4


def test_equal_results_have_memory_of_their_own() -> None:
    step = weft.program(lambda x: (x + 1, x + 1))
    for _ in range(3):
        one, other = step(ones())
        one += 1
        assert other.tolist() == [2.0] * 3


def test_a_result_named_twice_is_one_array() -> None:
    def both(x: Any) -> Any:
        y = x + 1
        return y, [y]

    for one, [other] in (both(ones()), *(weft.program(both)(ones()) for _ in range(2))):
        assert one is other


def test_arguments_states_and_views_stay_what_they_are() -> None:
    w = ones()

    @weft.program
    def step(x: Any) -> Any:
        w.fill(7.0)
        return x, w, x[1:], w[:2], {"same": x}

    for _ in range(3):
        x = ones()
        same, state, part, part_of_state, inner = step(x)
        assert same is x
        assert inner["same"] is x
        assert state is w
        part += 1
        part_of_state += 1
        assert x.tolist() == [1.0, 2.0, 2.0]
        assert w.tolist() == [8.0, 8.0, 7.0]


# What was frozen at the first call.


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


# Addresses, mutation, aliases.


def test_inputs_at_other_addresses() -> None:
    step = weft.program(lambda x: x * 2)
    buffer = weft.arange(20.0)
    for start in range(0, 15, 3):
        assert step(buffer[start : start + 3]).tolist() == [2.0 * (start + at) for at in range(3)]
    assert len(step.programs) == 1


def test_mutations_of_arguments_are_theirs() -> None:
    @weft.program
    def step(x: Any, y: Any) -> None:
        x += y
        y[1:] = x[:-1]

    for _ in range(3):
        x, y = weft.arange(4.0), ones(4)
        x_expected, y_expected = np.arange(4.0), np.ones(4)
        assert step(x, y) is None
        x_expected += y_expected
        y_expected[1:] = x_expected[:-1]
        assert x.tolist() == x_expected.tolist()
        assert y.tolist() == y_expected.tolist()


@pytest.mark.parametrize("starts", [(0, 0), (0, 1), (1, 0), (0, 4), (2, 3)])
def test_overlapping_arguments(starts: tuple[int, int]) -> None:
    def body(x: Any, y: Any) -> None:
        x += 1
        y *= 3
        x += y

    step = weft.program(body)
    for shift in range(3):
        ours, theirs = weft.arange(12.0), np.arange(12.0)
        one, other = (slice(start + shift, start + shift + 4) for start in starts)
        step(ours[one], ours[other])
        body(theirs[one], theirs[other])
        assert ours.tolist() == theirs.tolist()
    assert len(step.programs) == 1


def test_arrays_of_numpy_are_copied_and_read_only() -> None:
    step = weft.program(lambda x: x * 2)
    x = np.ones(3)
    result = step(x)
    x[:] = 9
    assert result.tolist() == [2.0] * 3
    assert step(x).tolist() == [18.0] * 3
    assert len(step.programs) == 1

    @weft.program
    def mutate(x: Any) -> None:
        x += 1

    with pytest.raises(ValueError, match="read-only"):
        mutate(np.ones(3))
    mutate(ones())


# Captures that fail.


def test_a_capture_error_names_the_op_and_the_line_and_the_argument() -> None:
    @weft.program
    def step(features: Any, rate: float) -> Any:
        h = weft.tanh(features)
        return h if h.sum() > rate else features

    with pytest.raises(CaptureError, match=r"test_traps\.py:") as caught:
        step(ones(), 0.5)
    notes = "\n".join(caught.value.__notes__)
    assert "features: float64[3]" in notes
    assert "rate: 0.5" in notes


def test_a_caught_capture_error_fails_the_recording() -> None:
    @weft.program
    def step(x: Any) -> Any:
        try:
            float(x.sum())
        except CaptureError:
            return x
        return x + 1

    with pytest.raises(CaptureError, match="not known"):
        step(ones())
    assert not step.programs


def test_nothing_has_changed_when_a_recording_fails() -> None:
    w = ones()

    @weft.program
    def step(x: Any) -> Any:
        w.fill(9.0)
        x += 1
        raise ZeroDivisionError

    x = ones()
    with pytest.raises(ZeroDivisionError):
        step(x)
    assert w.tolist() == x.tolist() == [1.0] * 3
    assert (x + 1).tolist() == [2.0] * 3, "this thread records no more"


def test_repr_never_raises() -> None:
    shown = []

    @weft.program
    def step(x: Any) -> Any:
        y = x + 1
        shown.extend([repr(x), repr(y), str(y), f"{y}"])
        return y

    step(ones())
    assert all("3" in text for text in shown)
    with pytest.raises(CaptureError, match="not known"):
        weft.program(lambda x: f"{x.sum():.2f}")(ones())


def test_an_array_stored_elsewhere_raises_when_it_is_used() -> None:
    kept = []

    @weft.program
    def step(x: Any) -> Any:
        kept.append(x + 1)
        return x * 2

    step(ones())
    for use in (lambda y: y + 1, lambda y: y.tolist(), step):
        with pytest.raises(CaptureError, match="step"):
            use(kept[0])
    assert step(ones()).tolist() == [2.0] * 3


def test_a_changed_container_is_refused_by_name() -> None:
    @weft.program
    def step(parameters: Any) -> Any:
        parameters["w"] = parameters["w"] + 1

    with pytest.raises(CaptureError, match="'parameters'"):
        step({"w": ones()})

    @weft.program
    def in_place(parameters: Any) -> None:
        parameters["w"] += 1  # the array changes, and stays

    given = {"w": ones()}
    in_place(given)
    assert given["w"].tolist() == [2.0] * 3


# Devices.


@pytest.mark.parametrize("place", [0, 1])
def test_the_device_of_every_argument_counts(place: int) -> None:
    step = weft.program(lambda x, y: (x + 1, y + 1))
    arrays = [ones(), ones()]
    step(*arrays)
    arrays[place] = weft.ones(3, device="cpu:1")
    for _ in range(2):
        assert [made.device.index for made in step(*arrays)] == [x.device.index for x in arrays]
    assert len(step.programs) == 2


def test_results_belong_where_eager_ones_do() -> None:
    def body(x: Any) -> Any:
        t = weft.tanh(x)
        on_second, known = weft.ones(3, device="cpu:1"), weft.asarray([1.0, 2.0, 3.0], device="cpu:1")
        return t, weft.zeros(3, device=t.device), on_second + 0, known * 2, weft.ones(3), x.sum()

    step = weft.program(body)
    for x in (ones(), weft.ones(3, device="cpu:1"), ones()):
        assert [made.device for made in step(x)] == [made.device for made in body(x)]


# Threads.


def test_other_threads_pushes_are_not_recorded() -> None:
    w = ones()

    @weft.program
    def step(x: Any) -> Any:
        def other() -> None:
            nonlocal_w = w
            nonlocal_w += 1

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return x * 2

    step(ones())
    step(ones())
    assert w.tolist() == [2.0] * 3


def test_threads_call_together() -> None:
    step = weft.program(lambda x, y: weft.tanh(x) @ y)
    x, y = weft.random.default_rng(1).random((8, 8)), weft.random.default_rng(2).random((8, 8))
    wanted = (weft.tanh(x) @ y).numpy().tobytes()
    found: list[bytes] = []

    def call() -> None:
        found.extend(step(x, y).numpy().tobytes() for _ in range(20))

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 120
    assert len(step.programs) == 1


def test_an_interrupt_at_any_line_leaves_no_recording_open() -> None:
    """At each line that makes a recording, in turn: whatever was interrupted, the thread runs again what it pushes."""
    files = ("record.py", "block.py", "parts.py")
    x, interrupted = weft.ones(2), set[tuple[str, int]]()

    def interrupt(frame: FrameType, event: str, _: object) -> Any:
        place = (Path(frame.f_code.co_filename).name, frame.f_lineno)
        if place[0] not in files:
            return None
        if event == "line" and place not in interrupted:
            interrupted.add(place)
            raise KeyboardInterrupt
        return interrupt

    def record() -> None:
        weft.program(lambda x: x * 2 + 1)(x)
        with weft.capture("block"):
            x * 2
        weft.scan(lambda carry, row: (carry + row, carry), x, weft.ones((3, 2)))

    for _ in range(400):
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            record()
            break
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        assert (x + 1).tolist() == [2.0, 2.0], sorted(interrupted)
    assert {file for file, _ in interrupted} == set(files)
