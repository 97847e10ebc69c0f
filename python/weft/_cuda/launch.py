"""Kernels that ops state by their attribute ``"kernels"``, which is read when there is a device.

An op states a function from a call to a `Launch`, or to None; or it states a `Reduction` or a `Product`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from weft._core import NDArray
    from weft._registry.avals import DType
    from weft._registry.shapes import Shape

#: The dtypes of a complex number's parts.
PARTS: dict[DType, DType] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}


@dataclass(frozen=True, slots=True)
class Launch:
    """An element-wise kernel: one expression in CUDA C++ of operands ``a``, ``b``, ``c``, ``d``.

    Attributes
    ----------
    name : str
        The kernel's.
    body : str
        The expression. With `indexed`, ``i`` is the element's number in rows.
    operands : tuple of NDArray or Python scalar
        Its operands.
    computed : tuple of numpy.dtype
        The dtype that it casts each to.
    result : numpy.dtype, optional
        The expression's dtype, by default the result's.
    indexed : bool, default: False
        Whether elements are numbered.
    """

    name: str
    body: str
    operands: tuple[Any, ...]
    computed: tuple[DType, ...]
    result: DType | None = None
    indexed: bool = False


@dataclass(frozen=True, slots=True)
class Reduction:
    """Kernels that reduce elements in rows.

    Attributes
    ----------
    name : str
        The kernels'.
    floating, integers : str
        The combination of two elements ``a`` and ``b`` of floating point, or of integers: one expression in CUDA C++.
    kept : bool, default: False
        Whether results are of the elements' dtype.
    divided : bool, default: False
        Whether results are divided by the number of elements.
    """

    name: str
    floating: str
    integers: str
    kept: bool = False
    divided: bool = False

    def push(self, out: NDArray, x: NDArray, *masks: NDArray, axis: Shape | None = None, **attributes: Any) -> bool:
        """Push the kernels; return whether there are some for this call."""
        from weft._cuda import totals  # noqa: PLC0415 - for those alone who have a device

        return not masks and attributes.get("initial") is None and totals.push(self, out, x, axis)


class Product:
    """Kernels that multiply small matrices."""

    @staticmethod
    def push(out: NDArray, a: NDArray, b: NDArray) -> bool:
        """Push the kernel; return whether there is one for this call."""
        from weft._cuda import products  # noqa: PLC0415 - for those alone who have a device

        return products.push(out, a, b)


def copying(x: Any, dtype: DType) -> Launch:
    """Return the launch that copies elements."""
    return Launch("copy", "a", (x,), (dtype,))
