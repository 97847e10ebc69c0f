"""The registry of array functions: the name of an op, its rule, and its computation.

Every array function of weft is an `Op` here, under its name in the Python array API standard and NumPy's, so that eager
arrays, captured programs and symbolic graphs share one set of ops. A user's op takes five lines and stands beside them:

>>> import numpy as np, weft
>>> @weft.ops.register_op("doctest_clip01", infer=weft.ops.like_first)
... def clip01(out: np.ndarray, x: np.ndarray) -> None:
...     np.clip(x, 0, 1, out=out)
>>> clip01(weft.asarray([-1.0, 0.5, 2.0]))
NDArray([0. , 0.5, 1. ])

This module knows names and rules only; `weft._call` takes their calls to the engine.
"""

from weft._registry.avals import (
    Aval as Aval,
    as_dtype as as_dtype,
    broadcast_of_ufunc as broadcast_of_ufunc,
    broadcast_same_dtype as broadcast_same_dtype,
    broadcast_shapes as broadcast_shapes,
    like_first as like_first,
    result_dtype as result_dtype,
    scalar_dtype as scalar_dtype,
    ufunc_dtypes as ufunc_dtypes,
)
from weft._registry.op import (
    Group as Group,
    Op as Op,
    attribute_map as attribute_map,
    get_op as get_op,
    group as group,
    list_ops as list_ops,
    register_op as register_op,
)
