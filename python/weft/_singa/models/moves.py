"""Tensors that go to other memory: to another device, another dtype, another shape.

A handle on an array stays on its memory. Once the values of a tensor are in other memory, another handle takes its
place; the memory that it leaves is kept by the core, and is used again when it comes back. Ops that were pushed before
have the memory of then, and so have views. Programs know memory and not handles: those that were recorded on memory
that a tensor has left are recorded anew. Calls of other threads find the tensor before the move or after it, or are
refused with a TypeError if it moves in the middle of one; their writes to it during the move are lost.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from weft._call.devices import device_of, new
from weft._core import tape_forget, tape_leaf
from weft._numpy import namespace
from weft._tape.leaves import check_differentiable, is_own_leaf, is_stored
from weft._tape.modes import no_grad

if TYPE_CHECKING:
    import numpy as np

    from weft._core import NDArray
    from weft._engine.labels import Device


def move(x: NDArray, device: Device, dtype: np.dtype[Any]) -> None:
    """Put a tensor on a device in a dtype, with its values, unless it is there.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import cpu, tensor
    >>> from weft._singa.models.moves import move
    >>> x = tensor.ones((2,))
    >>> move(x, cpu(1), np.dtype(np.float16))
    >>> x.dtype, x.device.index
    (dtype('float16'), 1)
    """
    if (device, dtype) == (device_of(x), x.dtype):
        return
    is_leaf = is_own_leaf(x)
    if is_leaf or not x.requires_grad:
        with no_grad():
            there = namespace.astype(x, dtype, device=device)
            was = x._was(device._number, dtype, x.shape)
            if was is not None:
                was[...] = there
                there = was
    else:
        there = namespace.astype(x, dtype, device=device)  # a gradient goes through
    _put(x, there, is_leaf=is_leaf)


def become_like(x: NDArray, other: NDArray) -> None:
    """Put a tensor on memory for the shape, the dtype and the device of another one, with undefined values.

    Examples
    --------
    >>> import weft
    >>> from weft import tensor
    >>> from weft._singa.models.moves import become_like
    >>> x = tensor.ones((2,))
    >>> become_like(x, weft.zeros((3, 2)))
    >>> x.shape
    (3, 2)
    """
    device, dtype, shape = device_of(other), other.dtype, other.shape
    if (device, dtype, shape) == (device_of(x), x.dtype, x.shape):
        return
    there = x._was(device._number, dtype, shape)
    _put(x, new(shape, dtype, x.engine, device) if there is None else there, is_leaf=is_own_leaf(x))


def _put(x: NDArray, there: NDArray, *, is_leaf: bool) -> None:
    if not is_leaf:
        x._become(there)
        return
    check_differentiable(there, f"a tensor with a wanted gradient, of shape {x.shape},")
    own, stores = weakref.ref(x), is_stored(x)
    try:
        tape_forget(x)  # by the core's calls, without a place for an interrupt
        x._become(there)
    finally:
        tape_leaf(x, own, stores)  # here, or there still
