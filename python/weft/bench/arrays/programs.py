"""The computations of tables C, D, F and R, and NumPy's results for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from weft.bench.settings import Settings

_SEED = 0x77656674
# Of exp, multiply, add; then exp and multiply once more: 20 element-wise ops in a chain.
ROUNDS = 6
SCALE = 0.25
#: Rounds of four ops each in a call of table R.
CALLED_ROUNDS = 25

# Other libraries round exp and sums of products in their own way.
_RELATIVE = 1e-4
_ABSOLUTE = 1e-3


class Operands(NamedTuple):
    """Arrays of table D: the start of each chain, the addends of its additions, two matrices."""

    starts: tuple[Any, ...]
    offsets: tuple[Any, ...]
    left: Any
    right: Any


def chain(exp: Callable[[Any], Any], x: Any, offset: Any) -> Any:
    """Return the result of 20 element-wise ops on ``x``; offsets in [-1, 0) keep every value below 1.5."""
    for _ in range(ROUNDS):
        x = exp(x)
        x = x * SCALE
        x = x + offset
    x = exp(x)
    return x * SCALE


def script(exp: Callable[[Any], Any], operands: Operands) -> list[Any]:
    """Return the results of table D's program, as one writes it for one thread."""
    results = [chain(exp, x, offset) for x, offset in zip(operands.starts, operands.offsets, strict=True)]
    results.append(operands.left @ operands.right)
    results.append(operands.right @ operands.left)
    return results


def rounds(tanh: Callable[[Any], Any], count: int, x: Any, y: Any) -> tuple[Any, Any]:
    """Run table R's function: element-wise ops that each need the result of the one before."""
    for _ in range(count):
        t = x * y
        u = x + y
        x = t - u
        y = tanh(x)
    return x, y


def mixed(x: Any, y: Any) -> tuple[Any]:
    """Run table F's function of sums, differences and products, 150 of them; values stay below 1."""
    for _ in range(50):
        t = x * y
        u = x + y
        x = t - u
    return (x,)


def horner(x: Any, y: Any) -> tuple[Any]:
    """Evaluate a polynomial of degree 75 by Horner's rule: 150 ops, each on the result of the one before."""
    value = y
    for power in range(75):
        value = value * x + (power + 1) / 75
    return (value,)


#: The functions of table F, by name.
FUSED: dict[str, Callable[[Any, Any], tuple[Any]]] = {"mixed": mixed, "Horner": horner}


def ends(*arrays: Any) -> tuple[Any]:
    """Run table R's function of one op: it takes as many arrays as one likes."""
    return (arrays[0] + arrays[-1],)


def make_addends(n: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the operands of table C, float32 of shape (n,)."""
    rng = np.random.default_rng(_SEED)
    return rng.random(n, np.float32), rng.random(n, np.float32)


def make_operands(settings: Settings) -> Operands:
    """Return the operands of table D, all float32."""
    rng = np.random.default_rng(_SEED)
    rows = settings.matrix_rows
    return Operands(
        tuple(rng.random(settings.chain_floats, np.float32) for _ in range(settings.chains)),
        tuple(rng.random(settings.chain_floats, np.float32) - np.float32(1) for _ in range(settings.chains)),
        rng.standard_normal((rows, rows), np.float32),
        rng.standard_normal((rows, rows), np.float32),
    )


def differs(found: Sequence[npt.NDArray[Any]], expected: Sequence[npt.NDArray[Any]], *, exact: bool) -> str | None:
    """Say how results differ from NumPy's; None where they do not.

    Parameters
    ----------
    found, expected : sequence of ndarray
        Arrays to compare, in order.
    exact : bool
        Whether element-wise results, those of one dimension, must have NumPy's bits.
    """
    for number, (own, numpy_own) in enumerate(zip(found, expected, strict=True)):
        if own.dtype != numpy_own.dtype or own.shape != numpy_own.shape:
            return f"result {number} is {own.dtype} {own.shape}, not {numpy_own.dtype} {numpy_own.shape}"
        bits = exact and own.ndim == 1
        same = np.array_equal(own, numpy_own) if bits else np.allclose(own, numpy_own, _RELATIVE, _ABSOLUTE)
        if not same:
            return f"result {number} is off by up to {np.abs(own - numpy_own).max():.3g}"
    return None
