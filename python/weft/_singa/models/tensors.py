"""`weft.tensor.Tensor`: an array that can be made empty and be given values later."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from weft._call.devices import as_device
from weft._core import NDArray
from weft._engine.labels import cpu
from weft._numpy import namespace
from weft._registry.avals import as_dtype
from weft._singa.models.moves import become_like, move
from weft._tape.leaves import is_own_leaf, is_stored, make_leaf
from weft._tape.modes import flag, no_grad
from weft.errors import ArgumentTypeError, ArgumentValueError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from weft._engine.labels import Device
    from weft._ops.random import Generator
    from weft._singa.device import Device as SingaDevice

#: Names that SINGA's `as_type` takes.
_DTYPES = {"int": "int32", "float": "float32", "half": "float16"}
#: Devices that tensors were asked for, by their numbers.
_faces: dict[int, SingaDevice] = {}


def dtype_of(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return the dtype that is meant: "float" is float32 here and "int" int32."""
    return as_dtype(_DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype)


class Tensor(NDArray):
    """An array with a name, made by its shape and given values in place.

    It is an `NDArray`, and so are results that are computed from it. Inputs and parameters of models are tensors, which
    programs read and change where they lie. `to_device`, `to_host`, `to_type` and `reset_like` change the tensor itself, as
    SINGA's do: its elements lie in other memory then, and programs that were recorded with it are recorded anew.

    Parameters
    ----------
    shape : sequence of int, default: ()
        The lengths of the axes; left out where `data` is given.
    device : Device or str, optional
        The device; by default that of `data`, or the first CPU.
    dtype : dtype-like, default: float32
        The dtype, also of the values of `data`; an array of weft's keeps its own by default.
    data : array-like, optional
        The values, which are copied; zeros by default.
    requires_grad : bool, optional
        Whether its gradient is wanted; by default if `stores_grad` is set.
    stores_grad : bool, default: False
        Whether it is a parameter, which `weft.autograd.backward` yields with its gradient, and which optimizers update. A
        tensor made with ``requires_grad=True`` alone is an input: `weft.autograd.gradients` has its gradient.
    creator : object, optional
        Ignored: the tape knows the maker of an array.
    name : str, optional
        The name. A layer gives its parameters their names.

    Examples
    --------
    >>> import numpy as np
    >>> from weft import tensor
    >>> x = tensor.Tensor((2, 2))
    >>> x.copy_from_numpy(np.array([[1, 2], [3, 4]], np.float32))
    >>> x + 1
    NDArray([[2., 3.],
             [4., 5.]], dtype=float32)
    """

    name: str | None = None
    #: Whether it is a model's result, and so no state of a layer that keeps it.
    _is_result = False

    def __new__(
        cls,
        shape: int | Sequence[int] = (),
        device: Device | str | None = None,
        dtype: npt.DTypeLike = np.float32,
        data: Any = None,
        requires_grad: bool | None = None,
        stores_grad: bool = False,
        creator: object = None,  # noqa: ARG004 - likewise: here the tape knows
        name: str | None = None,
    ) -> Self:
        where = None if device is None else as_device(device)
        if data is None:
            found = namespace.zeros(shape, dtype_of(dtype), device=where)
        else:
            with no_grad():
                found = namespace.asarray(data, _dtype_among(data, dtype), device=where, copy=True)
        made = super().__new__(cls, found)
        made.name = name
        stores = flag(stores_grad, "stores_grad")
        if stores or (requires_grad is not None and flag(requires_grad, "requires_grad")):
            make_leaf(made, stores=stores)
        return made

    @property
    def data(self) -> NDArray:
        """The tensor itself: there is nothing behind it. An assignment overwrites its elements, so ``p.data += x`` works."""
        return self

    @data.setter
    def data(self, value: NDArray) -> None:
        if value is not self:
            self.copy_data(value)

    @property
    def device(self) -> SingaDevice:
        """The device, with SINGA's methods; that of a result is a plain `weft.Device`, equal to this one."""
        found = _faces.get(self._device)
        if found is None:
            from weft._singa.device import face  # noqa: PLC0415 - which makes tensors itself

            found = _faces[self._device] = face(super().device)
        return found

    @property
    def stores_grad(self) -> bool:
        """Whether `weft.autograd.backward` yields it with its gradient, and optimizers update it.

        True lets it require a gradient, too; False leaves that as it is. `requires_grad` that is set later counts as both, as of
        any array.
        """
        return is_stored(self)

    @stores_grad.setter
    def stores_grad(self, value: bool) -> None:
        stores = flag(value, "stores_grad")
        if stores != is_stored(self) and (stores or is_own_leaf(self)):
            make_leaf(self, stores=stores)

    def is_dummy(self) -> bool:
        """Return whether it has no name."""
        return self.name is None

    def is_empty(self) -> bool:
        """Return whether it has no axes."""
        return self.ndim == 0

    def is_transpose(self) -> bool:
        """Return whether its elements do not lie row after row."""
        return not self._contiguous

    def memsize(self) -> int:
        """Return the bytes of its elements."""
        return self.nbytes

    def contiguous(self) -> NDArray:
        """Return its elements row after row: itself, if they lie so."""
        return self if self._contiguous else self.copy()

    def copy_from_numpy(self, np_array: npt.ArrayLike, offset: int = 0) -> None:
        """Overwrite it with the elements of a NumPy array, which are copied at the call.

        Parameters
        ----------
        np_array : array-like
            As many elements as the tensor has, in any shape; or, with `offset`, as fit behind that.
        offset : int, default: 0
            The element to begin with, counted row by row.

        Raises
        ------
        ArgumentValueError
            If there are not as many elements.
        ArgumentTypeError
            If numbers would lose their fractions, or are none; whole numbers of any dtype go into integers.
        """
        source = np.asarray(np_array)
        if not np.can_cast(source.dtype, self.dtype, "same_kind"):
            source = _whole(source, self.dtype)
        whole = offset == 0 and source.size == self.size
        if not whole and (offset <= 0 or offset + source.size > self.size):
            raise ArgumentValueError(
                f"copy_from_numpy: an array of shape {source.shape} has {source.size} elements, and the tensor of shape "
                f"{self.shape} has {self.size} of them{f' from {offset} on' if offset else ''}"
            )
        write(self, source, offset)

    def copy_data(self, t: NDArray) -> None:
        """Overwrite it with another array of as many elements."""
        if not isinstance(t, NDArray):
            raise ArgumentTypeError(f"copy_data takes an array, not {type(t).__name__}: copy_from takes NumPy's, too")
        if t.size != self.size:
            raise ArgumentValueError(f"copy_data: the shapes {t.shape} and {self.shape} are of different sizes")
        write(self, t if t._device == self._device else NDArray.to_device(t, self.device), 0)

    def copy_from(self, t: NDArray | npt.ArrayLike, offset: int = 0) -> None:
        """Overwrite it with an array of either kind."""
        if isinstance(t, NDArray):
            self.copy_data(t)
        else:
            self.copy_from_numpy(t, offset)

    def reset_like(self, t: NDArray) -> None:
        """Take the shape, the dtype and the device of another array. The values are undefined, unless it had all three before."""
        if not isinstance(t, NDArray):
            raise ArgumentTypeError(f"reset_like takes an array, not {type(t).__name__}")
        become_like(self, t)

    def clone(self) -> Tensor:
        """Return a new tensor of the same values."""
        return Tensor(data=self, dtype=self.dtype, requires_grad=self.requires_grad, stores_grad=self.stores_grad)

    def deepcopy(self) -> Tensor:
        """Return a new tensor of the same values, as `clone`."""
        return self.clone()

    def __deepcopy__(self, memo: dict[int, object]) -> NDArray:
        """Return a new tensor of the same values; of what was computed from arrays that require gradients, a new array."""
        if self.requires_grad and not is_own_leaf(self):
            return super().__deepcopy__(memo)
        made = Tensor(data=self, requires_grad=self.requires_grad, stores_grad=self.stores_grad)
        made.__dict__.update(deepcopy(self.__dict__, memo))
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Wait, and pickle the values, and whether gradients are wanted and stored."""
        make, given = super().__reduce__()
        return _unpickled, (make, given, is_own_leaf(self), self.stores_grad), self.__dict__

    def as_type(self, dtype: npt.DTypeLike) -> NDArray:
        """Return the elements cast to a dtype; "int" is int32 and "float" float32."""
        return self.astype(dtype_of(dtype))

    def to_type(self, dtype: npt.DTypeLike) -> Self:
        """Cast the elements to a dtype, in place, and return the tensor; "int" is int32 and "float" float32.

        Examples
        --------
        >>> from weft import tensor
        >>> x = tensor.ones((2,))
        >>> x.to_type("int")
        NDArray([1, 1], dtype=int32)
        """
        move(self, self.device, dtype_of(dtype))
        return self

    def add_column(self, v: NDArray) -> None:
        """Add a vector to each column, in place."""
        write(self, self + _column(self, v), 0)

    def add_row(self, v: NDArray) -> None:
        """Add a vector to each row, in place."""
        write(self, self + _row(self, v), 0)

    def mult_column(self, v: NDArray) -> None:
        """Multiply each column by a vector, in place."""
        write(self, self * _column(self, v), 0)

    def mult_row(self, v: NDArray) -> None:
        """Multiply each row by a vector, in place."""
        write(self, self * _row(self, v), 0)

    def div_column(self, v: NDArray) -> None:
        """Divide each column by a vector, in place."""
        write(self, self / _column(self, v), 0)

    def div_row(self, v: NDArray) -> None:
        """Divide each row by a vector, in place."""
        write(self, self / _row(self, v), 0)

    def to_device(self, device: Device | str, /, *, stream: object = None) -> Self:
        """Move the tensor to a device, and return it.

        Views of it stay where they are. The memory that it leaves is kept for the way back. `to_device` of other arrays, and
        `weft.asarray(x, device=...)` of a tensor, make a copy instead.

        Parameters
        ----------
        device : Device or str
            The device.
        stream : None
            Tensors have none.

        Raises
        ------
        CaptureError
            If this thread records: a recording knows the tensor where it is.

        Examples
        --------
        >>> import weft
        >>> from weft import tensor
        >>> x = tensor.ones((2,))
        >>> _ = x.to_device(weft.cpu(1))
        >>> x.device
        weft.Device('cpu:1')
        """
        if stream is not None:
            raise ArgumentValueError(
                f"a tensor moves on no stream of the caller's: stream must be None, not {stream!r}"
            )
        move(self, as_device(device), self.dtype)
        return self

    def to_host(self) -> Self:
        """Move the tensor to the first CPU, and return it, as `to_device`."""
        move(self, cpu(), self.dtype)
        return self

    def l1(self) -> float:
        """Return the mean of the absolute values, after a wait."""
        return float(namespace.mean(namespace.abs(self)).item())

    def l2(self) -> float:
        """Return the Euclidean norm divided by the number of elements, after a wait."""
        return float(namespace.sqrt(namespace.sum(self * self)).item()) / max(self.size, 1)

    def set_value(self, x: float, inplace: bool = True) -> NDArray:
        """Set all elements to a number, and return the tensor; with ``inplace=False``, a new array."""
        if not inplace:
            return namespace.full_like(self, x)
        with no_grad():
            self[...] = x
        return self

    def gaussian(self, mean: float, std: float, inplace: bool = True) -> NDArray:
        """Draw all elements from a normal distribution, by the device's generator."""
        return self._draw(inplace, lambda rng: rng.normal(mean, std, self.shape))

    def uniform(self, low: float, high: float, inplace: bool = True) -> NDArray:
        """Draw all elements from between two bounds, by the device's generator."""
        return self._draw(inplace, lambda rng: rng.uniform(low, high, self.shape))

    def bernoulli(self, p: float, inplace: bool = True) -> NDArray:
        """Draw ones with the probability `p` and zeros otherwise, by the device's generator."""
        return self._draw(inplace, lambda rng: rng.random(self.shape) < p)

    def _draw(self, inplace: bool, draw: Callable[[Generator], NDArray]) -> NDArray:
        from weft._singa.models.generators import generator_of  # noqa: PLC0415 - which may need a tensor itself

        target = self if inplace else namespace.empty_like(self)
        drawn = draw(generator_of(self.device))
        write(target, drawn if drawn.device == self.device else drawn.to_device(self.device), 0)
        return target


