"""Names of NumPy's, and of other libraries' arrays, that weft lacks, and their replacements."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

#: What to write for functions of NumPy's that would wait for arrays or return NumPy's, and for names of other libraries.
INSTEAD = {
    "Tensor": "weft.asarray(values), or weft.tensor.Tensor(shape)",
    "compile": "weft.program(function)",
    "jit": "weft.program(function)",
    "no_grad": "weft.autograd.no_grad()",
    "vectorize": "the function with operators and weft.where on whole arrays",
}

#: What to write for methods of arrays that keep their gradients and a tape, or that are never written to.
INSTEAD_OF_METHODS = {
    "at": "x[i] = value: arrays are written to in place, in programs, too",
    "backward": "for p, g in weft.autograd.backward(loss): ..., or weft.grad(function)(p)",
    "detach": "weft.autograd.stop_gradient(x)",
    "grad": "weft.autograd.gradients(loss)[x], or weft.grad(function)(x): gradients are returned, and not kept with arrays",
    "requires_grad_": "x.requires_grad = True",
    "zero_grad": "nothing in its place: each walk returns new gradients, and adds to none",
}


class Absent:
    """An attribute that is not there, as `hasattr` finds, and whose error says what to write."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, x: object, kind: type) -> NoReturn:
        """Raise AttributeError."""
        what = f"type object {kind.__name__!r}" if x is None else f"{kind.__name__!r} object"
        raise AttributeError(
            f"{what} has no attribute {self._name!r}: write {INSTEAD_OF_METHODS[self._name]}", name=self._name, obj=x
        )


def hint_for(name: str) -> str:
    """Return what a message adds on a name that weft has not: nothing, if NumPy has not either."""
    if name in INSTEAD:
        return f": write {INSTEAD[name]}"
    theirs = getattr(np, name, None)
    if isinstance(theirs, np.ufunc) or hasattr(theirs, "_implementation"):  # what NumPy dispatches on its arguments
        return f": np.{name}(x) takes NDArrays"
    return "" if theirs is None else f": it is NumPy's alone, numpy.{name}"


def present(x: object) -> list[str]:
    """Return the names of attributes, as `dir` lists them, that are there."""
    return [name for name in object.__dir__(x) if name not in INSTEAD_OF_METHODS]
