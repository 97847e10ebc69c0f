"""Ops that tests of graphs share: a layer with parameters, and one with states, as networks have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.ops import Aval


def _dense_rule(x: Aval, weight: Aval, bias: Aval, *, units: int) -> Aval:
    del weight, bias
    return Aval((x.shape[0], units), x.dtype)


@weft.register_op("test_dense", infer=_dense_rule)
def dense(out: Any, x: Any, weight: Any, bias: Any, *, units: int) -> None:
    del units
    np.copyto(out, x.reshape(x.shape[0], -1) @ weight.T + bias)


dense.set_attribute("infer_shape", "dense")
dense.set_attribute("infer_type", "same")
dense.set_attribute("input_names", ("data", "weight", "bias"))


def _norm_rule(x: Aval, gamma: Aval, moving: Aval) -> Aval:
    del gamma, moving
    return x


@weft.register_op("test_norm", infer=_norm_rule, mutates=[2])
def norm(out: Any, x: Any, gamma: Any, moving: Any) -> None:
    moving += 1
    np.copyto(out, x * gamma[:, None] if x.ndim > 1 else x * gamma)


norm.set_attribute("infer_shape", "batch_norm")
norm.set_attribute("infer_type", "same")
norm.set_attribute("input_names", ("data", "gamma", "moving"))


@weft.register_op("test_sum", infer=weft.ops.broadcast_same_dtype)
def sum_of(out: Any, *parts: Any) -> None:
    np.copyto(out, sum(parts))


sum_of.set_attribute("num_inputs", None)
sum_of.set_attribute("infer_shape", "same")
sum_of.set_attribute("gradient", lambda node, grads: [grads[0]] * len(node.inputs))


@weft.register_op("test_square", infer=weft.ops.like_first, inplace=[(0, 0)])
def square(out: Any, x: Any) -> None:
    np.multiply(x, x, out=out)


square.set_attribute("infer_shape", "same")
square.set_attribute("gradient", lambda node, grads: [product_of(sum_of(grads[0], grads[0]), node.inputs[0])])


@weft.register_op("test_product", infer=weft.ops.broadcast_same_dtype)
def product_of(out: Any, a: Any, b: Any) -> None:
    np.multiply(a, b, out=out)


product_of.set_attribute("infer_shape", "same")
product_of.set_attribute(
    "gradient",
    lambda node, grads: [product_of(grads[0], node.inputs[1]), product_of(grads[0], node.inputs[0])],
)


@pytest.fixture
def mlp() -> weft.symbol.Symbol:
    """Two layers with an activation between."""
    x = weft.symbol.Variable("data")
    hidden = weft.symbol.test_dense(x, name="fc1", units=1000)
    return weft.symbol.test_dense(weft.tanh(hidden), name="fc2", units=10)
