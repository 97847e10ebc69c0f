"""Launches of functions that are no ufuncs and have kernels of weft's: element-wise ones, reductions, small products.

An op says by its attribute ``"kernels"`` which `Launch` computes a call, or names a kernel of this room; it comes before
CuPy's function of the op's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call.scalars import number
from weft._core import NDArray
from weft._cuda import products, totals
from weft._cuda.elementwise import kernels

if TYPE_CHECKING:
    from weft._cuda.launch import Launch
    from weft._registry.shapes import Shape


def push(stated: Any, results: tuple[NDArray, ...], given: tuple[Any, ...], attributes: dict[str, Any]) -> bool:
    """Push the kernel of a function.

    Parameters
    ----------
    stated : callable or str
        What the op says: ``(out, *operands, **attributes)`` to a `Launch`, or to None; or ``"matmul"``, or a reduction.
    results : tuple of NDArray
        Where to, on a CUDA device.
    given : tuple of NDArray or Python scalar
        The operands, arrays on that device.
    attributes : dict
        The op's attributes.

    Returns
    -------
    bool
        Whether there is one, and it was pushed.
    """
    if callable(stated):
        make: Any = stated
        launch: Launch | None = make(results[0], *given, **attributes)
        return launch is not None and _launch(launch, results[0])
    if stated == "matmul":
        return products.push(results[0], *given, **attributes)
    return _reduce(stated, results[0], *given, **attributes)


def _reduce(name: str, out: NDArray, x: NDArray, *masks: NDArray, axis: Shape | None = None, **attributes: Any) -> bool:
    return not masks and totals.push(name, out, x, axis, attributes)


def _launch(launch: Launch, out: NDArray) -> bool:
    """Push a kernel over operands that are cast to those of `launch`, as which scalars are passed."""
    pairs = tuple(zip(launch.operands, launch.computed, strict=True))
    inputs = tuple(x.dtype if isinstance(x, NDArray) else dtype for x, dtype in pairs)
    operands = tuple(x if isinstance(x, NDArray) else number(x, dtype) for x, dtype in pairs)
    result = out.dtype if launch.result is None else launch.result
    found = kernels(launch.name, launch.body, inputs, out.dtype, launch.computed, result, indexed=launch.indexed)
    found.push((out,), operands)
    return True
