"""What an op says of the kernel that computes a call of it: its attribute ``"kernels"``, read when there is a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from weft._registry.avals import DType

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
        What it takes.
    computed : tuple of numpy.dtype
        What it casts each to.
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


def copying(x: Any, dtype: DType) -> Launch:
    """Return the launch that copies elements."""
    return Launch("copy", "a", (x,), (dtype,))
