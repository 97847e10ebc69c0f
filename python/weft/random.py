"""Random numbers in the order of their pushes: NumPy's `Generator`, asynchronous.

A generator's state is an array that each draw mutates. Draws of one generator therefore run one after the other, in
push order, and give the same numbers at any worker count: `default_rng` those of ``numpy.random.default_rng(seed)``, `Generator`
those of ``numpy.random.Generator(numpy.random.Philox(seed))``. For draws that run side by side, `Generator.spawn` children.

Arguments are checked at the call. A mistake that only the values of NDArrays can show (a negative `scale`, say) comes
out at the wait for the result; the generator stays as it was. A draw from an array with a failed op fails the generator
too.
"""

import numpy as np

from weft._ops.random import Generator, _restore as _restore, default_rng

__all__ = ["Generator", "default_rng"]


def __getattr__(name: str) -> object:
    """Name the replacement of a function that NumPy's module alone has: those share one generator."""
    hint = ""
    if name.startswith("__"):
        pass  # imports ask for it
    elif name == "seed":
        hint = ": there is no generator that all share; make one by rng = weft.random.default_rng(seed)"
    elif callable(getattr(np.random, name, None)):
        hint = f": there is no generator that all share; make one, and see its methods for np.random.{name}: weft.random.default_rng(seed)"
    raise AttributeError(f"module 'weft.random' has no attribute {name!r}{hint}", name=name)
