"""Launches of the kernels that ops state by their attribute ``"kernels"``: they come before CuPy's function of the op's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft._call.scalars import number
from weft._core import NDArray
from weft._cuda.elementwise import kernels

if TYPE_CHECKING:
    from weft._cuda.launch import Launch


def push(stated: Any, results: tuple[NDArray, ...], given: tuple[Any, ...], attributes: dict[str, Any]) -> bool:
    """Push the kernel of a function.

    Parameters
    ----------
    stated : callable, Reduction or Product
        The op's attribute: ``(out, *operands, **attributes)`` to a `Launch` or to None, or an object that pushes by itself.
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
    if not callable(stated):
        pushed: bool = stated.push(results[0], *given, **attributes)
        return pushed
    make: Any = stated
    launch: Launch | None = make(results[0], *given, **attributes)
    return launch is not None and _launch(launch, results[0])


def _launch(launch: Launch, out: NDArray) -> bool:
    """Push a kernel over operands that are cast to those of `launch`, as which scalars are passed."""
    pairs = tuple(zip(launch.operands, launch.computed, strict=True))
    inputs = tuple(x.dtype if isinstance(x, NDArray) else dtype for x, dtype in pairs)
    operands = tuple(x if isinstance(x, NDArray) else number(x, dtype) for x, dtype in pairs)
    result = out.dtype if launch.result is None else launch.result
    found = kernels(launch.name, launch.body, inputs, out.dtype, launch.computed, result, indexed=launch.indexed)
    found.push((out,), operands)
    return True
