"""Logical devices of arrays: labels follow memory and results, copies go between them, each has its own workers."""

from __future__ import annotations

import copy
import pickle
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import SOON
from weft import errors
from weft._core import empty, push_compute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import MakeEngine

FIRST, SECOND = weft.cpu(0), weft.cpu(1)


@pytest.fixture
def x() -> weft.NDArray:
    """Two rows of three, on the second device."""
    return weft.asarray([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], device=SECOND)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: weft.asarray([1, 2], device=device),
        lambda device: weft.array(np.ones(2), device=device),
        lambda device: weft.empty(2, device=device),
        lambda device: weft.zeros(2, device=device),
        lambda device: weft.full(2, 7, device=device),
        lambda device: weft.full(2, weft.asarray(7), device=device),
        lambda device: weft.arange(2, device=device),
        lambda device: weft.linspace(0, 1, 3, device=device),
        lambda device: weft.eye(2, device=device),
        lambda device: weft.ones_like([1, 2], device=device),
        lambda device: weft.from_dlpack(np.ones(2), device=device),
    ],
)
def test_creation_takes_a_device(make: Callable[[Any], weft.NDArray]) -> None:
    assert make(None).device == FIRST
    assert make("cpu:1").device == SECOND
    assert make(weft.cpu(3)).device == weft.cpu(3)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[0],
        lambda x: x[:, ::-1],
        lambda x: x.T,
        lambda x: x.reshape(3, 2),
        lambda x: weft.broadcast_to(x, (4, 2, 3)),
        weft.real,
        lambda x: weft.split(x, 2)[1],
    ],
)
def test_views_are_where_their_memory_is(x: weft.NDArray, view: Callable[[weft.NDArray], weft.NDArray]) -> None:
    assert view(x).device == SECOND


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: 1 - x,
        lambda x: x + weft.ones((2, 3), device=FIRST),
        lambda x: np.ones((2, 3)) * x,
        lambda x: x @ x.T,
        lambda x: x.sum(),
        weft.sort,
        lambda x: x[[1, 0]],
        lambda x: x[x > 2],
        lambda x: weft.where(x > 2, 1.0, 0.0),
        lambda x: weft.concat([x, weft.ones((1, 3))]),
        lambda x: x.astype(weft.float32),
        lambda x: weft.linalg.svd(x).S,
        lambda x: weft.linalg.lstsq(x, x)[0],
        weft.fft.rfft,
        weft.unique_values,
        lambda x: weft.nonzero(x)[1],
        lambda x: weft.histogram(x)[0],
        weft.zeros_like,
        weft.empty_like,
        weft.imag,
        np.exp,
        copy.copy,
        copy.deepcopy,
        lambda x: pickle.loads(pickle.dumps(x)),
    ],
)
def test_results_are_where_the_first_operand_is(
    x: weft.NDArray, compute: Callable[[weft.NDArray], weft.NDArray]
) -> None:
    assert compute(x).device == SECOND


def test_the_output_decides_over_the_operands(x: weft.NDArray) -> None:
    out = weft.empty((2, 3), device=FIRST)
    weft.add(x, x, out=out)
    assert out.device == FIRST
    out += x
    out[...] = x
    assert out.device == FIRST
    assert (weft.ones((2, 3)) + x).device == FIRST
    assert weft.ones_like(x, device="cpu").device == FIRST


def test_draws_and_files_are_on_the_first_device(x: weft.NDArray, tmp_path: Path) -> None:
    weft.save(tmp_path / "x.npz", x=x)
    for made in (weft.random.default_rng(0).random((2, 3)), weft.load(tmp_path / "x.npz")["x"]):
        made += x  # noqa: PLW2901 - in place
        assert made.device == FIRST


def test_to_device_copies(x: weft.NDArray) -> None:
    moved = x.to_device(FIRST)
    assert moved.device == FIRST
    assert x.device == SECOND
    x[...] = 0.0
    assert moved.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x.to_device("cpu:1") is x
    assert weft.asarray(x, device=FIRST).device == FIRST
    assert weft.asarray(x).device == SECOND
    assert x.astype(weft.int8, device=FIRST).device == FIRST


