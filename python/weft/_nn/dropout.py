"""Dropout: a mask that an op draws, and the product with it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from weft._call.calls import one
from weft._call.operands import as_array
from weft._core import kernel_mask
from weft._nn.arguments import floating
from weft._nn.running import is_plain, run
from weft._ops.draws import drawing_op
from weft._registry.avals import Aval
from weft._registry.defaults import state
from weft._registry.gradients import no_gradient
from weft._registry.op import get_op
from weft._registry.symbol_hook import is_symbol
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._call.calls import DType, Elements
    from weft._call.operands import ArrayLike
    from weft._core import Kernel, NDArray
    from weft._ops.random import Generator


def _infer_mask(like: Aval, *, rate: float) -> Aval:
    _check_rate(rate)
    return Aval(like.shape, floating("nn.dropout", x=like))


def _check_rate(rate: float) -> None:
    if not 0 <= rate < 1:
        raise ArgumentValueError(f"nn.dropout: rate is at least 0 and less than 1, not {rate!r}")


def _fill_mask(generator: np.random.Generator, out: Elements, like: Elements, *, rate: float) -> None:
    del like
    drawn = cast("Elements", generator.random(out.shape, dtype=np.float32))
    kept = np.greater_equal(drawn, np.float32(rate))
    np.multiply(kept, 1 / (1 - rate), out=out, casting="unsafe")


@lru_cache(maxsize=1024)
def _mask(dtype: DType, count: int, rate: float, words: int) -> Kernel | None:
    return kernel_mask("random.dropout_mask", dtype, count, rate, words) if count else None


def _push_mask(outputs: tuple[NDArray], operands: tuple[Any, ...], *, rate: float) -> bool:
    """Push a draw that changes a generator's state; the other operand does not count."""
    (out,), state = outputs, operands[0]
    return is_plain(state) and run(_mask(out.dtype, out.size, rate, state.size), outputs, (state,), integers=0)


drawing_op("dropout_mask", _infer_mask, _fill_mask, refused=False)
state(get_op("random.dropout_mask"), push=_push_mask)
no_gradient("random.dropout_mask")


def dropout(x: ArrayLike, rate: float, generator: Generator) -> NDArray:
    """Put 0 in place of elements by chance, and scale the others so that the mean stays.

    The draw is an op on the generator's state, as all draws are: each replay of a program draws anew.

    Parameters
    ----------
    x : array_like
        Data.
    rate : float
        The probability of each element to be dropped: at least 0, less than 1.
    generator : weft.random.Generator
        The source of the draw. Of a symbol `x`, a symbol that stands for a generator's state: ``Variable("state")``.

    Examples
    --------
    >>> import weft
    >>> x = weft.nn.dropout(weft.ones(1000), 0.5, weft.random.default_rng(7))
    >>> sorted(set(x.tolist()))
    [0.0, 2.0]
    """
    x = as_array(x)
    rate = float(rate)
    _check_rate(rate)
    state: Any = generator if is_symbol(generator) else getattr(generator, "_state", None)
    if state is None:
        raise ArgumentTypeError(f"nn.dropout: generator is a weft.random.Generator, not {type(generator).__name__}")
    found: NDArray = x * one(get_op("random.dropout_mask"), state, x, rate=rate)
    return found
