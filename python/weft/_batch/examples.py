"""A function's view of an array under `weft.vmap`: one example, which stands for all of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from weft._call.calls import call
from weft._call.devices import device_of
from weft._call.operands import as_array
from weft._graph.indexing import indexed
from weft._graph.operators import Operators
from weft._numpy.arguments import adapt
from weft._numpy.names import namesake
from weft._registry.levels import Examples, held
from weft._registry.op import get_op
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from weft._core import Engine
    from weft._engine.labels import Device
    from weft._registry.avals import DType
    from weft._registry.levels import Level

#: Methods of arrays that an example lacks.
_WITHOUT = {
    **dict.fromkeys(("numpy", "item", "tolist", "tobytes", "asnumpy", "wait_to_read"), "it has no values of its own"),
    **dict.fromkeys(("fill", "copyfrom", "copyto", "strides", "data"), "it has no memory of its own"),
    **{name: f"it has no memory of its own to do so in: write weft.{name}(x)" for name in ("sort", "partition")},
    "requires_grad": "gradients of each are weft.vmap(weft.grad(fn))",
}


class Example(Examples, Operators):
    """One example of many: weft's functions and operators compute all of them at once."""

    __slots__ = ()

    def __init__(self, level: Level, value: Any) -> None:
        self.level = level
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one example."""
        found: tuple[int, ...] = self.value.shape[1:]
        return found

    @property
    def ndim(self) -> int:
        """The number of axes of one example."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements of one example."""
        return math.prod(self.shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the elements."""
        found: DType = self.value.dtype
        return found

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of one example."""
        return self.size * self.itemsize

    @property
    def engine(self) -> Engine:
        """The engine of the array."""
        found: Engine = held(self).engine
        return found

    @property
    def device(self) -> Device:
        """The device of the array."""
        return device_of(held(self))

    @property
    def _device(self) -> int:
        found: int = held(self)._device
        return found

    def __array_ufunc__(  # type: ignore[override] # symbols have None
        self, ufunc: np.ufunc, method: str, *operands: Any, **kwargs: Any
    ) -> Any:
        """Call weft's function of the same name for one of NumPy's."""
        if method != "__call__" or kwargs:
            return NotImplemented
        return call(get_op(ufunc.__name__), *operands)

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Call weft's function of the same name for one of NumPy's, some of which take an error of values for an answer."""
        own = namesake(func)
        adapted = None if own is None else adapt(func, own, args, kwargs)
        if own is None or adapted is None:
            raise ArgumentTypeError(
                f"{self._said()} has no values for {func.__name__}() of NumPy's: compute with weft's functions"
            )
        return own(*adapted[0], **adapted[1])

    def __len__(self) -> int:
        """Return the length of the first axis of one example."""
        if not self.shape:
            raise ArgumentTypeError("len() of an array without axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first axis of one example."""
        return (self[at] for at in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        """Return elements, as of one example."""
        found: Any = self  # composed as a symbol is
        entries: tuple[Any, ...] = key if key.__class__ is tuple else (key,)
        return indexed(found, tuple(map(_positions, entries)))

    def __repr__(self) -> str:
        """Return its level, shape and dtype."""
        name, size = self.level.name, self.level.size
        return f"<one of {size} examples under weft.vmap({name}): shape {self.shape}, dtype {self.dtype}>"

    def __getattr__(self, name: str) -> Any:
        """Return one of weft's functions as a method, as arrays have them."""
        if name in _WITHOUT or name.startswith("_"):
            why = _WITHOUT.get(name)
            raise AttributeError(f"{self._said()} has no {name!r}{'' if why is None else f': {why}'}", name=name)
        try:
            return Operators.__getattr__(self, name)
        except AttributeError:  # which tells of a symbol
            raise AttributeError(f"{self._said()} has no attribute {name!r}", name=name) from None

    def _said(self) -> str:
        return f"an array inside of weft.vmap({self.level.name}) stands for {self.level.size} examples at once, and"

    def _has_no_values(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentTypeError(
            f"{self._said()} has no one value to branch on or to convert: choose by weft.where, or return the array"
        )

    __array__ = __float__ = __int__ = __complex__ = __bool__ = __index__ = _has_no_values

    def __setitem__(self, key: object, value: object) -> NoReturn:
        raise ArgumentTypeError(
            f"{self._said()} is a value, and no element of it is written to: make another, by weft.where, weft.concat or "
            "weft.stack"
        )


def _positions(entry: Any) -> Any:
    """Return a list of positions in a key as an array of them."""
    if entry.__class__ not in (list, np.ndarray):
        return entry
    found: np.ndarray[Any, Any] = np.asarray(entry)
    if found.dtype.kind == "b" and found.ndim == 1:
        found = np.flatnonzero(found)
    return as_array(found if found.size else found.astype(np.intp))


def check_open(x: Examples) -> None:
    """Raise ValueError if the call of `weft.vmap` that made `x` has ended."""
    if not x.level.open:
        raise ArgumentValueError(
            f"an array from inside of weft.vmap({x.level.name}) was kept beyond the call: return it from the function instead"
        )
