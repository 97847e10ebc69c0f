"""NumPy's functions, called on NDArrays: weft's of the same name, where its arguments say the same; else NumPy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.filling import assign
from weft._call.operands import as_array, is_host
from weft._call.outputs import check_writable
from weft._core import NDArray, tape_hears
from weft._numpy.arguments import adapt
from weft._numpy.calls import compute_by_numpy, leaves
from weft._numpy.names import namesake
from weft._ops.parts import real
from weft._registry.avals import SUPPORTED
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

#: NumPy's functions that write to their first argument.
_WRITERS = frozenset([np.copyto, np.put, np.place, np.putmask, np.put_along_axis, np.fill_diagonal])


def __array_function__(
    self: NDArray,  # noqa: ARG001
    func: Callable[..., Any],
    types: Iterable[type],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    """Run a NumPy function on NDArrays.

    Examples
    --------
    >>> import numpy, weft
    >>> numpy.flip(weft.asarray([1, 2, 3]))
    NDArray([3, 2, 1])
    """
    if not all(issubclass(kind, NDArray | np.ndarray | np.generic) for kind in types):
        return NotImplemented
    if func is np.copyto and _is_plain_copy(*args, **kwargs):
        return None
    if func in _WRITERS:
        return compute_by_numpy(func, args, kwargs, writes=True)
    if func in _FACTS:
        return _FACTS[func](*args, **kwargs)
    # None among arrays that are broadcast is one of objects, as in pyplot.bar.
    objects = func is np.broadcast_arrays and any(x is None for x in args)
    theirs = objects or (np.ndarray in types and _has_theirs(args, kwargs))
    own = None if theirs else namesake(func)
    if own is not None:
        adapted = adapt(func, own, args, kwargs)
        if adapted is not None:
            return own(*adapted[0], **adapted[1])
    return compute_by_numpy(func, args, kwargs)


def _has_theirs(*given: Any) -> bool:
    """Return whether there is an array that is NumPy's alone among arguments: of objects, text or dates."""
    return any(is_host(x) and x.dtype not in SUPPORTED for x in leaves(given))


def _is_plain_copy(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> bool:
    """Push ``np.copyto`` of all elements into an NDArray; return whether it was that."""
    if not isinstance(dst, NDArray) or where is not True:
        return False
    check_writable(dst)
    source = as_array(src, dst)
    if not np.can_cast(source.dtype, dst.dtype, casting):
        raise ArgumentTypeError(
            f"Cannot cast array data from {source.dtype!r} to {dst.dtype!r} by the rule {casting!r}"
        )
    if (
        source.dtype.kind == "c" and dst.dtype.kind not in "cb"
    ):  # as asked for by casting="unsafe"; assignment would refuse
        if not ((dst._known or source._known) and tape_hears((dst, source))):
            return False
        source = real(source)
    if np.broadcast_shapes(source.shape, dst.shape) != dst.shape:
        raise ArgumentValueError(f"could not broadcast input array from shape {source.shape} into shape {dst.shape}")
    assign(dst, source)
    return True


def _shape(a: NDArray) -> tuple[int, ...]:
    return a.shape


def _ndim(a: NDArray) -> int:
    return a.ndim


def _size(a: NDArray, axis: int | tuple[int, ...] | None = None) -> int:
    return np.size(np.broadcast_to(np.empty(()), a.shape), axis)


#: Known without waiting.
_FACTS: dict[Callable[..., Any], Callable[..., Any]] = {np.shape: _shape, np.ndim: _ndim, np.size: _size}
