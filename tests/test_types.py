"""Types as a checker sees them: programs, gradients and layers have the signatures of what they are made of.

`make lint` checks this file; pytest runs it, as `assert_type` returns what it is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import weft
from weft import layer

if TYPE_CHECKING:
    from collections.abc import Callable


@weft.program
def scaled(x: weft.NDArray, by: float = 2.0) -> weft.NDArray:
    return x * by


@weft.program(memory="min")
def both(x: weft.NDArray) -> tuple[weft.NDArray, weft.NDArray]:
    return x, x + 1


class Net:
    @weft.program
    def step(self, x: weft.NDArray, *, rate: float) -> weft.NDArray:
        return x * rate


def loss(x: weft.NDArray, by: float) -> weft.NDArray:
    return weft.sum(x * by)


X = weft.ones((2, 3))


def test_programs_have_the_signatures_of_their_functions() -> None:
    assert_type(scaled(X, by=3.0), weft.NDArray)
    assert_type(both(X), tuple[weft.NDArray, weft.NDArray])
    assert_type(Net().step(X, rate=2.0), weft.NDArray)
    if TYPE_CHECKING:
        scaled("x")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
        scaled(X, times=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
        Net().step(X)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_gradients_have_the_arguments_of_their_functions() -> None:
    assert_type(weft.value_and_grad(loss)(X, 2.0), tuple[weft.NDArray, Any])
    assert_type(weft.checkpoint(loss)(X, 2.0), weft.NDArray)
    assert_type(weft.vmap(loss, in_axes=(0, None))(X, 2.0), weft.NDArray)
    gradient: Callable[[weft.NDArray, float], Any] = weft.grad(loss)
    assert gradient(X, 2.0).tolist() == [[2.0] * 3] * 2
    if TYPE_CHECKING:
        weft.grad(loss)(X)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_layers_are_called_as_their_forward_is() -> None:
    assert_type(layer.Linear(2)(X), weft.NDArray)
    assert_type(layer.LayerNorm()(X), weft.NDArray)
    assert_type(layer.MeanSquareError()(X, X), weft.NDArray)
    if TYPE_CHECKING:
        layer.MeanSquareError()(X)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