def _unpickled(make: Callable[..., NDArray], given: tuple[Any, ...], requires_grad: bool, stores_grad: bool) -> Tensor:
    return Tensor(data=make(*given), requires_grad=requires_grad, stores_grad=stores_grad)


def _dtype_among(data: Any, dtype: npt.DTypeLike) -> np.dtype[Any] | None:
    """Return the dtype of a tensor of these values: arrays of weft's keep theirs unless one is named."""
    return None if isinstance(data, NDArray) and dtype is np.float32 else dtype_of(dtype)


def _whole(source: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the same values in a dtype of another kind; ArgumentTypeError if they change."""
    if source.dtype.kind == "f" and dtype.kind in "iu":
        with np.errstate(invalid="ignore"):
            found = source.astype(dtype)
        if np.array_equal(found, source):
            return found
    raise ArgumentTypeError(
        f"copy_from_numpy: values of dtype {source.dtype} do not go into a tensor of dtype {dtype}: cast them by "
        f"astype({dtype.name!r})"
    )


def _column(matrix: NDArray, v: NDArray) -> NDArray:
    """Return a vector as a column of a matrix; ShapeError if it is none."""
    if matrix.ndim != 2 or v.shape != matrix.shape[:1]:  # of a matrix
        raise ShapeError(f"a vector of shape {v.shape} is no column of a tensor of shape {matrix.shape}")
    return v.reshape((-1, 1))


def _row(matrix: NDArray, v: NDArray) -> NDArray:
    """Return a vector as a row of a matrix; ShapeError if it is none."""
    if matrix.ndim != 2 or v.shape != matrix.shape[1:]:
        raise ShapeError(f"a vector of shape {v.shape} is no row of a tensor of shape {matrix.shape}")
    return v


def as_results(found: Any) -> Any:
    """Return a model's results with arrays as tensors, on the same memory: with SINGA's methods.

    Examples
    --------
    >>> import weft
    >>> from weft._singa.models.tensors import as_results
    >>> as_results((weft.ones(2), 3))[0].as_type("int")
    NDArray([1, 1], dtype=int32)
    """
    if type(found) is NDArray:
        made: Tensor = NDArray.__new__(Tensor, found)
        made._is_result = True
        if found._known:
            made._become(found)  # the tape knows it, too
        return made
    if type(found) in {tuple, list}:
        return type(found)(map(as_results, found))
    if type(found) is dict:
        return {key: as_results(each) for key, each in cast("Any", found).items()}
    return found


def write(target: NDArray, source: Any, offset: int) -> None:
    """Overwrite elements, though the target may be a parameter."""
    with no_grad():
        if offset or source.shape != target.shape:
            flat = target.reshape(-1)
            flat[offset : offset + source.size] = source.reshape(-1)
        else:
            target[...] = source
