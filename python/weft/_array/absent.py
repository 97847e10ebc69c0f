"""Names of NumPy's that weft has not, and what to write."""

from __future__ import annotations

import numpy as np

__all__ = ["INSTEAD", "hint_for"]

#: Where NumPy's own would wait for the arrays, or gives NumPy's back.
INSTEAD = {
    "c_": "weft.column_stack([a, b])",
    "mgrid": "weft.stack(weft.meshgrid(weft.arange(n), weft.arange(m), indexing='ij'))",
    "ogrid": "weft.ix_(weft.arange(n), weft.arange(m))",
    "r_": "weft.concatenate([a, b])",
    "vectorize": "the function with operators and weft.where on whole arrays",
}


def hint_for(name: str) -> str:
    """Return what a message adds on a name that weft has not: nothing, if NumPy has not either."""
    if name in INSTEAD:
        return f": write {INSTEAD[name]}"
    theirs = getattr(np, name, None)
    if isinstance(theirs, np.ufunc) or hasattr(theirs, "_implementation"):  # what NumPy dispatches on its arguments
        return f": np.{name}(x) takes NDArrays"
    return "" if theirs is None else f": it is NumPy's alone, numpy.{name}"
