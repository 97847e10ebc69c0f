"""CUDA arrays in other libraries' hands, and theirs in ours."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import weft
from conftest import SOON

pytestmark = pytest.mark.usefixtures("fake_cuda")

DEVICE = weft.gpu(1)


class Theirs:
    """An array of another library's, on memory that the fake device shares with the host."""

    def __init__(self, array: np.ndarray[Any, Any], **extra: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "version": 3,
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "strides": array.strides,
            **extra,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 1


def test_the_interface_tells_where_the_values_are() -> None:
    x = weft.asarray(np.arange(12.0).reshape(3, 4), device=DEVICE) * 2
    found = x[1:, ::2].__cuda_array_interface__
    assert (found["version"], found["shape"], found["strides"]) == (3, (2, 2), (32, 16))
    assert (found["typestr"], found["data"][1]) == ("<f8", False)
    assert found["stream"] > 2
    assert ctypes.c_double.from_address(found["data"][0]).value == 8.0
    assert x.__cuda_array_interface__["strides"] is None
    assert x.__dlpack_device__() == (2, 1)


def test_arrays_of_the_host_have_none() -> None:
    x = weft.ones(3)
    assert not hasattr(x, "__cuda_array_interface__")
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(AttributeError, match="copy it to a device by to_device"):
        x.__cuda_array_interface__  # noqa: B018 - the access is the subject


def test_memory_of_others_is_taken_without_a_copy() -> None:
    host = np.arange(6.0)
    stream = (weft.ones(1, device=DEVICE) + 0).__cuda_array_interface__["stream"]
    x = weft.asarray(Theirs(host, stream=stream))
    assert x.device == DEVICE
    x += 1
    x.wait_to_read(SOON)
    assert host.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    back = weft.asarray(Theirs(host[::-2]))
    back *= 10
    back.wait_to_write(SOON)
    assert host.tolist() == [1.0, 20.0, 3.0, 40.0, 5.0, 60.0]
    assert weft.from_dlpack(Theirs(host)).shape == (6,)


def test_memory_of_others_is_kept_until_the_device_has_done_with_it() -> None:
    class Kept(Theirs):
        def __del__(self) -> None:
            gone.set()

    gone = threading.Event()
    x = weft.asarray(Kept(np.arange(6.0), stream=2)) + 1
    gc.collect()
    x.wait_to_read(SOON)
    while not gone.wait(0.001):  # let go of on another thread, it is freed by the next that has the GIL
        weft.ones(1).wait_to_read(SOON)
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_arrays_that_name_no_stream_come_behind_the_default_one() -> None:
    old = Theirs(np.arange(3.0))
    old.__cuda_array_interface__["version"] = 2
    assert (weft.asarray(old) * 2).tolist() == [0.0, 2.0, 4.0]
    there = weft.asarray(Theirs(np.arange(3.0), stream=None))
    assert (there * 2).tolist() == [0.0, 2.0, 4.0]


def test_streams_of_pytorch_wait_for_what_it_takes_and_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    class Cuda:
        @staticmethod
        def is_initialized() -> bool:
            return True

        @staticmethod
        def current_stream(index: int) -> Any:
            asked.append(index)
            return types.SimpleNamespace(cuda_stream=2)

    Tensor = type("Tensor", (Theirs,), {"__module__": "torch"})  # noqa: N806 - PyTorch's name
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=Cuda))
    assert (weft.asarray(Tensor(np.arange(3.0))) + 1).__cuda_array_interface__["stream"] > 2
    assert asked == [1, 1]


@pytest.mark.parametrize(
    ("first", "shape", "strides", "dtype"),
    [(1, (2,), None, "float32"), (8, (1,), None, "complex128"), (0, (2, 2), (5, 2), "uint16")],
)
def test_elements_that_a_device_could_not_reach_are_refused(
    first: int, shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: str
) -> None:
    memory = np.zeros(80, "uint8")
    at = memory.ctypes.data + -memory.ctypes.data % 16 + first
    theirs = Theirs(memory, data=(at, False), shape=shape, strides=strides, typestr=np.dtype(dtype).str)
    with pytest.raises(
        weft.errors.ArgumentValueError, match=f"elements of {dtype} only at multiples of .* copy the array"
    ):
        weft.asarray(theirs)


