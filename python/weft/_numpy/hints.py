"""Names of NumPy's, and of other libraries' arrays, that weft lacks, and their replacements."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Replacements for functions of NumPy's that would wait for arrays or return NumPy's, and for names of other libraries.
INSTEAD = {
    "Module": "weft.layer.Layer, or weft.model.Model for a network with its loss and its optimizer",
    "Tensor": "weft.asarray(values), or weft.tensor.Tensor(shape)",
    "block_until_ready": "x.wait_to_read() or weft.wait(x), and weft.wait_all() for everything",
    "cat": "weft.concatenate(arrays, axis=0)",
    "compile": "weft.program(function)",
    "compute": "handle.result() for the result of a task, weft.wait(x) for an array: what is pushed is computed without being asked for",
    "delayed": "@weft.task: a call returns a handle at once, and a handle as an argument is a dependency",
    "device_put": "x.to_device(weft.gpu(0))",
    "from_numpy": "weft.asarray(x)",
    "functional": "weft.nn",
    "get": "handle.result()",
    "jit": "weft.program(function)",
    "manual_seed": "rng = weft.random.default_rng(seed); layers draw from weft.device.get_default_device().SetRandSeed(seed)",
    "no_grad": "weft.autograd.no_grad()",
    "optim": "weft.opt",
    "pmap": "weft.distributed.Communicator, or opt.DistOpt for training",
    "push": "weft.get_engine().push(function, reads, mutates), or @weft.task",
    "put": "x.flat[indices] = values; where an object is handed to tasks, the object itself, as an argument",
    "rand": "weft.random.default_rng(seed).random(shape)",
    "randint": "weft.random.default_rng(seed).integers(low, high, shape)",
    "randn": "weft.random.default_rng(seed).standard_normal(shape)",
    "read_csv": "pandas.read_csv in a function under @weft.task, whose handle is an argument of the next task",
    "remote": "@weft.task: a call returns a handle at once",
    "set_num_threads": "weft.set_engine(weft.Engine(workers=n)), or WEFT_WORKERS=n in the environment",
    "submit": "@weft.task, or weft.Executor().submit(function)",
    "synchronize": "weft.wait_all(), or weft.wait(x) for an array",
    "vectorize": "the function with operators and weft.where on whole arrays; or weft.vmap of the function of one example",
    "wait_for_all": "weft.wait_all()",
    "waitall": "weft.wait_all()",
}

#: Methods of other libraries that move to a device, and where to.
MOVES = {
    "cpu": "x.to_device(weft.cpu())",
    "cuda": "x.to_device(weft.gpu(0))",
    "to": "x.to_device(weft.gpu(0)) for a device, x.astype(weft.float32) for a dtype",
}

#: Replacements for methods of SINGA's tensors, which `weft.tensor.Tensor` has, and results have not.
_OF_TENSORS = {
    "add_column": "x + v[:, None]",
    "add_row": "x + v",
    "as_type": "x.astype(weft.float32)",
    "bernoulli": "weft.tensor.bernoulli(p, x)",
    "clone": "x.copy()",
    "contiguous": "weft.tensor.contiguous(x)",
    "copy_data": "x[...] = values",
    "copy_from": "x[...] = values",
    "copy_from_numpy": "x[...] = values",
    "data": "x: there is nothing behind it",
    "deepcopy": "x.copy()",
    "div_column": "x / v[:, None]",
    "div_row": "x / v",
    "gaussian": "weft.tensor.gaussian(mean, std, x)",
    "is_empty": "x.ndim == 0",
    "l1": "weft.mean(weft.abs(x))",
    "l2": "weft.linalg.norm(x) / x.size",
    "memsize": "x.nbytes",
    "mult_column": "x * v[:, None]",
    "mult_row": "x * v",
    "reset_like": "weft.empty_like(other)",
    "set_value": "x[...] = value",
    "stores_grad": "x.requires_grad",
    "to_host": "x.to_device(weft.cpu())",
    "to_type": "x.astype(dtype)",
    "uniform": "weft.tensor.uniform(low, high, x)",
}

#: Replacements for attributes of NumPy's arrays that are functions here, or tell of memory.
_OF_NUMPY = {
    "argpartition": "weft.argpartition(x, kth)",
    "base": "x: views share its memory, and their accesses are ordered with its own",
    "byteswap": "x.numpy().byteswap()",
    "choose": "weft.select([x == 0, x == 1], choices)",
    "compress": "weft.compress(condition, x, axis)",
    "ctypes": "x.numpy().ctypes",
    "dump": "weft.save(path, x=x)",
    "flags": "x.readonly, or x.strides for the order in memory",
    "itemset": "x[i] = value",
    "put": "x.flat[indices] = values",
    "resize": "x.reshape(shape), which keeps the number of elements, or weft.pad(x, widths)",
    "tofile": "weft.save(path, x=x), or x.numpy().tofile(path)",
}

#: Replacements for methods of arrays that keep their gradients and a tape, or that are never written to.
INSTEAD_OF_METHODS = {
    **MOVES,
    **_OF_TENSORS,
    **_OF_NUMPY,
    "at": "x[i] = value: arrays are written to in place, in programs, too",
    "block_until_ready": "x.wait_to_read(), or await x",
    "backward": "for p, g in weft.autograd.backward(loss): ..., or weft.grad(function)(p)",
    "compute": "x.numpy(): it is computed without being asked for",
    "detach": "weft.autograd.stop_gradient(x)",
    "grad": "weft.autograd.gradients(loss)[x], or weft.grad(function)(x): gradients are returned, and not kept with arrays",
    "dim": "x.ndim",
    "double": "x.astype(weft.float64)",
    "half": "x.astype(weft.float16)",
    "long": "x.astype(weft.int64)",
    "numel": "x.size",
    "permute": "weft.permute_dims(x, axes)",
    "persist": "x.wait_to_read(): it is computed without being asked for",
    "requires_grad_": "x.requires_grad = True",
    "result": "x.numpy()",
    "unsqueeze": "weft.expand_dims(x, axis)",
    "zero_grad": "nothing in its place: each walk returns new gradients, and adds to none",
}

#: Where names of weft's are that people look for elsewhere, in this order.
_ROOMS = ("nn", "layer", "opt", "model", "linalg", "autograd", "fft", "random")


class Absent:
    """An attribute that is not there, as `hasattr` finds, with an error that names the replacement."""

    __slots__ = ("_instead", "_name")

    def __init__(self, name: str, instead: str) -> None:
        self._name, self._instead = name, instead

    def __get__(self, x: object, kind: type) -> NoReturn:
        """Raise AttributeError."""
        what = f"type object {kind.__name__!r}" if x is None else f"{kind.__name__!r} object"
        raise AttributeError(f"{what} has no attribute {self._name!r}: write {self._instead}", name=self._name, obj=x)


def hint_for(name: str) -> str:
    """Return a message's addition on a name that weft lacks: nothing, if NumPy lacks it, too."""
    if name in INSTEAD:
        return f": write {INSTEAD[name]}"
    theirs = getattr(np, name, None)
    found = elsewhere(name)
    if found:
        return found
    if isinstance(theirs, np.ufunc) or hasattr(
        theirs, "_implementation"
    ):  # a function that NumPy dispatches on its arguments
        return f": np.{name}(x) takes NDArrays"
    return "" if theirs is None else f": it is NumPy's alone, numpy.{name}"


def elsewhere(name: str) -> str:
    """Return a message's addition on a name that another module of weft's has."""
    for room in _ROOMS:
        if name in getattr(sys.modules.get(f"weft.{room}"), "__all__", ()):
            return f": write weft.{room}.{name}"
    return ""


def refuse(kind: type, instead: Mapping[str, str]) -> None:
    """Let errors of attributes that a class lacks name their replacements."""
    for name, what in instead.items():
        if not hasattr(kind, name):
            setattr(kind, name, Absent(name, what))
    setattr(kind, "__dir__", _present)


def _present(x: object) -> list[str]:
    """Return the names of attributes, as `dir` lists them, that are there."""
    absent = {name for kind in type(x).__mro__ for name, value in vars(kind).items() if isinstance(value, Absent)}
    return [name for name in object.__dir__(x) if name not in absent]
