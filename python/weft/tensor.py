"""Tensors under SINGA's names: arrays that are made by their shape, and functions of them.

A `Tensor` is an `NDArray` with a name and with methods that overwrite it; results are plain arrays. Everything of weft takes
either.

>>> import numpy as np
>>> from weft import tensor
>>> x = tensor.from_numpy(np.array([[1.0, 2.0]], np.float32))
>>> tensor.mult(x, tensor.transpose(x))
NDArray([[5.]], dtype=float32)
"""

from weft._numpy import namespace as _weft
from weft._registry.avals import as_dtype as _as_dtype
from weft._singa.models.functions import (
    add_column as add_column,
    add_row as add_row,
    average as average,
    axpy as axpy,
    bernoulli as bernoulli,
    concatenate as concatenate,
    contiguous as contiguous,
    copy_data_to_from as copy_data_to_from,
    copy_from_numpy as copy_from_numpy,
    einsum as einsum,
    from_numpy as from_numpy,
    from_raw_tensor as from_raw_tensor,
    from_raw_tensors as from_raw_tensors,
    gaussian as gaussian,
    mult as mult,
    ones as ones,
    pow as pow,
    product as product,
    random as random,
    repeat as repeat,
    reshape as reshape,
    sigmoid as sigmoid,
    sizeof as sizeof,
    softmax as softmax,
    sum as sum,
    sum_columns as sum_columns,
    sum_rows as sum_rows,
    tensordot as tensordot,
    to_host as to_host,
    to_numpy as to_numpy,
    transpose as transpose,
    uniform as uniform,
    zeros as zeros,
)
from weft._singa.models.tensors import Tensor as Tensor
from weft._singa.names import comparison as _comparison, into_ret as _into_ret, of_t as _of_t

int32, float16, float32 = map(_as_dtype, ("int32", "float16", "float32"))

abs = _of_t("abs", _weft.abs, "the absolute values")
ceil = _of_t("ceil", _weft.ceil, "the smallest integers that are not below the elements")
exp = _of_t("exp", _weft.exp, "the exponentials")
log = _of_t("log", _weft.log, "the natural logarithms")
sign = _of_t("sign", _weft.sign, "the signs: -1, 0 or 1")
sqrt = _of_t("sqrt", _weft.sqrt, "the square roots")
square = _of_t("square", _weft.square, "the squares")
tanh = _of_t("tanh", _weft.tanh, "the hyperbolic tangents")
zeros_like = _of_t("zeros_like", _weft.zeros_like, "zeros, as many and of the same dtype")
ones_like = _of_t("ones_like", _weft.ones_like, "ones, as many and of the same dtype")
lt = _comparison("lt", _weft.less, "where the elements of `t` are less than those of `x`")
le = _comparison("le", _weft.less_equal, "where the elements of `t` are at most those of `x`")
gt = _comparison("gt", _weft.greater, "where the elements of `t` are greater than those of `x`")
ge = _comparison("ge", _weft.greater_equal, "where the elements of `t` are at least those of `x`")
eq = _comparison("eq", _weft.equal, "where elements are equal")
add = _into_ret("add", _weft.add, "the sum")
sub = _into_ret("sub", _weft.subtract, "the difference")
eltwise_mult = _into_ret("eltwise_mult", _weft.multiply, "the product, element by element")
div = _into_ret("div", _weft.divide, "the quotient")

#: SINGA's other name of `Tensor`.
PlaceHolder = Tensor

# Type checkers go by the imports above.
globals()["__all__"] = sorted(name for name in globals() if name[0] != "_")
