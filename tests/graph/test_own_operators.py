"""Operators that users write, over symbols: `backward` is what the gradient pass asks."""

from __future__ import annotations

from typing import Any

import pytest

import weft
from weft import autograd
from weft.errors import GraphError


class Scaled(autograd.Operator):
    """Two results, a number among the operands; the gradient is none that rules would give."""

    def forward(self, x: Any, factor: float, y: Any) -> Any:
        self.save(x, y)
        self.factor = factor
        return x * factor, y

    def backward(self, dx: Any, dy: Any) -> Any:
        x, y = self.saved
        return dx * y + 100 * self.factor, None, dy * x


def _composed() -> weft.symbol.Symbol:
    x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    return weft.symbol.Group(list(Scaled()(x, 2.0, weft.exp(y))))


def test_the_pass_asks_backward() -> None:
    found = _composed().gradient(["x", "y"]).eval(x=weft.full(2, 3.0), y=weft.zeros(2))
    assert [each.tolist() for each in found] == [[201.0, 201.0], [3.0, 3.0]]


def test_values_and_shapes_are_those_of_forward() -> None:
    symbol = _composed()
    assert [each.tolist() for each in symbol.eval(x=weft.full(2, 3.0), y=weft.zeros(2))] == [[6.0, 6.0], [1.0, 1.0]]
    assert symbol.infer_shape(x=(2, 3), y=(3,)) == ([(2, 3), (3,)], [(2, 3), (3,)], [])


def test_an_executor_trains_through_it() -> None:
    executor = _composed().simple_bind(x=(2,), y=(2,))
    executor.forward(is_train=True, x=weft.full(2, 3.0), y=weft.zeros(2))
    executor.backward()
    assert executor.grad_dict["x"].tolist() == [201.0, 201.0]
    assert executor.grad_dict["y"].tolist() == [3.0, 3.0]


def test_the_tape_through_a_symbol_asks_backward_as_well() -> None:
    symbol = _composed()

    def loss(x: Any) -> Any:
        return symbol.eval(x=x, y=weft.zeros(2))[0].sum()

    assert weft.grad(loss)(weft.full(2, 3.0)).tolist() == [201.0, 201.0]


def test_files_cannot_hold_one() -> None:
    with pytest.raises(GraphError, match=r"Scaled.*no file can hold"):
        _composed().tojson()


def test_mistakes_name_the_operator() -> None:
    class Short(autograd.Operator):
        def forward(self, x: Any, y: Any) -> Any:
            return x * y

        def backward(self, dy: Any) -> Any:
            return dy

    x, y = weft.symbol.Variable("x"), weft.symbol.Variable("y")
    with pytest.raises(GraphError, match=r"Short.*1 gradients? for 2 inputs"):
        Short()(x, y).gradient(["x"])
    with pytest.raises(GraphError, match=r"Short.*NDArray"):
        Short()(x, weft.ones(2))


def test_entries_are_numbered_by_what_outputs_lists() -> None:
    indexed = weft.graph.Graph(_composed()).indexed_graph()
    numbers = [indexed.entry_id(entry) for entry in indexed.outputs]
    assert numbers == [indexed.entry_id(node, index) for node, index, _ in indexed.outputs]
    assert len(set(numbers)) == 2
