"""Arrays that share memory are ordered by what overlaps, and their failures stay where they belong."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import MOMENT, SOON, background, still_waits
from weft import errors
from weft._core import push_compute

if TYPE_CHECKING:
    from collections.abc import Iterator

Array = np.ndarray[Any, Any]


class Boom(Exception):  # noqa: N818 - not an error of weft's
    """What ops raise here."""


class Held:
    """A compute that fills its output once the test lets it go."""

    def __init__(self, value: float) -> None:
        self.value = value
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, *arrays: Array) -> None:
        self.entered.set()
        assert self.opened.wait(SOON), "the test never let this op go"
        arrays[0][...] = self.value

    def push(self, x: weft.NDArray) -> Held:
        """Push it, to overwrite ``x``."""
        push_compute(self, (x,), ())
        return self


@pytest.fixture(autouse=True)
def _default(request: pytest.FixtureRequest) -> Iterator[None]:
    """Make the test's engine the default one."""
    previous = weft.get_engine()
    for name in ("many", "parallel", "engine"):
        if name in request.fixturenames:
            weft.set_engine(request.getfixturevalue(name))
    yield
    weft.set_engine(previous)


def raising(error: Exception) -> Any:
    """A compute that raises."""

    def compute(*_: Array) -> None:
        raise error

    return compute


@pytest.mark.parametrize(
    "parts",
    [
        (slice(0, 4), slice(4, 8)),
        (slice(4, 8), slice(0, 4)),
        (slice(0, 1), slice(1, 8)),
        (slice(3, 0, -1), slice(7, 3, -1)),
    ],
    ids=str,
)
def test_writes_of_disjoint_slices_run_side_by_side(many: weft.Engine, parts: tuple[slice, slice]) -> None:  # noqa: ARG001 - the default one
    """Each op ends only when the other has begun."""
    x = weft.zeros((8, 3))
    begun = [threading.Event(), threading.Event()]

    def meet(i: int) -> Any:
        def compute(out: Array) -> None:
            begun[i].set()
            assert begun[1 - i].wait(SOON), "the other op has to run at the same time"
            out[...] = i + 1

        return compute

    for i in (0, 1):
        push_compute(meet(i), (x[parts[i]],), ())
    x.wait_to_read(SOON)
    expected = np.zeros((8, 3))
    for i in (0, 1):
        expected[parts[i]] = i + 1
    assert np.array_equal(x.numpy(), expected)


