"""Constants of a graph: small arrays that stand in an attribute, so that files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft._registry.avals import Aval, as_dtype
from weft._registry.gradients import no_gradient
from weft._registry.op import register_op

#: Elements that a constant has at most: larger results are computed anew.
LARGEST = 1024


def _infer(*, shape: tuple[int, ...], dtype: Any, values: tuple[Any, ...]) -> Aval:
    del values
    return Aval(tuple(shape), as_dtype(dtype))


@register_op("constant", infer=_infer)
def constant(out: np.ndarray[Any, Any], *, shape: tuple[int, ...], dtype: Any, values: tuple[Any, ...]) -> None:
    del dtype
    out[...] = np.array(values, out.dtype).reshape(shape)


no_gradient("constant")


constant.set_attribute("num_inputs", 0)
