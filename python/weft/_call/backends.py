"""Kinds of devices with memory of their own: each is one `Backend`, registered under the name of its kind.

A backend is the destination of calls over its arrays. It also answers for their memory, copies, fills and exports to
other libraries. A new kind is a subclass and one call of `register`; no other code of this package knows the kinds. A
subclass without overrides has memory that only callables reach: each op is a callable with NumPy's view of that memory.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from weft._call import callables
from weft._call.destinations import Destination
from weft._core import NDArray, kind_empty, push_compute
from weft._engine.labels import add_kind, kind_of
from weft._registry.op import FASTER
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from weft._call.door import Call
    from weft._core import Engine
    from weft._registry.avals import DType
    from weft._registry.op import Op


class Kernels(Protocol):
    """Kernels of a kind of device for given dtypes."""

    def push(self, outputs: tuple[NDArray, ...], inputs: tuple[Any, ...]) -> None:
        """Push them over arrays of one device, and Python scalars."""


class Backend(Destination):
    """The operations of a kind of device: a destination of calls, with memory, copies, fills and exports.

    Attributes
    ----------
    kind : str
        The kind's name: that of ``"kind:0"``, and of an op's attribute ``"compute:kind"``.
    first, count : int
        The number by which engines know the first device, and how many devices there may be.
    dlpack : int
        DLPack's number of the kind.
    faster : str or None
        The attribute of an op with its kernels for `launch`: ``"compute:kind"`` disables it.
    protocol : str or None
        The attribute with which objects of other libraries expose memory on such a device.

    Examples
    --------
    >>> from weft._call.backends import Backend
    >>> class Attic(Backend):
    ...     kind, first, count, dlpack = "attic", 0xF000, 1, 12
    >>> Attic().launch(None, (), (), {})
    False
    """

    first: ClassVar[int]
    count: ClassVar[int]
    dlpack: ClassVar[int]
    faster: ClassVar[str | None] = None
    protocol: ClassVar[str | None] = None

    def empty(self, shape: Sequence[int], dtype: DType, engine: Engine, index: int) -> NDArray:
        """Return a new array of undefined elements on the device of this number.

        Raises
        ------
        ArgumentValueError
            If it is the first of its kind, and arrays of too many kinds have been made.
        """
        return kind_empty(shape, dtype, engine, f"{self.kind}:{index}", self.first + index)

    def copy_elements(self, target: NDArray, x: NDArray) -> None:
        """Push the copy of `x`, broadcast, to `target`, which has its dtype; one of them is on such a device."""
        push_compute(callables.cast, (target,), (x,), name="copy", anywhere=True)

    def copy_cast(self, target: NDArray, x: NDArray) -> None:
        """Push the same with an unchecked cast."""
        push_compute(callables.cast, (target,), (x,), name="astype", anywhere=True)

    def fill(self, target: NDArray, value: Any) -> None:
        """Push the write of a Python scalar, which fits the dtype, to all of `target`."""
        push_compute(partial(_fill, value=value), (target,), (), name="fill")

    def whole(self, call: Call) -> None:
        """Push a call of an op without a ufunc: a kernel, the work of another library, or a callable."""
        if self.launch(call.op, call.results, call.given, call.attributes):
            return
        own = call.op.attribute("push_on_device", None)
        if own is None or not own(call.results, call.given, **call.attributes):
            super().whole(call)

    def kernels(self, ufunc: np.ufunc, dtypes: tuple[DType, ...]) -> Kernels | None:
        """Return kernels that do the work of NumPy's loop of `ufunc` for these dtypes; None if there are none.

        The core asks once for each loop. Then operators push the kernels by themselves, past `elementwise`.
        """
        del ufunc, dtypes
        return None

    def push_loop(self, ufunc: np.ufunc, results: tuple[NDArray, ...], operands: tuple[Any, ...]) -> None:
        """Push a ufunc on operands of dtypes that one of its loops takes."""
        run = callables.of_ufunc(ufunc, None, operands, masked=False)
        push_compute(run, results, tuple(x for x in operands if isinstance(x, NDArray)), name=ufunc.__name__)

    def launch(self, op: Op, results: tuple[NDArray, ...], given: tuple[Any, ...], attributes: dict[str, Any]) -> bool:
        """Push a kernel of the device for an op without a ufunc, and return whether there is one."""
        del op, results, given, attributes
        return False

    def capsule(self, x: NDArray, stream: Any, options: dict[str, Any]) -> object:
        """Return a DLPack capsule of an array: here, of a copy on the host."""
        del stream
        return x._values().__dlpack__(**options)

    def adopt(self, x: Any, engine: Engine) -> NDArray:
        """Return an array on the memory of an object with the `protocol`."""
        raise ArgumentTypeError(f"no memory of {type(x).__name__} is adopted on {self.kind} devices of {engine}")

    def check_view(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> None:
        """Raise if elements of this layout cannot be read; `start` is the first one's offset in bytes."""


def _fill(out: Any, value: Any) -> None:
    out[...] = value


_backends: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Make a kind of device known.

    Raises
    ------
    ArgumentValueError
        If the kind, or one of its numbers, is taken.
    """
    add_kind(backend.kind, backend.first, backend.count)
    if backend.faster is not None:
        FASTER[backend.kind] = backend.faster
    _backends[backend.kind] = backend


def backend_named(kind: str) -> Backend:
    """Return the backend of a kind."""
    return _backends[kind]


def backend_of(*arrays: NDArray) -> Backend:
    """Return the backend of the first of `arrays` that is on a device with memory of its own."""
    return _backends[kind_of(next(x._device for x in arrays if x._elsewhere))]


def adopter_of(x: object) -> Backend | None:
    """Return the backend of the device that holds the memory of another library's object, or None."""
    for backend in _backends.values():
        if backend.protocol is not None and hasattr(x, backend.protocol):
            return backend
    return None


def copy_elements(target: NDArray, x: NDArray) -> None:
    """Push a copy to or from a device with memory of its own; called by the core."""
    backend_of(target, x).copy_elements(target, x)


def push_loop(ufunc: np.ufunc, results: tuple[NDArray, ...], operands: tuple[Any, ...]) -> None:
    """Push a loop for which the core knows no kernels of the results' device; called by the core."""
    backend_of(*results).push_loop(ufunc, results, operands)
