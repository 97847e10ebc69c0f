"""Arrays written as keys: `r_` and `c_` join the items of the brackets, `mgrid` and `ogrid` make grids of slices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weft._call.operands import as_array, engine_of, listed
from weft._call.scalars import number_of
from weft._core import NDArray, wrap
from weft._engine.default import get_engine
from weft._ops.dtypes import result_type
from weft._ops.joining import concat
from weft._ops.manipulation import permute_dims, swapaxes
from weft._ops.spacing import arange, linspace
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._core import Engine

__all__ = ["c_", "index_exp", "mgrid", "ogrid", "r_", "s_"]

#: NumPy's own: they return the key between their brackets.
index_exp, s_ = np.index_exp, np.s_

_NUMBERS = frozenset([bool, int, float, complex, *np.sctypeDict.values()])


class Joining:
    """Joins the arrays, numbers and ranges between its brackets, as NumPy's object of the name does. Does not wait.

    A slice is a range, ``start:stop:step``. An imaginary step, ``0:1:5j``, gives the count of numbers, both ends
    included. A first entry such as ``"0,2"`` or ``"-1,2,0"`` gives the axis to join along, the least number of axes of
    each part, and the place of its own axes among these.

    Examples
    --------
    >>> import weft
    >>> weft.r_[1:4, 0, weft.asarray([7, 8])]
    NDArray([1, 2, 3, 0, 7, 8])
    >>> weft.c_[[1, 2], [3, 4]]
    NDArray([[1, 3],
             [2, 4]])
    """

    __slots__ = ("_how", "_name")

    def __init__(self, name: str, axis: int, ndim: int, place: int) -> None:
        self._name = name
        self._how = axis, ndim, place

    def __repr__(self) -> str:
        """Return the public name."""
        return f"weft.{self._name}"

    def __getitem__(self, key: Any) -> NDArray:
        """Return the joined items."""
        items: tuple[Any, ...] = listed(key)
        axis, ndim, place = self._how
        if items and isinstance(items[0], str):
            axis, ndim, place = self._told(items[0])
            items = items[1:]
        engine = engine_of(*items)
        parts: list[NDArray] = []
        kinds: list[Any] = []
        for item in items:
            if isinstance(item, str):
                raise ArgumentValueError(f"{self!r} takes a string only before all arrays: put {item!r} first")
            if item.__class__ is slice:
                part = _range(item, engine)
                seen = part if part.ndim >= ndim else _raised(part, ndim)
                parts.append(seen if place == -1 or ndim == 1 else swapaxes(seen, -1, place))
            else:
                part = as_array(item, engine=engine)
                parts.append(_placed(part, ndim, -1 if type(item) in _NUMBERS else place))
            kinds.append(item if type(item) in _NUMBERS else part.dtype)
        if not parts:
            raise ArgumentValueError(f"{self!r} needs at least one array to join")
        wanted = result_type(*kinds)
        return concat(parts, axis=axis, dtype=None if all(part.dtype == wanted for part in parts) else wanted)

    def _told(self, how: str) -> tuple[int, int, int]:
        """Return the axis, the number of axes and the place in a string."""
        try:
            numbers = [int(each) for each in how.split(",")]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= len(self._how):
            raise ArgumentValueError(
                f"{self!r} takes one to three whole numbers for how to join, such as '0,2' or '-1,2,0', not {how!r}: arrays are "
                "no matrices, as which 'r' and 'c' join"
            )
        axis, ndim, place = (*numbers, *self._how[len(numbers) :])
        return axis, ndim, place


def _range(key: Any, engine: Engine) -> NDArray:
    """Return the numbers of a slice."""
    start, step = 0 if key.start is None else key.start, 1 if key.step is None else key.step
    if key.stop is None:
        raise ArgumentTypeError(f"a range between brackets needs an end, as in 0:10, and {key} has none")
    if isinstance(step, complex):
        return linspace(start, key.stop, int(abs(step)), engine=engine)
    return arange(start, key.stop, step, engine=engine)


def _raised(x: NDArray, ndim: int) -> NDArray:
    """Return a view of at least `ndim` axes: new ones are in front, of length 1."""
    missing = ndim - x.ndim
    return x if missing <= 0 else x[(None,) * missing]


def _placed(x: NDArray, ndim: int, place: int) -> NDArray:
    """Return a view of at least `ndim` axes, its own ones at `place` among the new ones."""
    missing = ndim - x.ndim
    if missing <= 0 or place == -1:
        return _raised(x, ndim)
    first = place + missing + 1 if place < 0 else place
    order = list(range(ndim))
    return permute_dims(_raised(x, ndim), order[:first] + order[missing:] + order[first:missing])


class Grid:
    """Makes a grid of the slices between its brackets, as NumPy's object of the name does.

    `mgrid` gives one array, of the coordinates of all points along each axis. `ogrid` gives an array for each axis, and
    these broadcast to the grid. Waits for ends that are arrays.

    Examples
    --------
    >>> import weft
    >>> weft.mgrid[0:2, 0:3]
    NDArray([[[0, 0, 0],
              [1, 1, 1]],
    <BLANKLINE>
             [[0, 1, 2],
              [0, 1, 2]]])
    >>> weft.ogrid[0:1:3j]
    NDArray([0. , 0.5, 1. ])
    """

    __slots__ = ("_name", "_theirs")

    def __init__(self, name: str) -> None:
        self._name = name
        self._theirs: Any = getattr(np, name)

    def __repr__(self) -> str:
        """Return the public name."""
        return f"weft.{self._name}"

    def __getitem__(self, key: Any) -> Any:
        """Return the grid of the slices."""
        for each in listed(key):
            if each.__class__ is not slice or each.stop is None:
                raise ArgumentTypeError(f"{self!r} takes slices with an end, as in 0:10, not {each!r}")
        found: Any = self._theirs[tuple(map(_of_numbers, listed(key))) if key.__class__ is tuple else _of_numbers(key)]
        engine = get_engine()
        if found.__class__ is tuple:
            return tuple([wrap(np.array(each), engine, own=True) for each in found])
        return wrap(np.array(found), engine, own=True)


def _of_numbers(key: Any) -> Any:
    """Return a slice with numbers in place of arrays, which it waits for."""
    return slice(*(None if each is None else number_of(each) for each in (key.start, key.stop, key.step)))


r_: Final = Joining("r_", 0, 1, -1)
c_: Final = Joining("c_", -1, 2, 0)
mgrid: Final = Grid("mgrid")
ogrid: Final = Grid("ogrid")
