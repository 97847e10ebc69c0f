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

from weft._singa.models.functions import (
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
from weft._singa.models.tensor_names import (
    abs,  # noqa: A004 - SINGA's
    add,
    ceil,
    concatenate,
    div,
    einsum,
    eltwise_mult,
    eq,
    exp,
    ge,
    gt,
    le,
    log,
    lt,
    ones_like,
    repeat,
    reshape,
    sign,
    sqrt,
    square,
    sub,
    tanh,
    tensordot,
    zeros_like,
)
from weft._singa.models.tensors import Tensor

__all__ = [
    "PlaceHolder",
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

#: SINGA's other name of `Tensor`.
PlaceHolder = Tensor
