"""CUDA as a kind of device: the door's questions to it. The modules behind it are imported at the first call."""


# ruff: noqa: PLC0415 - needed with a device alone

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call.backends import Backend, register
from weft._core import _FIRST_CUDA_DEVICE, NDArray, cuda_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from weft._call.door import Call
    from weft._core import CudaLoop, Engine
    from weft._registry.avals import DType
    from weft._registry.op import Op


class Cuda(Backend):
    """CUDA devices."""

    kind = "cuda"
    first = _FIRST_CUDA_DEVICE
    count = 2**10
    dlpack = 2  # kDLCUDA
    faster = "kernels"
    protocol = "__cuda_array_interface__"

    def empty(self, shape: Sequence[int], dtype: DType, engine: Engine, index: int) -> NDArray:
        """Return a new array of undefined elements on the device of this number."""
        return cuda_empty(shape, dtype, engine, index)

    def copy_cast(self, target: NDArray, x: NDArray) -> None:
        """Push a copy with a cast, by a kernel."""
        from weft._cuda import transfers

        transfers.copy_cast(target, x)

    def copy_elements(self, target: NDArray, x: NDArray) -> None:
        """Push a copy, by the driver or by a kernel."""
        from weft._cuda import transfers

        transfers.copy_elements(target, x)

    def fill(self, target: NDArray, value: Any) -> None:
        """Push a fill, by a kernel."""
        from weft._cuda.elementwise import filling

        filling(target.dtype).push((target,), (value,))

    def elementwise(self, call: Call) -> None:
        """Push a kernel, or a call of CuPy's."""
        from weft._cuda import elementwise

        plan = call.plan
        assert plan is not None
        elementwise.push(call.op, plan.inputs, plan.outputs, call.results, call.given, call.mask, signed=call.exact)

    def kernels(self, ufunc: np.ufunc, dtypes: tuple[DType, ...]) -> CudaLoop | None:
        """Return the kernels of an expression in CUDA C++."""
        from weft._cuda.elementwise import of_ufunc

        return of_ufunc(ufunc, dtypes)

    def push_loop(self, ufunc: np.ufunc, results: tuple[NDArray, ...], operands: tuple[Any, ...]) -> None:
        """Push two kernels for two results, or a call of CuPy's; the core has asked for one kernel."""
        from weft._cuda import elementwise, hosted

        if not elementwise.push_parts(ufunc, results, operands):
            hosted.push(ufunc, results, operands)

    def launch(self, op: Op, results: tuple[NDArray, ...], given: tuple[Any, ...], attributes: dict[str, Any]) -> bool:
        """Push the kernel that the op's attribute ``"kernels"`` states."""
        stated = op.attribute("kernels", None)
        if stated is None:
            return False
        from weft._cuda import functions

        return functions.push(stated, results, given, attributes)

    def compute_of(self, op: Op) -> Callable[..., object]:
        """Return the callable for CuPy's arrays."""
        from weft._cuda.hosted import compute_of

        return compute_of(op)

    def capsule(self, x: NDArray, stream: Any, options: dict[str, Any]) -> object:
        """Return the capsule that CuPy makes."""
        from weft._cuda import interop

        return interop.capsule(x, stream, options)

    def adopt(self, x: Any, engine: Engine) -> NDArray:
        """Return an array on the memory of an object that has ``__cuda_array_interface__``."""
        from weft._cuda import interop

        return interop.adopt(x, engine)

    def check_view(self, start: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType) -> None:
        """Raise unless elements lie at multiples of their size."""
        from weft._cuda.views import check_aligned

        check_aligned(start, shape, strides, dtype)


def __cuda_array_interface__(self: NDArray) -> dict[str, Any]:  # noqa: N807 - a property
    """Where the values are on a CUDA device, and the stream behind which they are there."""
    x = self._now
    if not x._elsewhere:
        raise AttributeError("an array on the CPU has no __cuda_array_interface__: copy it to a device by to_device()")
    from weft._cuda import interop

    return interop.interface(x)


def attach() -> None:
    """Register the kind, and give arrays its protocol; once, when weft is imported."""
    register(Cuda())
    setattr(NDArray, "__cuda_array_interface__", property(__cuda_array_interface__))  # noqa: B010 - made elsewhere
