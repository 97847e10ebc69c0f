"""`einsum`: sums of products in Einstein's notation."""

from __future__ import annotations

import string
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.calls import Elements, one, over
from weft._call.inline import answers
from weft._call.operands import as_array
from weft._core import NDArray
from weft._registry.avals import Aval, broadcast_shapes, result_dtype
from weft._registry.defaults import state
from weft._registry.op import register_op
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weft._call.operands import ArrayLike
    from weft._registry.shapes import Shape

__all__ = ["einsum"]

_LETTERS = string.ascii_uppercase + string.ascii_lowercase


def _lengths(term: str, shape: Shape, subscripts: str) -> tuple[dict[str, int], Shape]:
    """Return the length of each letter's axis in one operand, and the shape under its dots."""
    before, dots, after = term.partition("...")
    named = before + after
    if not set(named) <= set(_LETTERS):
        raise ArgumentValueError(f"einsum subscripts {subscripts!r}: only letters, ',', '->' and '...' have a meaning")
    hidden = len(shape) - len(named)
    if hidden < 0 or (hidden and not dots):
        raise ArgumentValueError(f"einsum subscripts {term!r} do not fit an operand of shape {shape}")
    lengths: dict[str, int] = {}
    middle = len(before)
    for letter, n in zip(named, (*shape[:middle], *shape[middle + hidden :]), strict=True):
        if lengths.setdefault(letter, n) != n:
            raise ArgumentValueError(
                f"einsum subscript {letter!r} stands for lengths {lengths[letter]} and {n} in {shape}"
            )
    return lengths, shape[middle : middle + hidden]


def _implied(inputs: str, *, dots: bool) -> str:
    """Return the output of subscripts that name none."""
    counts = Counter(inputs)
    return "..." * dots + "".join(sorted(letter for letter in _LETTERS if counts[letter] == 1))


def _infer_einsum(*arrays: Aval, subscripts: str, optimize: object = False) -> Aval:  # noqa: ARG001 - of the op
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(arrays):
        raise ArgumentValueError(
            f"einsum subscripts {subscripts!r} are for {len(terms)} operands, {len(arrays)} were given"
        )
    lengths: dict[str, int] = {}
    hidden: Shape = ()
    for term, x in zip(terms, arrays, strict=True):
        own, under = _lengths(term, x.shape, subscripts)
        hidden = broadcast_shapes(hidden, under)
        for letter, n in own.items():
            if lengths.setdefault(letter, n) != n:
                if 1 not in (n, lengths[letter]):
                    shapes = ", ".join(str(each.shape) for each in arrays)
                    raise ArgumentValueError(
                        f"einsum subscript {letter!r} stands for several lengths in shapes {shapes}"
                    )
                lengths[letter] = max(n, lengths[letter])
    if not arrow:
        output = _implied(inputs, dots=bool(hidden))
    before, dots, after = output.partition("...")
    named = before + after
    if len(set(named)) != len(named) or not set(named) <= lengths.keys():
        raise ArgumentValueError(
            f"einsum output {output!r} takes each letter of {inputs!r} at most once, and no others"
        )
    if hidden and not dots:
        raise ArgumentValueError(f"einsum output {output!r} leaves out the axes {hidden} under the dots of {inputs!r}")
    shape = (*(lengths[c] for c in before), *hidden, *(lengths[c] for c in after))
    return Aval(shape, result_dtype(*arrays))


@register_op("einsum", infer=_infer_einsum)
def _einsum(out: Elements, *arrays: Elements, subscripts: str, optimize: Any = False) -> None:
    np.einsum(subscripts, *arrays, out=out, optimize=optimize)


def _einsum_by_cupy(out: Any, *arrays: Any, subscripts: str, optimize: Any = False) -> None:
    np.copyto(out, np.einsum(subscripts, *arrays, optimize=optimize), casting="unsafe")


state(_einsum, cupy=_einsum_by_cupy)


def _answer_einsum(*arrays: Elements, subscripts: str, optimize: Any = False) -> object:
    return np.einsum(subscripts, *arrays, optimize=optimize)


def _einsum_for_all(_: int, operands: list[Any], mapped: list[bool], attributes: dict[str, Any]) -> Any:
    """Give the examples a letter of their own."""
    inputs, arrow, output = attributes["subscripts"].replace(" ", "").partition("->")
    if not arrow:
        output = _implied(inputs, dots="..." in inputs)
    letter = next((each for each in _LETTERS if each not in inputs), None)
    if letter is None:
        return None
    terms = [letter * is_mapped + term for term, is_mapped in zip(inputs.split(","), mapped, strict=True)]
    given: dict[str, Any] = {**attributes, "subscripts": f"{','.join(terms)}->{letter}{output}"}
    return one(_einsum, *operands, **given)


state(_einsum, superlinear=True, blas=True, batch=_einsum_for_all)
answers(_einsum, _answer_einsum)


def einsum(
    subscripts: str | ArrayLike,
    /,
    *operands: ArrayLike,
    out: NDArray | None = None,
    optimize: bool | str = False,
) -> NDArray:
    """Sum products over the axes that the output leaves out.

    Parameters
    ----------
    subscripts : str
        One letter per axis, operands divided by commas, the output's after ``->``; dots stand for axes that broadcast.
        NumPy's other form, ``einsum(x1, [0, 1], x2, [1, 2], [0, 2])``, is taken too.
    *operands : array_like
        The arrays.
    out : NDArray, optional
        An array of the result's shape to write to.
    optimize : bool or {"greedy", "optimal"}
        Whether NumPy may choose the order of the products, which may round differently.

    Examples
    --------
    >>> import weft
    >>> weft.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
    NDArray([3, 7])
    """
    if not isinstance(subscripts, str):
        subscripts, operands = _from_lists((subscripts, *operands))
    like = next((x for x in operands if isinstance(x, NDArray)), None)
    arrays = [as_array(x, like) for x in operands]
    return over(_einsum, arrays, out=out, subscripts=subscripts, optimize=optimize)


def _from_lists(arguments: tuple[Any, ...]) -> tuple[str, tuple[ArrayLike, ...]]:
    """Return the subscripts and operands of operands that alternate with lists of axis numbers."""

    def term(axes: Sequence[Any]) -> str:
        return "".join("..." if axis is Ellipsis else _LETTERS[axis] for axis in axes)

    pairs = len(arguments) // 2
    inputs = ",".join(term(axes) for axes in arguments[1 : 2 * pairs : 2])
    output = "->" + term(arguments[-1]) if len(arguments) % 2 else ""
    return inputs + output, arguments[: 2 * pairs : 2]
