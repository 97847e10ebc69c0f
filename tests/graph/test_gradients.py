"""Gradients as graphs, by the rules that the tape has: the same numbers, of the first order and of the second."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from gradient.cases import CASES, Case
from gradient.kernel_cases import KERNELS
from weft._tape.pytree import flatten
from weft.errors import GradientError, GraphError
from weft.symbol import Group, Symbol, Variable

if TYPE_CHECKING:
    from collections.abc import Callable

#: Ops that no case reaches with symbols: their cases write into arrays, or ask for values of a shape.
_NOT_OF_SYMBOLS = {"setitem", "assign"}
_SOME = np.array([[0.4, np.nan, -0.3], [0.9, 0.2, np.nan]])
_ALL = CASES | KERNELS
#: Cases of variables alone, in the place of such as have an array of their own.
_ALL |= {
    **{
        name: [Case(getattr(weft, name), (_SOME,)), Case(partial(getattr(weft, name), axis=-1), (_SOME,))]
        for name in ("nansum", "nanmean", "nanprod", "nanmax", "nanmin", "nanvar", "nanstd", "nanmedian")
    },
    "nan_to_num": [Case(weft.nan_to_num, (_SOME,))],
    "where": [Case(lambda x, y: weft.where(x > y, x, y * y), (_SOME[:, :1], _SOME[:, :1] ** 2))],
}


def _is_real(case: Case) -> bool:
    return all(each.dtype == np.float64 and each.size > 0 for each in case.operands)


def _variables(case: Case) -> list[Symbol]:
    return [Variable(f"x{at}", shape=x.shape, dtype=x.dtype) for at, x in enumerate(case.operands)]


def _values(case: Case) -> dict[str, Any]:
    return {f"x{at}": x for at, x in enumerate(case.operands)}


def _eager(function: Callable[..., Any], operands: Any) -> list[Any]:
    y, pull = weft.vjp(lambda *arrays: tuple(flatten(function(*arrays))[0]), *map(weft.asarray, operands))
    return [each.numpy() for each in pull(tuple(map(weft.ones_like, y)))]


def _composed(case: Case) -> Symbol | None:
    """Return a case of variables of which nothing is known, or else of known ones; None if it has arrays of its own."""
    for variables in (list(map(Variable, _values(case))), _variables(case)):
        try:
            return Group(flatten(case.function(*variables))[0])
        except (GraphError, IndexError):  # IndexError of a mask
            continue
    return None


def _same(found: list[weft.NDArray], expected: list[Any]) -> None:
    assert [(x.shape, x.dtype) for x in found] == [(x.shape, x.dtype) for x in expected]
    for ours, theirs in zip(found, expected, strict=True):
        rtol = 1e-12 if theirs.dtype.name in ("float64", "complex128") else 1e-5
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("op", sorted(_ALL.keys() - _NOT_OF_SYMBOLS))
def test_gradients_are_the_tapes(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every op with a rule, of variables without shapes and dtypes."""
    checked = 0
    for case in _ALL[op]:
        with monkeypatch.context() as patched:  # the arrays that cases have of their own become constants
            patched.setattr(weft, "asarray", np.asarray)
            patched.setattr(weft, "eye", np.eye)
            symbol = _composed(case)
        if symbol is None:
            continue
        checked += 1
        found = symbol.gradient(list(_values(case)))
        try:
            values = found.eval(**_values(case))
        except IndexError:  # a key is a mask, of which the number of true elements is not known
            continue
        _same(values, _eager(case.function, case.operands))
        shapes = {name: each.shape for name, each in _values(case).items()}
        dtypes = {name: each.dtype for name, each in _values(case).items()}
        assert found.infer_shape(**shapes)[1] == list(shapes.values())
        assert found.infer_type(**dtypes)[1] == list(dtypes.values())
    assert checked, "no case takes symbols"


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


def test_a_rule_from_outside_is_refused_a_wrong_shape() -> None:
    """Whichever knows the shapes first: the inference, or the run."""
    op = weft.register_op("guide_wrong_bias", infer=lambda x, _bias: x)(lambda out, x, bias: np.add(x, bias, out=out))
    x, bias = weft.symbol.Variable("x"), weft.symbol.Variable("bias")
    arrays = {"x": np.ones((8, 4)), "bias": np.ones(4)}
    op.set_attribute("gradient", lambda _node, grads: (grads[0], grads[0]))
    wrong = op(x, bias).gradient(["x", "bias"])
    refusal = (
        r"gradient rule of 'guide_wrong_bias' returned an array of shape \(8, 4\) for input 1, which is of shape \(4,\)"
    )
    with pytest.raises(weft.errors.GradientError, match=refusal):
        wrong.eval(**arrays)
    with pytest.raises(weft.errors.ShapeError, match=refusal):
        wrong.infer_shape(x=(8, 4), bias=(4,))
    op.set_attribute("gradient", lambda _node, grads: (grads[0], grads[0].sum(axis=0)), level=11)
    right = op(x, bias).gradient(["x", "bias"])
    for symbol in (right, weft.symbol.load_json(right.tojson())):
        assert [each.shape for each in symbol.eval(**arrays)] == [(8, 4), (4,)]
