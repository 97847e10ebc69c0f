"""Linear algebra: the `linalg` extension of the Python array API standard, and NumPy's additions to it.

Matrices are the last two axes; all others are a stack. Shapes and dtypes are checked at the call; a mistake that only
the values can show, as a singular matrix, is a `numpy.linalg.LinAlgError` that comes out at the wait. Integers and bool
compute in float64.
"""

from numpy.linalg import LinAlgError

from weft._numpy.arguments import completed as _completed
from weft._ops.linalg import (
    EighResult,
    EigResult,
    QRResult,
    SlogdetResult,
    SVDResult,
    cholesky,
    cond,
    det,
    diagonal,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lstsq,
    matrix_norm,
    matrix_power,
    matrix_rank,
    multi_dot,
    norm,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    svdvals,
    trace,
    vector_norm,
)
from weft._ops.manipulation import matrix_transpose
from weft._ops.matrices import cross
from weft._ops.products import matmul, tensordot, vecdot

__all__ = [
    "EigResult", "EighResult", "LinAlgError", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cond", "cross",
    "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "multi_dot", "norm", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip

globals().update(_completed("linalg", {name: globals()[name] for name in __all__}))
