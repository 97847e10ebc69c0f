"""Cases that are scripts: lines of Python, run once for each of two sides, whose results must agree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from against import sample

import weft

from .cases import without_each

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Script", "compare", "outcome"]


def into(out: Any, function: Callable[..., Any], x: Any) -> None:
    """Compute into a place with strides, where some of NumPy's own loops leave elements out."""
    if isinstance(out, np.ndarray):
        out[...] = function(x)
    else:
        function(x, out=out)


def host(value: Any) -> Any:
    """Return a result as NumPy's array, waited for; several as a list."""
    if isinstance(value, tuple | list):
        return [host(each) for each in value]
    return value.numpy() if isinstance(value, weft.NDArray) else np.asarray(value)


def outcome(run: Callable[[], Any]) -> Any:
    """Return what a side gives, or what it raises."""
    try:
        with np.errstate(all="ignore"):
            return host(run())
    except Exception as error:  # noqa: BLE001 - the other side must raise as well
        return error


def compare(found: Any, wanted: Any, *, close: bool) -> str | None:
    """Return how one outcome differs from the other, bit for bit or closely; None if they agree."""
    if isinstance(found, Exception) or isinstance(wanted, Exception):
        if not (isinstance(found, Exception) and isinstance(wanted, Exception)):
            return f"only one raises: {found!r} and {wanted!r}"
        return None if isinstance(found, weft.errors.WeftError) else f"no error of weft: {found!r}, where {wanted!r}"
    if isinstance(found, list):
        if len(found) != len(wanted):
            return f"so many results: {len(found)} and {len(wanted)}"
        problems = (compare(one, other, close=close) for one, other in zip(found, wanted, strict=True))
        return next((each for each in problems if each is not None), None)
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"dtypes and shapes: {found.dtype} {found.shape} and {wanted.dtype} {wanted.shape}"
    if close and wanted.dtype.kind in "fc":
        digits = {2: 2e-2, 4: 1e-4, 8: 1e-9}[wanted.real.dtype.itemsize]
        # What is small beside the others is the rest of a sum of large ones.
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        same = np.allclose(found, wanted, rtol=digits, atol=digits * scale, equal_nan=True)
    else:
        same = np.array_equal(found, wanted, equal_nan=wanted.dtype.kind in "fc")
    return None if same else f"values:\n{found!r}\nand\n{wanted!r}"


@dataclass(frozen=True)
class Script:
    """Lines in which `xp` is the namespace, and the value of the last expression.

    `sides` runs them and returns two outcomes.
    """

    lines: tuple[str, ...]
    result: str
    sides: Callable[[Script], tuple[Any, Any]]
    close: bool = False

    def run(self) -> str | None:
        found, wanted = self.sides(self)
        return compare(found, wanted, close=self.close)

    def smaller(self) -> Iterator[Script]:
        for lines in without_each(self.lines):
            yield replace(self, lines=lines)

    def names(self, xp: Any) -> dict[str, Any]:
        """Return the names that lines use."""
        return {"xp": xp, "np": np, "weft": weft, "sample": sample, "into": into}

    def value(self, xp: Any) -> Any:
        """Run the lines on a side."""
        names = self.names(xp)
        exec("\n".join(self.lines), names)
        return eval(self.result, names)

    def __str__(self) -> str:
        """Return the script."""
        return "\n".join(("from against import sample", *self.lines, f"print({self.result})"))
