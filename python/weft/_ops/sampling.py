"""Draws from the elements of an array: the ops behind `Generator.choice`, `permutation`, `permuted` and `shuffle`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray
from weft._ops.draws import drawing_op, scratch
from weft._registry.avals import Aval
from weft.errors import ArgumentValueError

if TYPE_CHECKING:
    import numpy.typing as npt


def check_choice(count: int, taken: int, weights: object, *, replace: bool) -> None:
    """Refuse calls that NumPy's `choice` would refuse, as far as known before the draw."""
    if count < 0 or (count == 0 and taken):
        raise ArgumentValueError(f"choice: cannot draw {taken} elements out of {count}")
    if not replace and taken > count:
        raise ArgumentValueError(f"choice: cannot draw {taken} elements out of {count} without replacement")
    if isinstance(weights, NDArray):
        if weights.shape != (count,):
            raise ArgumentValueError(f"choice: p has shape {weights.shape}, there are {count} elements to draw from")
    elif weights is not None:
        scratch().choice(count, size=0, p=np.asarray(weights))
        if not replace and np.count_nonzero(np.asarray(weights)) < taken:
            raise ArgumentValueError(f"choice: fewer elements of p are positive than the {taken} to be drawn")


def _infer_choice(
    *avals: Aval, names: tuple[str, ...], values: dict[str, Any], size: tuple[int, ...] | None, options: dict[str, Any]
) -> Aval:
    if "a" in values:
        return Aval(size or (), np.dtype(np.int64))
    source, axis = avals[names.index("a")], options["axis"]
    return Aval((*source.shape[:axis], *(size or ()), *source.shape[axis + 1 :]), source.dtype)


def _choose(
    generator: np.random.Generator,
    target: npt.NDArray[Any],
    *views: npt.NDArray[Any],
    names: tuple[str, ...],
    values: dict[str, Any],
    size: tuple[int, ...] | None,
    options: dict[str, Any],
) -> None:
    given: dict[str, Any] = {**values, **dict(zip(names, views, strict=True)), **options}
    np.copyto(target, generator.choice(size=size, **given))


def _permute(generator: np.random.Generator, target: npt.NDArray[Any], x: npt.NDArray[Any], axis: int) -> None:
    np.copyto(target, generator.permutation(x, axis=axis))


def _permute_slices(
    generator: np.random.Generator, target: npt.NDArray[Any], x: npt.NDArray[Any], axis: int | None
) -> None:
    np.copyto(target, generator.permuted(x, axis=axis))


def _shuffle(generator: np.random.Generator, x: npt.NDArray[Any], axis: int) -> None:
    generator.shuffle(x, axis=axis)


def _draw_bytes(generator: np.random.Generator, target: npt.NDArray[np.uint8], length: int) -> None:
    target[:] = np.frombuffer(generator.bytes(length), np.uint8)


def _like(x: Aval, **_: object) -> Aval:
    return x


def _infer_bytes(length: int) -> Aval:
    return Aval((length,), np.dtype(np.uint8))


def _nothing(*_: Aval, axis: int) -> tuple[Aval, ...]:  # noqa: ARG001 - a rule
    return ()


CHOICE = drawing_op("choice", _infer_choice, _choose)
PERMUTATION = drawing_op("permutation", _like, _permute)
PERMUTED = drawing_op("permuted", _like, _permute_slices)
SHUFFLE = drawing_op("shuffle", _nothing, _shuffle, nout=0, mutates=1)
BYTES = drawing_op("bytes", _infer_bytes, _draw_bytes)
