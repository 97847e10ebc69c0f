"""Recurrent cells, planned over many steps: states lie where the ones before lay, and nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft import graph, nn
from weft.symbol import Variable

STEPS = 20


def unrolled(kind: str, x: list[Any], states: list[Any], weights: list[Any]) -> Any:
    for each in x:
        if kind == "lstm":
            states = list(nn.lstm_cell(each, *states, *weights))
        else:
            states = [nn.gru_cell(each, *states, *weights)]
    return states[0]


def shapes(kind: str, *, wide: int) -> tuple[dict[str, tuple[int, ...]], list[str], list[str]]:
    gates, states = (4, ["h", "c"]) if kind == "lstm" else (3, ["h"])
    weights = {"w_x": (gates * wide, wide), "w_h": (gates * wide, wide), "b_x": (gates * wide,), "b_h": (gates * wide,)}
    return (
        {**{f"x{at}": (4, wide) for at in range(STEPS)}, **dict.fromkeys(states, (4, wide)), **weights},
        states,
        [*weights],
    )


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_a_plan_of_many_steps_is_near_the_peak_and_changes_no_bit(kind: str) -> None:
    known, states, weights = shapes(kind, wide=64)
    inputs = [f"x{at}" for at in range(STEPS)]
    named = {name: Variable(name, shape=shape) for name, shape in known.items()}
    net = unrolled(kind, *([named[name] for name in names] for names in (inputs, states, weights)))
    sized = graph.infer_type(graph.infer_shape(graph.Graph(net)))
    found = graph.plan_memory(sized).attrs
    assert found["storage_allocated_bytes"] <= 1.05 * found["storage_peak_live_bytes"]

    draw = np.random.default_rng(3)
    arrays = {name: weft.asarray(draw.normal(0, 0.3, shape).astype("float32")) for name, shape in known.items()}
    executor = net.bind(arrays, args_grad={"w_h": weft.zeros(known["w_h"], dtype="float32")}, grad_req={"w_h": "write"})
    planned = executor.forward(is_train=True)[0].numpy()
    executor.backward()
    watched = {**arrays, "w_h": weft.asarray(arrays["w_h"].numpy())}
    watched["w_h"].requires_grad = True
    eager = unrolled(kind, *([watched[name] for name in names] for names in (inputs, states, weights)))
    ((_, gradient),) = weft.autograd.backward(eager, weft.ones(eager.shape, dtype="float32"))
    np.testing.assert_array_equal(planned, eager.numpy())
    np.testing.assert_allclose(executor.grad_dict["w_h"].numpy(), gradient.numpy(), rtol=2e-5, atol=1e-5)
