"""SINGA's functions of tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._engine.labels import cpu
from weft._numpy import namespace
from weft._singa.models.generators import generator_of
from weft._singa.models.scalars import plain
from weft._singa.models.tensors import Tensor, dtype_of, write
from weft._tape.modes import no_grad
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from weft._engine.labels import Device


def from_numpy(np_array: npt.ArrayLike, dev: Device | str | None = None) -> Tensor:
    """Return a tensor of the values of a NumPy array; float64 becomes float32, and int64 int32.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import tensor
    >>> tensor.from_numpy(np.arange(3.0)).dtype
    dtype('float32')
    """
    found = np.asarray(np_array)
    narrow = {np.dtype(np.float64): np.float32, np.dtype(np.int64): np.int32}.get(found.dtype)
    return Tensor(data=found, dtype=found.dtype if narrow is None else narrow, device=dev)


def to_numpy(t: NDArray) -> npt.NDArray[Any]:
    """Return the values as a new NumPy array, after a wait.

    Examples
    --------
    >>> from weft import tensor
    >>> tensor.to_numpy(tensor.ones((2,)))
    array([1., 1.], dtype=float32)
    """
    return np.array(t.numpy())


def to_host(t: NDArray) -> NDArray:
    """Return the array on the first CPU: itself, if it is there, a copy otherwise."""
    return NDArray.to_device(t, cpu())


def from_raw_tensor(t: NDArray) -> Tensor:
    """Return a tensor of the values of an array."""
    return Tensor(data=t)


def from_raw_tensors(tt: Iterable[NDArray]) -> list[Tensor]:
    """Return tensors of the values of arrays."""
    return [from_raw_tensor(t) for t in tt]


def zeros(shape: Sequence[int], device: Device | str | None = None) -> Tensor:
    """Return a tensor of zeros, of float32."""
    return Tensor(shape, device)


def ones(shape: Sequence[int], device: Device | str | None = None) -> Tensor:
    """Return a tensor of ones, of float32."""
    made = Tensor(shape, device)
    made.set_value(1.0)
    return made


def random(shape: Sequence[int], device: Device | str | None = None) -> Tensor:
    """Return a tensor of numbers drawn from between 0 and 1."""
    made = Tensor(shape, device)
    made.uniform(0.0, 1.0)
    return made


def product(shape: Iterable[int]) -> int:
    """Return the number of elements of a shape."""
    return math.prod(shape)


def sizeof(dtype: npt.DTypeLike) -> int:
    """Return the bytes of an element of a dtype."""
    return dtype_of(dtype).itemsize


def contiguous(tensor: NDArray) -> NDArray:
    """Return the elements row after row: the array itself, if they lie so."""
    return tensor if tensor._contiguous else tensor.copy()


def transpose(t: NDArray, axes: Sequence[int] | None = None) -> NDArray:
    """Return a view with the axes in another order, by default backwards."""
    return namespace.transpose(t, axes)


def reshape(tensor: NDArray, shape: int | Sequence[int]) -> NDArray:
    """Return the elements in another shape."""
    return namespace.reshape(tensor, shape)


def concatenate(tensors: Sequence[NDArray], axis: int) -> NDArray:
    """Return arrays as one, one after another along an axis."""
    return namespace.concatenate(tensors, axis=axis)


def repeat(t: NDArray, repeats: int | Sequence[int], axis: int | None = None) -> NDArray:
    """Return each element several times in a row."""
    return namespace.repeat(t, repeats, axis=axis)


def tensordot(A: NDArray, B: NDArray, axes: Any = 2) -> NDArray:
    """Return sums of products over axes of both."""
    return namespace.tensordot(A, B, axes=axes)


def einsum(ops: str, *args: NDArray) -> NDArray:
    """Return sums of products, as Einstein's notation tells."""
    return namespace.einsum(ops, *args)


def sum(t: NDArray, axis: int | Sequence[int] | None = None, out: NDArray | None = None) -> NDArray:
    """Return the sum over axes, by default over all.

    Examples
    --------
    >>> from weft import tensor
    >>> tensor.sum(tensor.ones((2, 3)), axis=0)
    NDArray([2., 2., 2.], dtype=float32)
    """
    found = namespace.sum(t, axis=tuple(axis) if isinstance(axis, list | tuple) else axis)
    return found if out is None else _into(out, found)


