"""Stands in for CuPy where it is used by hand: kernels, streams, events and graphs of the host.

Everything is done at once, by the compiler of the tests. Tests save it as ``cupy.py``, with `cupy_on_host`
beside it.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import cupy_on_host
import numpy as np
from cupy_on_host import ndarray

from weft._cuda.nvrtc import build

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

__all__ = ["RawKernel", "asarray", "asnumpy", "cuda", "ndarray"]

#: Streams that are current, innermost last, the null stream first.
_current: list[_Stream] = []


class _Pointer:
    def __init__(self, address: int) -> None:
        self._address = address

    def copy_from_host_async(self, mem: int, size: int, stream: Any = None) -> None:
        assert stream is not None
        ctypes.memmove(self._address, mem, size)

    def copy_to_host_async(self, mem: int, size: int, stream: Any = None) -> None:
        assert stream is not None
        ctypes.memmove(mem, self._address, size)


class _Array(np.ndarray):  # type: ignore[type-arg]
    @property
    def data(self) -> Any:  # type: ignore[override]
        return _Pointer(self.ctypes.data)


class _Stream:
    """A stream, and the graph that is captured on it."""

    def __init__(self, *, null: bool = False, non_blocking: bool = False) -> None:
        assert null != non_blocking
        self.captured: list[Callable[[], None]] | None = None

    @classmethod
    def from_external(cls, stream: Any) -> Any:
        return cupy_on_host.cuda.Stream.from_external(stream)

    def __enter__(self) -> Self:
        _current.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        assert _current.pop() is self

    def synchronize(self) -> None:
        assert self.captured is None

    def wait_event(self, event: _Event) -> None:
        assert event.recorded

    def record(self, event: _Event) -> None:
        event.recorded = True

    def begin_capture(self, mode: int | None = None) -> None:
        assert mode is None
        self.captured = []

    def end_capture(self) -> _Graph:
        assert self.captured is not None
        graph, self.captured = _Graph(self.captured), None
        return graph


class _Event:
    def __init__(self, *, disable_timing: bool) -> None:
        assert disable_timing
        self.recorded = False


class _Graph:
    def __init__(self, launches: list[Callable[[], None]]) -> None:
        self._launches = launches

    def launch(self, stream: _Stream | None = None) -> None:
        assert stream is not None
        for launch in self._launches:
            launch()


class _Device(cupy_on_host.cuda.Device):
    def __init__(self, device: int = 0) -> None:
        super().__init__(device)

    def use(self) -> None: ...

    def synchronize(self) -> None: ...


class RawKernel:
    """A kernel that the tests' compiler makes, called as it is."""

    def __init__(self, code: str, name: str) -> None:
        image = build(name, code, (9, 0)).rstrip(b"\0").decode()
        self._run = ctypes.CDLL(image)[f"{name}__run"]

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...]) -> None:
        """Run it, or record it in the graph that is captured on the current stream."""
        values = [
            ctypes.c_void_p(arg.ctypes.data) if isinstance(arg, np.ndarray) else ctypes.c_uint32(int(arg))
            for arg in args
        ]
        assert all(isinstance(arg, _Array | np.uint32) for arg in args)
        parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        sizes = [(ctypes.c_uint * 3)(*size, *[1] * (3 - len(size))) for size in (grid, block)]

        def run(_kept: object = (values, args)) -> None:
            self._run(parameters, *sizes)

        captured = _current[-1].captured
        run() if captured is None else captured.append(run)


def asarray(values: np.ndarray[Any, Any]) -> _Array:
    """Return a copy "on the device"."""
    return values.copy().view(_Array)


def asnumpy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy "on the host"."""
    return np.array(array)


class cuda(cupy_on_host.cuda):  # noqa: N801 - CuPy's name
    """The part of ``cupy.cuda`` that is used."""

    Stream, Event, Device = _Stream, _Event, _Device

    class runtime:  # noqa: N801
        """The part of ``cupy.cuda.runtime`` that is used."""

        runtimeGetVersion = staticmethod(lambda: 13000)  # noqa: N815


_current.append(_Stream(null=True))
