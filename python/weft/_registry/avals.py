"""Abstract values and the rules that infer them: which shape and dtype an op gives, known before it runs.

Nothing here touches an array's values, so the same rules serve eager arrays and graphs that have none yet.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from weft._core import common_shape
from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

DType: TypeAlias = np.dtype[Any]
Kind: TypeAlias = "type[int | float | complex] | DType"

#: Every dtype that an array may have, by itself: equal dtypes of other names ("long long") come out as one.
SUPPORTED: dict[DType, DType] = {np.dtype(code): np.dtype(code) for code in "?bhilBHILefdFDqQ"[::-1]}
SUPPORTED.update({found: np.dtype(found.name) for found in SUPPORTED})
#: The classes of those dtypes.
_CLASSES = frozenset(map(type, SUPPORTED))
_INTEGERS = frozenset([int])
_WEAK: dict[type[int | float | complex], DType] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


@dataclass(frozen=True, slots=True)
class Aval:
    """An array's abstract value: its shape and dtype, known before it is computed.

    Parameters
    ----------
    shape : tuple of int
        The lengths of the axes.
    dtype : numpy.dtype
        The elements' type.
    weak : bool, default: False
        Whether it stands for a Python scalar, which takes the dtype of the arrays that it meets.

    Examples
    --------
    >>> import numpy, weft
    >>> weft.ops.Aval((2, 3), numpy.dtype("float32"))
    Aval(shape=(2, 3), dtype=dtype('float32'), weak=False)
    """

    shape: tuple[int, ...]
    dtype: DType
    weak: bool = False

    def __post_init__(self) -> None:
        if self.dtype.__class__ not in _CLASSES:
            if str(self.dtype) == "None":  # NumPy makes float64 of it
                raise ArgumentTypeError("an Aval has a dtype, and None was given")
            object.__setattr__(self, "dtype", as_dtype(self.dtype))
        shape = self.shape
        if shape.__class__ is not tuple or not _INTEGERS.issuperset(map(type, shape)) or min(shape, default=0) < 0:
            object.__setattr__(self, "shape", _lengths(self.shape))


def _lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; ArgumentTypeError if it is none."""
    try:
        found = tuple([operator.index(length) for length in shape])
    except TypeError:
        raise ArgumentTypeError(f"the shape of an Aval is a tuple of integers, not {brief(shape)}") from None
    if min(found, default=0) < 0:
        raise ArgumentValueError(
            f"an axis has a length of at least 0, and the shape of an Aval was to be {brief(shape)}"
        )
    return found


def avals_of(name: str, answer: Any) -> tuple[Aval, ...]:
    """Return the answer of an op's rule on its results.

    Raises
    ------
    ArgumentTypeError
        If that is no `Aval`, and no tuple of them.

    Examples
    --------
    >>> import numpy
    >>> from weft._registry.avals import Aval, avals_of
    >>> avals_of("exp", Aval((), numpy.dtype("float32")))
    (Aval(shape=(), dtype=dtype('float32'), weak=False),)
    """
    found: Any = (answer,) if isinstance(answer, Aval) else answer
    if not issubclass(found.__class__, tuple) or not all(isinstance(each, Aval) for each in found):
        raise ArgumentTypeError(
            f"the rule infer of op {name!r} returns an Aval, or a tuple of them, not {brief(answer)}"
        )
    avals: tuple[Aval, ...] = found
    return avals


def as_dtype(dtype: npt.DTypeLike) -> DType:
    """Return the dtype that `dtype` names.

    Parameters
    ----------
    dtype : dtype-like
        Anything that NumPy takes for a dtype.

    Returns
    -------
    numpy.dtype
        The dtype, in native byte order.

    Raises
    ------
    TypeError
        If arrays cannot have this dtype.

    Examples
    --------
    >>> import weft
    >>> weft.ops.as_dtype("float32")
    dtype('float32')
    """
    try:
        wanted = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{dtype!r} names no dtype: {error}") from None
    found = SUPPORTED.get(wanted)
    if found is None:
        known = "bool, (u)int8 to (u)int64, float16, float32, float64, complex64 and complex128 in native byte order"
        raise ArgumentTypeError(f"weft has no arrays of dtype {wanted}: known are {known}")
    return found