def test_bytes_that_lie_anywhere_are_taken_and_are_no_wider_elements() -> None:
    memory = np.zeros(80, "uint8")
    at = memory.ctypes.data + -memory.ctypes.data % 16
    odd = weft.asarray(Theirs(memory, data=(at + 1, False), shape=(16,), strides=None))
    odd += 1
    assert (odd + 0).tolist() == [1] * 16
    assert (odd[3:11].view("uint32") + 0).tolist() == [0x01010101] * 2
    with pytest.raises(ValueError, match="float32 only at multiples of 4 bytes, and these begin 1 bytes behind one"):
        odd[:8].view("float32")
    rows = weft.zeros((3, 6), dtype="uint8", device=DEVICE)
    assert rows[:, :4].view("uint16").shape == (3, 2)
    with pytest.raises(ValueError, match=r"have strides of \(6, 4\)"):
        rows[:, :4].view("uint32")
    assert rows[:1, :4].view("uint32").tolist() == [[0]]


def test_streams_that_others_capture_are_left_alone(fake_cuda: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    driver, stream, graph = ctypes.CDLL(fake_cuda["WEFT_CUDA_LIBRARY"]), ctypes.c_void_p(), ctypes.c_void_p()
    context = ctypes.c_void_p()
    assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), DEVICE.index) == 0
    assert driver.cuCtxSetCurrent(context) == 0
    assert driver.cuStreamCreateWithPriority(ctypes.byref(stream), 1, 0) == 0
    assert stream.value is not None
    add = weft.cuda.RawKernel('extern "C" __global__ void add(double* x) { x[threadIdx.x] += 1; }', "add")
    x, used = weft.zeros(3, device=DEVICE), weft.zeros(3, device=DEVICE)
    add(1, 3, (weft.Mutate(used),), stream=stream.value)
    weft.wait_all(SOON)
    theirs = Theirs(np.arange(3.0), stream=stream.value)

    assert driver.cuStreamBeginCapture_v2(stream, 2) == 0
    add(1, 3, (weft.Mutate(x),), stream=stream.value)
    with pytest.raises(
        weft.errors.CaptureError, match=r"op 'add' .*pushed at .*: another library is capturing the stream"
    ) as caught:
        x.wait_to_read(SOON)
    assert isinstance(caught.value, RuntimeError)
    with pytest.raises(weft.errors.CaptureError, match="op 'import': another library is capturing"):
        weft.asarray(theirs)
    current = types.SimpleNamespace(cuda_stream=stream.value)
    cuda = types.SimpleNamespace(is_initialized=lambda: True, current_stream=lambda _: current)
    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(cuda=cuda))
    with pytest.raises(weft.errors.CaptureError, match="another library is capturing"):
        used.__cuda_array_interface__  # noqa: B018 - the access is the subject
    assert (used + 1).tolist() == [2.0] * 3, "what was issued there before"
    del used
    assert driver.cuStreamEndCapture(stream, ctypes.byref(graph)) == 0, "nothing has spoiled it"

    x[...] = 0.0
    add(1, 3, (weft.Mutate(x),), stream=stream.value)
    assert (x + weft.asarray(theirs)).tolist() == [1.0, 2.0, 3.0]


def test_memory_of_others_is_cast_moved_and_kept() -> None:
    x = weft.asarray(Theirs(np.arange(3.0)), dtype="int32", device="cuda:0")
    assert (x.device, x.dtype, x.shape) == (weft.gpu(0), np.int32, (3,))
    with pytest.raises(TypeError, match=r"no arrays of dtype (longdouble|float128)"):
        weft.asarray(Theirs(np.zeros(3, "longdouble")))
    with pytest.raises(ValueError, match="read-only"):
        weft.asarray(Theirs(np.zeros(3), data=(np.zeros(3).ctypes.data, True)))[...] = 1.0


def test_exports_do_not_go_to_another_device() -> None:
    x = weft.ones(3, device=DEVICE)
    with pytest.raises(BufferError, match="an array on cuda:1 cannot be exported to the DLPack device"):
        x.__dlpack__(dl_device=(1, 0))
