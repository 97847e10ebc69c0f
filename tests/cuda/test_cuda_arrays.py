"""Arrays on CUDA devices, on a driver of the host's: where they are, how they get there and back, who may use them."""

from __future__ import annotations

import copy
import gc
import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from conftest import PARALLEL, SERIAL, SOON
from weft import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import MakeEngine

pytestmark = pytest.mark.usefixtures("fake_cuda")

HOST, FIRST, SECOND = weft.cpu(), weft.gpu(0), weft.gpu(1)


def values() -> np.ndarray[Any, Any]:
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.mark.parametrize(
    "make",
    [
        lambda device: weft.asarray([1, 2, 3], device=device),
        lambda device: weft.array(np.array([1, 2, 3]), device=device),
        lambda device: weft.asarray(weft.asarray([1, 2, 3]), device=device),
        lambda device: weft.full(3, 2, device=device) + weft.asarray([-1, 0, 1], device=device),
        lambda device: weft.arange(1, 4, device=device),
        lambda device: weft.linspace(1, 3, 3, dtype="int64", device=device),
        lambda device: weft.asarray([1, 2, 3]).to_device(device),
        lambda device: weft.empty_like(weft.asarray([1, 2, 3]), device=device).copyfrom([1, 2, 3]),
    ],
)
def test_arrays_are_made_on_a_device(make: Callable[[Any], weft.NDArray]) -> None:
    for device in (FIRST, "cuda:1"):
        x = make(device)
        assert str(x.device) == str(device)
        assert x.tolist() == [1, 2, 3]
        assert (x.dtype, x.shape) == (np.int64, (3,))


@pytest.mark.parametrize("from_", [HOST, FIRST, SECOND], ids=str)
@pytest.mark.parametrize("to", [HOST, FIRST, SECOND], ids=str)
@pytest.mark.parametrize(
    "view",
    [
        lambda x: x,
        lambda x: x[1],
        lambda x: x[:, ::-2, 1:],
        lambda x: x.T,
        lambda x: x[1, 2, 3],
        lambda x: x[:, :0],
        lambda x: weft.broadcast_to(x[:1], (2, 3, 4)),
    ],
)
def test_every_layout_goes_everywhere(
    from_: weft.Device, to: weft.Device, view: Callable[[weft.NDArray], weft.NDArray]
) -> None:
    host = view(weft.asarray(values())).numpy()
    x = view(weft.asarray(values(), device=from_))
    moved = x.to_device(to)
    assert moved.device == to
    assert np.array_equal(moved.numpy(), host)
    assert np.array_equal(x.numpy(), host)
    target = view(weft.zeros((2, 3, 4), dtype="float32", device=to).copy())
    if 0 not in target.strides:
        x.copyto(target)
        assert np.array_equal(target.numpy(), host)
        target = view(weft.zeros((2, 3, 4), dtype="float64", device=to))
        target[...] = x
        assert np.array_equal(target.numpy(), host.astype(np.float64))


def test_a_large_copy_goes_in_chunks() -> None:
    host = np.random.default_rng(1).random(3_000_001)
    x = weft.asarray(host, device=FIRST)
    assert np.array_equal((x + 1.0).numpy(), host + 1.0)


def test_slices_are_written_in_order() -> None:
    x = weft.zeros(10, device=FIRST)
    for at in range(10):
        x[at:] = float(at)
        x[at] *= 2
    x[::2] += x[1::2]
    x[1:] = x[:-1]
    expected = np.zeros(10)
    for at in range(10):
        expected[at:] = at
        expected[at] *= 2
    expected[::2] += expected[1::2]
    expected[1:] = expected[:-1].copy()
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize(("policy", "workers"), [SERIAL, *PARALLEL])
def test_a_program_gives_the_same_under_every_policy(policy: Any, workers: int, make_engine: MakeEngine) -> None:
    engine = make_engine(workers, policy)
    host = weft.asarray(values(), engine=engine)
    x, y = host.to_device(FIRST), host.to_device(SECOND)
    for _ in range(20):
        x += y.to_device(FIRST)
        y = (x * 0.5).to_device(SECOND)
        host[0] = y[1].to_device("cpu")
    host.wait_to_read(SOON)
    expected, first, second = values(), values(), values()
    for _ in range(20):
        first = first + second
        second = first * np.float32(0.5)
        expected[0] = second[1]
    assert np.array_equal(host.numpy(), expected)
    assert engine.pending == 0


def test_waits_are_for_the_device() -> None:
    x = weft.asarray(values(), device=FIRST) * 2
    x.wait_to_read(SOON)
    assert x.is_ready()
    x += 1
    x.wait_to_write(SOON)
    weft.wait_all(SOON)
    weft.cuda.synchronize(FIRST, SOON)
    assert x.exception() is None