def scalar_dtype(kind: type) -> DType:
    """Return the dtype of an array made of a Python scalar alone.

    Examples
    --------
    >>> import weft
    >>> weft.ops.scalar_dtype(int)
    dtype('int64')
    """
    return _WEAK[kind]


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the broadcast shape of all `shapes`.

    Raises
    ------
    ValueError
        If they do not broadcast.

    Examples
    --------
    >>> import weft
    >>> weft.ops.broadcast_shapes((3, 1), (4,), ())
    (3, 4)
    """
    first = shapes[0] if shapes else ()
    if all(shape == first for shape in shapes):
        return first
    try:
        found = common_shape(shapes)
    except OverflowError:  # no array has such a length
        found = None
    if found is None:
        listed = " ".join(str(each).replace(" ", "") for each in shapes)
        raise ArgumentValueError(f"operands could not be broadcast together with shapes {listed}")
    return found


def result_dtype(*avals: Aval) -> DType:
    """Return the dtype that NumPy's promotion gives for `avals`; weak ones give way.

    Examples
    --------
    >>> import numpy, weft
    >>> single, weak = numpy.dtype("float32"), numpy.dtype("float64")
    >>> weft.ops.result_dtype(weft.ops.Aval((), single), weft.ops.Aval((), weak, weak=True))
    dtype('float32')
    """
    first = avals[0]
    if all(aval.dtype is first.dtype for aval in avals):
        return first.dtype
    found: DType = np.result_type(*(aval.dtype.type(1).item() if aval.weak else aval.dtype for aval in avals))
    return as_dtype(found)


def ufunc_dtypes(
    ufunc: np.ufunc, inputs: Sequence[Kind], dtype: DType | None = None
) -> tuple[tuple[DType, ...], tuple[DType, ...]]:
    """Return the dtypes of the inner loop that `ufunc` takes for `inputs`: those of its inputs, those of its outputs.

    Parameters
    ----------
    ufunc : numpy.ufunc
        An element-wise function.
    inputs : sequence of dtype or type
        The operands' dtypes; ``int``, ``float`` and ``complex`` stand for Python scalars.
    dtype : numpy.dtype, optional
        The dtype that the outputs are to have.

    Raises
    ------
    TypeError
        If `ufunc` does not take such operands.

    Examples
    --------
    >>> import numpy, weft
    >>> weft.ops.ufunc_dtypes(numpy.add, [numpy.dtype("int8"), float])
    ((dtype('float64'), dtype('float64')), (dtype('float64'),))
    """
    nin, nout = ufunc.nin, ufunc.nout
    options: dict[str, Any] = {}
    if dtype is not None:
        options = {"signature": (None,) * nin + (dtype,) * nout, "casting": "same_kind"}
    try:
        found = ufunc.resolve_dtypes((*inputs, *(None,) * nout), **options)
    except TypeError as error:
        named = ", ".join(str(kind) if isinstance(kind, np.dtype) else f"Python {kind.__name__}" for kind in inputs)
        raise ArgumentTypeError(f"{ufunc.__name__}({named}): {error}") from None
    known = tuple(map(as_dtype, found))
    return known[:nin], known[nin:]


def broadcast_of_ufunc(ufunc: np.ufunc) -> Callable[..., Aval | tuple[Aval, ...]]:
    """Return the rule of `ufunc`: operands broadcast, dtypes are those of its inner loop.

    Examples
    --------
    >>> import numpy, weft
    >>> rule = weft.ops.broadcast_of_ufunc(numpy.less)
    >>> rule(weft.ops.Aval((3, 1), numpy.dtype("int8")), weft.ops.Aval((2,), numpy.dtype("float32")))
    Aval(shape=(3, 2), dtype=dtype('bool'), weak=False)
    """

    def infer(*avals: Aval, dtype: npt.DTypeLike | None = None) -> Aval | tuple[Aval, ...]:
        shape = broadcast_shapes(*(aval.shape for aval in avals))
        kinds = [kind_of(aval) for aval in avals]
        found = ufunc_dtypes(ufunc, kinds, None if dtype is None else as_dtype(dtype))[1]
        results = tuple(Aval(shape, each) for each in found)
        return results[0] if len(results) == 1 else results

    infer.ufunc = ufunc  # type: ignore[attr-defined] # so it is asked once
    return infer


def kind_of(aval: Aval) -> Kind:
    """Return the operand for `aval` in NumPy's promotion: its dtype, or for a weak one the Python type."""
    if not aval.weak or aval.dtype.kind == "b":
        return aval.dtype
    return {"i": int, "f": float, "c": complex}[aval.dtype.kind]


def like_first(first: Aval, /, *_others: Aval, **_attributes: object) -> Aval:
    """Infer a result of the first operand's shape and dtype.

    Examples
    --------
    >>> import numpy, weft
    >>> weft.ops.like_first(weft.ops.Aval((2,), numpy.dtype("int8")))
    Aval(shape=(2,), dtype=dtype('int8'), weak=False)
    """
    return Aval(first.shape, first.dtype)


def broadcast_same_dtype(*avals: Aval, **_attributes: object) -> Aval:
    """Infer a result of the operands' broadcast shape and promoted dtype.

    Examples
    --------
    >>> import numpy, weft
    >>> single = numpy.dtype("float32")
    >>> weft.ops.broadcast_same_dtype(weft.ops.Aval((2, 1), single), weft.ops.Aval((3,), single))
    Aval(shape=(2, 3), dtype=dtype('float32'), weak=False)
    """
    return Aval(broadcast_shapes(*(aval.shape for aval in avals)), result_dtype(*avals))


# The core's rules for their shapes.
like_first.shapes = "like_first"  # type: ignore[attr-defined]
broadcast_same_dtype.shapes = "broadcast"  # type: ignore[attr-defined]
