"""One generator of random numbers for each device: the source of initialisers and dropout."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from weft._call.devices import as_device
from weft._engine.default import get_engine
from weft._ops.random import Generator
from weft._program.unrecorded import outside
from weft._registry.brief import brief
from weft.errors import ArgumentTypeError, ArgumentValueError

if TYPE_CHECKING:
    from weft._core import Engine
    from weft._engine.labels import Device

#: By kind of device and its number: a seed, if one was set, and its generators, by engine.
_seeds: dict[tuple[str, int], Any] = {}
_made: dict[tuple[str, int], tuple[Engine, Generator]] = {}


def generator_of(device: Device | str | None = None) -> Generator:
    """Return the generator of a device, made at the first call: of the seed that was set, or of fresh entropy."""
    where = as_device(device)
    key, engine = (where.kind, where.index), get_engine()
    found = _made.get(key)
    if found is None or found[0] is not engine:
        entropy = _seeds.setdefault(key, np.random.SeedSequence().entropy)
        found = _made[key] = engine, outside(lambda: Generator(entropy, engine=engine))
    return found[1]


def seed(device: Device | str | None, value: SupportsIndex) -> None:
    """Begin the device's numbers anew, from a seed; programs that draw from them go on with the new ones."""
    if not isinstance(value, SupportsIndex):
        raise ArgumentTypeError(f"a seed is a whole number of at least 0, not {brief(value)}")
    number = operator.index(value)
    if number < 0:
        raise ArgumentValueError(f"a seed is a whole number of at least 0, not {number}")
    where = as_device(device)
    key = where.kind, where.index
    _seeds[key] = number
    found = _made.get(key)
    if found is None or found[0] is not get_engine():
        _made.pop(key, None)
        return
    generator = found[1]
    # In place: a recorded program draws from the state that it has seen.
    fresh = outside(lambda: Generator(number, engine=found[0]))
    generator._state[...] = fresh._state
    generator._seeds = fresh._seeds
