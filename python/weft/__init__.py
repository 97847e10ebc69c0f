"""weft: a dependency engine for Python.

A program stays serial to read; every operation says which variables it reads and which it mutates; the engine runs at
once all that may run at once, and in order all that must.

Examples
--------
>>> import numpy as np
>>> import weft
>>> @weft.task
... def scale(out: weft.Overwrite[np.ndarray], x: weft.Read[np.ndarray], by: float) -> None:
...     np.multiply(x, by, out=out)
>>> @weft.task
... def add(total: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
...     total += x
>>> x, y, z = np.ones(3), np.empty(3), np.empty(3)
>>> scale(y, x, 2.0)  # these two may run at once
>>> scale(z, x, 3.0)
>>> add(y, z)  # this one runs after both
>>> weft.wait(y)
>>> y
array([5., 5., 5.])

The same, pushed by hand:

>>> with weft.Engine(workers=2) as engine:
...     a = engine.new_variable("a")
...     engine.push(lambda: print("write"), mutate_vars=[a])
...     engine.push(lambda: print("read"), read_vars=[a])
write
read
"""

import warnings as _warnings
from importlib.metadata import version as _version

from weft import errors
from weft._access import Mutate, Overwrite, Read
from weft._core import Completion, Engine, Operator, Variable, _debug_build
from weft._default import get_engine, set_engine
from weft._device import Device, cpu
from weft._executor import Executor
from weft._exit import install as _install
from weft._task import task
from weft._wait import wait

__all__ = [
    "Completion",
    "Device",
    "Engine",
    "Executor",
    "Mutate",
    "Operator",
    "Overwrite",
    "Read",
    "Variable",
    "__version__",
    "cpu",
    "errors",
    "get_engine",
    "set_engine",
    "task",
    "wait",
]

__version__ = _version("weft")

if _debug_build:
    _warnings.warn(
        "weft._core is a debug build, many times slower than a release build: build it with `maturin build --release`",
        RuntimeWarning,
        stacklevel=2,
    )

_install()