def test_a_read_of_one_slice_runs_beside_a_write_of_another(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    held = Held(5).push(x[:4])
    assert held.entered.wait(SOON)
    total = weft.sum(x[4:])
    total.wait_to_read(SOON)
    assert float(total) == 4
    assert not x.is_ready()
    held.opened.set()
    assert float(weft.sum(x)) == 24


def test_a_slice_of_a_slice_and_a_reshaped_slice_know_their_place(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.zeros(24)
    held = Held(1).push(weft.reshape(x[12:], (3, 4))[1:])  # 16 to 24
    assert held.entered.wait(SOON)
    for view in (x[:16], weft.reshape(x, (6, 4))[3], x[::-1][8:]):
        assert float(weft.sum(view)) == 0
    sums = [weft.sum(view) for view in (x[16:17], x[23:], weft.reshape(x, (2, 12))[1], x[::-1][:2])]
    assert not any(total.is_ready() for total in sums)
    held.opened.set()
    assert [float(total) for total in sums] == [1, 1, 8, 2]
    assert x.numpy().tolist() == [0] * 16 + [1] * 8


@pytest.mark.parametrize("second", ["write", "mutate", "read"])
def test_overlapping_accesses_are_ordered(many: weft.Engine, second: str) -> None:  # noqa: ARG001 - the default one
    x, seen, ran = weft.zeros(8), weft.empty(4), threading.Event()
    held = Held(3).push(x[:5])
    assert held.entered.wait(SOON)

    def compute(*arrays: Array) -> None:
        ran.set()
        if second == "write":
            arrays[0][...] = 7
        elif second == "mutate":
            arrays[0][...] += 1
        else:
            arrays[0][...] = arrays[1]

    if second == "write":
        push_compute(compute, (x[4:],), ())
    elif second == "mutate":
        push_compute(compute, (), (), (x[4:],))
    else:
        push_compute(compute, (seen,), (x[4:],))
    assert not ran.wait(MOMENT)
    held.opened.set()
    x.wait_to_read(SOON)
    expected = {"write": [3] * 4 + [7] * 4, "mutate": [3] * 4 + [4, 1, 1, 1], "read": [3] * 5 + [0] * 3}[second]
    assert x.numpy().tolist() == expected
    if second == "read":
        assert seen.numpy().tolist() == [3, 0, 0, 0]


def test_a_write_waits_for_the_readers_of_what_it_overlaps(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, out = weft.ones(8), weft.empty(4)
    x[4:] = 1.0
    entered, opened = threading.Event(), threading.Event()

    def read(result: Array, values: Array) -> None:
        entered.set()
        assert opened.wait(SOON)
        result[...] = values

    push_compute(read, (out,), (x[:4],))
    assert entered.wait(SOON)
    x[4:] = 2.0  # nobody reads these
    assert (x[4:] + 0.0).numpy().tolist() == [2] * 4
    x[3:5] = 9.0
    late = x[3:5] + 0.0
    with pytest.raises(errors.WaitTimeoutError):
        late.wait_to_read(MOMENT)
    opened.set()
    assert late.numpy().tolist() == [9, 9]
    assert out.numpy().tolist() == [1] * 4
    assert x.numpy().tolist() == [1, 1, 1, 9, 9, 2, 2, 2]


def test_interleaved_slices_give_what_they_would_one_after_the_other(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, wanted = weft.zeros((6, 6)), np.zeros((6, 6))
    for i in range(60):
        for array in (x, wanted):
            array[i % 2 :: 2, i % 3 :: 3] += i
            array[:, i % 6] -= array[i % 6, :]
    assert np.array_equal(x.numpy(), wanted)


def test_a_whole_read_after_partial_writes_sees_them_all(engine: weft.Engine) -> None:
    x = weft.empty(64)
    parts = []
    for i in range(16):
        parts.append(Held(i).push(x[4 * i : 4 * i + 4]) if engine.policy != "serial" else None)
        if parts[-1] is None:
            x[4 * i : 4 * i + 4] = float(i)
    total = x + 0.0
    if engine.policy != "serial":
        assert not total.is_ready()
        for part in reversed(parts):
            assert part is not None
            part.opened.set()
    total.wait_to_read(SOON)
    assert total.numpy().tolist() == [float(i // 4) for i in range(64)]


def test_partial_reads_after_a_whole_write(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.zeros(8)
    held = Held(4).push(x)
    assert held.entered.wait(SOON)
    parts = [x[i : i + 2] * 2.0 for i in range(0, 8, 2)]
    assert not any(part.is_ready() for part in parts)
    held.opened.set()
    assert [part.numpy().tolist() for part in parts] == [[8.0, 8.0]] * 4


def test_a_loop_that_fills_slices_reads_like_numpy(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, out = weft.arange(1000, dtype=weft.float64), weft.empty(1000)
    for i in range(10):
        out[i * 100 : (i + 1) * 100] = weft.sqrt(x[i * 100 : (i + 1) * 100])
    assert np.array_equal(out.numpy(), np.sqrt(np.arange(1000.0)))


@pytest.mark.parametrize("step", [1, 3, -1])
def test_overlapping_copies_behave_as_memmove(engine: weft.Engine, step: int) -> None:  # noqa: ARG001 - the default one
    x, wanted = weft.arange(50), np.arange(50)
    for array in (x, wanted):
        array[1:41] = array[:40]
        array[:20] = array[5:25]
        array[: 45 // abs(step)] = array[::step][: 45 // abs(step)]
        array[...] += array[::-1]
    assert x.numpy().tolist() == wanted.tolist()


def test_the_failure_of_a_partial_write_reaches_a_whole_read(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("half")
    push_compute(raising(error), (x[:4],), ())
    total = weft.sum(x)
    for array in (total, x[3:5] + 0.0, x):
        for _ in range(2):
            with pytest.raises(Boom) as caught:
                array.wait_to_read(SOON)
            assert caught.value is error
        assert array.exception() is error
    with pytest.raises(Boom):
        x.numpy()


def test_what_the_failed_write_did_not_touch_is_sound(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("half")
    push_compute(raising(error), (x[:4],), ())
    total = weft.sum(x[4:])
    x[4:] = 2.0
    doubled = x[4:] * 2.0
    assert float(total) == 4
    assert doubled.numpy().tolist() == [4.0] * 4
    with pytest.raises(Boom) as caught:
        x.wait_to_read(SOON)
    assert x.exception() is caught.value is error


@pytest.mark.parametrize("look", ["is_ready", "exception", "wait"])
def test_a_look_changes_nothing(engine: weft.Engine, look: str) -> None:  # noqa: ARG001 - the default one
    """What ops do depends on what was pushed, not on who asked how it goes."""
    x, error = weft.ones(8), Boom("half")
    push_compute(raising(error), (x[:4],), ())
    if look == "wait":
        with pytest.raises(Boom):
            x.wait_to_read(SOON)
    else:
        getattr(x, look)()
    assert (x[4:] + 0.0).numpy().tolist() == [1.0] * 4
    x[:4] = 3.0
    assert x.numpy().tolist() == [3.0] * 4 + [1.0] * 4


def test_a_view_is_ready_when_its_own_values_are(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    held = Held(5).push(x[:4])
    assert held.entered.wait(SOON)
    x[4:].wait_to_read(SOON / 10)
    assert x[4:].is_ready()
    assert not x[2:].is_ready()
    held.opened.set()


def test_a_view_has_failed_when_its_own_values_have(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("half")
    push_compute(raising(error), (x[:4],), ())
    assert x[4:].numpy().tolist() == [1.0] * 4
    assert x[4:].exception() is None
    with pytest.raises(Boom):
        x[3:].wait_to_read(SOON)
    assert x[3:].exception() is error


def test_an_op_that_needs_failed_values_is_skipped(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, y, error, ran = weft.ones(8), weft.zeros(8), Boom("half"), list[int]()
    push_compute(raising(error), (x[:4],), ())
    push_compute(lambda out, _: ran.append(len(out)), (y[6:],), (x[2:6],))
    push_compute(lambda out: ran.append(len(out)), (), (), (x[3:],))
    rest = y[:6] + 0.0
    with pytest.raises(Boom):
        (x[4:] + 0.0).wait_to_read(SOON)
    with pytest.raises(Boom):
        y.wait_to_read(SOON)
    assert rest.numpy().tolist() == [0.0] * 6
    assert not ran


def test_a_whole_overwrite_clears_a_failure(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("half")), (x[:4],), ())
    with pytest.raises(Boom):
        x.wait_to_read(SOON)
    x[...] = 3.0
    assert x.numpy().tolist() == [3.0] * 8
    assert x.exception() is None


def test_an_overwrite_of_the_failed_part_clears_it(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("half")), (x[:4],), ())
    x[:4] = 3.0
    assert x.numpy().tolist() == [3.0] * 4 + [1.0] * 4


def test_an_overwrite_of_more_than_the_failed_part_clears_it(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("some")), (x[1:3],), ())
    push_compute(raising(Boom("more")), (x[2:4],), ())
    x[:5] = 3.0
    assert x.numpy().tolist() == [3.0] * 5 + [1.0] * 3


def test_an_overwrite_of_a_part_of_the_failed_part_does_not_clear_the_rest(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("half")), (x[:4],), ())
    x[:2] = 3.0
    for array in (x[2:4] + 0.0, x):
        with pytest.raises(Boom):
            array.wait_to_read(SOON)


def test_an_overwrite_of_a_part_of_a_failed_array_clears_that_part(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("all")
    push_compute(raising(error), (x,), ())
    x[2:4] = 3.0
    x[6:] = 4.0
    x[2:4] += 1.0
    assert x[2:4].numpy().tolist() == [4.0] * 2
    assert x[3:4].exception() is None
    assert (x[6:] * 2.0).numpy().tolist() == [8.0] * 2
    for array in (x[:2], x[1:3] + 0.0, x[4:], x):
        with pytest.raises(Boom) as caught:
            array.wait_to_read(SOON)
        assert caught.value is error
    x[:2] = 1.0
    x[4:6] = 2.0
    assert float(weft.sum(x)) == 22
    assert x.exception() is None


def test_an_overwrite_of_a_part_of_the_failed_part_clears_its_own(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("middle")), (x[1:7],), ())
    x[3:5] = 2.0
    assert x[3:5].numpy().tolist() == [2.0] * 2
    x[1:3] = 3.0  # one of the two rests of the failed part; the other one has failed still
    assert x[:5].numpy().tolist() == [1.0, 3.0, 3.0, 2.0, 2.0]
    for array in (x[5:7], x[4:] + 0.0, x):
        with pytest.raises(Boom):
            array.wait_to_read(SOON)
    push_compute(raising(Boom("again")), (x[3:5],), ())
    with pytest.raises(Boom, match="again"):
        x[4:5].wait_to_read(SOON)
    assert x[1:3].numpy().tolist() == [3.0] * 2
    x[2:8] = 5.0
    assert x.numpy().tolist() == [1.0, 3.0] + [5.0] * 6


def test_an_overwrite_that_reads_what_it_overwrites_owes_it(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("all")
    push_compute(raising(error), (x,), ())
    push_compute(lambda out, there: np.copyto(out, there[:2]), (x[2:4],), (x[2:5],))
    x[4:6] = x[:2]
    for array in (x[2:4], x[4:6]):
        with pytest.raises(Boom) as caught:
            array.wait_to_read(SOON)
        assert caught.value is error


def test_an_overwrite_of_a_part_waits_for_those_that_look_at_it(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    x[:6] = 2.0
    held = threading.Event()
    seen = weft.empty(4)

    def look(out: np.ndarray, there: np.ndarray) -> None:
        held.wait(SOON)
        np.copyto(out, there)

    push_compute(look, (seen,), (x[1:5],))
    x[2:4] = 3.0
    x[:8] = 4.0
    assert not x[2:4].is_ready()
    held.set()
    assert seen.numpy().tolist() == [2.0] * 4
    assert x.numpy().tolist() == [4.0] * 8


def test_an_overwrite_that_leaves_gaps_clears_nothing(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    """Every other element is still what the failed op left."""
    x = weft.ones(8)
    push_compute(raising(Boom("all")), (x,), ())
    x[::2] = 3.0
    with pytest.raises(Boom):
        x.wait_to_read(SOON)
    x[1::2] = 4.0  # and neither knows what the other filled
    with pytest.raises(Boom):
        x.wait_to_read(SOON)


def test_an_overwrite_that_leaves_gaps_in_a_slice_clears_nothing(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.ones(8)
    push_compute(raising(Boom("seven")), (x[:7],), ())
    x[0:8:2] = 3.0  # reaches from the first of the seven to the last
    with pytest.raises(Boom):
        (x[:7] + 0.0).wait_to_read(SOON)


@pytest.mark.parametrize("key", [slice(None, None, -1), (slice(None), slice(None, None, -1))], ids=str)
@pytest.mark.parametrize("transposed", [False, True])
def test_an_overwrite_in_another_order_clears(engine: weft.Engine, key: Any, *, transposed: bool) -> None:  # noqa: ARG001 - the default one
    x = weft.ones((4, 6))
    push_compute(raising(Boom("all")), (x,), ())
    view = x.T if transposed else x
    view[key] = 3.0
    assert x.numpy().tolist() == [[3.0] * 6] * 4


def test_a_read_of_a_slice_holds_up_no_write_of_another(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    """Whether it was pushed before the first write of a slice, or looks at several slices that are written on their own."""
    x = weft.zeros(9)
    for number in (1.0, 2.0):
        entered, opened = threading.Event(), threading.Event()

        def look(
            out: Array, values: Array, entered: threading.Event = entered, opened: threading.Event = opened
        ) -> None:
            entered.set()
            assert opened.wait(SOON)
            out[...] = values

        seen = weft.empty(5)
        push_compute(look, (seen,), (x[:5],))
        assert entered.wait(SOON)
        x[5:7] = number
        x[7:] += number
        x[5:7].wait_to_read(SOON)
        x[7:].wait_to_read(SOON)
        x[:3] = number
        x[3:5] = number
        assert not x[:3].is_ready()
        opened.set()
        assert seen.numpy().tolist() == [number - 1] * 5
        assert x.numpy().tolist() == [number] * 7 + [1.0 if number == 1 else 3.0] * 2


def test_in_place_operators_on_failed_values_do_not_clear(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, error = weft.ones(8), Boom("all")
    push_compute(raising(error), (x,), ())
    x += 1.0
    x[:3] *= 2.0
    with pytest.raises(Boom) as caught:
        x[:3].wait_to_read(SOON)
    assert caught.value is error


def test_waits_run_out_of_time(parallel: weft.Engine) -> None:
    x = weft.ones(8)
    held = Held(2).push(x)
    assert held.entered.wait(SOON)
    for wait in (x.wait_to_read, x.wait_to_write, x[2:].wait_to_read, parallel.wait_for_all):
        with pytest.raises(errors.WaitTimeoutError) as caught:
            wait(timeout=MOMENT / 10)
        assert isinstance(caught.value, TimeoutError)
    with pytest.raises(errors.WaitTimeoutError):
        weft.wait_all(timeout=MOMENT / 10)
    assert not x.is_ready()
    assert x.exception() is None, "it has not failed yet"
    held.opened.set()
    weft.wait_all(timeout=SOON)
    assert x.is_ready()


def test_a_wait_to_read_does_not_wait_for_readers(parallel: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x, out = weft.ones(8), weft.empty(8)
    x.wait_to_read(SOON)
    held = Held(2)
    push_compute(held, (out,), (x,))
    assert held.entered.wait(SOON)
    x.wait_to_read(SOON)
    assert x.is_ready()
    with pytest.raises(errors.WaitTimeoutError):
        x.wait_to_write(MOMENT / 10)
    held.opened.set()
    x.wait_to_write(SOON)


def test_a_value_is_waited_for_where_python_needs_it(parallel: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.zeros(1)
    held = Held(7).push(x)
    assert held.entered.wait(SOON)
    looks = [background(look) for look in (x.numpy, x.item, lambda: bool(x[0]), lambda: repr(x), lambda: np.asarray(x))]
    assert all(still_waits(look) for look in looks)
    held.opened.set()
    values = [look.result(SOON) for look in looks]
    assert values[0] == values[1] == values[4] == 7
    assert values[2] is True
    assert "7." in values[3]


def test_nothing_waits_where_values_are_not_needed(parallel: weft.Engine) -> None:  # noqa: ARG001 - the default one
    """Shapes, dtypes, views, arithmetic, masked assignment: none of it asks for a value."""
    x = weft.zeros((4, 6))
    held = Held(2).push(x)
    assert held.entered.wait(SOON)

    def program() -> weft.NDArray:
        y = weft.reshape(x, (6, 4)).T[1:3] * 2.0 + weft.ones((2, 6))
        y[y > 4.0] = -1.0
        y[0] = y[1, ::-1]
        z = weft.concat([y, weft.astype(x, weft.float32)[:2]], axis=0)
        assert (z.shape, z.dtype, z.ndim) == ((4, 6), np.dtype(np.float64), 2)
        return weft.sum(z @ weft.matrix_transpose(z), axis=0)

    result = background(program).result(SOON)
    assert not result.is_ready()
    held.opened.set()
    y = np.full((2, 6), -1.0)
    z = np.concatenate([y, np.full((2, 6), 2.0)])
    assert result.numpy().tolist() == (z @ z.T).sum(axis=0).tolist()


def test_versions_count_what_was_pushed_on_the_buffer(engine: weft.Engine) -> None:  # noqa: ARG001 - the default one
    x = weft.zeros(8)
    first = x.version
    x += 1.0
    x[2:4] = 5.0
    _ = x + x
    x[1:].wait_to_read(SOON)
    assert x.version == x[:3].version == first + 2


def test_two_threads_that_swap_slices_never_wait_in_a_circle(many: weft.Engine) -> None:  # noqa: ARG001 - the default one
    """`x[:4] += x[4:]` beside `x[4:] += x[:4]`, from two threads."""
    x = weft.zeros(8, dtype=weft.int64)

    def swap(to: slice, of: slice) -> None:
        for _ in range(2000):
            part = x[to]
            part += x[of]
            part -= x[of]

    threads = [background(lambda: swap(slice(0, 4), slice(4, 8))), background(lambda: swap(slice(4, 8), slice(0, 4)))]
    for thread in threads:
        thread.result(SOON)
    x.wait_to_read(SOON)


@pytest.mark.parametrize("seed", range(12))
def test_what_can_be_read_is_what_was_written(many: weft.Engine, seed: int) -> None:  # noqa: ARG001 - the default one
    """Whatever fails: no failed element is read, and those that are read have their values."""
    rng, size = np.random.default_rng(seed), 16
    x, values, failed = weft.zeros(size), np.zeros(size), np.zeros(size, bool)
    reads: list[tuple[weft.NDArray, Array, bool]] = []
    for step in range(120):
        start, stop = sorted(rng.integers(0, size + 1, 2))
        what = rng.integers(0, 10) if step % 30 else 9
        part = slice(start, stop) if rng.random() < 0.95 else slice(0, size)
        if what < 4:
            x[part] = float(step)
            values[part], failed[part] = step, False
        elif what < 5:
            push_compute(raising(Boom(str(step))), (x[part],), ())
            failed[part] = part.start < part.stop or failed[part]
        elif what < 7:
            x[part] += 1.0
            values[part] += 1
            failed[part] |= failed[part].any()
        else:
            reads.append((x[part] * 1.0, values[part].copy(), bool(failed[part].any())))
    read = 0
    for array, wanted, has_failed in reads:
        try:
            found = array.numpy()
        except Boom:
            continue
        assert not has_failed
        np.testing.assert_array_equal(found, wanted)
        read += len(wanted) > 0
    assert read
