"""Known parts of shapes and dtypes while rules spread them: lists that only learn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from weft.errors import ShapeError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Lengths: TypeAlias = "tuple[int | None, ...]"


def as_pair(found: Any) -> tuple[Any, ...]:
    """Return one result, or several, as a tuple."""
    several: Any = found  # if it is a list or a tuple
    return tuple(several) if isinstance(found, tuple | list) else (found,)


def place(axis: int, rank: int) -> int:
    """Return the number of an axis, counted from the first.

    Examples
    --------
    >>> from weft._mxnet.partial_shapes import place
    >>> place(-1, 3)
    2
    """
    if not -rank <= axis < rank:
        raise ShapeError(f"there is no axis {axis} in data of {rank} axes")
    return axis % rank


def product(lengths: Iterable[int | None]) -> int | None:
    """Return the product of lengths; None if one is not known.

    Examples
    --------
    >>> from weft._mxnet.partial_shapes import product
    >>> product((2, 3)), product((2, None))
    (6, None)
    """
    total = 1
    for length in lengths:
        if length is None:
            return None
        total *= length
    return total


class Shapes:
    """Shapes of inputs or of results, as far as they are known; None is a shape, or a length, that is not.

    Examples
    --------
    >>> from weft._mxnet.partial_shapes import Shapes
    >>> shapes = Shapes([(2, None), None], "input")
    >>> shapes.learn(0, (None, 3))
    >>> shapes[0], shapes.length(0, 1), shapes.length(1, 0)
    ((2, 3), 3, None)
    """

    __slots__ = ("_kind", "_shapes")

    def __init__(self, shapes: Sequence[Lengths | None], kind: str) -> None:
        self._shapes = list(shapes)
        self._kind = kind

    def __getitem__(self, at: int) -> Lengths | None:
        return self._shapes[at]

    def __len__(self) -> int:
        return len(self._shapes)

    def __iter__(self) -> Iterator[Lengths | None]:
        return iter(self._shapes)

    def learn(self, at: int, shape: Iterable[int | None] | None) -> None:
        """Add the facts of `shape` to the one at `at`.

        Raises
        ------
        ShapeError
            If it contradicts known facts.
        """
        if shape is None:
            return
        new, known = tuple(shape), self._shapes[at]
        if known is None:
            self._shapes[at] = new
            return
        pairs = list(zip(known, new, strict=False))
        if len(known) != len(new) or any(a is not None and b is not None and a != b for a, b in pairs):
            raise ShapeError(f"{self._kind} {at} has the shape {known}, and {new} follows from the others")
        self._shapes[at] = tuple(b if a is None else a for a, b in pairs)

    def learn_rank(self, at: int, rank: int) -> None:
        """Add that a shape has so many axes."""
        self.learn(at, (None,) * rank)

    def length(self, at: int, axis: int) -> int | None:
        """Return a length, None where it is not known."""
        shape = self._shapes[at] if at < len(self._shapes) else None
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        return shape[axis]

    def rank(self, at: int) -> int | None:
        """Return the number of axes, None where it is not known."""
        shape = self._shapes[at]
        return None if shape is None else len(shape)

    def alike(self, others: Shapes, own: Iterable[int] | None = None, theirs: Iterable[int] | None = None) -> None:
        """Let these, by default all, and `theirs` among others be the same."""
        mine = list(range(len(self))) if own is None else list(own)
        yours = list(range(len(others))) if theirs is None else list(theirs)
        for _ in range(2):  # the second time all know the last one's facts
            first = mine[0]
            for at in mine:
                self.learn(first, self[at])
            for at in yours:
                self.learn(first, others[at])
                others.learn(at, self[first])
            for at in mine:
                self.learn(at, self[first])


class Dtypes:
    """The same for dtypes.

    Examples
    --------
    >>> import numpy
    >>> from weft._mxnet.partial_shapes import Dtypes
    >>> dtypes = Dtypes([None, numpy.dtype("float32")], "input")
    >>> dtypes.alike(Dtypes([None], "result"))
    >>> list(dtypes)
    [dtype('float32'), dtype('float32')]
    """

    __slots__ = ("_dtypes", "_kind")

    def __init__(self, dtypes: Sequence[Any], kind: str) -> None:
        self._dtypes = list(dtypes)
        self._kind = kind

    def __getitem__(self, at: int) -> Any:
        return self._dtypes[at]

    def __len__(self) -> int:
        return len(self._dtypes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dtypes)

    def learn(self, at: int, dtype: Any) -> None:
        """Add the dtype of the one at `at`; a known one stays."""
        if self._dtypes[at] is None:
            self._dtypes[at] = dtype

    def alike(self, others: Dtypes, own: Iterable[int] | None = None, theirs: Iterable[int] | None = None) -> None:
        """Let those that are not known be as the first that is, among these and `theirs`."""
        mine = list(range(len(self))) if own is None else list(own)
        yours = list(range(len(others))) if theirs is None else list(theirs)
        known = next((each for each in (*(self[at] for at in mine), *(others[at] for at in yours)) if each), None)
        for at in mine:
            self.learn(at, known)
        for at in yours:
            others.learn(at, known)


def data_dtype(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    """Follow the rule of ops of data with indices, labels or lengths: these are as data where nothing is said, data never as these.

    Examples
    --------
    >>> import numpy
    >>> from weft._mxnet.partial_shapes import Dtypes, data_dtype
    >>> ins = Dtypes([None, numpy.dtype("int32")], "input")
    >>> data_dtype(None, ins, Dtypes([None], "result"))
    >>> list(ins)
    [None, dtype('int32')]
    """
    del s
    ins.alike(outs, [0], [0])
    for at in range(1, len(ins)):
        ins.learn(at, ins[0])


def own_dtype(s: Any, ins: Dtypes, outs: Dtypes) -> None:
    """Follow the rule of ops with the dtype of their result in their settings."""
    del ins
    outs.learn(0, s.dtype)
