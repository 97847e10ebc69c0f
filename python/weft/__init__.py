"""weft: a dependency engine for Python, and asynchronous arrays on it.

A program stays serial to read; every operation says which variables it reads and which it mutates; the engine runs side
by side all that may run so, and in order all that must.

The functions of this module are NumPy's, on `NDArray`: each pushes its work and returns at once, and only asking for
values waits. Other code becomes an op by `task`, or by `Engine.push`.

Examples
--------
Arrays: no line waits but the last.

>>> import weft
>>> x = weft.arange(4.0)
>>> y = weft.sqrt(x) + x  # the same as y = x**0.5 + x in a script for NumPy
>>> x[1:] = 0.0  # after y has read x
>>> y.sum() + x.sum()
NDArray(10.14626437)

Functions of one's own, with declared reads and writes:

>>> import numpy as np
>>> @weft.task
... def scale(out: weft.Overwrite[np.ndarray], x: weft.Read[np.ndarray], by: float) -> None:
...     np.multiply(x, by, out=out)
>>> @weft.task
... def add(total: weft.Mutate[np.ndarray], x: weft.Read[np.ndarray]) -> None:
...     total += x
>>> x, y, z = np.ones(3), np.empty(3), np.empty(3)
>>> two, three = scale(y, x, 2.0), scale(z, x, 3.0)  # these may run at the same time
>>> both = add(y, z)  # this one runs after them
>>> both.wait()
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
from typing import TYPE_CHECKING as _TYPE_CHECKING

# isort: off - `name as name` makes a name public: it is said here and nowhere else
from weft import (
    autograd as autograd,
    cuda as cuda,
    distributed as distributed,
    errors as errors,
    fft as fft,
    graph as graph,
    linalg as linalg,
    nn as nn,
    ops as ops,
    random as random,
    symbol as symbol,
)
from weft._batch.mapping import vmap as vmap
from weft._core import (
    Completion as Completion,
    Engine as Engine,
    NDArray as NDArray,
    Operator as Operator,
    Variable as Variable,
    _debug_build,
    memory_stats as memory_stats,
    memory_trim as memory_trim,
)
from weft._cuda.backend import attach as _attach_cuda
from weft._doctor.session import doctor as doctor
from weft._engine.access import Mutate as Mutate, Overwrite as Overwrite, Read as Read
from weft._engine.array_waits import wait_all as wait_all
from weft._engine.default import get_engine as get_engine, set_engine as set_engine
from weft._engine.executor import Executor as Executor
from weft._engine.exit import install as _install
from weft._engine.labels import Device as Device, cpu as cpu, gpu as gpu
from weft._engine.notebook import attach as _attach_notebook, load_ipython_extension as load_ipython_extension
from weft._engine.progress import progress as progress
from weft._engine.recorder import Trace as Trace
from weft._engine.recover import recover as recover
from weft._engine.task import task as task
from weft._engine.task_handle import TaskHandle as TaskHandle
from weft._engine.wait import wait as wait, wait_async as wait_async
from weft._handle.methods import attach as _attach_methods
from weft._numpy.interop import attach as _attach_interop
from weft._numpy.namespace import *  # noqa: F403 - module by module
from weft._numpy.namespace_info import __array_namespace_info__ as __array_namespace_info__
from weft._ops import attach as _attach_rules
from weft._ops.trace import trace as trace
from weft._program.capture import capture as capture
from weft._program.control import cond as cond, scan as scan
from weft._program.decorator import program as program
from weft._program.program import Program as Program
from weft._program.switch import eager as eager
from weft._registry.avals import Aval as Aval
from weft._registry.op import register_op as register_op
from weft.autograd import (
    checkpoint as checkpoint,
    grad as grad,
    jvp as jvp,
    value_and_grad as value_and_grad,
    vjp as vjp,
)

# isort: on

#: SINGA's faces: the first use imports them. Most programs use none.
_FACES = ("device", "initializer", "layer", "model", "opt", "tensor")

if _TYPE_CHECKING:
    from weft import (
        device as device,
        initializer as initializer,
        layer as layer,
        model as model,
        mxnet as mxnet,
        opt as opt,
        tensor as tensor,
    )

    __version__: str
else:

    def __getattr__(name: str) -> object:
        """Return a face, SINGA's or MXNet's, or `__version__`: reading it takes as long as half of the import."""
        if name in {*_FACES, "mxnet"}:
            import importlib  # noqa: PLC0415 - most programs need none

            return importlib.import_module(f"weft.{name}")
        if name != "__version__":
            import sys  # noqa: PLC0415 - as above

            from weft._numpy.hints import hint_for  # noqa: PLC0415 - as above

            own = sys.modules[__name__]  # for Python, which looks there for a name that is nearly this one
            raise AttributeError(f"module 'weft' has no attribute {name!r}{hint_for(name)}", name=name, obj=own)
        from importlib.metadata import version  # noqa: PLC0415 - as above

        found = globals()[name] = version("weft")
        return found

    def __dir__() -> list[str]:
        """Return the names of the module and those of its faces, imported or not."""
        return sorted({*globals(), *_FACES})


__array_api_version__ = "2024.12"
# Type checkers go by the imports above, which say once what is public; this is for `from weft import *` and `help`.
globals()["__all__"] = ["__version__", "__array_namespace_info__", *_FACES]
globals()["__all__"] += [name for name in globals() if name[0] != "_"]

if _debug_build:
    _warnings.warn(
        "weft._core is a debug build, many times slower than a release build: build it with `maturin build --release`",
        RuntimeWarning,
        stacklevel=2,
    )

_install()
_attach_cuda()
_attach_methods()
_attach_interop()
_attach_rules()
_attach_notebook()
