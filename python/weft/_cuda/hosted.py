"""Ops on CUDA devices that have no kernel: calls of CuPy's functions, by a worker with the GIL, on the op's stream.

NumPy's functions call CuPy's of the same name for CuPy's arrays, so the computation of an op on the CPU serves here
too, but where CuPy takes other arguments: those ops have an attribute ``"cupy"``. A function that CuPy lacks is an error
that says so.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._core import NDArray, find_op, push_compute
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._registry.op import Op


def compute_of(op: Op) -> Callable[..., object]:
    """Return the computation of an op on CuPy arrays: a user's, if one is registered, or else weft's own.

    Examples
    --------
    >>> import weft
    >>> from weft._cuda.hosted import compute_of
    >>> compute_of(weft.ops.get_op("tile")).func.__name__
    '_clearly'
    """
    theirs = op.compute.get("cuda")
    own = op.attribute("cupy", None) or op.compute["cpu"]
    return partial(_clearly, op.name, own) if theirs is None else theirs


def _clearly(name: str, compute: Callable[..., object], /, *args: Any, **attributes: Any) -> None:
    """Compute; where CuPy cannot, name the op, and the way out."""
    try:
        compute(*args, **attributes)
    except (TypeError, NotImplementedError) as error:  # the caller's arguments were checked at the push
        raise ArgumentTypeError(
            f"op '{name}' cannot be computed on a CUDA device, as CuPy says: {error}; copy its arrays to the CPU by "
            "x.to_device('cpu')"
        ) from error


def push(
    ufunc: np.ufunc,
    results: tuple[NDArray, ...],
    operands: tuple[Any, ...],
    mask: NDArray | None = None,
    op: Op | None = None,
) -> None:
    """Push an element-wise function that has no kernel.

    Parameters
    ----------
    ufunc : numpy.ufunc
        The function.
    results : tuple of NDArray
        Where to.
    operands : tuple of NDArray or Python scalar
        The operands.
    mask : NDArray or None
        Which elements to compute.
    op : Op, optional
        The op, where it may have a compute of a user's.
    """
    name = ufunc.__name__ if op is None else op.name
    arrays = tuple(x for x in operands if isinstance(x, NDArray))
    template = tuple(None if isinstance(x, NDArray) else x for x in operands)
    function: Any = None if op is None else op.compute.get("cuda")
    if function is None:
        own: Op | None = find_op(name) if op is None else op
        function = ufunc if own is None else own.attribute("cupy", None) or ufunc
    run = partial(_clearly, name, partial(_run, function, template, len(results)))
    if mask is None:
        push_compute(run, results, arrays, name=name)
    else:
        push_compute(partial(run, masked=True), (), (*arrays, mask), results, name=name)


def _run(function: Any, template: tuple[Any, ...], nout: int, /, *views: Any, masked: bool = False) -> None:
    outs, inputs = views[:nout], iter(views[nout:])
    args = [next(inputs) if each is None else each for each in template]
    # CuPy's ufuncs take neither ``where`` nor several outputs.
    if isinstance(function, np.ufunc):
        if nout == 1 and not masked:
            function(*args, out=outs[0])
            return
        found = function(*args)
        made = found if nout > 1 else (found,)
    else:
        made = tuple(np.empty_like(out) for out in outs) if masked else outs
        function(*made, *args)
        if not masked:
            return
    options = {"where": next(inputs)} if masked else {}
    for out, each in zip(outs, made, strict=True):
        np.copyto(out, each, casting="unsafe", **options)