def average(t: NDArray, axis: int | None = None) -> NDArray | float:
    """Return the mean over an axis, by default over all elements; of one dimension a number, after a wait.

    Examples
    --------
    >>> from weft import tensor
    >>> tensor.average(tensor.ones((3,)))
    1.0
    """
    found = namespace.mean(t, axis=axis)
    return float(found) if t.ndim <= 1 else found


def sigmoid(t: NDArray) -> NDArray:
    """Return ``1 / (1 + exp(-t))``."""
    return 0.5 * (1 + namespace.tanh(0.5 * t))  # which overflows nowhere


def softmax(t: NDArray, out: NDArray | None = None) -> NDArray:
    """Return the exponentials of each row, divided by their sum."""
    found = namespace.exp(t - namespace.max(t, axis=-1, keepdims=True))
    found = found / namespace.sum(found, axis=-1, keepdims=True)
    return found if out is None else _into(out, found)


def pow(t: NDArray, x: NDArray | float, out: NDArray | None = None) -> NDArray:
    """Return elements to the power of a number, or of the elements of another array."""
    found = namespace.power(t, plain(x))
    return found if out is None else _into(out, found)


def mult(A: NDArray, B: NDArray, C: NDArray | None = None, alpha: float = 1.0, beta: float = 0.0) -> NDArray:
    """Return ``alpha * A @ B``; with `C`, overwrite that with ``alpha * A @ B + beta * C`` and return it."""
    alpha, beta = plain(alpha), plain(beta)
    found = namespace.matmul(A, B)
    if alpha != 1.0:
        found = alpha * found
    if C is None:
        return found
    return _into(C, found if beta == 0.0 else found + beta * C)


def axpy(alpha: float, x: NDArray, y: NDArray) -> NDArray:
    """Add ``alpha * x`` to `y` in place, and return it."""
    with no_grad():
        y += plain(alpha) * x
    return y


def gaussian(mean: float, std: float, t: NDArray) -> NDArray:
    """Draw all elements from a normal distribution."""
    return _into(t, generator_of(t.device).normal(mean, std, t.shape))


def uniform(low: float, high: float, t: NDArray) -> NDArray:
    """Draw all elements from between two bounds."""
    return _into(t, generator_of(t.device).uniform(low, high, t.shape))


def bernoulli(p: float, t: NDArray) -> NDArray:
    """Draw ones with the probability `p`, and zeros otherwise."""
    return _into(t, generator_of(t.device).random(t.shape) < p)


def add_column(alpha: float, v: NDArray, beta: float, M: NDArray) -> NDArray:
    """Overwrite a matrix with ``alpha * v + beta * M``, `v` being added to each column."""
    return _into(M, plain(alpha) * v[:, None] + plain(beta) * M)


def add_row(alpha: float, v: NDArray, beta: float, M: NDArray) -> NDArray:
    """Overwrite a matrix with ``alpha * v + beta * M``, `v` being added to each row."""
    return _into(M, plain(alpha) * v + plain(beta) * M)


def sum_columns(M: NDArray) -> NDArray:
    """Return the sum of the columns of a matrix."""
    return namespace.sum(M, axis=1)


def sum_rows(M: NDArray) -> NDArray:
    """Return the sum of the rows of a matrix."""
    return namespace.sum(M, axis=0)


def copy_data_to_from(dst: NDArray, src: NDArray, size: int, dst_offset: int = 0, src_offset: int = 0) -> None:
    """Copy elements, counted row by row, from one array into another."""
    if min(size, dst_offset, src_offset) < 0 or dst_offset + size > dst.size or src_offset + size > src.size:
        raise ArgumentValueError(
            f"{size} elements from {src_offset} on of an array of {src.size} do not go to {dst_offset} on in one of {dst.size}"
        )
    part = src.reshape(-1)[src_offset : src_offset + size]
    if size == dst.size:
        part = part.reshape(dst.shape)
    write(dst, part, dst_offset)


def copy_from_numpy(data: NDArray, np_array: npt.ArrayLike) -> None:
    """Overwrite a tensor with the elements of a NumPy array."""
    if not isinstance(data, Tensor):
        raise ArgumentTypeError(f"copy_from_numpy writes to a tensor, not to {type(data).__name__}")
    data.copy_from_numpy(np_array)


def _into(out: NDArray, found: NDArray) -> NDArray:
    write(out, found if found.device == out.device else NDArray.to_device(found, out.device), 0)
    return out
