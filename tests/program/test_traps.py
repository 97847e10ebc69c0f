"""Traps that recorders fell into: none of them is one here."""

from __future__ import annotations

import sys
import threading
from dataclasses import InitVar, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

import weft
from weft.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


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


@pytest.mark.parametrize("share", [lambda x: weft.asarray(x, copy=False), weft.from_dlpack])
def test_shared_memory_is_written_at_each_call(share: Callable[[np.ndarray], weft.NDArray]) -> None:
    shared = np.zeros(3)

    @weft.program
    def step(x: Any) -> Any:
        total = share(shared)
        total += x
        return total * 1

    for number in range(1, 5):
        assert step(ones()).tolist() == [number] * 3
    assert shared.tolist() == [4.0] * 3


def test_a_dataclass_is_its_fields_alone() -> None:
    @dataclass
    class Batch:
        shape: ClassVar[tuple[int, ...]] = (3,)
        scale: InitVar[float]
        values: Any = None

        def __post_init__(self, scale: float) -> None:
            self.values = self.values * scale

    step = weft.program(lambda batch: batch.values.reshape(batch.shape) + 1)
    for number in range(3):
        assert step(Batch(2.0, weft.full(3, float(number)))).tolist() == [2.0 * number + 1] * 3
    assert len(step.programs) == 1


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
    files = ("record.py", "capture.py", "subrecordings.py")
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


# Tasks that were recorded taken for tasks that have run.

QUESTIONS: dict[str, Callable[[weft.TaskHandle[bool]], Any]] = {
    "result": lambda handle: handle.result(),
    "wait": lambda handle: handle.wait(),
    "wait of several": weft.wait,
    "done": lambda handle: handle.done(),
    "exception": lambda handle: handle.exception(),
    "bool": bool,
    "float": float,
    "array": np.asarray,
    "await": lambda handle: next(handle.__await__()),
}


@weft.task
def agree() -> bool:
    return True


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_recorded_task_answers_no_question(name: str) -> None:
    @weft.program
    def step(x: Any) -> Any:
        QUESTIONS[name](agree())
        return x * 2

    with pytest.raises(CaptureError, match=r"'agree' is not to be waited for while .*test_traps\.py"):
        step(ones())


def test_a_handle_that_was_kept_from_a_recording_answers_when_the_task_has_run() -> None:
    kept = []

    @weft.program
    def step(x: Any) -> Any:
        kept.append(agree())
        assert "recorded" in repr(kept[0])
        return x * 2

    step.lower(ones())
    with pytest.raises(CaptureError, match="'agree' was recorded, not called"):
        kept[0].result()
    step(ones())
    weft.wait()
    assert kept[0].result() is True


@pytest.mark.parametrize("name", ["a task", "a push"])
def test_what_was_recorded_is_not_waited_for_with_all_else(name: str) -> None:
    engine, values = weft.get_engine(), np.zeros(3)
    variable = engine.new_variable("values")

    @weft.task
    def fill(out: weft.Mutate[Any]) -> None:
        out[:] = 1

    def write() -> None:
        values[:] = 1

    @weft.program
    def step(x: Any) -> Any:
        weft.wait()  # nothing of this recording is missing yet
        y = x * 2
        weft.wait()  # an array says by itself that it has no values yet
        if name == "a task":
            fill(values)
        else:
            engine.push(write, mutate_vars=[variable], name="fill")
        weft.wait()
        return y + float(values[0])

    with pytest.raises(
        CaptureError,
        match=r"all ops .* while 'step' is recorded .*: 'fill' is recorded, not pushed, at .*test_traps\.py",
    ):
        step(ones())
    assert not values.any()


@pytest.mark.parametrize("ask", [weft.NDArray.is_ready, weft.NDArray.exception])
def test_arrays_of_a_recording_do_not_tell_whether_they_are_ready(ask: Callable[[weft.NDArray], object]) -> None:
    @weft.program
    def of_argument(x: Any) -> Any:
        ask(x)
        return x * 2

    @weft.program
    def of_result(x: Any) -> Any:
        y = x * 2
        ask(y)
        return y

    for step in (of_argument, of_result):
        with pytest.raises(CaptureError, match="is not known while"):
            step(ones())


def test_a_variable_that_recorded_ops_change_is_not_waited_for() -> None:
    engine = weft.get_engine()
    variable = engine.new_variable("counter")

    @weft.program
    def step(x: Any) -> Any:
        engine.push(lambda: None, mutate_vars=[variable], name="count")
        with pytest.raises(CaptureError, match="the end of 'count' is not to be waited for"):
            engine.wait_for_var(variable)
        return x * 2

    with pytest.raises(CaptureError):
        step(ones())
    assert variable.is_ready()


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("part", ["cond", "scan"])
def test_a_part_whose_array_was_written_to_since_has_no_gradient(part: str, outside: bool) -> None:
    state = weft.asarray([1.0, 2.0, 3.0])

    def loss(w: Any, *, writes: bool) -> Any:
        y = state if outside else state * 1
        if part == "cond":
            z = weft.cond(w.sum() > 0, lambda v: v * v * y, lambda v: v, w)
        else:
            z, _ = weft.scan(lambda carry, _: (carry * y, None), w, weft.ones((2, 1)))
        if writes:
            y *= 1
        return z.sum()

    def plain(w: Any) -> Any:
        y = state * 1
        return (w * w * y if part == "cond" else w * y * y).sum()

    w = weft.asarray([0.5, 0.7, 0.9])
    wanted = weft.grad(plain)(w).tolist()
    for step in (
        weft.program(weft.grad(lambda w: loss(w, writes=False))),
        weft.grad(weft.program(lambda w: loss(w, writes=False))),
    ):
        assert step(w).tolist() == pytest.approx(wanted)
    for step in (
        weft.program(weft.grad(lambda w: loss(w, writes=True))),
        weft.grad(weft.program(lambda w: loss(w, writes=True))),
    ):
        with pytest.raises(weft.errors.GradientError, match="written"):
            step(w)
