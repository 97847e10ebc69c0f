"""Kinds of devices with memory of their own: each is one `Backend`, registered under the name of its kind.

The door and its neighbours ask the backend of an array for whatever does not run on the host: memory, copies, fills,
kernels, callables, and what other libraries are shown. A new kind is a subclass and one call of `register`; nothing else
in this package knows which kinds there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from weft._engine.labels import add_kind, kind_of
from weft._registry.op import FASTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from weft._call.door import Call
    from weft._core import Engine, NDArray
    from weft._registry.avals import DType
    from weft._registry.op import Op


class Backend(ABC):
    """What a kind of device does.

    Attributes
    ----------
    kind : str
        The kind's name: that of ``"kind:0"``, and of an op's attribute ``"compute:kind"``.
    first, count : int
        The number by which engines know the first device, and how many devices there may be.
    dlpack : int
        DLPack's number of the kind.
    faster : str or None
        The attribute of an op by which `launch` finds a kernel: ``"compute:kind"`` takes it away.
    protocol : str or None
        The attribute by which objects of other libraries show memory on such a device.
    """

    kind: ClassVar[str]
    first: ClassVar[int]
    count: ClassVar[int]
    dlpack: ClassVar[int]
    faster: ClassVar[str | None] = None
    protocol: ClassVar[str | None] = None

    @abstractmethod
    def empty(self, shape: Sequence[int], dtype: DType, engine: Engine, index: int) -> NDArray:
        """Return a new array of undefined elements on the device of this number."""

    @abstractmethod
    def copy_cast(self, target: NDArray, x: NDArray) -> None:
        """Push the copy of `x` into `target`, to whose shape it broadcasts, cast without a check; one of them is on such a device."""

    @abstractmethod
    def fill(self, target: NDArray, value: Any) -> None:
        """Push the write of a Python scalar, which fits the dtype, to all of `target`."""

    @abstractmethod
    def elementwise(self, call: Call) -> None:
        """Push a call that has a plan."""

    @abstractmethod
    def launch(self, op: Op, results: tuple[NDArray, ...], given: tuple[Any, ...], attributes: dict[str, Any]) -> bool:
        """Push a kernel of the device for an op without a ufunc, and return whether there is one."""

    @abstractmethod
    def compute_of(self, op: Op) -> Callable[..., object]:
        """Return what a worker calls with the GIL, with views of the device's memory, for an op without a kernel."""

    @abstractmethod
    def capsule(self, x: NDArray, stream: Any, options: dict[str, Any]) -> object:
        """Return a DLPack capsule of an array."""

    @abstractmethod
    def adopt(self, x: Any, engine: Engine) -> NDArray:
        """Return an array on the memory of an object that has the `protocol`."""

    def check_view(  # noqa: B027 - most kinds read elements wherever they lie
        self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType
    ) -> None:
        """Raise if elements that lie so cannot be read; `start` is the first one's offset in bytes."""


_backends: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Make a kind of device known.

    Raises
    ------
    ArgumentValueError
        If the kind, or one of its numbers, is another's.
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
    """Return the backend on whose device an object of another library has its memory, or None."""
    for backend in _backends.values():
        if backend.protocol is not None and hasattr(x, backend.protocol):
            return backend
    return None
