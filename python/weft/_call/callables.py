"""Callables: the payload of a call without a native loop, run by a worker with the GIL."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._call.operands import is_host, listed
from weft._core import NDArray
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from weft._call.operands import Operand
    from weft._registry.avals import DType

_ARRAY, _MUTATED = object(), object()  # the place of the next array among an op's scalars
#: NumPy's numbers in the place of Python's, of the dtype that Python's have alone.
_SCALARS: dict[type, Callable[[Any], Any]] = {float: np.float64, complex: np.complex128}


def of_ufunc(
    ufunc: np.ufunc, signature: tuple[DType, ...] | None, given: tuple[Operand, ...], *, masked: bool
) -> Callable[..., None]:
    """Return a callable that runs `ufunc` by a signature, or by NumPy's choice.

    It takes views of the results, the operands and the mask.
    """
    return partial(_run_ufunc, ufunc, signature, _template(given, ()), masked)


def of_compute(
    compute: Callable[..., object],
    given: tuple[Operand, ...],
    nout: int,
    mutates: tuple[int, ...] = (),
    attributes: dict[str, Any] | None = None,
) -> Callable[..., None]:
    """Return a callable for an op's compute: it takes views of the results, of mutated operands, and of the others."""
    template = _template(given, mutates)
    if _ARRAY not in template and _MUTATED not in template:  # a compute takes them for arrays
        template = tuple([_SCALARS[x.__class__](x) if x.__class__ in _SCALARS else x for x in template])
    if not mutates and template.count(_ARRAY) == len(template):
        return partial(_run_plainly, compute, attributes or {})
    changed = template.count(_MUTATED) if mutates else 0
    return partial(_run_compute, compute, template, nout, _mutated=changed, **(attributes or {}))


def cast(target: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> None:
    """Write the elements of `x` to `target`, cast without a check."""
    if x.dtype.kind == "c" and target.dtype.kind not in "cb":
        x = x.real  # the call has warned already, where the user can hear it
    with np.errstate(all="ignore"):
        np.copyto(target, x, casting="unsafe")


def _template(given: tuple[Operand, ...], mutates: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the operands with marks in place of arrays, so that a waiting op holds no handles."""
    if not mutates:
        return tuple([_ARRAY if isinstance(x, NDArray) else x for x in given])
    return tuple(
        [x if not isinstance(x, NDArray) else _MUTATED if at in mutates else _ARRAY for at, x in enumerate(given)]
    )


def _run_ufunc(
    ufunc: np.ufunc,
    signature: tuple[DType, ...] | None,
    template: tuple[Any, ...],
    masked: bool,
    *views: Any,
) -> None:
    outs, ins = views[: ufunc.nout], iter(views[ufunc.nout :])
    args = [next(ins) if each is _ARRAY else each for each in template]
    options: dict[str, Any] = {"where": next(ins)} if masked else {}
    if signature is not None:
        options["signature"] = signature
    # Some of NumPy's loops skip elements of an output with gaps between its elements.
    rows = tuple([out if out.flags.forc else out.copy() for out in outs])
    with np.errstate(all="ignore"):
        ufunc(*args, out=rows, **options)
    for out, row in zip(outs, rows, strict=True):
        if out is not row:
            np.copyto(out, row)


def _run_plainly(
    compute: Callable[..., object],
    attributes: dict[str, Any],
    *views: Any,
) -> None:
    """Compute from arrays alone, with views in the order that `compute` takes."""
    with np.errstate(all="ignore"):
        returned = compute(*views, **attributes)
    if returned is not None:
        _check_returned(returned, views)


def _check_returned(returned: object, views: tuple[Any, ...]) -> None:
    """Refuse a new array as the answer of a compute: it was to write to the ones that it was given."""
    for each in listed(returned):
        if is_host(each) and each.size and not any(np.may_share_memory(each, view) for view in views):
            raise ArgumentTypeError(
                "the function of an op writes to the arrays that it is given first, as in out[...] = x * 2, and this one "
                f"returned a new array of shape {each.shape}"
            )


def _run_compute(
    compute: Callable[..., object],
    template: tuple[Any, ...],
    nout: int,
    /,
    *views: Any,
    _mutated: int = 0,
    **attributes: Any,
) -> None:
    changed, ins = iter(views[nout : nout + _mutated]), iter(views[nout + _mutated :])
    args = [next(ins) if each is _ARRAY else next(changed) if each is _MUTATED else each for each in template]
    with np.errstate(all="ignore"):
        returned = compute(*views[:nout], *args, **attributes)
    if returned is not None:
        _check_returned(returned, views)
