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

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType

from weft._numpy import namespace as _weft
from weft._numpy.namespace import (
    acos as acos,
    acosh as acosh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atanh as atanh,
    ceil as ceil,
    cos as cos,
    cosh as cosh,
    floor as floor,
    log as log,
    negative as negative,
    reciprocal as reciprocal,
    sin as sin,
    sinh as sinh,
    sqrt as sqrt,
    tan as tan,
    tanh as tanh,
)
from weft._singa import elementwise as _elementwise, shaping as _shaping
from weft._singa.elementwise import (  # noqa: F401 - names of SINGA's that begin with an underscore
    cast as cast,
    clip as clip,
    elu as elu,
    hardsigmoid as hardsigmoid,
    identity as identity,
    leakyrelu as leakyrelu,
    logical_and as _and,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_not as _not,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_or as _or,  # pyright: ignore[reportUnusedImport] # SINGA's name
    logical_xor as _xor,  # pyright: ignore[reportUnusedImport] # SINGA's name
    prelu as prelu,
    relu as relu,
    selu as selu,
    sigmoid as sigmoid,
    softplus as softplus,
    softsign as softsign,
    where as where,
)
from weft._singa.error_function import (
    erf as erf,
)
from weft._singa.losses import (
    binary_cross_entropy as binary_cross_entropy,
    cross_entropy as cross_entropy,
    mse_loss as mse_loss,
    ranking_loss as ranking_loss,
    softmax_cross_entropy as softmax_cross_entropy,
)
from weft._singa.names import (
    abs as abs,
    add as add,
    add_all as add_all,
    div as div,
    equal as equal,
    exp as exp,
    greater as greater,
    less as less,
    matmul as matmul,
    mul as mul,
    nonzero as nonzero,
    pow as pow,
    sign as sign,
    sub as sub,
)
from weft._singa.networks import (
    BatchNormHandle as BatchNormHandle,
    ConvHandle as ConvHandle,
    PoolingHandle as PoolingHandle,
    batchnorm_2d as batchnorm_2d,
    conv2d as conv2d,
    dropout as dropout,
    embedding as embedding,
    pooling_2d as pooling_2d,
)
from weft._singa.operator_table import *  # noqa: F403 - SINGA's classes: the one list is there
from weft._singa.products import (
    add_bias as add_bias,
    cossim as cossim,
    gemm as gemm,
)
from weft._singa.shaping import (
    cat as cat,
    constant_of_shape as constant_of_shape,
    depth_to_space as depth_to_space,
    expand as expand,
    flatten as flatten,
    gather as gather,
    globalaveragepool as globalaveragepool,
    onehot as onehot,
    pad as pad,
    reduce_mean as reduce_mean,
    reduce_sum as reduce_sum,
    reshape as reshape,
    scatter_elements as scatter_elements,
    space_to_depth as space_to_depth,
    split as split,
    squeeze as squeeze,
    tile as tile,
    transpose as transpose,
    unsqueeze as unsqueeze,
    upsample as upsample,
)
from weft._singa.softmaxes import (
    softmax as softmax,
)
from weft._tape import modes
from weft._tape.api import Gradients as Gradients, backward as backward, gradients as gradients
from weft._tape.checkpoints import checkpoint as checkpoint
from weft._tape.leaves import stop_gradient as stop_gradient
from weft._tape.modes import no_grad as no_grad
from weft._tape.transforms import grad as grad, jvp as jvp, value_and_grad as value_and_grad, vjp as vjp
from weft._tape.user_operators import Operator as Operator

training: bool
max, mean, min, sum = _elementwise.max_of, _elementwise.mean_of, _elementwise.min_of, _elementwise.sum_of
round, rounde = _elementwise.round_up, _weft.round
shape, slice = _shaping.shape_of, _shaping.slice_of
#: SINGA's name of `Operator`.
Operation = Operator

# Type checkers go by the imports above; this is for `from weft.autograd import *` and `help`.
globals()["__all__"] = sorted({"training", *(name for name in globals() if name[0] != "_")} - {"modes"})


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
    """Return a layer: layers are made of this module's names, so that it cannot import them first."""
    if name in _LAYERS:
        return getattr(_import_module("weft.layer"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Module(_ModuleType):
    """The module, with an attribute that each task has for itself."""

    @property
    def training(self) -> bool:
        """Whether layers train."""
        return modes.TRAINING.get()

    @training.setter
    def training(self, value: bool) -> None:
        mode = modes.flag(value, "autograd.training")
        modes.train(mode=mode)


_sys.modules[__name__].__class__ = _Module
