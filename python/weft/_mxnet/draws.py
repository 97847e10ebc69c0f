"""The random numbers of MXNet's ops: those of one generator for each engine."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from weft._numpy import namespace
from weft._ops.random import Generator
from weft._program.unrecorded import outside

if TYPE_CHECKING:
    from weft._core import Engine

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
    for engine, generator in list(_generators.items()):
        # In place: executors replay draws of this very state.
        generator._state[...] = _new(engine)._state


def _new(engine: Engine) -> Generator:
    return Generator(_seed[0], engine=engine)


def generator_of(x: Any) -> Generator:
    """Return the generator of an array's engine."""
    found = _generators.get(x.engine)
    if found is None:
        found = outside(lambda: _new(x.engine))  # one that is made in a recording would begin anew at each replay
        _generators[x.engine] = found
    return found


def kept(x: Any, rate: float, shape: tuple[int, ...] | None = None) -> Any:
    """Return a factor for each element: 0 for those that are dropped, and for the others one that makes up for them."""
    drawn = generator_of(x).random(x.shape if shape is None else shape)
    return namespace.astype(namespace.astype(drawn >= rate, x.dtype) / (1.0 - rate), x.dtype)
