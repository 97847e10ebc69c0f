"""How much memory a training step takes as a program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft
from weft import autograd

if TYPE_CHECKING:
    from collections.abc import Callable

Array = weft.NDArray

LAYERS, WIDE, BATCH = (
    24,
    128,
    128,
)  # the widths of the target are four times as large: their ratio to the batch is half of this


def parameters(*, graded: bool) -> list[Array]:
    random = np.random.default_rng(3)
    made: list[Array] = []
    for _ in range(LAYERS):
        made.append(weft.asarray(random.standard_normal((WIDE, WIDE)).astype(np.float32) / np.float32(WIDE**0.5)))
        made.append(weft.zeros(WIDE, dtype=np.float32))
    for each in made:
        each.requires_grad = graded
    return made


def loss_of(params: list[Array], x: Array, y: Array) -> Array:
    for at in range(LAYERS):
        x = weft.tanh(x @ params[2 * at] + params[2 * at + 1])
    rest = x - y
    return weft.mean(rest * rest)


def descend(parameter: Array, gradient: Array) -> None:
    parameter -= 0.01 * gradient


def as_they_come(params: list[Array], x: Array, y: Array) -> Array:
    loss = loss_of(params, x, y)
    for parameter, gradient in autograd.backward(loss):
        with autograd.no_grad():
            descend(parameter, gradient)
    return loss


def all_together(params: list[Array], x: Array, y: Array) -> Array:
    loss, gradients = weft.value_and_grad(loss_of)(params, x, y)
    for parameter, gradient in zip(params, gradients, strict=True):
        descend(parameter, gradient)
    return loss  # type: ignore[no-any-return]


@pytest.mark.parametrize("memory", ["balanced", "min", "speed"])
@pytest.mark.parametrize(("step", "graded"), [(as_they_come, True), (all_together, False)])
def test_updates_move_up_to_where_their_gradient_is(step: Callable[..., Array], graded: bool, memory: Any) -> None:
    random = np.random.default_rng(4)
    batch = [weft.asarray(random.standard_normal((BATCH, WIDE)).astype(np.float32)) for _ in range(2)]
    program = weft.program(step, memory=memory)
    ours, theirs = parameters(graded=graded), parameters(graded=graded)
    for _ in range(2):
        assert program(ours, *batch).item() == step(theirs, *batch).item()
    for one, other in zip(ours, theirs, strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()
    (made,) = program.programs
    activations = LAYERS * BATCH * WIDE * 4
    assert made.nbytes <= 1.25 * activations
    assert made.nbytes <= 0.62 * made.eager_nbytes


def test_recomputation_of_a_deep_chain_takes_a_third_of_the_memory_at_a_third_more_products() -> None:
    count, segment = 64, 8
    random = np.random.default_rng(5)
    params = [weft.asarray(random.standard_normal((32, 32)).astype(np.float32) / np.float32(6)) for _ in range(count)]
    x = weft.asarray(random.standard_normal((512, 32)).astype(np.float32))

    def block(x: Array, params: list[Array]) -> Array:
        for each in params:
            x = weft.tanh(x @ each)
        return x

    def step_by(run: Callable[..., Array]) -> weft.ProgramFunction:
        def loss(params: list[Array], x: Array) -> Array:
            for at in range(0, count, segment):
                x = run(x, params[at : at + segment])
            return weft.mean(x * x)

        return weft.program(weft.value_and_grad(loss))

    plain, again = step_by(block), step_by(weft.checkpoint(block))
    one, other = plain(params, x), again(params, x)
    assert one[0].item() == other[0].item()
    for ours, theirs in zip(other[1], one[1], strict=True):
        assert ours.numpy().tobytes() == theirs.numpy().tobytes()
    kept, less = plain.programs[0], again.programs[0]
    assert less.nbytes <= kept.nbytes / 3
    products = [sum(name == "matmul" for name in made._compiled.names) for made in (less, kept)]
    # A segment's last layer is not computed again, as its result is the next one's argument.
    assert products[0] <= (4 / 3 - 1 / (3 * segment)) * (products[1] + 1)  # the first gradient of x is not asked for