def test_values_are_printed_pickled_and_copied() -> None:
    x = weft.asarray([1.0, 2.0], device=FIRST)
    assert repr(x) == "NDArray([1., 2.])"
    assert x[1].item() == 2.0
    assert bool(x[0])
    again = pickle.loads(pickle.dumps(x))
    assert (again.device, again.tolist()) == (FIRST, [1.0, 2.0])
    other = copy.deepcopy(x)
    x += 1
    assert (other.device, other.tolist()) == (FIRST, [1.0, 2.0])
    target = np.zeros(2)
    x.copyto(target)
    assert target.tolist() == [2.0, 3.0]
    assert not np.asarray(x).flags.writeable


def test_memory_is_freed_and_used_again() -> None:
    gc.collect()
    weft.cuda.synchronize(FIRST)
    before = weft.cuda.memory_stats(FIRST)
    x = weft.ones(1000, device=FIRST)
    assert weft.cuda.memory_stats(FIRST).in_use >= before.in_use
    for _ in range(200):
        x = x * 1.0 + 0.0
    assert x[0].item() == 1.0
    del x
    weft.cuda.synchronize(FIRST)
    gc.collect()
    after = weft.cuda.memory_stats(FIRST)
    assert after.in_use == before.in_use
    assert after.blocks == before.blocks


def test_memory_runs_out_with_the_sizes() -> None:
    x = weft.ones(1 << 28, device=FIRST)  # 2 GiB, of 1
    with pytest.raises(errors.CudaOutOfMemoryError, match=r"cuda:0 has no 2147483648 bytes for op 'fill'"):
        x.wait_to_read(SOON)
    with pytest.raises(MemoryError):
        (x + 1).wait_to_read(SOON)
    weft.get_engine().wait_for_all(SOON)


def test_failures_travel_over_devices() -> None:
    engine = weft.Engine(2)
    x = weft.zeros(3, engine=engine)

    def fail() -> None:
        raise ZeroDivisionError("on the host")

    engine.push(fail, (), [x])
    on_device = x.to_device(FIRST)
    with pytest.raises(ZeroDivisionError):
        (on_device + 1).numpy()
    on_device[...] = 7.0
    assert on_device.tolist() == [7.0, 7.0, 7.0]
    engine.close()


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda x, h, _: x + h, "is on the CPU, and the op runs on a CUDA device: copy the array there"),
        (
            lambda x, h, _: h + x,
            "the array is on cuda:0 and the op runs on the CPU: copy the array there by x.to_device",
        ),
        (lambda x, _, y: x + y, "add: the operands are on cuda:0 and on cuda:1: bring them together by to_device"),
        (lambda x, _, y: weft.add(x, 1.0, out=y), "the operands are on cuda:1 and on cuda:0"),
        (lambda x, h, _: weft.where(x > 0, x, h), "is on the CPU, and the op runs on a CUDA device"),
    ],
)
def test_ops_do_not_move_arrays(misuse: Callable[..., object], message: str) -> None:
    x, host, y = (weft.ones(3, device=device) for device in (FIRST, HOST, SECOND))
    with pytest.raises(errors.ArgumentValueError, match=message):
        misuse(x, host, y)
    assert (x + y.to_device(FIRST) + host.to_device(FIRST)).tolist() == [3.0, 3.0, 3.0]


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(errors.CudaUnavailableError, match="there is no device cuda:5; there are 2"):
        weft.zeros(3, device=weft.gpu(5))
    assert weft.cuda.device_count() == 2
    with pytest.raises(errors.ArgumentValueError, match="cpu:0 is no CUDA device"):
        weft.cuda.memory_stats("cpu")
    with pytest.raises(errors.ArgumentTypeError, match=r"a CUDA device is a weft.Device, a string or an integer"):
        weft.cuda.memory_stats(1.5)
    with pytest.raises(errors.ArgumentValueError, match="between 0 and 1023, not -1"):
        weft.gpu(-1)


def test_shapes_that_do_not_fit_are_refused() -> None:
    x = weft.ones((2, 3), device=FIRST)
    with pytest.raises(ValueError, match="broadcast"):
        x + weft.ones(2, device=FIRST)
    with pytest.raises(ValueError, match="a broadcast view"):
        weft.add(x, 1.0, out=weft.broadcast_to(weft.ones(3, device=FIRST), (2, 3)))
    odd = weft.zeros((2,) * 18, dtype="uint8", device=FIRST)[..., ::2].transpose(tuple(range(17, -1, -1)))
    with pytest.raises(errors.ArgumentValueError, match="axes that do not merge are too many"):
        odd + odd.transpose((1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16)).copy()


def test_what_depends_on_values_is_not_computed_elsewhere_in_silence() -> None:
    x = weft.asarray([3.0, 1.0, 3.0], device=FIRST)
    for function in (weft.unique_values, weft.nonzero):
        with pytest.raises(errors.ArgumentValueError, match=r"cuda:0.*to_device\('cpu'\)"):
            function(x)
    assert weft.unique_values(x.to_device("cpu")).tolist() == [1, 3]