def test_copyto_and_copyfrom_keep_the_device(x: weft.NDArray) -> None:
    target = weft.zeros((2, 3))
    x.copyto(target)
    assert target.device == FIRST
    assert target.copyfrom(x).device == FIRST
    assert x.copyfrom(target + 1).device == SECOND
    assert x.numpy().tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("bad", ["gpu", "cuda:x", "cpu:32768", "cpu:x", ""])
def test_unknown_devices_are_refused(x: weft.NDArray, bad: str) -> None:
    for use in (lambda: weft.zeros(2, device=bad), lambda: x.to_device(bad), lambda: weft.asarray(x, device=bad)):
        with pytest.raises(errors.ArgumentValueError, match="device"):
            use()
    with pytest.raises(errors.ArgumentTypeError, match="device"):
        weft.zeros(2, device=0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="stream"):
        x.to_device(SECOND, stream=1)


def test_ops_of_two_devices_run_side_by_side(make_engine: MakeEngine) -> None:
    """Each waits for the other, and each device has one worker: on one device this would never end."""
    engine = make_engine(1, "per_device")
    arrays = [weft.zeros(2, device=weft.cpu(index), engine=engine) for index in range(2)]
    events = [threading.Event(), threading.Event()]

    def meet(out: np.ndarray[Any, Any], source: np.ndarray[Any, Any], own: int) -> None:
        events[own].set()
        assert events[1 - own].wait(SOON)
        out[...] = source + own + 1

    results = [weft.empty(2, device=weft.cpu(index), engine=engine) for index in range(2)]
    for own, (result, x) in enumerate(zip(results, arrays, strict=True)):
        push_compute(lambda out, source, own=own: meet(out, source, own), (result,), (x,))
    assert [result.numpy().tolist() for result in results] == [[1, 1], [2, 2]]


def test_a_new_result_runs_where_its_operand_is(make_engine: MakeEngine) -> None:
    engine = make_engine(1, "per_device")
    names: list[str] = []
    for index in (0, 1, 1, 0):
        x = weft.ones(2, device=weft.cpu(index), engine=engine)

        def note(out: np.ndarray[Any, Any], source: np.ndarray[Any, Any]) -> None:
            names.append(str(threading.get_native_id()))
            out[...] = source

        result = empty((2,), np.dtype(float), engine)
        push_compute(note, (result,), (x,))
        result.wait_to_read(SOON)
        assert result.device == weft.cpu(index)
    first, second, third, last = names
    assert first == last != second == third


def test_creation_runs_on_its_device(make_engine: MakeEngine) -> None:
    """The first device's only worker is busy; arrays of the second are made meanwhile."""
    engine = make_engine(1, "per_device")
    entered, opened = threading.Event(), threading.Event()

    def hold() -> None:
        entered.set()
        assert opened.wait(SOON)

    engine.push(hold)
    assert entered.wait(SOON)
    try:
        for x in (
            weft.arange(3, device=SECOND, engine=engine),
            weft.linspace(0, 1, 3, device=SECOND, engine=engine),
            weft.eye(3, device=SECOND, engine=engine),
            weft.zeros(3, device=SECOND, engine=engine),
        ):
            weft.sort(x).wait_to_read(SOON)
    finally:
        opened.set()


@pytest.mark.parametrize("policy", ["work_stealing", "per_device", "serial"])
def test_values_do_not_depend_on_devices(make_engine: MakeEngine, policy: str) -> None:
    engine = make_engine(None if policy == "serial" else 2, policy)
    x = weft.arange(1000.0, device=SECOND, engine=engine)
    y = x.to_device(FIRST) + weft.sqrt(x).to_device(FIRST)
    x *= 0.0
    expected = np.arange(1000.0) + np.sqrt(np.arange(1000.0))
    assert np.array_equal(y.numpy(), expected)
