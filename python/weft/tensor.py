"""Tensors under SINGA's names: arrays that are made by their shape, and functions of them.

A `Tensor` is an `NDArray` with a name and with methods that overwrite it; results are plain arrays. Everything of weft takes
either.

>>> import numpy as np
>>> from weft import tensor
>>> x = tensor.from_numpy(np.array([[1.0, 2.0]], np.float32))
>>> tensor.mult(x, tensor.transpose(x))
NDArray([[5.]], dtype=float32)
"""

import numpy as np

from weft._array import namespace as _namespace
from weft._model.functions import (
    add_column,
    add_row,
    average,
    axpy,
    bernoulli,
    contiguous,
    copy_data_to_from,
    copy_from_numpy,
    from_numpy,
    from_raw_tensor,
    from_raw_tensors,
    gaussian,
    mult,
    ones,
    pow,  # noqa: A004 - SINGA's
    product,
    random,
    sigmoid,
    sizeof,
    softmax,
    sum,  # noqa: A004 - SINGA's
    sum_columns,
    sum_rows,
    to_host,
    to_numpy,
    transpose,
    uniform,
    zeros,
)
from weft._model.kind import Tensor

__all__ = [
    "Tensor",
    "abs",
    "add",
    "add_column",
    "add_row",
    "average",
    "axpy",
    "bernoulli",
    "ceil",
    "concatenate",
    "contiguous",
    "copy_data_to_from",
    "copy_from_numpy",
    "div",
    "einsum",
    "eltwise_mult",
    "eq",
    "exp",
    "float16",
    "float32",
    "from_numpy",
    "from_raw_tensor",
    "from_raw_tensors",
    "gaussian",
    "ge",
    "gt",
    "int32",
    "le",
    "log",
    "lt",
    "mult",
    "ones",
    "ones_like",
    "pow",
    "product",
    "random",
    "repeat",
    "reshape",
    "sigmoid",
    "sign",
    "sizeof",
    "softmax",
    "sqrt",
    "square",
    "sub",
    "sum",
    "sum_columns",
    "sum_rows",
    "tanh",
    "tensordot",
    "to_host",
    "to_numpy",
    "transpose",
    "uniform",
    "zeros",
    "zeros_like",
]

int32 = np.dtype(np.int32)
float16 = np.dtype(np.float16)
float32 = np.dtype(np.float32)

# The others are functions of weft under the names that SINGA has for them.
abs = _namespace.abs  # noqa: A001 - likewise
add = _namespace.add
ceil = _namespace.ceil
concatenate = _namespace.concatenate
div = _namespace.divide
einsum = _namespace.einsum
eltwise_mult = _namespace.multiply
eq = _namespace.equal
exp = _namespace.exp
ge = _namespace.greater_equal
gt = _namespace.greater
le = _namespace.less_equal
log = _namespace.log
lt = _namespace.less
ones_like = _namespace.ones_like
repeat = _namespace.repeat
reshape = _namespace.reshape
sign = _namespace.sign
sqrt = _namespace.sqrt
square = _namespace.square
sub = _namespace.subtract
tanh = _namespace.tanh
tensordot = _namespace.tensordot
zeros_like = _namespace.zeros_like
