"""Stands in for CuPy where memory of devices is the host's: arrays with CuPy's rules. Tests save it as ``cupy.py``.

Its arrays are no NumPy arrays and do not become any; NumPy's functions are called with the parameters that CuPy's have;
ufuncs have one ``out`` and no ``where``, and but two of them reduce. ``test_cupy.py`` holds the table to CuPy's own.
"""

from __future__ import annotations

import ctypes
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Streams that ever were current, with their devices.
seen: list[tuple[int, int]] = []
#: Pools from which is allocated, innermost last, and all that ever were.
allocators: list[MemoryPool] = []
pools: list[MemoryPool] = []


class _Thread(threading.local):
    """What is current on a thread, innermost last."""

    def __init__(self) -> None:
        self.streams: list[tuple[int, int]] = []
        self.devices = [0]


_thread = _Thread()


def current() -> list[tuple[int, int]]:
    """The streams that are current on this thread, with their devices."""
    return list(_thread.streams)


_REDUCTION = "a axis dtype out keepdims"
#: Functions, and their parameters.
FUNCTIONS = {
    **dict.fromkeys(("all", "any", "max", "min", "ptp"), "a axis out keepdims"),
    **dict.fromkeys(("sum", "prod", "nansum", "nanprod", "argmax", "argmin", "nanargmax", "nanargmin"), _REDUCTION),
    **dict.fromkeys(("median", "nanmedian"), "a axis out overwrite_input keepdims"),
    **dict.fromkeys(("concatenate", "stack"), "tup axis out dtype casting"),
    **dict.fromkeys(("partition", "argpartition"), "a kth axis"),
    **dict.fromkeys(("sort", "argsort"), "a axis kind"),
    **dict.fromkeys(("tril", "triu"), "m k"),
    **{f"fft.{name}": "a n axis norm" for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")},
    **{f"fft.{name}": "a s axes norm" for name in ("fftn", "ifftn", "rfftn", "irfftn")},
    **{f"linalg.{name}": "a" for name in ("cholesky", "det", "eig", "eigvals", "inv", "slogdet")},
    **{f"linalg.{name}": "a UPLO" for name in ("eigh", "eigvalsh")},
    "angle": "z deg",
    "asarray": "a dtype order copy blocking",
    "average": "a axis weights returned keepdims",
    "broadcast_to": "array shape",
    "clip": "a a_min a_max out",
    "copyto": "dst src casting where",
    "cross": "a b axisa axisb axisc axis",
    "diag": "v k",
    "diagonal": "a offset axis1 axis2",
    "diff": "a n axis prepend append",
    "digitize": "x bins right",
    "dot": "a b out",
    "einsum": "operands kwargs",
    "empty_like": "prototype dtype order subok shape",
    "flip": "a axis",
    "full_like": "a fill_value dtype order subok shape",
    "isclose": "a b rtol atol equal_nan",
    "isin": "element test_elements assume_unique invert",
    "linalg.matrix_power": "M n",
    "linalg.norm": "x ord axis keepdims",
    "linalg.pinv": "a rcond",
    "linalg.qr": "a mode",
    "linalg.solve": "a b",
    "linalg.svd": "a full_matrices compute_uv",
    "moveaxis": "a source destination",
    "nan_to_num": "x copy nan posinf neginf",
    "pad": "array pad_width mode kwargs",
    "put_along_axis": "arr indices values axis",
    "quantile": "a q axis out overwrite_input method keepdims interpolation",
    "real": "val",
    "repeat": "a repeats axis",
    "roll": "a shift axis",
    "round": "a decimals out",
    "searchsorted": "a v side sorter",
    "split": "ary indices_or_sections axis",
    "swapaxes": "a axis1 axis2",
    "take": "a indices axis out",
    "take_along_axis": "a indices axis",
    "tensordot": "a b axes",
    "tile": "A reps",
    "trace": "a offset axis1 axis2 dtype out",
    "transpose": "a axes",
    "where": "condition x y",
    "zeros_like": "a dtype order subok shape",
}
#: Ufuncs that there are none of.
MISSING = frozenset(["spacing", "vecdot"])
#: Options that CuPy hands on.
_FREE = {"einsum": {"optimize", "dtype"}, "pad": {"constant_values", "end_values", "stat_length", "reflect_type"}}


def _shown(found: Any) -> Any:
    """Return what NumPy has answered, arrays as CuPy's."""
    if isinstance(found, np.ndarray | np.generic):
        return ndarray._of(np.asarray(found))
    if isinstance(found, tuple | list):
        make = getattr(found, "_make", type(found))
        return make([_shown(each) for each in found])
    return found


def _bare(given: Any) -> Any:
    """Return NumPy's arrays for CuPy's; whoever mixes them with the host's has made a mistake."""
    if isinstance(given, ndarray):
        return given._array
    if isinstance(given, np.ndarray) and given.ndim:
        raise TypeError(f"Unsupported type {type(given)}")
    if type(given) in (tuple, list):
        return type(given)(_bare(each) for each in given)
    return {name: _bare(each) for name, each in given.items()} if isinstance(given, dict) else given


class ndarray(NDArrayOperatorsMixin):  # noqa: N801 - CuPy's name
    """An array on device memory."""

    _array: np.ndarray[Any, Any]

    def __init__(self, shape: tuple[int, ...], dtype: Any, memptr: Any, strides: tuple[int, ...]) -> None:
        memory, offset = memptr
        buffer = (ctypes.c_char * memory.size).from_address(memory.pointer)
        buffer.owner = memory.owner
        self._array = np.ndarray(shape, dtype, buffer, offset, strides)

    @classmethod
    def _of(cls, array: np.ndarray[Any, Any]) -> ndarray:
        made = object.__new__(cls)
        made._array = array
        return made

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(ptr=self._array.ctypes.data)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "strides", "itemsize", "nbytes", "flags"):
            return getattr(self._array, name)
        if name in ("T", "real", "imag"):
            return _shown(getattr(self._array, name))
        if name in ("reshape", "astype", "copy", "fill", "ravel", "transpose", "conj", "view"):
            return lambda *args, **options: _shown(getattr(self._array, name)(*args, **options))
        if name in ("all", "any", "max", "min"):  # without ``where`` and ``initial``
            return lambda axis=None, out=None, keepdims=False: _shown(
                getattr(self._array, name)(axis=axis, out=_bare(out), keepdims=keepdims)
            )
        if name in ("sum", "prod", "mean"):  # the same, with a dtype
            return lambda axis=None, dtype=None, out=None, keepdims=False: _shown(
                getattr(self._array, name)(axis=axis, dtype=dtype, out=_bare(out), keepdims=keepdims)
            )
        raise AttributeError(name)

    def __int__(self) -> int:  # waits for the device
        return int(self._array)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        return _shown(self._array[_bare(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[_bare(key)] = _bare(value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        name, reducing = ufunc.__name__, method in ("reduce", "accumulate")
        if len(options.get("out", (None,))) != 1:
            raise ValueError("The 'out' parameter must have exactly one array value")
        if name in MISSING:
            return NotImplemented
        if reducing and name not in ("add", "multiply"):
            raise NotImplementedError(f"`cupy_{name}.{method}` is not supported yet")
        wrong = options.keys() - ({"axis", "dtype", "out", "keepdims"} if reducing else {"dtype", "out", "casting"})
        if wrong:
            raise TypeError(f"Wrong arguments {wrong}")
        if any(isinstance(each, np.ndarray) for each in inputs):
            raise TypeError("Unsupported type <class 'numpy.ndarray'>")
        return _shown(getattr(ufunc, method)(*_bare(inputs), **_bare(options)))

    def __array_function__(self, function: Any, _types: Any, args: Any, options: Any) -> Any:
        name = ".".join([*function.__module__.split(".")[1:], function.__name__])
        parameters = FUNCTIONS.get(name)
        if parameters is None:
            return NotImplemented
        known = parameters.split()
        wrong = options.keys() - set(known) - _FREE.get(name, set())
        if wrong or (len(args) > len(known) and name != "einsum"):
            raise TypeError(f"cupy.{name}() got unexpected arguments {wrong or args[len(known) :]}")
        if name == "quantile":  # which takes an array of the host's
            args = (args[0], np.asarray(args[1]).tolist(), *args[2:])
        if name == "asarray":  # as does this, to copy it
            args = (np.asarray(args[0]).tolist(), *args[1:])
        return _shown(function(*_bare(args), **_bare(options)))


class _Device:
    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        _thread.devices.append(self._number)

    def __exit__(self, *_: object) -> None:
        assert _thread.devices.pop() == self._number


class _Stream:
    def __init__(self, pointer: int) -> None:
        self._pointer = pointer

    @classmethod
    def from_external(cls, stream: Any) -> _Stream:
        version, pointer = stream.__cuda_stream__()
        assert version == 0
        return cls(pointer)

    def __enter__(self) -> None:
        _thread.streams.append((self._pointer, _thread.devices[-1]))
        seen.append(_thread.streams[-1])

    def __exit__(self, *_: object) -> None:
        assert _thread.streams.pop()[0] == self._pointer


class _Memory:
    def __init__(self, pointer: int, size: int, owner: object, device: int) -> None:
        assert device in (0, 1)
        self.pointer, self.size, self.owner = pointer, size, owner


class MemoryPool:
    """Whose name is all that counts."""

    def malloc(self, size: int) -> int:
        """Allocate."""
        return size


@contextmanager
def _using_allocator(malloc: Any) -> Iterator[None]:
    allocators.append(malloc.__self__)
    pools.append(malloc.__self__)
    yield
    allocators.pop()


class cuda:  # noqa: N801 - CuPy's name
    """The part of ``cupy.cuda`` that is used."""

    Device = _Device
    Stream = _Stream
    UnownedMemory = _Memory
    MemoryPool = MemoryPool
    using_allocator = staticmethod(_using_allocator)
    MemoryPointer = staticmethod(lambda memory, offset: (memory, offset))
