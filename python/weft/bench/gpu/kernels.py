"""The kernels that every implementation launches, and their results.

They step numbers of 32 bits as a generator does: ``v * A + C``. That is exact on any device, and no compiler can leave
it out. The result of any number of steps is known without taking them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

import weft
from weft.bench.samples import VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

#: As a program calls them around arguments; type checkers know them as annotations alone.
mutate = cast("Callable[[weft.NDArray], object]", weft.Mutate)
read = cast("Callable[[weft.NDArray], object]", weft.Read)

#: Threads of a block.
THREADS = 256
_FACTOR, _INCREMENT, _MODULUS = 1_664_525, 1_013_904_223, 2**32
_SEED = 0x77656674

#: One step of each element; the threads are as many.
STEP = r"""
extern "C" __global__ void step_once(unsigned int* x) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    x[i] = x[i] * 1664525u + 1013904223u;
}
"""
#: The arguments of most kernels: arrays, a number, a count.
ADD_SCALED = r"""
extern "C" __global__ void add_scaled(const unsigned int* x, unsigned int* y, unsigned int factor, unsigned int count) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] += x[i] * factor;
}
"""
#: So many steps of each element.
ROUNDS = r"""
extern "C" __global__ void rounds(unsigned int* x, unsigned int count, unsigned int steps) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned int v = x[i];
    for (unsigned int s = 0; s < steps; ++s) v = v * 1664525u + 1013904223u;
    x[i] = v;
}
"""


def numbers(size: int) -> npt.NDArray[np.uint32]:
    """Return random numbers of 32 bits, the same for each size."""
    return np.random.default_rng(_SEED).integers(0, _MODULUS, size, np.uint32)


def blocks_for(size: int) -> int:
    """Return how many blocks of `THREADS` threads cover so many elements."""
    return -(-size // THREADS)


def after(values: npt.NDArray[np.uint32], steps: int) -> npt.NDArray[np.uint32]:
    """Return the values after so many steps.

    Examples
    --------
    >>> import numpy as np
    >>> from weft.bench.gpu.kernels import after
    >>> start = np.array([7], np.uint32)
    >>> bool(after(after(start, 2), 3) == after(start, 5))
    True
    """
    factor, increment = 1, 0
    square, shift = _FACTOR, _INCREMENT  # of 1, 2, 4, ... steps
    while steps:
        if steps & 1:
            factor, increment = factor * square % _MODULUS, (increment * square + shift) % _MODULUS
        square, shift = square * square % _MODULUS, shift * (square + 1) % _MODULUS
        steps >>= 1
    return values * np.uint32(factor) + np.uint32(increment)


def check(found: Any, wanted: npt.NDArray[Any], who: str) -> None:
    """Check the results of an implementation.

    Raises
    ------
    VerificationError
        If not.
    """
    if not np.array_equal(np.asarray(found), wanted):
        raise VerificationError(f"{who}: the results are wrong")
