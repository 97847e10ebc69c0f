"""Gradients as graphs, by the rules that the tape has: the same numbers, of the first order and of the second."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from gradient.cases import CASES, Case
from weft.errors import GradientError, GraphError
from weft.symbol import Group, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

#: Ops whose rules are checked on symbols: element-wise, reductions, products, shapes.
_OPS = [
    "abs", "acos", "acosh", "add", "angle", "asin", "asinh", "atan", "atan2", "atanh", "broadcast_to", "cbrt",
    "clip", "concat", "copysign", "cos", "cosh", "cumulative_prod", "cumulative_sum", "degrees", "diagonal",
    "divide", "exp", "exp2", "expand_dims", "expm1", "flip", "float_power", "fmax", "fmin", "hypot", "log",
    "log10", "log1p", "log2", "logaddexp", "logaddexp2", "matmul", "max", "maximum", "mean", "min", "minimum",
    "multiply", "negative", "permute_dims", "pow", "prod", "radians", "reciprocal", "roll", "sign", "sin",
    "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum", "tan", "tanh",
    "tensordot", "tile", "tril", "triu", "vecdot", "var", "linalg.det", "linalg.inv", "linalg.solve",
]  # fmt: skip


def _is_real(case: Case) -> bool:
    return all(each.dtype == np.float64 and each.size > 0 for each in case.operands)


def _variables(case: Case) -> list[Symbol]:
    return [Variable(f"x{at}", shape=x.shape, dtype="float64") for at, x in enumerate(case.operands)]


def _takes_symbols(case: Case) -> bool:
    """Return whether a case is of its operands alone: one with an array of its own takes no symbols."""
    try:
        case.function(*_variables(case))
    except GraphError:
        return False
    return True


_CASES = [
    pytest.param(case, id=f"{op}-{at}")
    for op in _OPS
    for at, case in enumerate(CASES[op])
    if _is_real(case) and _takes_symbols(case)
]


def _values(case: Case) -> dict[str, Any]:
    return {f"x{at}": x for at, x in enumerate(case.operands)}


def _eager(function: Callable[..., Any], operands: Any) -> list[Any]:
    arrays = [weft.asarray(x) for x in operands]
    for x in arrays:
        x.requires_grad = True
    y = function(*arrays)
    found = weft.autograd.gradients(y, weft.asarray(np.ones(y.shape)))
    return [found[x].numpy() if x in found else np.zeros(x.shape) for x in arrays]


def _same(found: list[weft.NDArray], expected: list[Any]) -> None:
    assert [x.shape for x in found] == [x.shape for x in expected]
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("case", _CASES)
def test_gradients_are_the_tapes(case: Case) -> None:
    found = case.function(*_variables(case)).gradient(list(_values(case))).eval(**_values(case))
    _same(found, _eager(case.function, case.operands))


@pytest.mark.parametrize("op", ["tanh", "exp", "multiply", "divide", "pow", "sum", "matmul", "permute_dims", "maximum"])
def test_second_derivatives_are_the_tapes(op: str) -> None:
    case = next(case for case in CASES[op] if _is_real(case))

    def function(*arrays: Any) -> Any:
        return weft.sum(case.function(*arrays) * weft.sin(case.function(*arrays)))

    def slope(*arrays: Any) -> Any:
        grads = weft.grad(function, argnums=tuple(range(len(arrays))))(*arrays)
        return sum(weft.sum(grad * grad) for grad in grads)

    names = list(_values(case))
    first = function(*_variables(case)).gradient(names)
    squares = [weft.sum(first[at] * first[at]) for at in range(len(names))]
    total: Any = squares[0]
    for each in squares[1:]:
        total = operator.add(total, each)
    _same(total.gradient(names).eval(**_values(case)), _eager(slope, case.operands))


def test_rules_of_several_results_get_zeros_for_those_that_nothing_rests_on() -> None:
    x, y = Variable("x"), Variable("y")
    whole, rest = weft.divmod(x, y)
    assert rest.gradient(["x", "y"]).eval(x=[7.5], y=[2.0])[1].tolist() == [-3]
    assert whole.gradient(["x", "y"]).eval(x=[7.5], y=[2.0])[1].tolist() == [0]
    assert Group([whole, rest]).gradient(["x"]).eval(x=[7.5], y=[2.0])[0].tolist() == [1]


def test_axes_that_are_not_named_are_reversed() -> None:
    x = Variable("x")
    found = (x.T * Variable("w")).gradient(["x"]).eval(x=np.zeros((2, 3)), w=np.arange(6.0).reshape(3, 2))[0]
    assert found.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_ops_without_a_rule_are_named_with_what_they_rest_on() -> None:
    @weft.register_op("test_gradients_none", infer=weft.ops.like_first)
    def without(out: Any, x: Any, y: Any) -> None:
        np.add(x, y, out=out)

    without.set_attribute("infer_shape", "same")
    y = weft.symbol.test_gradients_none(Variable("x"), Variable("w"), name="odd")
    with pytest.raises(GradientError, match=r"'odd'.* has no gradient, and it rests on x and w: give the op a rule"):
        y.gradient(["x", "w"])
