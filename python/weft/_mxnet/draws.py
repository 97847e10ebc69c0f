"""The random numbers of MXNet's ops: those of one generator for each engine."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import weft

if TYPE_CHECKING:
    from weft._core import Engine
    from weft.random import Generator

__all__ = ["generator_of", "kept", "seed"]

_generators: weakref.WeakKeyDictionary[Engine, Generator] = weakref.WeakKeyDictionary()
_seed = [0]


def seed(value: int) -> None:
    """Let dropout and its kind begin anew with the numbers of this seed, on all engines.

    Examples
    --------
    >>> import weft.mxnet
    >>> weft.mxnet.seed(7)
    """
    _seed[0] = value
    _generators.clear()


def generator_of(x: Any) -> Generator:
    """Return the generator of the engine on which an array is."""
    found = _generators.get(x.engine)
    if found is None:
        found = _generators[x.engine] = weft.random.default_rng(_seed[0], engine=x.engine)
    return found


def kept(x: Any, rate: float, shape: tuple[int, ...] | None = None) -> Any:
    """Return a factor for each element: 0 for those that are dropped, and for the others what makes up for them."""
    drawn = generator_of(x).random(x.shape if shape is None else shape)
    return weft.astype(weft.astype(drawn >= rate, x.dtype) / (1.0 - rate), x.dtype)
