"""Ops of a recorded program's graph that are no functions of arrays: views, writes to views, opaque calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from weft._registry.avals import Aval, like_first
from weft._registry.op import register_op
from weft.errors import GraphError

if TYPE_CHECKING:
    from weft._call.calls import Elements


@dataclass(frozen=True, slots=True)
class Placed:
    """Where elements lie in a buffer.

    Parameters
    ----------
    shape, strides : tuple of int
        As of an array.
    offset : int
        Bytes before the first element.
    dtype : str
        The elements' type.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: str

    @property
    def low(self) -> int:
        """The first byte that it reaches."""
        return self.offset + sum(min(0, (n - 1) * by) for n, by in zip(self.shape, self.strides, strict=True) if n)

    @property
    def high(self) -> int:
        """The byte after the last one that it reaches."""
        if 0 in self.shape:
            return self.offset
        far = sum(max(0, (n - 1) * by) for n, by in zip(self.shape, self.strides, strict=True))
        return self.offset + far + np.dtype(self.dtype).itemsize

    @property
    def is_dense(self) -> bool:
        """Whether it is all of the bytes that it reaches."""
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize == self.high - self.low

    def within(self, home: Placed) -> dict[str, Any]:
        """Return it as attributes of a view of an array that lies in a buffer as `home` does.

        Examples
        --------
        >>> from weft._graph.recorded_ops import Placed
        >>> Placed((2,), (8,), 16, "float64").within(Placed((4,), (8,), 0, "float64"))
        {'shape': (2,), 'strides': (8,), 'offset': 16, 'dtype': 'float64', 'home': (8,)}
        """
        return {
            "shape": self.shape,
            "strides": self.strides,
            "offset": self.offset - home.offset,
            "dtype": self.dtype,
            "home": home.strides,
        }


def _spread(x: Elements, shape: Any, strides: Any, offset: int, dtype: str, home: Any) -> tuple[Elements, Elements]:
    """Return an array and a view of it in the bytes that both reach; the array holds its elements."""
    place = Placed(tuple(shape), tuple(strides), offset, dtype)
    own = Placed(x.shape, tuple(home), 0, x.dtype.name)
    low, high = min(own.low, place.low), max(own.high, place.high)
    memory: Elements = np.zeros(max(high - low, 1), np.uint8)

    def at(each: Placed) -> Elements:
        dtype = np.dtype(each.dtype)
        shown: Elements = np.ndarray(each.shape, dtype, memory, each.offset - low if high > low else 0, each.strides)
        return shown

    whole, part = at(own), at(place)
    whole[...] = x
    return whole, part


def _infer_view(_: Aval, *, shape: Any, dtype: str, **_rest: Any) -> Aval:
    return Aval(tuple(shape), np.dtype(dtype))


@register_op("recorded_view", infer=_infer_view)
def view_op(out: Elements, x: Elements, **attributes: Any) -> None:
    """Read an array's memory in another layout: its attributes are those of `Placed.within`."""
    _, part = _spread(x, **attributes)
    out[...] = part


def _infer_write(x: Aval, _: Aval, **_attributes: Any) -> Aval:
    return Aval(x.shape, x.dtype)


@register_op("recorded_write", infer=_infer_write, inplace=[(0, 0)])
def write_op(out: Elements, x: Elements, value: Elements, **attributes: Any) -> None:
    """Write to such a view of an array: the array's next version."""
    whole, part = _spread(x, **attributes)
    part[...] = value
    out[...] = whole


def _infer_fill(*, value: complex, shape: Any, dtype: str) -> Aval:
    del value
    return Aval(tuple(shape), np.dtype(dtype))


@register_op("recorded_fill", infer=_infer_fill)
def fill_op(out: Elements, *, value: complex, shape: tuple[int, ...], dtype: str) -> None:
    """Make an array of one number."""
    del shape, dtype
    out.fill(value)


@register_op("recorded_copy", infer=like_first)
def copy_op(out: Elements, x: Elements) -> None:
    """Copy an array, broadcast."""
    out[...] = x


def _infer_opaque(*inputs: Aval, name: str, results: Any, attributes: str | None = None) -> tuple[Aval, ...]:
    del inputs, name, attributes
    return tuple(Aval(tuple(shape), np.dtype(dtype)) for shape, dtype in results)


@register_op("recorded", infer=_infer_opaque, nout=2)
def opaque_op(*arrays: Elements, name: str, results: Any, attributes: str | None = None) -> NoReturn:
    """Stand for a recorded step without a rule of its own; a replay of the program runs it."""
    del arrays, results, attributes
    raise GraphError(f"{name!r} was recorded: a graph knows only its reads and writes; replay the program")


def _count(given: dict[str, Any]) -> int:
    return len(given["results"])


opaque_op.set_attribute("num_inputs", None)
opaque_op.set_attribute("num_outputs", _count)
opaque_op.set_attribute("pure", value=False)
