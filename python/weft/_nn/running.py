"""Kernels of the core on arrays: the pushes, and the accepted shapes and layouts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from weft._core import Kernel, NDArray, beside, copy_elements
from weft._registry.op import get_op
from weft._registry.shapes import contiguous_strides

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from weft._core import Loop
    from weft._registry.shapes import Shape

    #: Returns how the core computes a call, once for its avals of results and of operands, and its attributes: see `Native.by`.
    Make: TypeAlias = Callable[..., Kernel | Loop | tuple[Loop, tuple[float, ...]] | None]


def is_plain(x: NDArray) -> bool:
    """Return whether an array's elements lie one behind the other."""
    return x.strides == contiguous_strides(x.shape, x.itemsize)


def run(
    kernel: Kernel | None, outputs: tuple[NDArray, ...], operands: tuple[Any, ...], *, integers: int | None = None
) -> bool:
    """Push a kernel, if there is one and it takes these arrays; others' elements are laid out anew before.

    All have one dtype but for the operand number `integers`; the kernel was made for that one's own dtype.
    """
    if kernel is None:
        return False
    dtype = outputs[0].dtype
    for at, x in enumerate(operands):
        if not isinstance(x, NDArray) or (at != integers and x.dtype != dtype):
            return False
    if not all(map(is_plain, outputs)):
        return False
    kernel.push(outputs, tuple([x if is_plain(x) else laid_out(x) for x in operands]))
    return True


def laid_out(x: NDArray) -> NDArray:
    """Return a copy with one element behind the other."""
    copy = beside(x, x.shape, x.dtype)
    copy_elements(copy, x)
    return copy


def add_bias(out: NDArray, bias: NDArray, axis: int) -> None:
    """Add a vector along an axis to an array, in place."""
    shape = [1] * out.ndim
    shape[axis] = bias.shape[0]
    get_op("add")(out, bias.reshape(shape), out=out)


def around(shape: Shape, axis: int) -> tuple[int, int, int]:
    """Return the product of the lengths before an axis, its own, and the product of those behind."""
    at = axis % len(shape)
    return math.prod(shape[:at]), shape[at], math.prod(shape[at + 1 :])
