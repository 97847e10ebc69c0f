"""Numbers spaced evenly on a logarithmic scale: `logspace`, `geomspace`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from weft._array.devices import as_device, place
from weft._array.ranges import number_of
from weft._array.rules import as_dtype
from weft._core import wrap
from weft._default import get_engine
from weft._tape.hearing import hear_nothing

if TYPE_CHECKING:
    import numpy.typing as npt

    from weft._core import Engine, NDArray
    from weft._device import Device

__all__ = ["geomspace", "logspace"]


def logspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    endpoint: bool = True,  # noqa: FBT001, FBT002 - NumPy's place for it
    base: float = 10.0,
    dtype: npt.DTypeLike | None = None,
    *,
    device: Device | str | None = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return numbers from ``base ** start`` to ``base ** stop`` whose logarithms are evenly spaced.

    Parameters
    ----------
    start, stop : number
        The exponents of the ends.
    num : int, default: 50
        How many numbers.
    endpoint : bool, default: True
        Whether the last one is at `stop`.
    base : float, default: 10.0
        The base.
    dtype : dtype-like, optional
        The dtype; by default float64, or complex128 for complex ends.
    device : Device or str, optional
        The device.
    engine : Engine, optional
        The engine; by default the default one.

    Examples
    --------
    >>> import weft
    >>> weft.logspace(0, 2, 3)
    NDArray([  1.,  10., 100.])
    """
    ends: tuple[float, float] = number_of(start), number_of(stop)
    scale: float = number_of(base)
    found = np.logspace(*ends, operator.index(num), endpoint=endpoint, base=scale)
    made = _made(found, dtype, device, engine)
    hear_nothing("logspace", (start, stop, base), (made,))
    return made


def geomspace(
    start: complex,
    stop: complex,
    /,
    num: SupportsIndex = 50,
    endpoint: bool = True,  # noqa: FBT001, FBT002 - NumPy's place for it
    dtype: npt.DTypeLike | None = None,
    *,
    device: Device | str | None = None,
    engine: Engine | None = None,
) -> NDArray:
    """Return numbers from `start` to `stop`, each the same multiple of the one before; parameters as in `logspace`.

    Examples
    --------
    >>> import weft
    >>> weft.geomspace(1, 8, 4)
    NDArray([1., 2., 4., 8.])
    """
    ends: tuple[float, float] = number_of(start), number_of(stop)
    made = _made(np.geomspace(*ends, operator.index(num), endpoint=endpoint), dtype, device, engine)
    hear_nothing("geomspace", (start, stop), (made,))
    return made


def _made(
    values: npt.NDArray[np.inexact], dtype: npt.DTypeLike | None, device: Device | str | None, engine: Engine | None
) -> NDArray:
    wanted = values.dtype if dtype is None else as_dtype(dtype)
    return place(wrap(values.astype(wanted), engine or get_engine()), as_device(device))
