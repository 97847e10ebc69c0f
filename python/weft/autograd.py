"""Gradients by a tape that listens while ops are pushed.

SINGA's operators are here, too, under its names: functions (`conv2d`, `softmax_cross_entropy`), and classes that are made
with settings and called with arrays (`Clip`, `Gemm`).

An array says that its gradient is wanted by `requires_grad`; from then on the tape notes each op over it, and over its
results, until `backward` or `gradients` walk back. `weft.grad` and its like do the same for a function's arguments.

Attributes
----------
training : bool
    Whether layers train, False until somebody assigns it: for this thread, or task of asyncio, and what it calls. False,
    assigned, also keeps the tape from listening, so that evaluation holds no values; `weft.grad` listens all the same.

>>> import weft
>>> from weft import autograd
>>> w = weft.asarray([1.0, 2.0])
>>> w.requires_grad = True
>>> loss = weft.sum(weft.tanh(w) * w)
>>> autograd.gradients(loss)[w].round(3)
NDArray([1.182, 1.105])
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from weft._singa import operator_table as _table
from weft._singa.elementwise import (  # noqa: F401 - names of SINGA's that begin with an underscore
    cast,
    clip,
    elu,
    hardsigmoid,
    identity,
    leakyrelu,
    logical_and as _and,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_not as _not,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_or as _or,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_xor as _xor,  # pyright: ignore[reportUnusedImport] # SINGA's name
    max_of as max,
    mean_of as mean,
    min_of as min,
    prelu,
    relu,
    round_up as round,
    selu,
    sigmoid,
    softplus,
    softsign,
    sum_of as sum,
    where,
)
from weft._singa.error_function import (
    erf,
)
from weft._singa.losses import (
    binary_cross_entropy,
    cross_entropy,
    mse_loss,
    ranking_loss,
    softmax_cross_entropy,
)
from weft._singa.networks import (
    BatchNormHandle,
    ConvHandle,
    PoolingHandle,
    batchnorm_2d,
    conv2d,
    dropout,
    embedding,
    pooling_2d,
)
from weft._singa.operator_names import (
    abs_ as abs,
    acos,
    acosh,
    add,
    add_all,
    asin,
    asinh,
    atan,
    atanh,
    ceil,
    cos,
    cosh,
    div,
    equal,
    exp,
    floor,
    greater,
    less,
    log,
    matmul,
    mul,
    negative,
    nonzero,
    pow_ as pow,
    reciprocal,
    rounde,
    sign,
    sin,
    sinh,
    sqrt,
    sub,
    tan,
    tanh,
)
from weft._singa.operator_table import *  # noqa: F403 - SINGA's classes: the one list is there
from weft._singa.products import (
    add_bias,
    cossim,
    gemm,
)
from weft._singa.shaping import (
    cat,
    constant_of_shape,
    depth_to_space,
    expand,
    flatten,
    gather,
    globalaveragepool,
    onehot,
    pad,
    reduce_mean,
    reduce_sum,
    reshape,
    scatter_elements,
    shape_of as shape,
    slice_of as slice,
    space_to_depth,
    split,
    squeeze,
    tile,
    transpose,
    unsqueeze,
    upsample,
)
from weft._singa.softmaxes import (
    softmax,
)
from weft._tape import modes
from weft._tape.api import Gradients, backward, gradients
from weft._tape.checkpoints import checkpoint
from weft._tape.leaves import stop_gradient
from weft._tape.modes import no_grad
from weft._tape.transforms import grad, jvp, value_and_grad, vjp
from weft._tape.user_operators import Operator

__all__ = [
    "BatchNormHandle",
    "ConvHandle",
    "Gradients",
    "Operation",
    "Operator",
    "PoolingHandle",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_all",
    "add_bias",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "backward",
    "batchnorm_2d",
    "binary_cross_entropy",
    "cast",
    "cat",
    "ceil",
    "checkpoint",
    "clip",
    "constant_of_shape",
    "conv2d",
    "cos",
    "cosh",
    "cossim",
    "cross_entropy",
    "depth_to_space",
    "div",
    "dropout",
    "elu",
    "embedding",
    "equal",
    "erf",
    "exp",
    "expand",
    "flatten",
    "floor",
    "gather",
    "gemm",
    "globalaveragepool",
    "grad",
    "gradients",
    "greater",
    "hardsigmoid",
    "identity",
    "jvp",
    "leakyrelu",
    "less",
    "log",
    "matmul",
    "max",
    "mean",
    "min",
    "mse_loss",
    "mul",
    "negative",
    "no_grad",
    "nonzero",
    "onehot",
    "pad",
    "pooling_2d",
    "pow",
    "prelu",
    "ranking_loss",
    "reciprocal",
    "reduce_mean",
    "reduce_sum",
    "relu",
    "reshape",
    "round",
    "rounde",
    "scatter_elements",
    "selu",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "slice",
    "softmax",
    "softmax_cross_entropy",
    "softplus",
    "softsign",
    "space_to_depth",
    "split",
    "sqrt",
    "squeeze",
    "stop_gradient",
    "sub",
    "sum",
    "tan",
    "tanh",
    "tile",
    "training",
    "transpose",
    "unsqueeze",
    "upsample",
    "value_and_grad",
    "vjp",
    "where",
]
__all__ += _table.__all__

training: bool
#: SINGA's name of `Operator`.
Operation = Operator


#: Layers that SINGA's `autograd` names, too.
_LAYERS = {
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm2d",
    "Conv2d",
    "LSTM",
    "Linear",
    "MaxPool1d",
    "MaxPool2d",
    "Pooling2d",
    "RNN",
    "RNN_Base",
    "SeparableConv2d",
}


def __getattr__(name: str) -> object:
    """Return a layer: they are made of what is here, so that it cannot import them first."""
    if name in _LAYERS:
        return getattr(import_module("weft.layer"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Module(ModuleType):
    """The module, with an attribute that each task has for itself."""

    @property
    def training(self) -> bool:
        """Whether layers train."""
        return modes.TRAINING.get()

    @training.setter
    def training(self, value: bool) -> None:
        mode = modes.flag(value, "autograd.training")
        modes.TRAINING.set(mode)
        modes.LISTENING.set(mode)


sys.modules[__name__].__class__ = _Module
