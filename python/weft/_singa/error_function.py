"""The error function, an op of its own: NumPy has none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weft._numpy import namespace
from weft._registry.op import register_op
from weft.errors import ArgumentTypeError

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._core import NDArray
    from weft._registry.avals import Aval

_exact = np.frompyfunc(math.erf, 1, 1)


def _infer(x: Aval) -> Aval:
    if x.dtype.kind != "f":
        raise ArgumentTypeError(f"erf takes floating-point numbers, and was given dtype {x.dtype}")
    return x


@register_op("erf", infer=_infer)
def _ERF(out: npt.NDArray[Any], x: npt.NDArray[Any]) -> None:  # noqa: N802 - an op
    out[...] = _exact(x)


def _rule(node: Any, out_grads: Any) -> Any:
    (x,) = node.inputs
    return (out_grads[0] * (2 / math.sqrt(math.pi)) * namespace.exp(-(x * x)),)


_ERF.set_attribute("gradient", _rule)
_ERF.set_attribute("gradient_reads", 1)


def erf(x: NDArray) -> NDArray:
    """Return the error function of the elements: ``2 / sqrt(pi)`` times the integral of ``exp(-t**2)`` from 0 on.

    Examples
    --------
    >>> import weft
    >>> weft.autograd.erf(weft.asarray([0.0, 0.5])).round(4)
    NDArray([0.    , 0.5205])
    """
    result = _ERF(x)
    assert not isinstance(result, tuple)  # one result
    return result
